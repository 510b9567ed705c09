"""Two runs -> what changed between them, check by check."""

from __future__ import annotations

import enum
import functools
from collections import Counter
from typing import NamedTuple

from conformance.difference import Values, difference
from conformance.expand import NOT_RUN, UNSUPPORTED
from conformance.results import CaseLine, CheckLine, Entry, Key, Outline, ResultsError


class Change(enum.StrEnum):
    """What a change is, the worst first."""

    BROKEN = "no longer as expected"
    LOST = "no longer supported"
    BLIND = "could not run"
    OUTCOME = "another outcome"
    OBSERVATION = "same outcome, another observation"
    MENDED = "as expected now"
    GAINED = "supported now"
    SEEN = "could run now"
    GONE = "gone"
    NEW = "new"


class Changed(NamedTuple):
    """A check that two runs do not agree on. One of the two lines is missing where the check is new or gone."""

    change: Change
    before: CheckLine | None
    after: CheckLine | None
    difference: str = ""
    """What sets the observations apart, where the outcome is the same."""

    @property
    def line(self) -> CheckLine:
        line = self.after or self.before
        assert line is not None
        return line


class Comparison(NamedTuple):
    """All that two runs do not agree on, worst first, and how much they could be compared."""

    before: Outline
    after: Outline
    changed: list[Changed]
    compared: list[Key]
    """Checks that both runs have, of cases that are the same in both, and that could run in one of them at least."""
    blind: int
    """Checks that could run in neither."""
    edited: list[str]
    """Cases that say something else in one run than in the other, which are not compared."""
    alone: dict[str, int]
    """Checks of frameworks that only one of the two runs is about."""
    shortened: int
    """Results too long for the files, of which only the first values could be compared."""

    @property
    def cases(self) -> dict[str, CaseLine]:
        return self.before.cases | self.after.cases

    @property
    def complete(self) -> bool:
        return self.before.complete and self.after.complete


def compare(before: Outline, after: Outline) -> Comparison:
    """Compare where the runs meet. Raises ResultsError where they cannot be compared at all."""
    _one_device(before, after)
    edited = sorted(
        name for name in before.cases.keys() & after.cases.keys() if before.cases[name].digest != after.cases[name].digest
    )
    old, new = by_identity(before), by_identity(after)
    skipped = set(edited)
    both = [name for name in old.keys() & new.keys() if old[name].key.case not in skipped]
    values = Values(before.path, after.path)
    changed = []
    blind = []
    for name in both:
        if (raw := old[name].raw) != new[name].raw:
            found = changed_check(before.check(old[name]), after.check(new[name]), before.cases.get(old[name].key.case), values)
            changed += [found] if found else []
        if _NOT_RUN in raw and _NOT_RUN in new[name].raw and _both_blind(before.check(old[name]), after.check(new[name])):
            blind.append(name)
    if len(both) == len(blind):
        raise ResultsError(_nothing(before, after, edited, len(blind)))
    one = [Changed(Change.GONE, before.check(old[n]), None) for n in _only(old, new)]
    one += [Changed(Change.NEW, None, after.check(new[n])) for n in _only(new, old)]
    unlit = set(blind)
    return Comparison(
        before,
        after,
        sorted([*changed, *one], key=_rank),
        [old[name].key for name in both if name not in unlit],
        len(blind),
        edited,
        dict(Counter(framework_of(entry.key.target) for entry in [*_alone(old, new), *_alone(new, old)])),
        values.shortened,
    )


_NOT_RUN = f'"outcome":"{NOT_RUN}"'.encode()


def by_identity(run: Outline) -> dict[str, Entry]:
    """The checks of a run by their names. Raises ResultsError where two have one name."""
    found: dict[str, Entry] = {}
    for entry in run.entries:
        if (name := entry.key.identity) in found:
            raise ResultsError(f"{run.path} has two lines for {name}: it was edited, or badly merged")
        found[name] = entry
    return found


def changed_check(before: CheckLine, after: CheckLine, case: CaseLine | None, values: Values) -> Changed | None:
    """What became of one check; None where nothing did."""
    change = _kind(before, after)
    if change:
        return Changed(change, before, after)
    why = difference(before.observation, after.observation, case.tolerance if case else None, values)
    return Changed(Change.OBSERVATION, before, after, why) if why else None


def _kind(before: CheckLine, after: CheckLine) -> Change | None:
    """What changed in the outcome; None where that is the same, though another may be expected of another version."""
    if before.outcome == after.outcome:
        return None
    if NOT_RUN in (before.outcome, after.outcome):
        return Change.BLIND if after.outcome == NOT_RUN else Change.SEEN
    if before.passed and not after.passed:
        return Change.BROKEN
    if UNSUPPORTED in (before.outcome, after.outcome):
        return Change.LOST if after.outcome == UNSUPPORTED else Change.GAINED
    if after.passed and not before.passed:
        return Change.MENDED
    return Change.OUTCOME


# --- what can be compared


def _one_device(before: Outline, after: Outline) -> None:
    devices = [_device(run) for run in (before, after)]
    if devices[0] != devices[1]:
        raise ResultsError(f"{before.path} ran on {devices[0]} and {after.path} on {devices[1]}: compare runs of one device")


def _device(run: Outline) -> str:
    """What a run says that it ran on, which is also where its checks say that they ran."""
    said = {entry.key.target.partition("@")[2] for entry in run.entries if ":aot@" not in entry.key.target}
    if "device" in run.header.environment:
        said.add(str(run.header.environment["device"]))
    if len(said) > 1:
        raise ResultsError(f"{run.path} has checks on {' and on '.join(sorted(said))}: compare one device at a time")
    return said.pop() if said else "nothing"


def _both_blind(before: CheckLine, after: CheckLine) -> bool:
    return before.outcome == after.outcome == NOT_RUN


def _nothing(before: Outline, after: Outline, edited: list[str], blind: int) -> str:
    why = "have no check in common"
    if edited:
        why += f" but those of edited cases ({len(edited)})"
    if blind:
        why = f"have {blind} checks in common, and none of them could run"
    return f"{before.path} and {after.path} {why}: nothing can be compared"


@functools.cache
def framework_of(target: str) -> str:
    """``torch/tape:eager@cpu`` is one of torch's."""
    return target.partition(":")[0].partition("@")[0].partition("/")[0]


def _only(these: dict[str, Entry], others: dict[str, Entry]) -> list[str]:
    """Checks that one run has of a framework that both are about."""
    known = {framework_of(entry.key.target) for entry in others.values()}
    return [name for name in these.keys() - others.keys() if framework_of(these[name].key.target) in known]


def _alone(these: dict[str, Entry], others: dict[str, Entry]) -> list[Entry]:
    """Checks of a framework that the other run did not ask for, which are neither new nor gone."""
    known = {framework_of(entry.key.target) for entry in others.values()}
    return [entry for entry in these.values() if framework_of(entry.key.target) not in known]


_RANKS = {change: index for index, change in enumerate(Change)}


def _rank(found: Changed) -> tuple[int, str]:
    return _RANKS[found.change], found.line.identity
