"""A case -> its checks: one for each row of parameters, on each target it applies to."""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import numpy as np

from conformance.case import Case, Input, Spec
from conformance.document import CaseError, Mistake
from conformance.document import Path as Place
from conformance.framework import BUILTIN, Framework, frameworks
from conformance.load import CODE, REFERENCE, File, references, row_keys
from conformance.target import Selector, Target, most_specific

ON_REQUEST = ("inductor", "aot")
"""Modes too slow to run unless a case, or the user, asks for them."""

CONFORMS = "conforms"
UNSUPPORTED = "unsupported"
NOT_RUN = "not-run"


class Check(NamedTuple):
    """One case with one row of parameters on one target; parameters are filled in."""

    identity: str
    """area/topic/case"""
    name: str
    """Readable, stable, unique in its file: ``rank-rules[float32-jax:compiled@cpu]``"""
    row: str
    """The part of the name that is about parameters."""
    parameters: dict[str, Any]
    target: Target
    case: Case
    outcomes: dict[str, Spec]
    expected: list[tuple[str, str]]
    """(selector, outcome) of every expectation that can apply; versions are decided when they are known."""
    options: dict[str, Any]
    absent: str
    """An expression that must fail for the target to be unsupported; empty where it is supported."""
    because: str
    on_request: bool


class Row(NamedTuple):
    """A case with one set of parameters filled in."""

    label: str
    parameters: dict[str, Any]
    keys: dict[str, Any]
    case: Case


def expand(file: File, device: str = "cpu") -> list[Check]:
    """All checks of a file. Raises CaseError for what only shows once parameters are filled in."""
    checks: list[Check] = []
    mistakes: list[Mistake] = []
    for index, case in enumerate(file.content.cases):
        place: Place = ("cases", index)
        try:
            rows = list(_rows(file, place, case))
        except CaseError as error:
            mistakes += error.mistakes
            continue
        found = [check for row in rows for check in _checks(file, row, device)]
        checks += found
        mistakes += _unreachable(file, place, case, rows, found)
        mistakes += _undecided(file, place, found)
        mistakes += _indistinct(file, place, case, found)
    if mistakes:
        raise CaseError(mistakes)
    return checks


