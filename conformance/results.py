"""Records of a run, in a file of JSON lines that is made to be committed, compared and rendered.

``FILE.partial`` is appended to while the run goes on; a run that ends well is sorted into ``FILE`` and closed with a
footer. What changes every time (dates, seconds) goes to ``FILE.times.json``, what is too long to read to ``FILE.full.jsonl``.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
import platform
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from conformance.case import Tolerance
from conformance.library import CaseCard
from conformance.target import is_topology

FORMAT = 1


class Shard(msgspec.Struct, frozen=True):
    """A part of a run, and what all parts of that run have in common."""

    index: int
    """From 1."""
    of: int
    checks: int
    """Checks of the whole run."""
    whole: str
    """Digest of their identities."""


class Base(msgspec.Struct, frozen=True):
    """The run that a file says no more of than what is other in its own."""

    file: str
    """Its name; it lies beside."""
    digest: str
    """Of all that it says."""


class Header(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was run where."""

    conformance: int
    environment: dict[str, Any]
    """python, platform, device, packages: {framework: {distribution: version}}"""
    cases: str
    """Digest of all cases that the run was about."""
    shard: Shard | None = None
    base: Base | None = None
    """Lines that are not in this file are as they are there."""

    @property
    def packages(self) -> dict[str, dict[str, str]]:
        """framework -> distribution -> version, as far as the file says it."""
        said = self.environment.get("packages")
        known = said if isinstance(said, dict) else {}
        return {name: {key: str(value) for key, value in of.items()} for name, of in known.items() if isinstance(of, dict)}


class CaseLine(msgspec.Struct, frozen=True, tag_field="kind", tag="case", omit_defaults=True):
    """A case as it was when it was run."""

    case: str
    title: str
    claim: str
    why: str
    reference: list[str]
    program: str
    digest: str
    tolerance: Tolerance | None = None
    """How far values may be apart, where the case says so itself."""


class SourceLine(msgspec.Struct, frozen=True, tag_field="kind", tag="source"):
    """A native source, by its digest."""

    source: str
    text: str


class CheckLine(msgspec.Struct, frozen=True, tag_field="kind", tag="check"):
    """What one check saw, and what was made of it."""

    case: str
    row: str
    parameters: dict[str, str]
    target: str
    outcome: str
    expected: str | None
    passed: bool | None
    """None where the check was not run."""
    observation: dict[str, Any]
    expectation: dict[str, Any]
    """The expected outcome's spec; a reference value is written out."""
    because: str
    """Why the framework deviates, is unsupported, or was not run."""
    against: dict[str, str]
    """For each other outcome of the case, why what was seen is not that."""
    source: str
    trace: str
    evidence: dict[str, Any] = {}
    """What a reader may want to see, and nothing is judged by: what was printed, and why the framework traced, at each call."""
    seconds: float = 0.0

    @property
    def identity(self) -> str:
        return identity(self.case, self.row, self.target)


class GoneLine(msgspec.Struct, frozen=True, tag_field="kind", tag="gone"):
    """A check that the base has, and this run has not."""

    check: str


class Footer(msgspec.Struct, frozen=True, tag_field="kind", tag="end"):
    """No footer, no complete run."""

    complete: bool
    checks: int
    digest: str = ""
    """Of all lines before this one, so that a file that was edited is told from one that was written."""


class Key(msgspec.Struct, frozen=True, tag_field="kind", tag="check", gc=False):
    """Just so much of a check's line as tells which check it is: reading no more is quick."""

    case: str
    row: str
    target: str

    @property
    def identity(self) -> str:
        return identity(self.case, self.row, self.target)


Line = CaseLine | SourceLine | CheckLine | GoneLine | Footer


def identity(case: str, row: str, target: str) -> str:
    """The name of a check."""
    return f"{case}[{row}-{target}]" if row else f"{case}[{target}]"


class Entry(NamedTuple):
    """A check's line as it stands in a file."""

    key: Key
    number: int
    raw: bytes


