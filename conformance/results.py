"""Records of a run, in a file of JSON lines that is made to be committed, compared and rendered.

``FILE.partial`` is appended to while the run goes on; a run that ends well is sorted into ``FILE`` and closed with a
footer. What changes every time (dates, seconds) goes to ``FILE.times.json``, what is too long to read to ``FILE.full.jsonl``.
"""

from __future__ import annotations

import hashlib
import math
import os
import platform
import time
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from conformance.judge import Array, Observation, Tree
from conformance.library import CaseCard

FORMAT = 1
MANY = 64
"""Arrays with more elements than this are kept as a digest and their first values; all of them go to the sidecar."""
LONG = 2000
"""Characters beyond which a text goes to the sidecar."""
EVIDENCE = 6000
"""The same for a text that is kept for readers alone."""


class Header(msgspec.Struct, frozen=True):
    """What was run where."""

    conformance: int
    environment: dict[str, Any]
    """python, platform, device, packages: {framework: {distribution: version}}"""
    cases: str
    """Digest of all cases that the run was about."""


class CaseLine(msgspec.Struct, frozen=True, tag_field="kind", tag="case"):
    """A case as it was when it was run."""

    case: str
    title: str
    claim: str
    why: str
    reference: list[str]
    program: str
    digest: str


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
        return f"{self.case}[{'-'.join(filter(None, [self.row, self.target]))}]"


class Footer(msgspec.Struct, frozen=True, tag_field="kind", tag="end"):
    """No footer, no complete run."""

    complete: bool
    checks: int


Line = CaseLine | SourceLine | CheckLine | Footer


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
            self._file.write(_encode(line) + b"\n")
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
        digests = sorted(f"{case.case}={case.digest}" for case in self._cases.values())
        header = Header(FORMAT, environment, hashlib.sha256("\n".join(digests).encode()).hexdigest()[:16])
        lines: list[Line] = [self._cases[name] for name in sorted(self._cases)]
        lines += [self._sources[name] for name in sorted(self._sources)]
        by_identity = {check.identity: check for check in self.checks}
        lines += [by_identity[identity] for identity in sorted(by_identity)]
        if complete:
            lines.append(Footer(True, len(by_identity)))
        target = self.path if complete else self.partial
        try:
            self._file.close()
            _replace(target, b"\n".join([_encode(header), *map(_encode, lines)]) + b"\n")
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
        _replace(path.with_name(path.name + ".times.json"), msgspec.json.format(times, indent=0))
        full = b"".join(msgspec.json.encode({"digest": d, "full": self._full[d]}) + b"\n" for d in sorted(self._full))
        _replace(path.with_name(path.name + ".full.jsonl"), full)


def _encode(line: Line | Header) -> bytes:
    if isinstance(line, CheckLine):
        line = msgspec.structs.replace(line, seconds=0.0)
        data = msgspec.to_builtins(line)
        del data["seconds"]
        if not line.evidence:
            del data["evidence"]
        return msgspec.json.encode(data)
    return msgspec.json.encode(line)


def _replace(path: Path, content: bytes) -> None:
    beside = path.with_name(path.name + ".new")
    beside.write_bytes(content)
    os.replace(beside, path)


def read(path: Path) -> Run:
    """Read a results file, also one of a run that was cut short. Raises ResultsError."""
    try:
        rows = path.read_bytes().split(b"\n")
    except OSError as error:
        raise ResultsError(f"{path} cannot be read: {error.strerror}") from None
    header, lines = Header(FORMAT, {}, ""), rows
    if rows and rows[0].startswith(b'{"conformance"'):
        header, lines = _decode(path, 1, rows[0], Header), rows[1:]
        if header.conformance != FORMAT:
            raise ResultsError(f"{path} is written in format {header.conformance}; this version reads format {FORMAT}")
    elif not path.name.endswith(".partial"):
        raise ResultsError(f"{path} is not a results file: its first line is not a header")
    run = Run(path, header, {}, {}, [], False, "")
    footer = None
    for number, row in enumerate(lines, start=len(rows) - len(lines) + 1):
        if not row:
            continue
        if number == len(rows) and footer is None:
            break  # no newline: the line was being written when the run ended
        line = _decode(path, number, row, Line)
        if isinstance(line, CaseLine):
            run.cases[line.case] = line
        elif isinstance(line, SourceLine):
            run.sources[line.source] = line.text
        elif isinstance(line, CheckLine):
            run.checks.append(line)
        else:
            footer = line
    if footer is not None and footer.checks != len(run.checks):
        raise ResultsError(
            f"{path} has {len(run.checks)} checks, and its footer says {footer.checks}: the file was cut or edited"
        )
    times = _times(path)
    seconds = times.get("seconds", {})
    checks = [msgspec.structs.replace(check, seconds=seconds.get(check.identity, 0.0)) for check in run.checks]
    return run._replace(checks=checks, complete=footer is not None, started=times.get("started", ""))


