"""Changes that two runs showed -> those that are not to be seen when they are looked for again."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from conformance.compare import Change, Changed, by_identity, changed_check
from conformance.difference import Values
from conformance.results import CaseLine, CheckLine, Key
from conformance.side import Side, run_again
from conformance.wording import count


def unsteady(changed: Sequence[Changed], sides: tuple[Side, Side], cases: Sequence[Path]) -> set[str]:
    """Run the changed checks once more, where a side is a release. Names of those where nothing is changed any more.

    Raises ResultsError where the checks cannot be run again.
    """
    if not changed or not any(side.python for side in sides):
        return set()
    keys = [Key(found.line.case, found.line.row, found.line.target) for found in changed]
    print(f"running {count(len(keys), 'changed check')} again, to see whether the change holds", file=sys.stderr, flush=True)
    before, after = (run_again(side, cases, keys) for side in sides)
    old, new = by_identity(before), by_identity(after)
    found = set()
    for each in changed:
        name = each.line.identity
        if not _holds(each, before.check(old[name]), after.check(new[name]), before.cases.get(each.line.case)):
            found.add(name)
    return found


def _holds(first: Changed, before: CheckLine, after: CheckLine, case: CaseLine | None) -> bool:
    """Whether what was seen again is the same change: no side was at odds with itself."""
    assert first.before is not None
    assert first.after is not None
    if first.change is Change.OBSERVATION:
        return not _differ(first.before, before, case) and not _differ(first.after, after, case)
    return not {first.before.outcome, before.outcome} & {first.after.outcome, after.outcome}


def _differ(one: CheckLine, other: CheckLine, case: CaseLine | None) -> bool:
    return changed_check(one, other, case, Values(Path(), Path())) is not None
