"""An observation -> the name of the outcome that it is."""

from __future__ import annotations

import ast
import base64
import re
from typing import Any, NamedTuple

import msgspec
import numpy as np

from conformance import literal
from conformance.ahead import COMPILES
from conformance.case import Spec, Tolerance

TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}
"""dtype -> (rtol, atol): close where |seen - expected| <= atol + rtol * |expected|. All other dtypes are exact.

The numbers are those of torch.testing.assert_close, https://docs.pytorch.org/docs/stable/testing.html. A float32
result that went through bfloat16 is wrong by up to 2**-9 of its size, 1,500 times what is allowed here.
"""

UNEXPECTED = "unexpected"


class Array(NamedTuple):
    """An array of a result. The values of a bfloat16 array are float32."""

    dtype: str
    values: np.ndarray

    @property
    def shape(self) -> list[int]:
        return list(self.values.shape)


class Abstract(NamedTuple):
    """An array of a program that was compiled and did not run."""

    dtype: str
    shape: list[int]


Tree = Any
"""A result: an Array, an Abstract one, a Python value (as ("int", 3)), or a list or dict of results."""


class Observation(NamedTuple):
    """What a check saw, decoded."""

    results: list[Tree]
    raised: dict[str, Any] | None
    counts: dict[str, list[int]]
    layout: dict[str, Any] | None
    """Of a result that is spread over devices: axes, split, partial, local_shape, slices, and shards that are not such slices."""
    derivation: dict[str, Any] | None
    unobservable: str = ""
    """Why the result could not be brought back, where it could not."""
    collectives: list[str] | None = None
    """Kinds of communication between devices; None where they are not observed."""
    compiled: dict[str, Any] | None = None
    """What is known of a program that was compiled and did not run: its module's ``entry``, its ``memory`` in bytes."""


class Verdict(NamedTuple):
    """The name of the outcome, and for each outcome that it is not, what speaks against it."""

    outcome: str
    against: dict[str, str]


def decode(reply: dict[str, Any]) -> Observation:
    """The observation in a host's reply."""
    counts: dict[str, list[int]] = {name: reply[name] for name in ("traces", "graphs", "compiles") if name in reply}
    return Observation(
        [_tree(result) for result in reply.get("results", [])],
        reply.get("raised"),
        counts,
        reply.get("layout"),
        reply.get("derivation"),
        reply.get("unobservable", ""),
        reply.get("collectives"),
        reply.get("compiled"),
    )


def judge(seen: Observation, outcomes: dict[str, Spec], reference: Observation | None, tolerance: Any) -> Verdict:
    """Name what was seen. More than one fitting outcome is a mistake of the case, and no outcome."""
    against = {name: mismatch(seen, spec, reference, tolerance) for name, spec in outcomes.items()}
    fitting = [name for name, why in against.items() if not why]
    if len(fitting) > 1 and COMPILES in fitting:
        fitting.remove(COMPILES)  # which is what is left where no name says more
    if len(fitting) == 1:
        return Verdict(fitting[0], {name: why for name, why in against.items() if why})
    if fitting:
        return Verdict(UNEXPECTED, dict.fromkeys(fitting, "what was seen fits more than one outcome of the case"))
    return Verdict(UNEXPECTED, against)


def mismatch(seen: Observation, spec: Spec, reference: Observation | None, tolerance: Any) -> str:
    """Why the observation is not what the spec demands; empty where it is."""
    parts = dict(spec.items())
    if seen.unobservable:
        return seen.unobservable
    if seen.raised and "raises" not in parts:
        return f"raised {seen.raised['classes'][0]}: {first_line(seen.raised['message'])}"
    if reference is not None and reference.raised and "reference" in parts.values():
        return f"the reference itself raised {reference.raised['classes'][0]}: {first_line(reference.raised['message'])}"
    if seen.layout and seen.layout.get("shards") and not seen.layout["partial"] and "shards" not in parts and not seen.raised:
        return f"devices hold something else than their slices of the result: {_show(seen.layout['shards'])}"
    for name, demand in parts.items():
        why: str = _PARTS[name](seen, demand, parts, reference, tolerance)
        if why:
            return why
    return ""


def first_line(message: str) -> str:
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return lines[0] if lines else ""


# --- the parts of a spec; each answers with what is wrong