class Outline(NamedTuple):
    """A results file, read without the checks' observations."""

    path: Path
    header: Header
    cases: dict[str, CaseLine]
    sources: dict[str, str]
    entries: list[Entry]
    complete: bool

    def check(self, entry: Entry) -> CheckLine:
        """The whole of a check's line. Raises ResultsError."""
        line: CheckLine = _decode(self.path, entry.number, entry.raw, CheckLine)
        return line

    def lines(self) -> list[bytes]:
        """All that its file says, but for the footer."""
        lines = [encode(self.header)]
        lines += [encode(self.cases[name]) for name in sorted(self.cases)]
        lines += [encode(SourceLine(name, self.sources[name])) for name in sorted(self.sources)]
        return [*lines, *(entry.raw for entry in self.entries)]

    @property
    def digest(self) -> str:
        return _body_digest(_body(self.lines()))


class Run(NamedTuple):
    """A results file, read."""

    path: Path
    header: Header
    cases: dict[str, CaseLine]
    sources: dict[str, str]
    checks: list[CheckLine]
    complete: bool
    started: str
    """ISO date and time, or empty where the file of times is gone."""


class ResultsError(Exception):
    """A results file that cannot be read or written; the text is for the user."""


class Writer:
    """Writes one run. Raises ResultsError where the file cannot be written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.partial = path.with_name(path.name + ".partial")
        self.checks: list[CheckLine] = []
        self._cases: dict[str, CaseLine] = {}
        self._sources: dict[str, SourceLine] = {}
        self._full: dict[str, Any] = {}
        self.shard: Shard | None = None
        self._started = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        if path.is_dir():
            raise ResultsError(f"the results cannot be written to {path}: it is a folder")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.partial.open("wb")
        except OSError as error:
            raise ResultsError(f"the results cannot be written to {path}: {error.strerror}") from None

    def check(self, line: CheckLine, card: CaseLine, text: str, full: dict[str, Any]) -> None:
        """Append a check, and its case and source where they are new."""
        if card.case not in self._cases:
            self._cases[card.case] = card
            self._append(card)
        if line.source not in self._sources:
            self._sources[line.source] = SourceLine(line.source, text)
            self._append(self._sources[line.source])
        self._full.update(full)
        self.checks.append(line)
        self._append(line)

    def _append(self, line: Line) -> None:
        try:
            self._file.write(encode(line) + b"\n")
            self._file.flush()
        except OSError as error:
            raise ResultsError(
                f"the results could not be written to {self.partial}: {error.strerror}; what was written is kept"
            ) from None

    def discard(self) -> None:
        """Leave nothing of a run in which nothing was recorded."""
        self._file.close()
        self.partial.unlink(missing_ok=True)

    def close(self, environment: dict[str, Any], *, complete: bool) -> Path:
        """Sort and close a complete run; leave an incomplete one as FILE.partial. Returns the file that there is now."""
        header = Header(FORMAT, environment, cases_digest(self._cases.values()), self.shard)
        by_identity = {check.identity: check for check in self.checks}
        lines: list[Line] = [self._cases[name] for name in sorted(self._cases)]
        lines += [self._sources[name] for name in sorted(self._sources)]
        lines += [by_identity[identity] for identity in sorted(by_identity)]
        target = self.path if complete else self.partial
        try:
            self._file.close()
            replace_file(target, content([encode(header), *map(encode, lines)], len(by_identity) if complete else None))
            if complete:
                for left in self.partial.parent.glob(f"{self.partial.name}*"):
                    left.unlink()
            self._sidecars(target)
        except OSError as error:
            raise ResultsError(f"the results could not be written to {target}: {error.strerror}; see {self.partial}") from None
        return target

    def _sidecars(self, path: Path) -> None:
        """What belongs beside the file; those of an earlier run are not touched until this one is complete."""
        seconds = {check.identity: round(check.seconds, 4) for check in sorted(self.checks, key=lambda check: check.identity)}
        times = msgspec.json.encode({"started": self._started, "seconds": seconds})
        replace_file(path.with_name(path.name + ".times.json"), msgspec.json.format(times, indent=0))
        full = b"".join(msgspec.json.encode({"digest": d, "full": self._full[d]}) + b"\n" for d in sorted(self._full))
        replace_file(path.with_name(path.name + ".full.jsonl"), full)


def cases_digest(cases: Iterable[CaseLine]) -> str:
    return hashlib.sha256("\n".join(sorted(f"{case.case}={case.digest}" for case in cases)).encode()).hexdigest()[:16]


def content(lines: list[bytes], checks: int | None) -> bytes:
    """The text of a results file; without a footer where ``checks`` is None, for the run did not end."""
    body = _body(lines)
    return body if checks is None else body + encode(Footer(True, checks, _body_digest(body))) + b"\n"


def _body(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def _body_digest(body: bytes | memoryview) -> str:
    return hashlib.sha256(body).hexdigest()[:16]


def encode(line: Line | Header) -> bytes:
    """A line of a results file."""
    if isinstance(line, CheckLine):
        line = msgspec.structs.replace(line, seconds=0.0)
        data = msgspec.to_builtins(line)
        del data["seconds"]
        if not line.evidence:
            del data["evidence"]
        return msgspec.json.encode(data)
    return msgspec.json.encode(line)


def replace_file(path: Path, content: bytes) -> None:
    """Write a file so that it is never seen half written. Raises OSError."""
    beside = path.with_name(path.name + ".new")
    beside.write_bytes(content)
    os.replace(beside, path)


def read(path: Path) -> Run:
    """Read a results file, also one of a run that was cut short. Raises ResultsError."""
    return whole(outline(path))


def whole(run: Outline) -> Run:
    """All of a run. Raises ResultsError."""
    times = read_times(run.path)
    seconds = times.get("seconds", {})
    checks = [run.check(entry) for entry in run.entries]
    checks = [msgspec.structs.replace(check, seconds=seconds.get(check.identity, 0.0)) for check in checks]
    return Run(run.path, run.header, run.cases, run.sources, checks, run.complete, times.get("started", ""))


def outline(path: Path) -> Outline:
    """Read a results file, and of its checks only which they are. Raises ResultsError."""
    return _outline(path, [])


def _outline(path: Path, upon: list[Path]) -> Outline:
    """``upon``: the files that are being read, each of which says what is other than in the next."""
    rows = _rows(path)
    header = Header(FORMAT, {}, "")
    first = 0
    if rows[0].startswith(b'{"conformance"'):
        first = 1
        header = _header(path, rows[0])
    elif not path.name.endswith(".partial"):
        raise ResultsError(f"{path} is not a results file: its first line is not a header")
    found = Outline(path, header, {}, {}, [], False)
    footer, footer_row = None, len(rows)
    gone = set()
    for number, row in enumerate(itertools.islice(rows, first, None), start=first + 1):
        if not row:
            continue
        if number == len(rows) and footer is None:
            break  # no newline: the line was being written when the run ended
        line = _decode(path, number, row, Key if row.startswith(_CHECK) else Line)
        if isinstance(line, Key):
            found.entries.append(Entry(line, number, row))
        elif isinstance(line, CheckLine):
            found.entries.append(Entry(Key(line.case, line.row, line.target), number, row))
        elif isinstance(line, SourceLine):
            found.sources[line.source] = line.text
        elif isinstance(line, GoneLine):
            gone.add(line.check)
        elif isinstance(line, Footer):
            footer, footer_row = line, number
        elif found.cases.setdefault(line.case, line) != line:
            raise ResultsError(f"{path}:{number}: the case {line.case} is there twice, and the two differ")
    if footer is not None:
        _is_untouched(found, footer, rows[: footer_row - 1])
    if header.base:
        found = _on_base(found, header.base, gone, [*upon, path])
    if footer is not None:
        _has_its_cases(found)
    return found._replace(complete=footer is not None and footer.complete)


def _on_base(run: Outline, base: Base, gone: set[str], upon: list[Path]) -> Outline:
    """The run with all that it has in common with its base."""
    path = run.path.parent / base.file
    if Path(base.file).name != base.file or path in upon:
        raise ResultsError(f"{run.path}: {base.file} cannot be what it builds on")
    if not path.exists():
        raise ResultsError(f"{run.path} says what is other than in {base.file}, which is not beside it")
    under = _outline(path, upon)
    if under.digest != base.digest:
        raise ResultsError(
            f"{run.path} says what is other than in {base.file}, and {path} is not the file that it was written for:"
            " renew both with `conformance baseline`"
        )
    entries = {entry.key.identity: entry for entry in under.entries if entry.key.identity not in gone}
    entries |= {entry.key.identity: entry for entry in run.entries}
    return only_needed(
        run._replace(
            header=msgspec.structs.replace(run.header, base=None),
            cases=under.cases | run.cases,
            sources=under.sources | run.sources,
            entries=[entries[name] for name in sorted(entries)],
        )
    )


def only_needed(run: Outline) -> Outline:
    """The run without cases and sources that none of its checks is of."""
    cases = {entry.key.case for entry in run.entries}
    sources = {run.check(entry).source for entry in run.entries}
    return run._replace(
        cases={name: case for name, case in run.cases.items() if name in cases},
        sources={name: text for name, text in run.sources.items() if name in sources},
    )


_CHECK = b'{"kind":"check"'


def _rows(path: Path) -> list[bytes]:
    """The lines of a file; the last one is empty, or was being written when the run ended."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ResultsError(f"{path} cannot be read: {error.strerror}") from None
    if b"\r" in content:  # a checkout may end lines in its own way
        content = content.replace(b"\r\n", b"\n")
    return content.split(b"\n")


