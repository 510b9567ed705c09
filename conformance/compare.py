"""Two runs -> what changed between them, check by check."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from conformance.expand import NOT_RUN, UNSUPPORTED
from conformance.judge import TOLERANCES
from conformance.results import CaseLine, CheckLine, ResultsError, Run

FAILED = ("crashed", "timed-out", NOT_RUN)
"""Outcomes that say nothing of the framework's behaviour."""


class Change(enum.StrEnum):
    """What a change is, the worst first."""

    BROKEN = "no longer as expected"
    LOST = "no longer supported"
    BLIND = "could not run"
    OUTCOME = "another outcome"
    OBSERVATION = "same outcome, another observation"
    GONE = "gone"
    MENDED = "as expected now"
    GAINED = "supported now"
    NEW = "new"


class Changed(NamedTuple):
    """A check that two runs do not agree on. One of the two lines is missing where the check is new or gone."""

    change: Change
    before: CheckLine | None
    after: CheckLine | None
    difference: str
    """What sets the observations apart, where the outcome is the same."""

    @property
    def line(self) -> CheckLine:
        line = self.after or self.before
        assert line is not None
        return line


class Comparison(NamedTuple):
    """All that two runs do not agree on, worst first, and how much they could be compared."""

    before: Run
    after: Run
    changed: list[Changed]
    compared: int
    """Checks that both runs have, of cases that are the same in both."""
    edited: list[str]
    """Cases that say something else in one run than in the other, which are not compared."""

    @property
    def cases(self) -> dict[str, CaseLine]:
        return self.before.cases | self.after.cases


def compare(before: Run, after: Run) -> Comparison:
    """Compare where the runs meet. Raises ResultsError where they cannot be compared at all."""
    devices = [run.header.environment.get("device") for run in (before, after)]
    if devices[0] != devices[1]:
        raise ResultsError(f"{before.path} ran on {devices[0]} and {after.path} on {devices[1]}: compare runs of one device")
    edited = sorted(
        name for name in before.cases.keys() & after.cases.keys() if before.cases[name].digest != after.cases[name].digest
    )
    skipped = set(edited)
    old, new = (_by_identity(run, skipped) for run in (before, after))
    if not old.keys() & new.keys():
        raise ResultsError(f"{before.path} and {after.path} have no check in common: nothing can be compared")
    changed = [found for name in old.keys() & new.keys() if (found := _changed(old[name], new[name]))]
    changed += [Changed(Change.GONE, old[name], None, "") for name in old.keys() - new.keys() if _is_there(old[name], after)]
    changed += [Changed(Change.NEW, None, new[name], "") for name in new.keys() - old.keys() if _is_there(new[name], before)]
    ranks = list(Change)
    changed.sort(key=lambda found: (ranks.index(found.change), found.line.identity))
    return Comparison(before, after, changed, len(old.keys() & new.keys()), edited)


def by_case(comparison: Comparison) -> Iterator[tuple[str, list[Changed]]]:
    """The changes of each case, the case with the worst change first."""
    ranks = {found.line.case: index for index, found in reversed(list(enumerate(comparison.changed)))}
    ordered = sorted(comparison.changed, key=lambda found: ranks[found.line.case])
    for case, group in itertools.groupby(ordered, key=lambda found: found.line.case):
        yield case, list(group)


def _by_identity(run: Run, skipped: set[str]) -> dict[str, CheckLine]:
    found: dict[str, CheckLine] = {}
    for line in run.checks:
        if line.identity in found:
            raise ResultsError(f"{run.path} has two lines for {line.identity}: it was edited, or badly merged")
        if line.case not in skipped:
            found[line.identity] = line
    return found


def _is_there(line: CheckLine, other: Run) -> bool:
    """Whether the other run was about the line's framework: what it did not ask for is neither new nor gone."""
    return line.target.partition(":")[0] in {check.target.partition(":")[0] for check in other.checks}


def _changed(before: CheckLine, after: CheckLine) -> Changed | None:
    change = _kind(before, after)
    if change:
        return Changed(change, before, after, "")
    difference = "" if before.observation == after.observation else _difference(before.observation, after.observation)
    return Changed(Change.OBSERVATION, before, after, difference) if difference else None


def _kind(before: CheckLine, after: CheckLine) -> Change | None:
    """What changed in the outcome; None where that is the same, though another may be expected of another version."""
    if before.outcome == after.outcome:
        return None
    if (before.outcome in FAILED) != (after.outcome in FAILED):
        return Change.BLIND if after.outcome in FAILED else Change.MENDED
    if before.passed and after.passed is False:
        return Change.BROKEN
    if before.passed is False and after.passed:
        return Change.MENDED
    if UNSUPPORTED in (before.outcome, after.outcome):
        return Change.LOST if after.outcome == UNSUPPORTED else Change.GAINED
    return Change.OUTCOME


# --- observations


def _difference(before: Any, after: Any, place: str = "") -> str:
    """What sets two observations apart; empty where it is rounding, or the wording of an error."""
    if isinstance(before, dict) and isinstance(after, dict):
        if "dtype" in before and "dtype" in after:
            return _arrays(before, after, place)
        for name in dict.fromkeys([*before, *after]):
            if name in ("message", "digest"):
                continue
            if name not in before or name not in after:
                return f"{_at(place, name)} is {'not ' if name not in after else ''}seen now"
            if why := _difference(before[name], after[name], _at(place, name)):
                return why
        return ""
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        whys = (_difference(a, b, f"{place}[{i}]") for i, (a, b) in enumerate(zip(before, after, strict=True)))
        return next(filter(None, whys), "")
    if isinstance(before, float) and isinstance(after, float) and _close(before, after, "float32"):
        return ""
    return "" if before == after else f"{place}: {before} -> {after}"


def _at(place: str, name: str) -> str:
    return f"{place}.{name}" if place else str(name)


def _arrays(before: dict[str, Any], after: dict[str, Any], place: str) -> str:
    for name in ("dtype", "shape"):
        if before.get(name) != after.get(name):
            return f"{place} {name}: {before.get(name)} -> {after.get(name)}"
    if "digest" in before and before.get("digest") == after.get("digest"):
        return ""
    part = "value" if "value" in before else "first"
    try:
        old, new = (np.asarray(side[part], complex if "complex" in before["dtype"] else float) for side in (before, after))
    except (KeyError, TypeError, ValueError):
        return "" if before == after else f"{place}: {before.get(part)} -> {after.get(part)}"
    return "" if _close(old, new, before["dtype"]) else f"{place}: {before[part]} -> {after[part]}"


def _close(a: Any, b: Any, dtype: str) -> bool:
    """Whether two results could both be right: twice as far apart as each may be from the truth."""
    rtol, atol = TOLERANCES.get(dtype, (0.0, 0.0))
    return bool(np.allclose(a, b, rtol=2 * rtol, atol=2 * atol, equal_nan=True))