def _value(seen: Observation, demand: Any, parts: Any, reference: Observation | None, tolerance: Any) -> str:
    if seen.derivation is not None:
        # Frameworks differentiate in float32; the runtime has made Python floats of it.
        gradients = seen.derivation["value"].items()
        tree = {name: ("NoneType", None) if v is None else Array("float32", np.asarray(v)) for name, v in gradients}
        return _compare(tree, demand, tolerance)
    if not seen.results:
        return "there is no result"
    if demand == "reference":
        if reference is None or not reference.results:
            return "there is no reference to compare with"
        return _compare(seen.results[-1], reference.results[-1], tolerance)
    return _compare(seen.results[-1], demand, tolerance)


def _values(seen: Observation, demand: Any, parts: Any, reference: Observation | None, tolerance: Any) -> str:
    if len(seen.results) != len(demand):
        return f"{len(seen.results)} results, not {len(demand)}"
    whys = [_compare(result, expected, tolerance) for result, expected in zip(seen.results, demand, strict=True)]
    return next((f"call {index}: {why}" for index, why in enumerate(whys) if why), "")


def _every(seen: Observation, demand: Any, parts: Any, reference: Observation | None, tolerance: Any) -> str:
    arrays = _leaves(seen.results[-1:])
    if any(array.values.size == 0 for array in arrays):
        return "the result has no elements"
    return _each(arrays, demand, tolerance)


def _rows(seen: Observation, demand: Any, parts: Any, reference: Observation | None, tolerance: Any) -> str:
    arrays = _leaves(seen.results[-1:])
    for array in arrays:
        if array.values.size == 0 or array.values.shape[-1:] != (len(demand),):
            return f"the shape {list(array.values.shape)} has no rows of {len(demand)}"
    return _each(arrays, demand, tolerance)


def _each(arrays: list[Array], demand: Any, tolerance: Any) -> str:
    """What sets an array apart from a literal that is spread to its shape."""
    whys = [_compare_array(array, demand, tolerance, spread=True) for array in arrays]
    return next(filter(None, whys), "") if arrays else "there is no result"


def _agree(seen: Observation, demand: Any, parts: Any, reference: Observation | None, tolerance: Any) -> str:
    result = seen.results[-1] if seen.results else None
    if not isinstance(result, list) or len(result) < 2:
        return "there are no two results that could agree"
    if not all(np.isfinite(array.values).all() for array in _leaves(result)):
        return f"not all is finite: {_show(_map(result, lambda array: array.values.tolist()))}"
    whys = [_compare(other, result[0], tolerance) for other in result[1:]]
    why = next(filter(None, whys), "")
    return why if demand else "" if why else "the results agree"


def _shape(seen: Observation, demand: Any, parts: Any, reference: Observation | None, tolerance: Any) -> str:
    shapes = _map(seen.results[-1], lambda array: array.shape) if seen.results else None
    return "" if shapes == demand else f"the shape is {shapes}, not {demand}"


def _dtype(seen: Observation, demand: Any, parts: Any, reference: Observation | None, tolerance: Any) -> str:
    dtypes = _map(seen.results[-1], lambda array: array.dtype) if seen.results else None
    if isinstance(demand, str):
        flat = [array.dtype for array in _leaves(seen.results[-1:])]
        return "" if flat and all(dtype == demand for dtype in flat) else f"the dtype is {dtypes}, not {demand}"
    return "" if dtypes == demand else f"the dtypes are {dtypes}, not {demand}"


def _count(name: str) -> Any:
    def part(seen: Observation, demand: Any, parts: Any, reference: Observation | None, tolerance: Any) -> str:
        counts = seen.counts.get(name)
        if counts is None:
            return f"{name} are not observed"
        return "" if counts == demand else f"{name} are {counts}, not {demand}"

    return part


def _raises(seen: Observation, demand: Any, parts: Any, reference: Observation | None, tolerance: Any) -> str:
    names = [demand] if isinstance(demand, str) else demand
    if not seen.raised:
        return f"nothing was raised, not {' or '.join(names)}"
    if not set(names) & set(seen.raised["classes"]):
        return f"raised {seen.raised['classes'][0]}, not {' or '.join(names)}: {first_line(seen.raised['message'])}"
    return ""


def _matching(seen: Observation, demand: Any, parts: Any, reference: Observation | None, tolerance: Any) -> str:
    found = seen.raised and re.search(demand, seen.raised["message"])
    return "" if found else f"the error's text does not match {demand!r}: {seen.raised['message'][:300] if seen.raised else ''}"


def _at_step(seen: Observation, demand: Any, parts: Any, reference: Observation | None, tolerance: Any) -> str:
    step = seen.raised["step"] if seen.raised else None
    return "" if step == demand else f"raised at step {step}, not {demand}"


