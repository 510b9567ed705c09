"""Two observations of one check -> what sets them apart, where that is more than rounding or the wording of an error."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from conformance.case import Tolerance
from conformance.judge import TOLERANCES
from conformance.results import full_texts

WORDING = ("text", "unobservable")
"""Parts of an observation that are somebody's words; that they are there is a fact, what they say is not."""


class Values:
    """The arrays that are too long for two results files, from what lies beside them."""

    def __init__(self, before: Path, after: Path) -> None:
        self._paths = before, after
        self.shortened = 0
        """Pairs of which the whole was not to be had."""

    @functools.cached_property
    def _full(self) -> tuple[dict[str, Any], dict[str, Any]]:
        before, after = map(full_texts, self._paths)
        return before, after

    def of(self, before: dict[str, Any], after: dict[str, Any]) -> tuple[Any, Any]:
        """The values of two arrays: all of them, or the first ones of both."""
        whole = [data.get("value") or self._whole(side, data) for side, data in enumerate((before, after))]
        if None not in whole:
            return whole[0], whole[1]
        self.shortened += 1
        return before.get("first"), after.get("first")

    def _whole(self, side: int, data: dict[str, Any]) -> Any:
        found = self._full[side].get(str(data.get("digest")))
        return found.get("value") if isinstance(found, dict) else None


def difference(before: dict[str, Any], after: dict[str, Any], tolerance: Tolerance | None, values: Values) -> str:
    """What sets two observations apart, in words; empty where nothing does."""
    compare = _Compare(tolerance, values)
    return "" if before == after else next(compare.observations(before, after), "")


class _Compare:
    """Yields what differs, part by part."""

    def __init__(self, tolerance: Tolerance | None, values: Values) -> None:
        self.tolerance = tolerance
        self.values = values

    def observations(self, before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
        for name in dict.fromkeys([*before, *after]):
            if name not in before or name not in after:
                yield f"{name}: {'not ' if name not in after else ''}seen now"
            elif name == "raised" and isinstance(before[name], dict) and isinstance(after[name], dict):
                yield from self.plain(_without_message(before[name]), _without_message(after[name]), name)
            elif name == "results":
                yield from self.trees(before[name], after[name], name)
            elif name not in WORDING:
                yield from self.plain(before[name], after[name], name)

    def trees(self, before: Any, after: Any, place: str) -> Iterator[str]:
        """Results: arrays, Python values, lists and dicts of results."""
        if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
            for index, (old, new) in enumerate(zip(before, after, strict=True)):
                yield from self.trees(old, new, f"{place}[{index}]")
        elif not isinstance(before, dict) or not isinstance(after, dict) or before.keys() != after.keys():
            yield from self.arrays(before, after, place) if _are_arrays(before, after) else self.plain(before, after, place)
        elif _are_arrays(before, after):
            yield from self.arrays(before, after, place)
        elif isinstance(before.get("dict"), dict) and isinstance(after["dict"], dict):
            old, new = before["dict"], after["dict"]
            if old.keys() != new.keys():
                yield f"{place}: the keys {list(old)} -> {list(new)}"
            for name in old.keys() & new.keys():
                yield from self.trees(old[name], new[name], f"{place}.{name}")
        else:
            yield from self.plain(before, after, place)

    def arrays(self, before: dict[str, Any], after: dict[str, Any], place: str) -> Iterator[str]:
        for name in ("dtype", "shape"):
            if before.get(name) != after.get(name):
                yield f"{place}: the {name} {before.get(name)} -> {after.get(name)}"
                return
        if "digest" in before and before["digest"] == after.get("digest"):
            return
        old, new = self.values.of(before, after)
        if before["dtype"] not in TOLERANCES:
            if before.get("digest") != after.get("digest") or old != new:
                yield f"{place}: {_short(old)} -> {_short(new)}"
        elif not self.close(old, new, str(before["dtype"])):
            yield f"{place}: {_farthest(old, new, before['dtype'])}"

    def plain(self, before: Any, after: Any, place: str) -> Iterator[str]:
        """Any other data, where floats may be rounded."""
        if isinstance(before, dict) and isinstance(after, dict):
            for name in dict.fromkeys([*before, *after]):
                if name not in before or name not in after:
                    yield f"{place}.{name}: {'not ' if name not in after else ''}seen now"
                else:
                    yield from self.plain(before[name], after[name], f"{place}.{name}")
        elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
            for index, (old, new) in enumerate(zip(before, after, strict=True)):
                yield from self.plain(old, new, f"{place}[{index}]")
        elif isinstance(before, float) and isinstance(after, float) and self.close(before, after, "float32"):
            return
        elif before != after or type(before) is not type(after):
            yield f"{place}: {_short(before)} -> {_short(after)}"

    def close(self, before: Any, after: Any, dtype: str) -> bool:
        """Whether two results could both be right: twice as far apart as each may be from the truth."""
        rtol, atol = TOLERANCES[dtype]
        if self.tolerance is not None:
            rtol, atol = self.tolerance.rtol, self.tolerance.atol
        if _plainly_close(before, after, 2 * rtol, 2 * atol):
            return True
        try:
            old, new = _numbers(before, dtype), _numbers(after, dtype)
            return old.shape == new.shape and bool(np.allclose(old, new, rtol=2 * rtol, atol=2 * atol, equal_nan=True))
        except (TypeError, ValueError):  # written by hand
            return bool(before == after)


def _are_arrays(before: Any, after: Any) -> bool:
    return all(isinstance(side, dict) and isinstance(side.get("dtype"), str) and "shape" in side for side in (before, after))


def _plainly_close(before: Any, after: Any, rtol: float, atol: float) -> bool:
    """Whether all numbers are close. Most arrays are small, and NumPy is slow to start; what is no number is left to it."""
    if type(before) is list and type(after) is list:
        return len(before) == len(after) and all(
            map(_plainly_close, before, after, itertools.repeat(rtol), itertools.repeat(atol))
        )
    if type(before) is float and type(after) is float:
        return abs(before - after) <= atol + rtol * abs(after)
    return type(before) is type(after) and bool(before == after)


def _without_message(error: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in error.items() if name != "message"}


def _numbers(values: Any, dtype: str) -> np.ndarray:
    return np.asarray(values, complex if "complex" in dtype else float)


def _farthest(before: Any, after: Any, dtype: str) -> str:
    """The two arrays where they are small; else the elements that are the farthest apart."""
    try:
        old, new = _numbers(before, dtype).ravel(), _numbers(after, dtype).ravel()
        if old.size <= 16 or old.shape != new.shape:
            return f"{_short(before)} -> {_short(after)}"
        with np.errstate(invalid="ignore"):
            gaps = np.nan_to_num(np.abs(old - new), nan=np.inf)
        gaps[np.isnan(old) & np.isnan(new) | (old == new)] = 0.0
        where = int(np.argmax(gaps))
        return f"{old[where]} -> {new[where]} at {where} of {old.size}, the farthest apart"
    except (TypeError, ValueError):
        return f"{_short(before)} -> {_short(after)}"


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode(errors="replace")
    return text if len(text) <= 300 else f"{text[:300]}…"
