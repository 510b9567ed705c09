"""Case files -> typed cases, with every mistake and its position. No framework is imported."""

from __future__ import annotations

import ast
import difflib
import functools
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import msgspec

from conformance import vocabulary
from conformance.case import Case, Deviation, Input, Spec, Topic, json_schema
from conformance.document import CaseError, Document, Mistake, Position
from conformance.document import Path as Place
from conformance.framework import frameworks
from conformance.program import Flaw, ProgramError, flaws, parse
from conformance.target import MODES, Selector

FILLS = ("normal", "uniform", "arange", "zeros", "ones", "integers")
MAX_ELEMENTS = 2**24
CODE = ("program", "define", "code", "call", "do", "native")


class File(NamedTuple):
    """A case file: its topic, typed, and the document that knows where everything stands."""

    area: str
    topic: str
    document: Document
    content: Topic


def load(path: Path, shown: str = "") -> File:
    """Read and validate one file. Raises CaseError with all its mistakes; OSError if it can't be read."""
    shown = shown or str(path)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise CaseError([Mistake(shown, Position(1, 1), f"not UTF-8: byte {error.start}")]) from None
    document = Document(shown, text)
    mistakes = [_schema_mistake(document, error) for error in _validator().iter_errors(document.data)]
    if mistakes:
        raise CaseError(mistakes)
    content = msgspec.convert(document.data, Topic)
    mistakes = list(_Checks(document).topic(content))
    if mistakes:
        raise CaseError(mistakes)
    return File(path.resolve().parent.name, path.stem, document, content)


@functools.cache
def _validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json_schema())


def _schema_mistake(document: Document, error: jsonschema.ValidationError) -> Mistake:
    while error.context:  # of the alternatives, speak of the one whose type fits
        fitting = [e for e in error.context if e.validator != "type" or len(e.relative_path)]
        if not fitting:
            break
        error = jsonschema.exceptions.best_match(fitting)
    place = tuple(error.absolute_path)
    where = _within(document.data, place)
    if error.validator == "additionalProperties":
        known = list(error.schema.get("properties", {}))
        key = next(key for key in error.instance if key not in known)
        position = document.at((*place, key), key=True)
        return Mistake(document.file, position, f"unknown key {key!r}{where}{_did_you_mean(key, known)}")
    if error.validator == "required":
        missing = next(key for key in error.validator_value if key not in error.instance)
        return Mistake(document.file, document.at(place), f"missing key {missing!r}{where}")
    if error.validator == "anyOf":
        kinds = sorted({str(e.validator_value) for e in error.context or [] if e.validator == "type"})
        message = f"{_short(error.instance)} is not {' or '.join(kinds)}"
    else:
        message = error.message if len(error.message) < 200 else f"{_short(error.instance)} does not fit: {error.validator}"
    name = f"{place[-1]!r}: " if place and isinstance(place[-1], str) else ""
    return Mistake(document.file, document.at(place), f"{name}{message}{where}")


def _within(data: Any, place: Place) -> str:
    if len(place) < 2 or place[0] != "cases" or not isinstance(place[1], int):
        return ""
    case = data["cases"][place[1]]
    return f" in case {case['id']!r}" if isinstance(case, dict) and isinstance(case.get("id"), str) else ""


def _did_you_mean(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, 1)
    return f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(known)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