def _split(seen: Observation, demand: Any, parts: Any, reference: Observation | None, tolerance: Any) -> str:
    if not seen.layout:
        return "the result is on no mesh"
    split, partial = seen.layout["split"], seen.layout["partial"]
    if split != demand:
        return f"the result is split by {_plain(split)}, not {_plain(demand)}"
    return f"the result is still to be reduced: {_plain(partial)}" if partial and "partial" not in parts else ""


def _partial(seen: Observation, demand: Any, parts: Any, reference: Observation | None, tolerance: Any) -> str:
    partial = seen.layout["partial"] if seen.layout else {}
    return "" if partial == demand else f"the result is still to be reduced: {_plain(partial)}, not {_plain(demand)}"


def _shards(seen: Observation, demand: Any, parts: Any, reference: Observation | None, tolerance: Any) -> str:
    if not seen.layout or not isinstance(array := seen.results[-1] if seen.results else None, Array):
        return "there are no shards"
    given = seen.layout.get("shards")
    for device, expected in demand.items():
        if device not in seen.layout["slices"]:
            return f"device {device} holds nothing"
        part = tuple(slice(*map(int, bounds.split(":"))) for bounds in seen.layout["slices"][device])
        held = Array(array.dtype, np.asarray(given[device], array.values.dtype) if given else array.values[part])
        if why := _compare_array(held, expected, tolerance):
            return f"device {device}: {why}"
    return ""


def _devices(seen: Observation, demand: Any, parts: Any, reference: Observation | None, tolerance: Any) -> str:
    devices = sorted(map(int, seen.layout["slices"])) if seen.layout else []
    return "" if devices == sorted(demand) else f"the devices {devices} hold the result, not {demand}"


def _collectives(seen: Observation, demand: Any, parts: Any, reference: Observation | None, tolerance: Any) -> str:
    if seen.collectives is None:
        return "collectives are not observed"
    said = _plain(seen.collectives), _plain(sorted(demand))
    return "" if seen.collectives == sorted(demand) else f"the collectives are {said[0]}, not {said[1]}"


def _local_shape(seen: Observation, demand: Any, parts: Any, reference: Observation | None, tolerance: Any) -> str:
    shapes = seen.layout["local_shape"] if seen.layout else None
    return "" if shapes == [demand] else f"the local shapes are {shapes}, not {demand}"


def _slices(seen: Observation, demand: Any, parts: Any, reference: Observation | None, tolerance: Any) -> str:
    slices = seen.layout["slices"] if seen.layout else {}
    for device, bounds in demand.items():
        if slices.get(device) != bounds:
            return f"device {device} holds {slices.get(device)}, not {bounds}"
    return ""


def _entry(seen: Observation, demand: Any, parts: Any, reference: Observation | None, tolerance: Any) -> str:
    head = seen.compiled["entry"] if seen.compiled else ""
    return "" if re.search(demand, head) else f"the compiled module's head does not match {demand!r}: {head[:300]}"


def _memory(seen: Observation, demand: Any, parts: Any, reference: Observation | None, tolerance: Any) -> str:
    memory = seen.compiled["memory"] if seen.compiled else {}
    wrong = [f"{name} takes {memory.get(name)} bytes, not {size}" for name, size in demand.items() if memory.get(name) != size]
    return "; ".join(wrong)


def _linear(seen: Observation, demand: Any, parts: Any, reference: Observation | None, tolerance: Any) -> str:
    shown = seen.derivation.get("linear") if seen.derivation else None
    if shown is None or not demand:
        return "" if not shown and not demand else "no linear program is shown" if not shown else "a linear program is shown"
    expected = _named_terms(demand)
    result = _seen_terms(shown).get(seen.derivation["result"], seen.derivation["result"])  # type: ignore[index]  # shown, so there is one
    final = list(expected.values())[-1]
    return "" if result == final else f"the linear program is {result}, not {final}"


def _cotangents(seen: Observation, demand: Any, parts: Any, reference: Observation | None, tolerance: Any) -> str:
    shown = seen.derivation.get("cotangents") if seen.derivation else None
    if not shown:
        return "no cotangents are shown"
    terms = _seen_terms(seen.derivation["linear"])  # type: ignore[index]  # shown, so there is one
    by_term = {terms.get(name, name): value for name, value in shown.items()}
    expected = _named_terms(parts["linear"])
    for name, value in demand.items():
        found = by_term.get(expected.get(name, name))
        if found is None or not np.isclose(found, value):
            return f"the cotangent of {name} is {found}, not {value}"
    return ""