def case_digest(file: File, index: int) -> str:
    """Changes when, and only when, what the case says changes."""
    said = json.dumps([file.content.reference, file.document.data["cases"][index]], sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def expected_outcome(expected: list[tuple[str, str]], version: Any) -> str | None:
    """The outcome that the most specific fitting selector names; None where none fits."""
    fitting = {Selector.parse(text): outcome for text, outcome in expected if Selector.parse(text).admits(version)}
    best = most_specific(list(fitting))
    return fitting[best[0]] if best else None


# --- rows


def _rows(file: File, place: Place, case: Case) -> Iterator[Row]:
    raw = file.document.data["cases"][place[1]]
    axes = []
    for name, values in case.parametrize.items():
        keys = row_keys(values)
        contents = list(values.values()) if isinstance(values, dict) else values
        axes.append([(name, key, _label(name, key, value), value) for key, value in zip(keys, contents, strict=True)])
    for combination in itertools.product(*axes):
        values = {name: value for name, _, _, value in combination}
        filled = _fill(file, place, raw, values) if values else raw
        try:
            row = msgspec.convert({**filled, "parametrize": {}}, Case)
        except msgspec.ValidationError as error:
            label = "-".join(label for _, _, label, _ in combination)
            message = f"with the parameters {label}: {error}"
            raise CaseError([Mistake(file.document.file, file.document.at(place), message)]) from None
        yield Row(
            "-".join(label for _, _, label, _ in combination),
            {name: label for name, _, label, _ in combination},
            {name: key for name, key, _, _ in combination},
            row,
        )


def _label(name: str, key: Any, value: Any) -> str:
    if isinstance(value, (list, dict)):
        return key if isinstance(key, str) else f"{name}{key}"
    text = {True: "true", False: "false", None: "none"}.get(key) if key is None or isinstance(key, bool) else str(key)
    return text if text and re.fullmatch(r"[\w.+-]{1,40}", text) else f"{name}-{text}" if text else name


def _fill(file: File, place: Place, raw: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """The case's plain data with every ``$parameter`` replaced: by its value, or in code by its text."""
    filled = copy.deepcopy(raw)
    for where, name, attributes in references(raw):
        value: Any = values[name]
        for attribute in attributes.split(".")[1:]:
            if not isinstance(value, dict) or attribute not in value:
                message = f"${name}{attributes}: the row {value!r} of {name!r} has no {attribute!r}"
                raise CaseError([Mistake(file.document.file, file.document.at((*place, *where)), message)])
            value = value[attribute]
        parent: Any = filled
        for step in where[:-1]:
            parent = parent[step]
        if any(step in CODE for step in where):
            token = re.compile(re.escape(f"${name}{attributes}") + r"(?![\w.]*\w)")
            text = value if isinstance(value, str) else repr(value)
            parent[where[-1]] = token.sub(lambda _, text=text: text, parent[where[-1]])
        else:
            parent[where[-1]] = copy.deepcopy(value)
    return filled


# --- targets


def _checks(file: File, row: Row, device: str) -> Iterator[Check]:
    case = row.case
    for framework in frameworks().values():
        for mode in _modes(case, framework):
            target = Target(framework.name, mode, device)
            yield _check(file, row, target, "", {}, None)
            for variant in case.variants:
                if Selector.parse(variant.target).covers(target):
                    yield _check(file, row, target, variant.id, variant.with_, variant.expect)


def _modes(case: Case, framework: Framework) -> list[str]:
    if case.frameworks and framework.name not in case.frameworks:
        return []
    if case.native:
        return [mode for mode in case.modes or ["eager"] if framework.name in case.native and mode in framework.modes]
    if case.steps and not case.trace:
        return [next(iter(framework.modes))]
    if case.mesh or case.observe:
        return ["eager"] if framework.name != "numpy" else []
    modes = framework.traced_modes if case.trace else list(framework.modes)
    return [mode for mode in modes if not case.modes or mode in case.modes]


def _check(file: File, row: Row, target: Target, variant: str, options: dict[str, Any], expect: str | None) -> Check:
    case = row.case
    if case.outcomes:
        outcomes = dict(case.outcomes)
        expected = [(text, outcome) for text, outcome in case.expect.items() if Selector.parse(text).covers(target)]
    else:
        outcomes = {CONFORMS: msgspec.convert(case.expect, Spec)}
        expected = [("any", CONFORMS)]
        for deviation in case.deviations:
            here = all(row.keys[name] in values for name, values in deviation.where.items())
            if here and Selector.parse(deviation.target).covers(target):
                outcomes[deviation.outcome] = Spec(**dict(deviation.items()))
                expected.append((deviation.target, deviation.outcome))
    if expect is not None:
        expected = [("any", expect)]
    absent, because = "", ""
    for unsupported in case.unsupported:
        if Selector.parse(unsupported.target).covers(target):
            absent, because, expected = unsupported.absent, unsupported.because, [("any", UNSUPPORTED)]
    for deviation in case.deviations:
        because = because or (deviation.because if deviation.outcome in outcomes else "")
    framework = frameworks()[target.framework]
    for dtype in sorted(_dtypes(case)):
        if dtype in framework.lacks:
            absent, because, expected = framework.lacks[dtype], f"{framework.name} has no {dtype}", [("any", UNSUPPORTED)]
    label = "-".join(filter(None, [row.label, variant, str(target)]))
    return Check(
        identity=f"{file.area}/{file.topic}/{case.id}",
        name=f"{case.id}[{label}]",
        row="-".join(filter(None, [row.label, variant])),
        parameters=row.parameters | ({"variant": variant} if variant else {}),
        target=target,
        case=case,
        outcomes=outcomes,
        expected=expected,
        options=options,
        absent=absent,
        because=because,
        on_request=target.mode in ON_REQUEST and target.mode not in case.modes,
    )


def _dtypes(case: Case) -> set[str]:
    return {value.dtype for value in [*case.inputs.values(), *case.state.values()] if isinstance(value, Input) and value.dtype}  # type: ignore[misc]


# --- mistakes that only expansion shows


def _mistake(file: File, place: Place, message: str, *, key: bool = False) -> Mistake:
    case = file.document.data["cases"][place[1]]["id"]
    return Mistake(file.document.file, file.document.at(place, key=key), f"{message} in case {case!r}")


def _unreachable(file: File, place: Place, case: Case, rows: list[Row], checks: list[Check]) -> Iterator[Mistake]:
    """Expectations, deviations and variants that no check can ever meet."""
    if not checks:
        yield _mistake(file, place, "no target fits: nothing would run")
        return
    targets = {check.target for check in checks}
    for text in case.expect if case.outcomes else ():
        if not any(Selector.parse(text).covers(target) for target in targets):
            yield _mistake(file, (*place, "expect", text), f"{text!r} fits no target of the case", key=True)
    for name in ("deviations", "unsupported", "variants"):
        for index, entry in enumerate(getattr(case, name)):
            if not any(Selector.parse(entry.target).covers(target) for target in targets):
                yield _mistake(file, (*place, name, index, "target"), f"{entry.target!r} fits no target of the case")


def _undecided(file: File, place: Place, checks: list[Check]) -> Iterator[Mistake]:
    """Targets of the built-in frameworks that nothing, or more than one thing, is expected of."""
    said: set[str] = set()
    for check in checks:
        selectors = [(Selector.parse(text), text, outcome) for text, outcome in check.expected]
        if not selectors and check.target.framework in BUILTIN:
            message = f"nothing is expected of {check.target}"
            if message not in said:
                yield _mistake(file, (*place, "expect"), message)
            said.add(message)
        for (a, text_a, outcome_a), (b, text_b, outcome_b) in itertools.combinations(selectors, 2):
            tied = not a.parts() < b.parts() and not b.parts() < a.parts() and a.overlaps(b)
            message = f"{text_a!r} and {text_b!r} both fit {check.target}, and neither is more specific"
            if tied and outcome_a != outcome_b and message not in said:
                where = (*place, "expect", text_b) if check.case.outcomes else (*place, "deviations")
                yield _mistake(file, where, message, key=True)
                said.add(message)


def _indistinct(file: File, place: Place, case: Case, checks: list[Check]) -> Iterator[Mistake]:
    """Outcomes of a check that one and the same observation could fit."""
    said: set[frozenset[str]] = set()
    for check in checks:
        for (a, spec_a), (b, spec_b) in itertools.combinations(check.outcomes.items(), 2):
            pair = frozenset([a, b])
            if pair not in said and not distinct(spec_a, spec_b):
                said.add(pair)
                where = (*place, "outcomes", b) if case.outcomes else (*place, "deviations")
                yield _mistake(file, where, f"one observation could be both {a!r} and {b!r}: say what sets them apart", key=True)


_RESULT_PARTS = ("value", "values", "every", "rows", "shape", "dtype")


def distinct(a: Spec, b: Spec) -> bool:
    """Whether no observation can fit both, as far as it shows before a run.

    Outcomes that a reference value or an error's text would have to tell apart are taken to be distinct;
    the judge still refuses an observation that fits two.
    """
    left, right = dict(a.items()), dict(b.items())
    if ("raises" in left) != ("raises" in right):
        return True
    if "raises" in left:
        return any(left.get(part) != right.get(part) for part in ("raises", "matching", "step"))
    if any(left[part] != right[part] for part in left.keys() & right.keys() - {"every", "rows"}):
        return True
    return any(_contradict(left[p], right[q], p, q) for p in left for q in right if {p, q} <= set(_RESULT_PARTS))


def _contradict(x: Any, y: Any, part: str, other: str) -> bool:
    """Whether two demands on the same result exclude each other."""
    if {part, other} <= {"shape", "dtype"} or "reference" in (x if isinstance(x, str) else "", y if isinstance(y, str) else ""):
        return "reference" in (str(x), str(y)) and {part, other} <= {"value", "every", "rows"}
    if {part, other} & {"shape", "dtype", "values"}:
        return False
    try:
        left, right = np.asarray(x, float), np.asarray(y, float)
        return not np.all(np.isclose(*np.broadcast_arrays(left, right), equal_nan=True))
    except (ValueError, TypeError):
        return bool(x != y)
