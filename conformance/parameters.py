"""Parameters of a case: where ``$name`` stands, and what takes its place."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from conformance.document import Path as Place

REFERENCE = re.compile(r"\$([A-Za-z_]\w*)((?:\.\w+)*)")

ValueOf = Callable[[Place, str, str], Any]
"""Place, name and attributes of a ``$name.attribute`` -> what it stands for."""


def row_keys(rows: list[Any] | dict[str, Any]) -> list[Any]:
    """What `where` calls the rows: their names, a scalar row itself, or else its number."""
    if isinstance(rows, dict):
        return list(rows)
    return [index if isinstance(row, (list, dict)) else row for index, row in enumerate(rows)]


def same(a: Any, b: Any) -> bool:
    """Whether two rows are the same: 1 is not true, nor 1.0."""
    return type(a) is type(b) and (a == b or (a != a and b != b))


def fill(raw: Any, value_of: ValueOf, place: Place = ()) -> Any:
    """A case's plain data with every ``$name.attribute`` replaced: by its value, or in code by its text."""
    if isinstance(raw, dict):
        kept = () if place else ("claim", "why", "parametrize", "id")
        return {key: value if key in kept else fill(value, value_of, (*place, key)) for key, value in raw.items()}
    if isinstance(raw, list):
        return [fill(value, value_of, (*place, index)) for index, value in enumerate(raw)]
    if not isinstance(raw, str):
        return raw
    if _is_code(place):
        return REFERENCE.sub(lambda match: _in_code(value_of(place, match[1], match[2])), raw)
    match = REFERENCE.fullmatch(raw)
    return value_of(place, match[1], match[2]) if match else raw


def references(raw: Any) -> list[tuple[Place, str, str]]:
    """Each ``$name.attribute`` of a case's plain data: its place, the name, the attributes."""
    found: list[tuple[Place, str, str]] = []
    fill(raw, lambda place, name, attributes: found.append((place, name, attributes)))
    return found


def almost_references(raw: Any, place: Place = ()) -> list[tuple[Place, str]]:
    """Texts outside of code that begin as a reference does and are none, such as ``$name.with-hyphen``."""
    if isinstance(raw, dict):
        children = [(key, value) for key, value in raw.items() if place or key not in ("claim", "why", "parametrize", "id")]
    elif isinstance(raw, list):
        children = list(enumerate(raw))
    else:
        almost = isinstance(raw, str) and REFERENCE.match(raw) and not REFERENCE.fullmatch(raw) and not _is_code(place)
        return [(place, raw)] if almost else []
    return [found for key, value in children for found in almost_references(value, (*place, key))]


def _is_code(place: Place) -> bool:
    if place[0] == "steps":
        return len(place) > 2 and place[2] in ("call", "do")
    return place[0] in ("program", "closed_form", "define", "native")


def _in_code(value: Any) -> str:
    """A value as code: text as it is, for it may be a name or an operand."""
    if isinstance(value, str):
        return value
    text = _python(value)
    return f"({text})" if text.startswith("-") else text


def _python(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_python, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {_python(item)}' for key, item in value.items())}}}"
    return f"float('{value}')" if isinstance(value, float) and not math.isfinite(value) else repr(value)


def is_open(value: Any) -> bool:
    """Whether a parameter is still to be filled in."""
    return isinstance(value, str) and bool(REFERENCE.fullmatch(value))


def fill_holes(text: str) -> str:
    """The text with each parameter replaced by a name of the same length, so that columns stay right."""
    return REFERENCE.sub(lambda match: _hole(match[0]), text)


def holes(text: str) -> set[str]:
    return {_hole(match[0]) for match in REFERENCE.finditer(text)}


def _hole(reference: str) -> str:
    return re.sub(r"[$.]", "_", reference)
