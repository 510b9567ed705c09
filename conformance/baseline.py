"""Runs of several releases -> a folder of files that is kept under version control.

The newest release of a framework is kept whole, each older one as what is other in it than in the next one. A line changes
only where the gate would tell it from the one that stood there: neither rounding nor the wording of an error does it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from packaging.version import Version

from conformance import library
from conformance.compare import framework_of
from conformance.difference import Values, difference
from conformance.environment import Pinned, lock, locked, pinned
from conformance.results import (
    Base,
    Entry,
    GoneLine,
    Header,
    Outline,
    ResultsError,
    SourceLine,
    cases_digest,
    content,
    encode,
    only_needed,
    outline,
    replace_file,
    results_files,
)
from conformance.side import again_where_it_failed, baseline_name, is_file, ran, release_side, side
from conformance.wording import count

SAME = ("row", "parameters", "outcome", "expected", "passed", "because", "source", "trace")
"""What two lines of a check have in common that are told apart by their observations alone."""


class Kept(NamedTuple):
    """The run of one release of one framework."""

    framework: str
    version: Version
    run: Outline

    @property
    def name(self) -> str:
        return baseline_name(self.framework, self.version)


class Written(NamedTuple):
    """A baseline's file."""

    kept: Kept
    path: Path
    base: str
    """The name of the baseline that the file says only the difference from; empty where it says all."""
    said: int
    """Checks that the file has a line of."""


def kept(run: Outline) -> list[Kept]:
    """A run by frameworks, without what is kept for readers alone. Raises ResultsError where it doesn't say which release ran."""
    found = []
    versions = ran(run)
    for name in sorted({framework_of(entry.key.target) for entry in run.entries}):
        if name not in versions:
            raise ResultsError(f"{run.path} does not say which release of {name} was run")
        entries = [_plain(run, entry) for entry in run.entries if framework_of(entry.key.target) == name]
        alone = only_needed(run._replace(entries=entries))
        environment = {
            part: {name: value[name]} if part in ("python", "packages") else value
            for part, value in run.header.environment.items()
        }
        header = Header(run.header.conformance, environment, cases_digest(alone.cases.values()))
        found.append(Kept(name, versions[name], alone._replace(header=header)))
    return found


def runs_of(
    folder: Path,
    texts: Sequence[str],
    companions: Sequence[str],
    cases: Sequence[Path],
    *,
    fresh: bool = False,
    edited: bool = False,
) -> list[Kept]:
    """Run releases, or read results files, to keep them in the folder. Raises ResultsError, CannotInstall, or CaseError.

    A release that the folder lists the environment of is run in just that one again, unless companions are asked for.
    ``edited``: of a release that the folder keeps, only case files that say something else than what was run; what was kept of
    another environment is no part of it.
    """
    found = []
    for text in texts:
        if is_file(text):
            found += kept(side(text, cases, companions).run)
            continue
        release = pinned(text, companions)
        listed = folder / f"{baseline_name(release.framework, release.version)}.txt"
        known = folder / f"{listed.stem}.jsonl"
        same = listed.exists() and not release.companions
        if same:
            release = locked(listed)
        if edited and same and known.exists():
            run = _with_edited(outline(known), release, cases, fresh=fresh)
        else:
            run = again_where_it_failed(release_side(release, cases, fresh=fresh), cases)
        if not same:
            _store(listed, lock(release).encode())
        found += kept(run)
    return found


def _with_edited(known: Outline, release: Pinned, cases: Sequence[Path], *, fresh: bool) -> Outline:
    """What is known of a release, with another run of those case files that say something else than what was run."""
    files = list(library.case_files(list(cases)))
    now = {library.topic(file): _digests(file, release.framework) for file in files}
    same = {topic for topic, digests in now.items() if digests == _known_digests(known, topic)}
    edited = [file for file in files if library.topic(file) not in same and now[library.topic(file)]]
    known = known._replace(entries=[entry for entry in known.entries if library.topic_of(entry.key.case) in same])
    if not edited:
        return known
    run = again_where_it_failed(release_side(release, edited, fresh=fresh), edited)
    entries = sorted([*known.entries, *run.entries], key=lambda entry: entry.key.identity)
    return run._replace(entries=entries, cases=known.cases | run.cases, sources=known.sources | run.sources)


def _digests(file: Path, framework: str) -> dict[str, str]:
    """Of the cases that a file has for a framework."""
    unit = library.unit(file)
    cards = [unit.card(check) for check in unit.checks if check.framework == framework and not check.on_request]
    return {card.identity: card.digest for card in cards}