def _header(path: Path, row: bytes) -> Header:
    said = _decode(path, 1, row, _Format).conformance
    if said != FORMAT:
        raise ResultsError(f"{path} is written in format {said}; this version reads format {FORMAT}")
    header: Header = _decode(path, 1, row, Header)
    return header


class _Format(msgspec.Struct):
    conformance: int


def _is_untouched(run: Outline, footer: Footer, rows: list[bytes]) -> None:
    """Raises ResultsError where a file is not as it was written."""
    if footer.checks != len(run.entries):
        raise ResultsError(
            f"{run.path} has {len(run.entries)} checks, and its footer says {footer.checks}: the file was cut or edited"
        )
    digest = hashlib.sha256()
    for row in rows:
        digest.update(row)
        digest.update(b"\n")
    if footer.digest and footer.digest != digest.hexdigest()[:16]:
        raise ResultsError(f"{run.path} was edited since it was written: its lines are not those that its footer was made for")


def _has_its_cases(run: Outline) -> None:
    """Raises ResultsError where the cases are not those of the checks."""
    if run.header.cases and run.header.cases != cases_digest(run.cases.values()):
        raise ResultsError(f"{run.path}: its cases are not those that its header was made for; the file was edited")
    for entry in run.entries:
        if entry.key.case not in run.cases:
            raise ResultsError(f"{run.path}:{entry.number}: nothing in the file says what the case {entry.key.case} is")


