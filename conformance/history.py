"""Results files -> what each release of a framework showed, and where that changed from the release before."""

from __future__ import annotations

import collections
import functools
import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
from packaging.version import InvalidVersion, Version

from conformance.compare import Comparison, compare, framework_of
from conformance.difference import Values, difference
from conformance.kinds import Kind, kind
from conformance.results import CheckLine, Entry, Header, Key, Outline, ResultsError, Run, encode, read_times, whole


class Edition(NamedTuple):
    """What one release of a framework showed on one device."""

    framework: str
    device: str
    version: str
    run: Outline
    """The checks of this framework alone."""
    started: str
    """ISO date and time, or empty where nothing says it."""


class Step(NamedTuple):
    """From one release to the next."""

    before: Edition
    after: Edition
    comparison: Comparison | None
    """As the gate makes it; None where the two cannot be compared."""
    why: str
    """Why they cannot."""


class Span(NamedTuple):
    """Neighbouring releases, beginning with the ``first``, that showed the same of a check."""

    first: int
    kind: Kind | None
    """None where the check is not in these runs."""
    outcome: str
    expected: str
    observation: int
    """The same number, the same observation but for rounding, where the outcome is the same too."""
    text: int
    """Which text of the case was run: 0 is the newest; others are not to be compared with it."""


class Timeline(NamedTuple):
    """The releases of a framework on one device, the oldest first."""

    framework: str
    device: str
    editions: list[Edition]
    steps: list[Step]
    spans: dict[Key, list[Span]]

    @property
    def newest(self) -> Edition:
        return self.editions[-1]

    @property
    def versions(self) -> list[str]:
        return [edition.version for edition in self.editions]


def timelines(runs: Sequence[Outline]) -> list[Timeline]:
    """One timeline for each framework and device. Of two files that have one check of one release, the later one counts."""
    found: dict[tuple[str, str], dict[str, list[Outline]]] = {}
    for run in runs:
        versions = own_versions(run.header)
        for framework, part in _by_framework(run).items():
            device = str(run.header.environment.get("device", ""))
            found.setdefault((framework, device), {}).setdefault(versions.get(framework, ""), []).append(part)
    texts: dict[str, list[str]] = collections.defaultdict(list)
    lines = []
    for (framework, device), releases in found.items():
        ordered = sorted(releases, key=release_order)
        lines.append([_edition(framework, device, version, _joined(releases[version])) for version in ordered])
    for edition in sorted((e for line in lines for e in line), key=lambda e: release_order(e.version), reverse=True):
        for case in edition.run.cases.values():
            if case.digest not in texts[case.case]:
                texts[case.case].append(case.digest)
    return [_timeline(line, texts) for line in lines]


def release_order(version: str) -> tuple[int, Version | str]:
    """Sorts releases; what is no version comes first."""
    try:
        return 1, Version(version)
    except InvalidVersion:
        return 0, version


def own_versions(header: Header) -> dict[str, str]:
    """Each framework's own version: of the distribution of its name, or of one such as tensorflow-cpu."""
    found = {}
    for name, versions in header.packages.items():
        own = [version for package, version in versions.items() if package == name or package.startswith(f"{name}-")]
        found[name] = own[0] if own else ""
    return found


def newest(lines: Sequence[Timeline]) -> list[Run]:
    """What the newest release of each framework showed, on each device, with every source that any file has."""
    sources = {digest: text for line in lines for edition in line.editions for digest, text in edition.run.sources.items()}
    return [whole(line.newest.run)._replace(sources=sources) for line in lines]


# --- editions


def _edition(framework: str, device: str, version: str, run: Outline) -> Edition:
    return Edition(framework, device, version, run, str(read_times(run.path).get("started", "")))


def _by_framework(run: Outline) -> dict[str, Outline]:
    """A run, taken apart."""
    entries: dict[str, list[Entry]] = {}
    for entry in run.entries:
        entries.setdefault(framework_of(entry.key.target), []).append(entry)
    parts = {}
    for framework, mine in entries.items():
        cases = {entry.key.case: run.cases[entry.key.case] for entry in mine if entry.key.case in run.cases}
        parts[framework] = run._replace(entries=mine, cases=cases)
    return parts