def _known_digests(run: Outline, topic: str) -> dict[str, str]:
    return {name: case.digest for name, case in run.cases.items() if library.topic_of(name) == topic}


def locks(folder: Path) -> list[str]:
    """The releases that a folder lists the environments of."""
    return [locked(file).requirement for file in sorted(folder.glob("*.txt"))]


def changed(each: Written) -> str:
    """What a baseline's file has come to, in words."""
    lines = [each.kept.run.check(entry) for entry in each.kept.run.entries]
    counts = {
        "not as expected": sum(line.passed is False for line in lines),
        "not run": sum(line.passed is None for line in lines),
    }
    said = [count(len(lines), "check"), *(f"{number} {what}" for what, number in counts.items() if number)]
    return ", ".join([*said, *([f"{each.said} other than {each.base}"] if each.base else [])])


def baselines(folder: Path, renewed: Collection[str] = ()) -> list[Kept]:
    """All that a folder keeps. Raises ResultsError for a file that cannot be read, unless it is to be renewed."""
    found = []
    for file in results_files(folder) if folder.is_dir() else ():
        try:
            found += kept(outline(file))
        except ResultsError:
            if file.stem not in renewed:
                raise
    return found


def write(folder: Path, runs: Iterable[Kept]) -> list[Written]:
    """Keep these runs; what is kept of other releases stays, and is told from its new neighbour. Raises ResultsError."""
    new = {(each.framework, each.version): each for each in runs}
    old = {(each.framework, each.version): each for each in baselines(folder, {each.name for each in new.values()})}
    written: list[Written] = []
    newer: Kept | None = None
    for key in sorted(old | new, reverse=True):
        each = new.get(key, old.get(key))
        assert each is not None
        base = newer if newer and newer.framework == each.framework else None
        steady = [run for run in (base and base.run, key in old and old[key].run) if run]
        each = each._replace(run=_settled(each.run, steady))
        lines = _apart(each.run, base) if base else each.run.lines()
        checks = sum(line.startswith(b'{"kind":"check"') for line in lines)
        path = folder / f"{each.name}.jsonl"
        _store(path, content(lines, checks))
        written.append(Written(each, path, base.name if base else "", checks))
        newer = each
    return written


def _plain(run: Outline, entry: Entry) -> Entry:
    line = run.check(entry)
    return entry._replace(raw=encode(msgspec.structs.replace(line, evidence={}))) if line.evidence else entry


def _settled(run: Outline, steady: Sequence[Outline]) -> Outline:
    """The run with the lines of others, the first that fits, where the gate would not tell them from its own."""
    lines = [({entry.key.identity: entry for entry in other.entries}, other) for other in steady]
    entries = []
    for entry in run.entries:
        fitting = (
            known[entry.key.identity].raw
            for known, other in lines
            if entry.key.identity in known and _alike(entry, known[entry.key.identity], run, other)
        )
        entries.append(entry._replace(raw=next(fitting, entry.raw)))
    return run._replace(entries=entries)


def _alike(entry: Entry, other: Entry, run: Outline, beside: Outline) -> bool:
    if entry.raw == other.raw:
        return True
    mine, theirs = run.check(entry), beside.check(other)
    if any(getattr(mine, name) != getattr(theirs, name) for name in SAME):
        return False
    values = Values(run.path, beside.path)
    return not difference(theirs.observation, mine.observation, run.cases[entry.key.case].tolerance, values)


def _apart(run: Outline, base: Kept) -> list[bytes]:
    """The lines of a file that says what is other than in the base."""
    under = base.run
    known = {entry.key.identity: entry.raw for entry in under.entries}
    header = msgspec.structs.replace(run.header, base=Base(f"{base.name}.jsonl", under.digest))
    mine = {entry.key.identity: entry.raw for entry in run.entries}
    lines = [encode(header)]
    lines += [encode(run.cases[name]) for name in sorted(run.cases) if under.cases.get(name) != run.cases[name]]
    lines += [encode(SourceLine(name, run.sources[name])) for name in sorted(run.sources.keys() - under.sources.keys())]
    lines += [encode(GoneLine(name)) for name in sorted(known.keys() - mine.keys())]
    return lines + [raw for name, raw in sorted(mine.items()) if known.get(name) != raw]


def _store(path: Path, text: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text)
    except OSError as error:
        raise ResultsError(f"{path} cannot be written: {error.strerror}") from None
