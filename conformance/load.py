"""Case files -> typed cases, with every mistake and its position. No framework is imported."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import msgspec

from conformance.case import Case, Topic, json_schema
from conformance.document import CaseError, Document, Mistake, did_you_mean, end_of, short
from conformance.document import Path as Place
from conformance.rules import Rules


class File(NamedTuple):
    """A case file: its topic, typed, and the document that knows where everything stands."""

    area: str
    topic: str
    document: Document
    content: Topic


def load(path: Path, shown: str = "") -> File:
    """Read and validate one file. Raises CaseError with all its mistakes; OSError if it can't be read."""
    document = Document(shown or str(path), _text(path, shown or str(path)))
    mistakes = _schema_mistakes(document, document.data)
    if mistakes:
        raise CaseError(mistakes)
    try:
        content = msgspec.convert(document.data, Topic)
        mistakes = list(Rules(document).topic(content))
    except msgspec.ValidationError as error:
        mistakes = [_refusal(document, error, ())]
    if mistakes:
        raise CaseError(mistakes)
    return File(path.resolve().parent.name, path.stem, document, content)


def load_row(file: File, index: int, filled: dict[str, Any]) -> Case:
    """The case at the index with its parameters filled in. Raises CaseError for what only this shows."""
    try:
        case = msgspec.convert(filled, Case)
        mistakes = list(Rules(file.document, filled=True).row(("cases", index), case))
    except msgspec.ValidationError as error:
        mistakes = _schema_mistakes(file.document, {"title": "", "cases": [filled]}, index)
        mistakes = mistakes or [_refusal(file.document, error, ("cases", index))]
    if mistakes:
        raise CaseError(mistakes)
    return case


def _text(path: Path, shown: str) -> str:
    content = path.read_bytes()
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        position = end_of(content[: error.start].decode(errors="replace"))
        raise CaseError([Mistake(shown, position, f"not UTF-8: byte 0x{content[error.start]:02x}")]) from None


def _refusal(document: Document, error: msgspec.ValidationError, place: Place) -> Mistake:
    """What msgspec refuses and the schema does not: NaN is on neither side of a bound."""
    said, _, path = str(error).partition(" - at `$")
    steps = [name or int(number) for name, number in re.findall(r"\.(\w+)|\[(\d+)\]", path)]
    return document.mistake((*place, *steps), said)


@functools.cache
def _validator() -> Any:
    """Unlike JSON Schema, msgspec takes 2.0 for no integer."""
    base = jsonschema.Draft202012Validator
    checker = base.TYPE_CHECKER.redefine("integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool))
    return jsonschema.validators.extend(base, type_checker=checker)(json_schema())  # type: ignore[no-untyped-call]  # it has no types


def _schema_mistakes(document: Document, data: Any, index: int | None = None) -> list[Mistake]:
    """The mistakes in the data; with an index, the only case in it is the document's case of that number."""
    errors = [_innermost(error) for error in _validator().iter_errors(data)]
    unknown = {tuple(error.absolute_path): _unknown(error) for error in errors if error.validator == "additionalProperties"}
    found: list[Mistake] = []
    for error in errors:
        place = tuple(error.absolute_path)
        misspelt = unknown.get(place, [])
        if index is not None and len(place) > 1:
            place = ("cases", index, *place[2:])
        found += _said(document, error, place, misspelt)
    return list(dict.fromkeys(found))


def _innermost(error: Any) -> Any:
    """Of alternatives, the one whose type fits."""
    while error.context:
        fitting = [e for e in error.context if e.validator != "type" or len(e.relative_path)]
        if not fitting:
            break
        error = jsonschema.exceptions.best_match(fitting)
    return error


def _unknown(error: Any) -> list[str]:
    return [key for key in error.instance if key not in error.schema.get("properties", {})]


def _said(document: Document, error: Any, place: Place, unknown: list[str]) -> Iterator[Mistake]:
    if error.validator == "additionalProperties":
        for key in unknown:
            message = f"unknown key {key!r}{did_you_mean(key, error.schema.get('properties', {}))}"
            yield document.mistake((*place, key), message, key=True)
    elif error.validator == "required":
        for key in error.validator_value:
            # A misspelt key is both unknown and missing; it is spoken of once.
            if key not in error.instance and not difflib.get_close_matches(key, unknown, 1):
                yield document.mistake(place, f"missing key {key!r}")
    elif error.validator in ("type", "anyOf"):
        said = f"{short(error.instance)} is not {' or '.join(_kinds(error))}"
        yield document.mistake(place, _named(place, "nothing stands here" if error.instance is None else said))
    elif error.validator == "pattern" and "description" in error.schema:
        said = f"{short(error.instance)} is not {error.schema['description']}"
        yield document.mistake((*place, error.instance), said, key=True)
    else:
        said = error.message if len(error.message) < 200 else f"{short(error.instance)} does not fit"
        yield document.mistake(place, _named(place, said))


def _kinds(error: Any) -> list[str]:
    said = {"string": "text", "object": "a mapping", "array": "a list", "integer": "an integer", "null": "null"}
    errors = error.context or [error]
    return list(dict.fromkeys(said.get(e.validator_value, f"a {e.validator_value}") for e in errors if e.validator == "type"))


def _named(place: Place, message: str) -> str:
    return f"{place[-1]!r}: {message}" if place and isinstance(place[-1], str) else message
