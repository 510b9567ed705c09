"""Case files -> compiled units, cached by content: reading YAML is slow, and most runs read what an earlier one read."""

from __future__ import annotations

import codecs
import functools
import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import platformdirs

from conformance import expand, load
from conformance.case import Spec, Tolerance
from conformance.document import CaseError, Mistake
from conformance.framework import BUILTIN, frameworks
from conformance.lower import Job, LoweringError, lower, reference_job
from conformance.program import ProgramError
from conformance.target import Target


class Compiled(msgspec.Struct, frozen=True):
    """A check, ready to run and to be judged."""

    case: int
    """Index of its case in the unit."""
    name: str
    row: str
    parameters: dict[str, Any]
    framework: str
    way: str
    mode: str
    device: str
    outcomes: dict[str, Spec]
    expected: list[tuple[str, str]]
    because: dict[str, str]
    on_request: bool
    job: Job
    reference: Job | None
    """Computes the expected value in float64; None where no outcome needs one."""

    @property
    def target(self) -> str:
        return str(Target(self.framework, self.mode, self.device, self.way))


class CaseCard(msgspec.Struct, frozen=True):
    """What a case says, for people."""

    identity: str
    area: str
    title: str
    claim: str
    why: str
    reference: list[str]
    digest: str
    program: str
    tolerance: Tolerance | msgspec.UnsetType = msgspec.UNSET


class Unit(msgspec.Struct, frozen=True):
    """One case file, compiled."""

    cases: list[CaseCard]
    checks: list[Compiled]

    def card(self, check: Compiled) -> CaseCard:
        return self.cases[check.case]


def cases_path() -> Path:
    """The cases that come with this package: inside the wheel, or beside the package in a checkout."""
    packaged = Path(__file__).parent / "cases"
    return packaged if packaged.is_dir() else Path(__file__).parent.parent / "cases"


def case_files(paths: list[Path]) -> Iterator[Path]:
    """All case files at or below the paths, in order. A path that is given by name need not look like one."""
    for path in paths:
        if path.is_dir():
            yield from (file for file in sorted(path.rglob("*.yaml")) if is_case_file(file))
        else:
            yield path


def topic(file: Path) -> str:
    """The area and the topic that a case file is about: ``area/topic``."""
    return f"{file.resolve().parent.name}/{file.stem}"


def topic_of(case: str) -> str:
    """Those of a case ``area/topic/case``."""
    return case.rpartition("/")[0]


def is_case_file(path: Path) -> bool:
    """Whether a YAML file has a top-level `cases:`; others are somebody else's."""
    if path.suffix not in (".yaml", ".yml"):
        return False
    try:
        with path.open("rb") as file:
            return any(line.removeprefix(codecs.BOM_UTF8).startswith(b"cases:") for line in file)
    except OSError:
        return False


def unit(path: Path, device: str = "cpu", shown: str = "") -> Unit:
    """Compile a case file, or take it from the cache. Raises CaseError with all mistakes, OSError if it can't be read."""
    content = path.read_bytes()
    resolved = path.resolve()
    said = f"{resolved.parent.name}/{resolved.name}\0{device}\0{machine_digest()}\0".encode() + content
    cached = cache_path() / f"{hashlib.sha256(said).hexdigest()}.msgpack"
    try:
        return _decoder.decode(cached.read_bytes())
    except (OSError, msgspec.DecodeError):
        pass
    made = _compile(path, device, shown)
    _store(cached, made)
    return made


def _compile(path: Path, device: str, shown: str) -> Unit:
    file = load.load(path, shown)
    checks = expand.expand(file, device)
    cards = [_card(file, index) for index in range(len(file.content.cases))]
    numbers = {card.identity: index for index, card in enumerate(cards)}
    compiled: list[Compiled] = []
    mistakes: dict[Mistake, None] = {}
    references: dict[tuple[str, str], Job | None] = {}
    for check in checks:
        index = numbers[check.identity]
        try:
            key = (check.identity, check.row)
            if key not in references:
                references[key] = reference_job(check)
            compiled.append(_compiled(check, index, lower(check), references[key]))
        except LoweringError as error:
            if check.target.framework in BUILTIN:
                mistakes[_mistake(file, index, str(error))] = None
            else:
                compiled.append(_unsupported(check, index, str(error)))
        except ProgramError as error:
            mistakes[_mistake(file, index, str(error))] = None
    if mistakes:
        raise CaseError(list(mistakes))
    return Unit(cards, compiled)


def _mistake(file: load.File, index: int, message: str) -> Mistake:
    case = file.content.cases[index]
    part = next((name for name in ("program", "define", "steps") if getattr(case, name)), "id")
    return file.document.mistake(("cases", index, part), message)


def _card(file: load.File, index: int) -> CaseCard:
    case = file.content.cases[index]
    links = case.reference or file.content.reference
    return CaseCard(
        identity=f"{file.area}/{file.topic}/{case.id}",
        area=file.area,
        title=file.content.title,
        claim=case.claim,
        why=case.why,
        reference=[links] if isinstance(links, str) and links else list(links),
        digest=expand.case_digest(file, index),
        program=(case.program or case.define).strip(),
        tolerance=case.tolerance,
    )


def _compiled(check: expand.Check, index: int, job: Job, reference: Job | None) -> Compiled:
    return Compiled(
        case=index,
        name=check.name,
        row=check.row,
        parameters=check.parameters,
        framework=check.target.framework,
        way=check.target.way,
        mode=check.target.mode,
        device=check.target.device,
        outcomes=check.outcomes,
        expected=check.expected,
        because=check.because,
        on_request=check.on_request,
        job=job,
        reference=reference,
    )


def _unsupported(check: expand.Check, index: int, because: str) -> Compiled:
    """A check of a framework from elsewhere whose dialect has no words for the program."""
    job = Job("", "", "", False, check.target.mode, {}, {}, [], absent="undefined.name")
    made = _compiled(check, index, job, None)
    return msgspec.structs.replace(made, expected=[("any", expand.UNSUPPORTED)], because={expand.UNSUPPORTED: because})


_decoder = msgspec.msgpack.Decoder(Unit)


@functools.cache
def machine_digest() -> str:
    """Digest of this package and of the dialects in use: another machine compiles anew."""
    digest = hashlib.sha256(msgspec.json.encode([f._asdict() for f in frameworks().values()], order="sorted"))
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def cache_path() -> Path:
    """Where what is worth keeping between runs is kept."""
    return Path(os.environ.get("CONFORMANCE_CACHE") or platformdirs.user_cache_dir("framework-conformance"))


def _store(path: Path, made: Unit) -> None:
    """Written beside and renamed, so that two runs at once never read half a file. A cache may fail to be kept."""
    try:
        content = msgspec.msgpack.encode(made)
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(content)
        os.replace(file.name, path)
    except (OSError, OverflowError):  # a disk that is full or not ours; an integer of more than 64 bits
        pass