def _decode(path: Path, number: int, row: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(row, type=kind)
    except msgspec.DecodeError as error:
        raise ResultsError(f"{path}:{number}: not a line of a results file: {error}") from None


def _times(path: Path) -> dict[str, Any]:
    try:
        return dict(msgspec.json.decode(path.with_name(path.name + ".times.json").read_bytes()))
    except (OSError, msgspec.DecodeError, ValueError):
        return {}


def host_environment(device: str, hosts: dict[str, Any]) -> dict[str, Any]:
    """The header's environment, from what the hosts said of theirs."""
    return {
        "platform": f"{platform.system()} {platform.machine()}",
        "device": device,
        "python": {name: environment.python for name, environment in sorted(hosts.items())},
        "packages": {name: dict(sorted(environment.packages.items())) for name, environment in sorted(hosts.items())},
    }


def case_line(card: CaseCard) -> CaseLine:
    """A case's line."""
    return CaseLine(card.identity, card.title, card.claim, card.why, card.reference, card.program, card.digest)


def source_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# --- observations, written so that people can read and compare them


def observation_data(seen: Observation, full: dict[str, Any]) -> dict[str, Any]:
    """The observation as plain data. What is long goes to ``full`` under its digest."""
    data: dict[str, Any] = {"results": [_data(result, full) for result in seen.results]} if seen.results else {}
    data.update(seen.counts)
    if seen.layout:
        data["layout"] = seen.layout
    if seen.derivation:
        data["derivation"] = seen.derivation
    if seen.unobservable:
        data["unobservable"] = seen.unobservable
    if seen.raised:
        data["raised"] = {**seen.raised, "message": _text(seen.raised["message"], full)}
    return data


def evidence_data(printed: str, reasons: list[list[str]], full: dict[str, Any]) -> dict[str, Any]:
    """What is kept for readers; only what there is."""
    data: dict[str, Any] = {"printed": _text(printed, full, EVIDENCE)} if printed else {}
    return {**data, "reasons": reasons} if any(reasons) else data


def tree_data(tree: Tree) -> Any:
    """One result as plain data, without its full values."""
    return _data(tree, {})


def _data(tree: Tree, full: dict[str, Any]) -> Any:
    if isinstance(tree, Array):
        said: dict[str, Any] = {"dtype": tree.dtype, "shape": list(tree.values.shape)}
        if tree.values.size <= MANY:
            return {**said, "value": plain_values(tree.values)}
        digest = hashlib.sha256(tree.values.tobytes()).hexdigest()[:16]
        full[digest] = {**said, "value": plain_values(tree.values)}
        return {**said, "digest": digest, "first": plain_values(tree.values.ravel()[:8])}
    if isinstance(tree, list):
        return [_data(child, full) for child in tree]
    if isinstance(tree, dict):
        return {"dict": {key: _data(child, full) for key, child in tree.items()}}
    kind, value = tree
    if isinstance(value, str):
        value = _text(value, full)
    return {"python": kind, "value": plain_values(np.asarray(value)) if isinstance(value, float) else value}


def _text(text: str, full: dict[str, Any], long: int = LONG) -> str:
    if len(text) <= long:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    full[digest] = text
    return f"{text[:long]}... (all of it: {digest})"


def plain_values(values: np.ndarray) -> Any:
    """Nested lists; floats as short as their dtype allows; NaN and infinities as text, for JSON has none."""
    if values.dtype.kind == "f":
        return _map_nested(values.astype(str).tolist(), _float)
    if values.dtype.kind == "c":
        return _map_nested(values.tolist(), str)
    return values.tolist()


def _float(text: str) -> float | str:
    value = float(text)
    return value if math.isfinite(value) else text


def _map_nested(value: Any, of: Any) -> Any:
    return [_map_nested(child, of) for child in value] if isinstance(value, list) else of(value)