_PARTS = {
    "value": _value,
    "values": _values,
    "every": _every,
    "rows": _rows,
    "shape": _shape,
    "dtype": _dtype,
    "agree": _agree,
    "traces": _count("traces"),
    "graphs": _count("graphs"),
    "compiles": _count("compiles"),
    "raises": _raises,
    "matching": _matching,
    "step": _at_step,
    "split": _split,
    "partial": _partial,
    "local_shape": _local_shape,
    "slices": _slices,
    "shards": _shards,
    "devices": _devices,
    "collectives": _collectives,
    "entry": _entry,
    "memory": _memory,
    "linear": _linear,
    "cotangents": _cotangents,
}


# --- comparing results


def _compare(seen: Tree, expected: Tree, tolerance: Any) -> str:
    """What sets a result apart from a literal or from another result; empty where nothing does."""
    if isinstance(seen, Abstract):
        return "nothing ran, so that there are no values"
    if isinstance(seen, Array):
        return _compare_array(seen, expected, tolerance)
    if isinstance(seen, list):
        if not isinstance(expected, list) or len(expected) != len(seen):
            return f"{len(seen)} results, not {_show(expected)}"
        whys = [_compare(s, e, tolerance) for s, e in zip(seen, expected, strict=True)]
        return next((f"result {index}: {why}" for index, why in enumerate(whys) if why), "")
    if isinstance(seen, dict):
        if not isinstance(expected, dict) or expected.keys() != seen.keys():
            return f"the keys are {sorted(seen)}, not {_show(expected)}"
        whys = [f"{key}: {why}" for key in seen if (why := _compare(seen[key], expected[key], tolerance))]
        return whys[0] if whys else ""
    kind, value = seen
    if isinstance(expected, Array) or (isinstance(value, float) and _is_number(expected)):
        return _compare_array(Array(kind, np.asarray(value)), expected, tolerance)
    if isinstance(expected, tuple):
        expected = expected[1]
    same = type(value) is type(expected) and value == expected
    return "" if same else f"{_show(value)}, not {_show(expected)}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _compare_array(seen: Array, expected: Any, tolerance: Any, *, spread: bool = False) -> str:
    try:
        values = expected.values if isinstance(expected, Array) else literal.array(expected)
        signed = np.False_ if isinstance(expected, Array) else literal.floats(expected)
        if spread:
            values = np.broadcast_to(values, seen.values.shape)
    except ValueError:
        return f"{_show(seen)}, not {_show(expected)}"
    if seen.values.shape != values.shape:
        return f"the shape is {list(seen.values.shape)}, not {list(values.shape)}"
    if (seen.dtype == "bool") != (values.dtype == bool):
        return f"the dtype is {seen.dtype}, not {'bool' if values.dtype == bool else 'a number'}"
    right = _close(seen, values, tolerance) & ~(signed & _opposite_zeros(seen.values, values))
    if right.all():
        return ""
    where = tuple(int(i) for i in np.argwhere(~right)[0])
    place = f"element {list(where)}: " if where else ""
    count = f" ({int((~right).sum())} of {right.size} differ)" if right.size > 1 else ""
    return f"{place}{seen.values[where]!s}, not {values[where]!s}{count}"


def _opposite_zeros(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind != "f" or b.dtype.kind != "f":
        return np.zeros(a.shape, bool)
    return np.asarray((a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b)))


