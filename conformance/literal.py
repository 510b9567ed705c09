"""Literals of case files as arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np


def array(value: Any) -> np.ndarray:
    """A number or nested lists of numbers; complex ones are written as text, such as 1+2j. Raises ValueError."""
    return np.asarray(_map(_number, value))


def floats(value: Any) -> np.ndarray:
    """Which numbers of a literal are written as floating point: of those, the sign of a zero counts."""
    return np.asarray(_map(lambda number: isinstance(number, float), value), bool)


def leaves(value: Any) -> Iterator[Any]:
    """Everything in nested lists and mappings that is neither."""
    if isinstance(value, (list, dict)):
        for child in value.values() if isinstance(value, dict) else value:
            yield from leaves(child)
    else:
        yield value


def is_ragged(value: Any) -> bool:
    """Whether the rows of nested lists differ in length."""
    if not isinstance(value, list) or not value:
        return False
    lengths = {len(row) if isinstance(row, list) else -1 for row in value}
    return len(lengths) > 1 or any(map(is_ragged, value))


def is_complex(value: Any) -> bool:
    """Whether it is a complex number, written as text."""
    try:
        return isinstance(value, str) and complex(value) is not None
    except ValueError:
        return False


def _map(function: Any, value: Any) -> Any:
    return [_map(function, child) for child in value] if isinstance(value, list) else function(value)


def _number(value: Any) -> Any:
    if isinstance(value, (bool, int, float)):
        return value
    if is_complex(value):
        return complex(value)
    raise ValueError(f"{str(value)[:60]!r} is not a number" if value is not None else "null is not a number")
