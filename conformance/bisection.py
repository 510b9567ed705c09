"""The releases between two -> the first one that shows something else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from packaging.version import Version

from conformance.compare import Change, compare
from conformance.expand import NOT_RUN
from conformance.results import Outline, ResultsError
from conformance.wording import count


class Skipped(Exception):
    """A release that cannot be looked at; the text says why."""


class Shown(NamedTuple):
    """What a release showed."""

    text: str
    differs: bool | None
    """From the good one; None where the release could not be looked at."""


class Search(NamedTuple):
    """What came of it: of all releases that were tried, what each showed."""

    tried: dict[Version, Shown]
    good: Version
    """The last one that was seen to be as the good one is."""
    bad: Version
    """The first one that was not."""

    @property
    def between(self) -> list[Version]:
        """Releases that lie between the two and could not be looked at: it may have been one of them."""
        return sorted(version for version in self.tried if self.good < version < self.bad)


def search(versions: Sequence[Version], look: Callable[[Version], Outline]) -> Search:
    """Halve the versions, of which the first is good and the last bad. ``look`` raises Skipped, or what ends the search.

    Raises ResultsError where the two ends cannot be looked at, or do not differ.
    """
    left = sorted(versions)
    low, high = left[0], left[-1]
    norm = look(low)
    try:
        tried = {low: Shown(_outcomes(norm), False), high: _shown(norm, look(high))}
    except Skipped as why:
        raise ResultsError(f"{high}: {why}") from None
    if not tried[high].differs:
        raise ResultsError(f"{low} and {high} show the same: {tried[low].text}")
    while between := [version for version in left if low < version < high]:
        middle = between[len(between) // 2]
        try:
            tried[middle] = _shown(norm, look(middle))
        except Skipped as why:
            tried[middle] = Shown(str(why), None)
            left.remove(middle)
            continue
        low, high = (low, middle) if tried[middle].differs else (middle, high)
    return Search(dict(sorted(tried.items())), low, high)


def _shown(norm: Outline, run: Outline) -> Shown:
    changed = [found for found in compare(norm, run).changed if found.before and found.after]
    if any(found.change is Change.BLIND for found in changed):
        raise Skipped("its checks could not run")
    number = len(norm.entries)
    differ = f"; {len(changed)} of {count(number, 'check')} {'differs' if len(changed) == 1 else 'differ'}" if number > 1 else ""
    said = f" ({changed[0].difference})" if number == 1 and changed and changed[0].difference else ""
    return Shown(f"{_outcomes(run)}{said}{differ}", bool(changed))


def _outcomes(run: Outline) -> str:
    counts = Counter(run.check(entry).outcome for entry in run.entries)
    if set(counts) == {NOT_RUN}:
        raise ResultsError(f"none of the checks could run: {run.check(run.entries[0]).because}")
    if len(run.entries) == 1:
        return next(iter(counts))
    return ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items()))