class _Checks:
    """What a schema cannot say of a file; each method yields mistakes."""

    def __init__(self, document: Document) -> None:
        self.document = document

    def mistake(self, place: Place, message: str, *, key: bool = False) -> Mistake:
        return Mistake(self.document.file, self.document.at(place, key=key), message + _within(self.document.data, place))

    def topic(self, topic: Topic) -> Iterator[Mistake]:
        if not topic.cases:
            yield self.mistake(("cases",), "no cases")
        seen: set[str] = set()
        for index, case in enumerate(topic.cases):
            if case.id in seen:
                yield self.mistake(("cases", index, "id"), f"two cases have the id {case.id!r}")
            seen.add(case.id)
            yield from self.case(("cases", index), case)

    def case(self, place: Place, case: Case) -> Iterator[Mistake]:
        kinds = [name for name in ("program", "native", "steps", "observe") if getattr(case, name)]
        if len(kinds) != 1:
            said = f"it has {' and '.join(kinds)}" if kinds else "it has none"
            yield self.mistake(place, f"a case is one of program, native, steps or observe; {said}")
            return
        yield from self.shape_of(place, case, kinds[0])
        yield from self.parameters(place, case)
        for name in ("inputs", "state", "at"):
            for key, value in getattr(case, name).items():
                yield from self.input((*place, name, key), value)
        yield from self.programs(place, case)
        yield from self.expectations(place, case)
        unknown = [mode for mode in case.modes if mode not in MODES]
        for mode in unknown:
            yield self.mistake((*place, "modes"), f"unknown mode {mode!r}{_did_you_mean(mode, list(MODES))}")
        for name in case.frameworks:
            if name not in frameworks():
                yield self.mistake((*place, "frameworks"), f"unknown framework {name!r}{_did_you_mean(name, list(frameworks()))}")

    def shape_of(self, place: Place, case: Case, kind: str) -> Iterator[Mistake]:
        needs = {"steps": ["define"], "observe": ["define", "at"]}.get(kind, [])
        for name in needs:
            if not getattr(case, name):
                yield self.mistake(place, f"a case with {kind!r} needs {name!r}")
        if case.trace and kind != "steps":
            yield self.mistake((*place, "trace"), "only a case with steps has a function to trace", key=True)
        for index, step in enumerate(case.steps):
            if sum(map(bool, (step.call, step.rebind, step.do))) != 1:
                yield self.mistake((*place, "steps", index), "a step is one of call, rebind or do")
            for name in step.rebind:
                if name not in case.state:
                    yield self.mistake(
                        (*place, "steps", index, "rebind", name), f"{name!r} is not in `state`{_did_you_mean(name, list(case.state))}"
                    )
            for name, value in step.rebind.items():
                yield from self.input((*place, "steps", index, "rebind", name), value)

    def parameters(self, place: Place, case: Case) -> Iterator[Mistake]:
        used: set[str] = set()
        raw = self.document.data["cases"][place[1]]
        for where, name, _ in references(raw):
            used.add(name)
            if name not in case.parametrize:
                known = _did_you_mean(name, list(case.parametrize)) if case.parametrize else "; the case has no parameters"
                yield self.mistake((*place, *where), f"${name} is not a parameter{known}")
        for name, rows in case.parametrize.items():
            if not rows:
                yield self.mistake((*place, "parametrize", name), f"the parameter {name!r} has no values")
            if name not in used:
                yield self.mistake((*place, "parametrize", name), f"the parameter {name!r} is never used", key=True)

    def input(self, place: Place, value: Any) -> Iterator[Mistake]:
        if isinstance(value, list):
            yield from self.literal(place, value)
        if not isinstance(value, Input):
            return
        given = [name for name in ("fill", "value", "python", "items", "parts", "entries") if getattr(value, name) is not msgspec.UNSET]
        if len(given) > 1:
            yield self.mistake(place, f"an input is made in one way, not by {' and '.join(given)}")
        if not given and value.shape is msgspec.UNSET:
            yield self.mistake(place, "an input needs a shape or a value")
        if isinstance(value.fill, str) and value.fill not in FILLS and not value.fill.startswith("$"):
            yield self.mistake((*place, "fill"), f"unknown fill {value.fill!r}{_did_you_mean(value.fill, list(FILLS))}")
        dtype = value.dtype
        if isinstance(dtype, str) and dtype not in vocabulary.DTYPES and not dtype.startswith("$"):
            yield self.mistake((*place, "dtype"), f"unknown dtype {dtype!r}{_did_you_mean(dtype, vocabulary.DTYPES)}")
        if isinstance(value.shape, list):
            yield from self.size((*place, "shape"), value.shape)
        if isinstance(value.value, list):
            yield from self.literal((*place, "value"), value.value)

    def size(self, place: Place, shape: list[int | str]) -> Iterator[Mistake]:
        sizes = [size for size in shape if isinstance(size, int)]
        if any(size < 0 for size in sizes):
            yield self.mistake(place, f"the shape {shape} has a negative size")
        elif math.prod(sizes) > MAX_ELEMENTS:
            yield self.mistake(place, f"the shape {shape} has more than {MAX_ELEMENTS:,} elements")

    def literal(self, place: Place, value: list[Any]) -> Iterator[Mistake]:
        if not any(isinstance(v, str) for v in value) and _ragged(value):
            yield self.mistake(place, "the literal is ragged: its rows differ in length")

    def programs(self, place: Place, case: Case) -> Iterator[Mistake]:
        raw = self.document.data["cases"][place[1]]
        known = set(case.inputs) | set(case.state) | set(case.at)
        if case.program:
            yield from self.program((*place, "program"), case.program, known)
            names = _words(case.program)
            for name in case.inputs:
                if name not in names:
                    yield self.mistake((*place, "inputs", name), f"the program never uses the input {name!r}", key=True)
        if case.define:
            yield from self.program((*place, "define"), case.define, known)
            defined = set(re.findall(r"^def (\w+)", case.define, re.M))
            if case.trace and case.trace not in defined:
                yield self.mistake((*place, "trace"), f"`define` defines no {case.trace!r}{_did_you_mean(case.trace, sorted(defined))}")
            for index, step in enumerate(case.steps):
                for name in ("call", "do"):
                    if text := getattr(step, name):
                        yield from self.program((*place, "steps", index, name), text, known | defined)
        for name in case.native:
            if name not in frameworks():
                where = (*place, "native", name)
                yield self.mistake(where, f"unknown framework {name!r}{_did_you_mean(name, list(frameworks()))}", key=True)
            code = raw["native"][name]
            where = (*place, "native", name) if isinstance(code, str) else (*place, "native", name, "code")
            yield from self.native(where, code if isinstance(code, str) else code["code"])

    def program(self, place: Place, text: str, known: set[str]) -> Iterator[Mistake]:
        # A parameter stands for a literal or a name; here it only has to parse.
        plain, holes = _fill_holes(text)
        try:
            found = flaws(parse(plain), known | holes)
        except ProgramError as error:
            found = error.flaws
        yield from (self.flaw(place, flaw) for flaw in found)

    def native(self, place: Place, code: str) -> Iterator[Mistake]:
        try:
            ast.parse(re.sub(r"\$(\w)", r" \1", code))
        except SyntaxError as error:
            yield self.flaw(place, Flaw(error.lineno or 1, error.offset or 1, f"not Python: {error.msg}"))
            return
        if not re.search(r"\breturn\b", code):
            yield self.mistake(place, "the native block returns nothing")

    def flaw(self, place: Place, flaw: Flaw) -> Mistake:
        position = self.document.within(place, flaw.line, flaw.column)
        return Mistake(self.document.file, position, flaw.message + _within(self.document.data, place))

    def expectations(self, place: Place, case: Case) -> Iterator[Mistake]:
        if not case.expect:
            yield self.mistake(place, "missing key 'expect': say what must be seen")
        if case.outcomes:
            for text, outcome in case.expect.items():
                yield from self.selector((*place, "expect", text), text, case, key=True)
                yield from self.outcome((*place, "expect", text), outcome, case)
        else:
            yield from self.spec((*place, "expect"), msgspec.convert(case.expect, Spec))
        for name, spec in case.outcomes.items():
            if not spec.items():
                yield self.mistake((*place, "outcomes", name), f"the outcome {name!r} says nothing, so that it would fit anything")
            yield from self.spec((*place, "outcomes", name), spec)
        for index, deviation in enumerate(case.deviations):
            yield from self.deviation((*place, "deviations", index), deviation, case)
        for index, unsupported in enumerate(case.unsupported):
            yield from self.selector((*place, "unsupported", index, "target"), unsupported.target, case)
            yield from self.native_expression((*place, "unsupported", index, "absent"), unsupported.absent)
        for index, variant in enumerate(case.variants):
            yield from self.selector((*place, "variants", index, "target"), variant.target, case)
            yield from self.outcome((*place, "variants", index, "expect"), variant.expect, case)

    def native_expression(self, place: Place, text: str) -> Iterator[Mistake]:
        try:
            ast.parse(text, mode="eval")
        except SyntaxError as error:
            yield self.flaw(place, Flaw(error.lineno or 1, error.offset or 1, f"not Python: {error.msg}"))

    def outcome(self, place: Place, name: str, case: Case) -> Iterator[Mistake]:
        known = list(case.outcomes) or ["conforms", *(deviation.outcome for deviation in case.deviations)]
        if name not in known:
            yield self.mistake(place, f"unknown outcome {name!r}{_did_you_mean(name, known)}")

    def deviation(self, place: Place, deviation: Deviation, case: Case) -> Iterator[Mistake]:
        if case.outcomes:
            yield self.mistake(place, "a case with outcomes has no norm to deviate from: add an outcome and expect it")
        if not deviation.items():
            yield self.mistake(place, "a deviation must say what is seen instead")
        yield from self.selector((*place, "target"), deviation.target, case)
        yield from self.spec(place, deviation)
        for name, values in deviation.where.items():
            if name not in case.parametrize:
                yield self.mistake(
                    (*place, "where", name), f"{name!r} is not a parameter{_did_you_mean(name, list(case.parametrize))}", key=True
                )
                continue
            labels = row_keys(case.parametrize[name])
            for value in values:
                if not any(_same(value, label) for label in labels):
                    yield self.mistake((*place, "where", name), f"{value!r} is no row of {name!r}; it has {labels}")

    def selector(self, place: Place, text: str, case: Case, *, key: bool = False) -> Iterator[Mistake]:
        try:
            selector = Selector.parse(text)
        except ValueError as error:
            yield self.mistake(place, str(error), key=key)
            return
        framework = frameworks().get(selector.framework or "")
        if selector.framework and framework is None:
            known = ["any", *frameworks()]
            message = f"unknown framework {selector.framework!r}{_did_you_mean(selector.framework, known)}"
        elif framework and selector.mode and selector.mode not in framework.modes:
            message = f"{text!r} cannot exist: {framework.name} has the modes {', '.join(framework.modes)}"
        elif framework and case.native and framework.name not in case.native:
            message = f"{text!r} cannot exist here: `native` has {', '.join(case.native)}"
        elif framework and case.frameworks and framework.name not in case.frameworks:
            message = f"{text!r} cannot exist here: `frameworks` has {', '.join(case.frameworks)}"
        elif framework and case.trace and not framework.traced_modes:
            message = f"{text!r} cannot exist here: {framework.name} does not trace"
        else:
            return
        yield self.mistake(place, message, key=key)

    def spec(self, place: Place, spec: Spec) -> Iterator[Mistake]:
        if isinstance(spec.matching, str):
            try:
                re.compile(spec.matching)
            except re.error as error:
                yield self.mistake((*place, "matching"), f"not a regular expression: {error}")
            if spec.raises is msgspec.UNSET:
                yield self.mistake((*place, "matching"), "`matching` is about an error: add `raises`", key=True)


