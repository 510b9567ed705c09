"""Several runs of the same checks -> those that do not agree with themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from conformance.compare import by_identity, changed_check
from conformance.difference import Values
from conformance.results import CheckLine, Outline
from conformance.wording import observation


class Unstable(NamedTuple):
    """A check, and what each run saw of it, in the runs' order."""

    name: str
    seen: list[str]


def unstable(runs: Sequence[Outline]) -> list[Unstable]:
    """The checks of which some run saw something else than the first one did."""
    first, *others = [by_identity(run) for run in runs]
    found = []
    for name, entry in first.items():
        if all(name in other and other[name].raw == entry.raw for other in others):
            continue
        lines = [run.check(checks[name]) if name in checks else None for run, checks in zip(runs, (first, *others), strict=True)]
        case = runs[0].cases.get(entry.key.case)
        before = runs[0].check(entry)
        if any(
            line is None or changed_check(before, line, case, Values(runs[0].path, run.path))
            for line, run in zip(lines, runs, strict=True)
        ):
            found.append(Unstable(name, [_seen(line) for line in lines]))
    return sorted(found)


def _seen(line: CheckLine | None) -> str:
    if line is None:
        return "nothing"
    facts = "; ".join(f"{fact.name} {' '.join(fact.text.split())}" for fact in observation(line.observation, line.because))
    return f"{line.outcome} ({facts[:300]})" if facts else line.outcome