_decoder = functools.cache(msgspec.json.Decoder)


def _decode(path: Path, number: int, row: bytes, kind: Any) -> Any:
    try:
        return _decoder(kind).decode(row)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ResultsError(f"{path}:{number}: not a line of a results file: {error}") from None


def full_texts(path: Path) -> dict[str, Any]:
    """What is too long for a results file, or for those of a folder, by digest; nothing where that is gone."""
    found: dict[str, Any] = {}
    for file in results_files(path):
        try:
            rows = file.with_name(file.name + ".full.jsonl").read_bytes().splitlines()
            found.update({line["digest"]: line["full"] for line in map(msgspec.json.decode, rows)})
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, TypeError, KeyError):
            continue
    return found


def results_files(path: Path) -> list[Path]:
    """A results file, or those of a folder."""
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.glob("*.jsonl") if not file.name.endswith(".full.jsonl"))


def read_times(path: Path) -> dict[str, Any]:
    """When a run was started and how long each check took; empty where that is gone."""
    try:
        return dict(msgspec.json.decode(path.with_name(path.name + ".times.json").read_bytes()))
    except (OSError, msgspec.DecodeError, ValueError):
        return {}


def host_environment(device: str, hosts: dict[str, Any]) -> dict[str, Any]:
    """The header's environment, from what the hosts said of theirs."""
    return {
        "platform": f"{platform.system()} {platform.machine()}",
        "device": device,
        **({"ran": False} if is_topology(device) else {}),  # programs were compiled, and nothing ran
        "python": {name: environment.python for name, environment in sorted(hosts.items())},
        "packages": {name: dict(sorted(environment.packages.items())) for name, environment in sorted(hosts.items())},
    }


def case_line(card: CaseCard) -> CaseLine:
    """A case's line."""
    return CaseLine(
        card.identity, card.title, card.claim, card.why, card.reference, card.program, card.digest, card.tolerance or None
    )


def source_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