def row_keys(rows: list[Any] | dict[str, Any]) -> list[Any]:
    """What `where` calls the rows: their names, a scalar row itself, or else its number."""
    if isinstance(rows, dict):
        return list(rows)
    return [index if isinstance(row, (list, dict)) else row for index, row in enumerate(rows)]


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and a == b


REFERENCE = re.compile(r"\$([A-Za-z_]\w*)((?:\.\w+)*)")


def references(raw: Any, place: Place = (), *, code: bool = False) -> Iterator[tuple[Place, str, str]]:
    """Each ``$name.attribute`` of a case's plain data: its place, the name, the attributes."""
    if isinstance(raw, dict):
        for key, value in raw.items():
            if place or key not in ("claim", "why", "parametrize", "id"):
                yield from references(value, (*place, key), code=code or key in CODE)
    elif isinstance(raw, list):
        for index, value in enumerate(raw):
            yield from references(value, (*place, index), code=code)
    elif isinstance(raw, str):
        matches = REFERENCE.finditer(raw) if code else filter(None, [REFERENCE.fullmatch(raw)])
        for match in matches:
            yield place, match[1], match[2]


def _fill_holes(text: str) -> tuple[str, set[str]]:
    """The text with each parameter replaced by a name of the same length, so that columns stay right."""
    holes = {m[0]: re.sub(r"[$.]", "_", m[0]) for m in REFERENCE.finditer(text)}
    return REFERENCE.sub(lambda match: holes[match[0]], text), set(holes.values())


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


def _ragged(value: Any) -> bool:
    if not isinstance(value, list) or not value:
        return False
    lengths = {len(row) if isinstance(row, list) else -1 for row in value}
    return len(lengths) > 1 or any(_ragged(row) for row in value)