def _close(seen: Array, values: np.ndarray, tolerance: Any) -> np.ndarray:
    """Element by element; NaN equals NaN, an infinity itself. Exact where neither side is floating point."""
    dtype = {"float": "float64", "complex": "complex128"}.get(seen.dtype, seen.dtype)
    if dtype not in TOLERANCES:
        return np.broadcast_to(seen.values == values, values.shape)
    rtol, atol = TOLERANCES[dtype]
    if isinstance(tolerance, Tolerance):
        rtol, atol = tolerance.rtol, tolerance.atol
    wide = seen.values.astype(np.complex128 if seen.values.dtype.kind == "c" else np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        close = np.abs(wide - values) <= atol + rtol * np.abs(values)
    return np.asarray((close & np.isfinite(values)) | (wide == values) | ((wide != wide) & (values != values)))


def _tree(data: Any) -> Tree:
    if isinstance(data, list):
        return [_tree(child) for child in data]
    if "bytes" in data:
        return _array(data)
    if "shape" in data:
        return Abstract(data["dtype"], data["shape"])
    if "dict" in data:
        return {key: _tree(child) for key, child in data["dict"].items()}
    return data["python"], data["data"]


def _array(data: dict[str, Any]) -> Tree:
    try:
        kind = np.dtype("float32" if data["dtype"] == "bfloat16" else data["dtype"])
        values = np.frombuffer(base64.b64decode(data["bytes"]), kind).reshape(data["shape"])
    except (TypeError, ValueError):  # such as text, or an 8-bit float: there is nothing to compare it with
        return data["dtype"], f"an array of {data['dtype']}"
    return Array(data["dtype"], values)


def _leaves(tree: Tree) -> list[Any]:
    if isinstance(tree, (Array, Abstract)):
        return [tree]
    if isinstance(tree, (list, dict)):
        return [leaf for child in (tree.values() if isinstance(tree, dict) else tree) for leaf in _leaves(child)]
    return [Array(tree[0], np.asarray(tree[1]))]


def _map(tree: Tree, of: Any) -> Any:
    if isinstance(tree, (Array, Abstract)):
        return of(tree)
    if isinstance(tree, list):
        return [_map(child, of) for child in tree]
    if isinstance(tree, dict):
        return {key: _map(child, of) for key, child in tree.items()}
    return of(Array(tree[0], np.asarray(tree[1])))


def _show(value: Any) -> str:
    if isinstance(value, Array):
        value = value.values.tolist()
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:197]}..."


# --- linear programs, compared up to the names of their steps and the order of commuting operands


def _named_terms(program: dict[str, str]) -> dict[str, Any]:
    terms: dict[str, Any] = {}
    for name, text in program.items():
        terms[name] = _term(ast.parse(text, mode="eval").body, terms)
    return terms


def _term(node: ast.expr, terms: dict[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        return terms.get(node.id, node.id)
    if isinstance(node, ast.BinOp):
        operation = {ast.Add: "add", ast.Mult: "mul", ast.Sub: "sub", ast.Div: "div"}[type(node.op)]
        return _canonical(operation, [_term(node.left, terms), _term(node.right, terms)])
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _canonical("neg", [_term(node.operand, terms)])
    return _rounded(ast.literal_eval(node))


def _rounded(number: float) -> float:
    """A constant of a linear program, which one framework has in float32 and a case writes down with fewer digits."""
    return float(f"{number:.5g}")


def _seen_terms(program: list[Any]) -> dict[str, Any]:
    terms: dict[str, Any] = {}
    for name, operation, operands in program:
        known = [terms.get(operand, operand) if isinstance(operand, str) else _rounded(operand) for operand in operands]
        terms[name] = _canonical({"add_any": "add"}.get(operation, operation), known)
    return terms


def _canonical(operation: str, operands: list[Any]) -> Any:
    if operation in ("add", "mul"):
        operands = sorted(operands, key=repr)
    return (operation, *operands)


def spec_text(spec: Spec) -> str:
    """A spec in a line, as it stands in a case file."""
    return ", ".join(f"{name}: {_plain(value)}" for name, value in spec.items())


def _plain(value: Any) -> str:
    if isinstance(value, float) and not np.isfinite(value):
        return {"inf": ".inf", "-inf": "-.inf"}.get(str(value), ".nan")
    if isinstance(value, list):
        return f"[{', '.join(map(_plain, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_plain(item)}' for key, item in value.items())}}}"
    return str(value).lower() if isinstance(value, bool) else "null" if value is None else str(value)


def seen_text(seen: Observation) -> str:
    """An observation in a line or two, for people."""
    said = []
    if seen.results:
        said.append("; ".join(_plain(_map(result, _array_text)) for result in seen.results))
    said += [f"{name} {counts}" for name, counts in seen.counts.items()]
    if seen.layout:
        said += [f"{name} {_plain(value)}" for name, value in seen.layout.items() if name != "axes"]
    if seen.collectives is not None:
        said.append(f"collectives {_plain(seen.collectives)}")
    if seen.derivation:
        said.append(msgspec.json.encode(seen.derivation).decode())
    if seen.unobservable:
        said.append(seen.unobservable)
    if seen.compiled:
        said.append(f"{seen.compiled['entry']}, in bytes: {seen.compiled['memory']}; nothing ran")
    if seen.raised:
        said.append(f"raised {seen.raised['classes'][0]} at step {seen.raised['step']}: {seen.raised['message'].strip()}")
    return "; ".join(said)


def _array_text(array: Array | Abstract) -> str:
    if isinstance(array, Abstract):
        return f"{array.dtype}{array.shape}"
    return f"{array.dtype}{list(array.values.shape)} {_plain(array.values.tolist())[:300]}"