def _joined(runs: list[Outline]) -> Outline:
    """Several runs of one release as one; what a reader may want to see is kept from the one that has it."""
    first, *others = runs
    if not others:
        return first
    cases, sources = dict(first.cases), dict(first.sources)
    entries = {entry.key.identity: (first, entry) for entry in first.entries}
    for run in others:
        cases |= run.cases
        sources |= run.sources
        for entry in run.entries:
            name = entry.key.identity
            old = entries.get(name)
            entries[name] = run, _with_evidence(old, run, entry) if old and old[1].raw != entry.raw else entry
    last = runs[-1]
    complete = all(run.complete for run in runs)
    return Outline(last.path, last.header, cases, sources, [entry for _, entry in entries.values()], complete)


def _with_evidence(old: tuple[Outline, Entry], run: Outline, entry: Entry) -> Entry:
    before, after = old[0].check(old[1]), run.check(entry)
    if after.evidence or not before.evidence or before.outcome != after.outcome:
        return entry
    return entry._replace(raw=encode(msgspec.structs.replace(after, evidence=before.evidence)))


# --- from release to release


def _timeline(editions: list[Edition], texts: dict[str, list[str]]) -> Timeline:
    steps = [_step(before, after) for before, after in itertools.pairwise(editions)]
    first = editions[0]
    return Timeline(first.framework, first.device, editions, steps, _Spans(editions, texts).all())


def _step(before: Edition, after: Edition) -> Step:
    try:
        return Step(before, after, compare(before.run, after.run), "")
    except ResultsError as error:
        return Step(before, after, None, str(error))


class _Spans:
    """Finds what stayed the same. Most lines of a release are, byte for byte, those of the release before."""

    def __init__(self, editions: list[Edition], texts: dict[str, list[str]]) -> None:
        self.editions = editions
        self.texts = texts
        self.spans: dict[Key, list[Span]] = {}
        self.firsts: dict[Key, list[tuple[Edition, Entry]]] = collections.defaultdict(list)
        """Check -> the first of each of its observations that are not the same."""
        self.values = functools.cache(Values)

    def all(self) -> dict[Key, list[Span]]:
        before: dict[Key, bytes] = {}
        for number, edition in enumerate(self.editions):
            here = {entry.key: entry for entry in edition.run.entries}
            texts = {name: self.texts[name].index(case.digest) for name, case in edition.run.cases.items()}
            for name, entry in here.items():
                text = texts.get(name.case, 0)
                if before.get(name) != entry.raw or self.spans[name][-1].text != text:
                    self._add(name, self._span(number, edition, entry, text))
            for name in before.keys() - here.keys():
                self._add(name, Span(number, None, "", "", 0, 0))
            before = {name: entry.raw for name, entry in here.items()}
        return self.spans

    def _add(self, name: Key, span: Span) -> None:
        spans = self.spans.setdefault(name, [])
        if not spans or spans[-1][1:] != span[1:]:
            spans.append(span)

    def _span(self, number: int, edition: Edition, entry: Entry, text: int) -> Span:
        check = edition.run.check(entry)
        return Span(number, kind(check), check.outcome, check.expected or "", self._observation(edition, entry, check), text)

    def _observation(self, edition: Edition, entry: Entry, check: CheckLine) -> int:
        case = edition.run.cases.get(check.case)
        firsts = self.firsts[entry.key]
        for index, (first, other) in enumerate(firsts):
            values = self.values(first.run.path, edition.run.path)
            seen = first.run.check(other).observation
            if not difference(seen, check.observation, case.tolerance if case else None, values):
                return index
        firsts.append((edition, entry))
        return len(firsts) - 1


# --- what a run must be to be published


def shortcomings(runs: Iterable[Outline]) -> list[str]:
    """What makes results unfit to be published, file by file: a run that did not end, or in which nothing ran."""
    said = []
    for run in runs:
        shard = run.header.shard
        if not run.complete:
            said.append(f"{run.path.name} is incomplete, for its run did not end")
        elif shard and shard.of > 1:
            said.append(f"{run.path.name} is shard {shard.index} of {shard.of}")
        elif not any(_ran(run.check(entry)) for entry in run.entries):
            said.append(f"{run.path.name} says nothing: none of its checks came to an end")
    return said


def _ran(check: CheckLine) -> bool:
    return kind(check) not in (Kind.CRASHED, Kind.NOT_RUN)
