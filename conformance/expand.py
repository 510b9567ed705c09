"""A case -> its checks: one for each row of parameters, on each target it applies to."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import UNSET
from packaging.version import Version

from conformance.ahead import COMPILES, foretold
from conformance.case import Case, Deviation, Input, Spec, Tolerance
from conformance.document import CaseError, Mistake, Position
from conformance.document import Path as Place
from conformance.framework import BUILTIN, Framework, frameworks
from conformance.literal import array, floats
from conformance.load import File, load_row
from conformance.parameters import fill, row_keys, same
from conformance.program import names_used, parse
from conformance.target import AHEAD, TOPOLOGY, Selector, Target, family, is_topology, most_specific
from conformance.vocabulary import DTYPES, NAMES, TRANSFORMS

ON_REQUEST = ("inductor",)
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
    because: dict[str, str]
    """outcome -> why the target shows it, where it deviates or is unsupported."""
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
            rows = _rows(file, index, case)
        except CaseError as error:
            mistakes += error.mistakes
            continue
        found = [check for row in rows for check in _checks(file, row, device)]
        checks += found
        others = {"cpu"} if is_topology(device) else {"cpu", TOPOLOGY} - {device}  # whose expectations are no mistakes here
        elsewhere = [check for other in sorted(others) for row in rows for check in _checks(file, row, other)]
        for complaint in (_ambiguous, _unreachable, _undecided, _overridden, _indistinct):
            mistakes += complaint(file, place, case, rows, [*found, *elsewhere])
    if mistakes:
        raise CaseError(mistakes)
    return checks


def case_digest(file: File, index: int) -> str:
    """Changes when, and only when, what the case says changes."""
    said = json.dumps([file.content.reference, file.document.data["cases"][index]], sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def expected_outcome(expected: list[tuple[str, str]], versions: Mapping[str, Version]) -> str | None:
    """The outcome that the most specific fitting selector names; None where none fits."""
    selectors = {Selector.parse(text): outcome for text, outcome in expected}
    fitting = {selector: outcome for selector, outcome in selectors.items() if selector.admits(versions)}
    best = most_specific(list(fitting))
    return fitting[best[0]] if best else None


# --- rows


def _rows(file: File, index: int, case: Case) -> list[Row]:
    if not case.parametrize:
        return [Row("", {}, {}, case)]
    rows = []
    mistakes: dict[tuple[Position, str], Mistake] = {}
    for entries in itertools.product(*(_entries(name, values) for name, values in case.parametrize.items())):
        label = "-".join(entry.label for entry in entries)
        try:
            filled = _filled(file, index, {entry.name: entry.value for entry in entries})
            labels, keys = {entry.name: entry.label for entry in entries}, {entry.name: entry.key for entry in entries}
            rows.append(Row(label, labels, keys, load_row(file, index, filled)))
        except CaseError as error:
            for mistake in error.mistakes:
                said = mistake._replace(message=f"with the parameters {label}: {mistake.message}")
                mistakes.setdefault((mistake.position, mistake.message), said)
    if mistakes:
        raise CaseError(list(mistakes.values()))
    return rows


class _Entry(NamedTuple):
    """One value of one parameter."""

    name: str
    key: Any
    label: str
    value: Any


def _entries(name: str, values: list[Any] | dict[str, Any]) -> list[_Entry]:
    contents = list(values.values()) if isinstance(values, dict) else values
    pairs = zip(row_keys(values), contents, strict=True)
    return [_Entry(name, key, _label(name, index, key, value), value) for index, (key, value) in enumerate(pairs)]


def _label(name: str, index: int, key: Any, value: Any) -> str:
    """What a row is called: its name, or its value where that is short and plain, or else its number."""
    if isinstance(value, (list, dict)) and not isinstance(key, str):
        return f"{name}{index}"
    text = {None: "none", True: "true", False: "false"}[key] if key is None or isinstance(key, bool) else str(key)
    plain = re.sub(r"[^\w.+-]+", "_", text)
    return plain if plain.strip("_") and len(plain) <= 40 else f"{name}{index}"


def _filled(file: File, index: int, values: dict[str, Any]) -> dict[str, Any]:
    """The case's plain data with every ``$parameter`` filled in."""

    def value_of(where: Place, name: str, attributes: str) -> Any:
        value = values[name]
        for attribute in attributes.split(".")[1:]:
            if not isinstance(value, dict) or attribute not in value:
                message = f"${name}{attributes}: the row has no {attribute!r}"
                raise CaseError([file.document.mistake(("cases", index, *where), message)])
            value = value[attribute]
        return value

    return {**fill(file.document.data["cases"][index], value_of), "parametrize": {}}


# --- targets


def _checks(file: File, row: Row, device: str) -> Iterator[Check]:
    case = row.case
    for framework in frameworks().values():
        if family(device) not in framework.devices:
            continue
        for mode in [AHEAD] * _goes_ahead(case, framework) if is_topology(device) else _modes(case, framework):
            for way in _ways(case, framework):
                target = Target(framework.name, mode, device, way)
                yield _check(file, row, target, "", {}, None)
                for variant in case.variants if framework.modes[mode] else ():
                    if Selector.parse(variant.target).covers(target):
                        yield _check(file, row, target, variant.id, variant.with_, variant.expect)


def _ways(case: Case, framework: Framework) -> list[str]:
    """The framework's first way, and every other that says something of the case differently."""
    used = _vocabulary(case)
    return ["", *(way for way, rows in framework.ways.items() if rows.keys() & used)]


def _is_of(case: Case, framework: Framework) -> bool:
    if (case.frameworks and framework.name not in case.frameworks) or (case.native and framework.name not in case.native):
        return False
    if case.device_count and framework.meshes is None:
        return False
    return not _vocabulary(case) & TRANSFORMS or bool(TRANSFORMS & framework.rows.keys())  # or nothing to differentiate with


def _goes_ahead(case: Case, framework: Framework) -> bool:
    """Whether a compiler can be asked about the case: one function, which is one that is compiled where it runs."""
    if AHEAD not in framework.modes or case.steps or case.observe or not _is_of(case, framework):
        return False
    if case.native and case.device_count and AHEAD not in case.modes:
        return False  # for it names devices that are there
    return bool({AHEAD, "compiled"} & set(case.modes)) if case.modes or case.native else True


def _modes(case: Case, framework: Framework) -> list[str]:
    """The modes in which the case runs; in the one in which nothing runs it is not."""
    if not _is_of(case, framework):
        return []
    if case.native and not case.steps:
        return [mode for mode in case.modes or ["eager"] if mode in framework.running_modes]
    if case.steps and not case.trace:
        return [next(iter(framework.modes))]
    if case.observe:
        return [next(iter(framework.modes))] if framework.derivation else []
    modes = framework.traced_modes if case.trace else framework.running_modes
    if case.device_count and framework.meshes:
        modes = [mode for mode in modes if mode in framework.meshes.modes]
    return [mode for mode in modes if not case.modes or mode in case.modes]


def _check(file: File, row: Row, target: Target, variant: str, options: dict[str, Any], expect: str | None) -> Check:
    case = row.case
    outcomes, expected, because = _expectations(row, target)
    if expect is not None:
        expected = [("any", expect)]
    if target.mode == AHEAD:
        outcomes, expected = foretold(outcomes, expected)
    absent, reason = _absence(case, target)
    if absent:
        expected, because = [("any", UNSUPPORTED)], {UNSUPPORTED: reason}
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
        on_request=_is_slow(target) and target.mode not in case.modes,
    )


def _is_slow(target: Target) -> bool:
    """Whether a check takes about a second: in some modes, and where a second way is traced (it breaks torch's graphs)."""
    return target.mode in ON_REQUEST or bool(target.way and frameworks()[target.framework].modes[target.mode])


def _expectations(row: Row, target: Target) -> tuple[dict[str, Spec], list[tuple[str, str]], dict[str, str]]:
    """The outcomes that are possible, those that are expected, and the reasons of those that deviate."""
    case = row.case
    if case.outcomes:
        return (
            dict(case.outcomes),
            [(text, name) for text, name in case.expect.items() if Selector.parse(text).covers(target)],
            {},
        )
    outcomes, expected, because = {CONFORMS: msgspec.convert(case.expect, Spec)}, [("any", CONFORMS)], {}
    for deviation in case.deviations:
        if _is_here(deviation, row) and Selector.parse(deviation.target).covers(target):
            outcomes[deviation.outcome] = Spec(**dict(deviation.items()))
            expected.append((deviation.target, deviation.outcome))
            because[deviation.outcome] = deviation.because
    return outcomes, expected, because


def _absence(case: Case, target: Target) -> tuple[str, str]:
    """An expression that fails because the target is unsupported, and the reason; empty where it is supported."""
    for unsupported in case.unsupported:
        if Selector.parse(unsupported.target).covers(target):
            return unsupported.absent, unsupported.because
    framework = frameworks()[target.framework]
    partial = {"partial"} if any(isinstance(value, Input) and value.partial for value in case.inputs.values()) else set()
    lacking = sorted((_dtypes(case) | _vocabulary(case) | partial) & framework.lacks.keys())
    return (framework.lacks[lacking[0]], f"{framework.name} has no {lacking[0]}") if lacking else ("", "")


def _is_here(deviation: Deviation, row: Row) -> bool:
    return all(any(same(row.keys[name], value) for value in values) for name, values in deviation.where.items())


def _vocabulary(case: Case) -> set[str]:
    """The names of the vocabulary that a case uses."""
    texts = [] if case.native else [case.program, case.define, *(str(step.call or step.do) for step in case.steps)]
    return {name for text in texts for name in names_used(parse(text))} & NAMES


def _dtypes(case: Case) -> set[str]:
    """The dtypes that a case speaks of, in its inputs or in a program."""
    found = _vocabulary(case) & set(DTYPES)
    pending: list[Any] = [case.inputs, case.state, case.at, *(step.rebind for step in case.steps)]
    while pending:
        value = pending.pop()
        if isinstance(value, Input):
            found |= {value.dtype} if value.dtype else set()
            pending += [value.items, value.parts, value.entries]
        elif isinstance(value, (list, dict)):
            pending += value.values() if isinstance(value, dict) else value
    return found


# --- mistakes that only expansion shows


def _ambiguous(file: File, place: Place, case: Case, rows: list[Row], checks: list[Check]) -> Iterator[Mistake]:
    """Checks with one name: of rows that are called the same, or of variants that are."""
    kind, part = ("rows", "parametrize") if len({row.label for row in rows}) < len(rows) else ("variants", "variants")
    name, count = Counter(check.name for check in checks).most_common(1)[0] if checks else ("", 0)
    if count > 1:
        yield file.document.mistake((*place, part), f"{count} checks have the name {name!r}: call the {kind} by different names")


def _unreachable(file: File, place: Place, case: Case, rows: list[Row], checks: list[Check]) -> Iterator[Mistake]:
    """Expectations, deviations and variants that no check can ever meet."""
    if not checks:
        yield file.document.mistake(place, "no target fits: nothing would run")
        return
    for text in case.expect if case.outcomes else ():
        if not any(_elsewhere(text).covers(check.target) for check in checks):
            yield file.document.mistake((*place, "expect", text), f"{text!r} fits no target of the case", key=True)
    for name in ("deviations", "unsupported", "variants"):
        for index, entry in enumerate(getattr(case, name)):
            fitting = [check for check in checks if _elsewhere(entry.target).covers(check.target)]
            if not fitting:
                yield file.document.mistake((*place, name, index, "target"), f"{entry.target!r} fits no target of the case")
            elif name == "deviations" and not any(_is_here(entry, row) for row in rows):
                yield file.document.mistake((*place, name, index, "where"), "no row of the parameters fits")
            elif name == "deviations" and all(check.absent for check in fitting):
                yield file.document.mistake((*place, name, index), f"{entry.target!r} is unsupported, so it cannot deviate")


def _elsewhere(text: str) -> Selector:
    """The selector on whichever device: other devices are met in other runs."""
    return Selector.parse(text)._replace(device=None)


def _undecided(file: File, place: Place, case: Case, rows: list[Row], checks: list[Check]) -> Iterator[Mistake]:
    """Targets of the built-in frameworks that nothing, or more than one thing, is expected of."""
    without = dict.fromkeys(str(check.target) for check in checks if _is_undecided(case, check))
    if without:
        yield file.document.mistake((*place, "expect"), f"nothing is expected of {', '.join(without)}")
    said: set[tuple[str, str]] = set()
    for check in checks:
        for (text, outcome), (other, another) in itertools.combinations(check.expected, 2):
            a, b = Selector.parse(text), Selector.parse(other)
            others = (Selector.parse(each) for each, _ in check.expected)
            decided = any(a.parts() < each.parts() > b.parts() and not each.versioned for each in others)
            tied = not a.parts() < b.parts() and not b.parts() < a.parts() and a.overlaps(b) and not decided
            if tied and outcome != another and (text, other) not in said:
                said.add((text, other))
                where = (*place, "expect", other) if case.outcomes else _deviation(place, case, another)
                message = f"{text!r} and {other!r} both fit {check.target}, and neither is more specific"
                yield file.document.mistake(where, message, key=True)


def _is_undecided(case: Case, check: Check) -> bool:
    if check.expected or check.target.framework not in BUILTIN or check.target.mode == AHEAD:
        return False
    return check.target.device == "cpu" or not any(_elsewhere(text).covers(check.target) for text in case.expect)


def _overridden(file: File, place: Place, case: Case, rows: list[Row], checks: list[Check]) -> Iterator[Mistake]:
    """Two deviations of one check that have one name and say different things."""
    for (_, a), (index, b) in itertools.combinations(enumerate(case.deviations), 2):
        if a.outcome != b.outcome or a.items() == b.items():
            continue
        here = any(_is_here(a, row) and _is_here(b, row) for row in rows)
        pairs = [(_elsewhere(a.target), _elsewhere(b.target), check.target) for check in checks]
        if here and any(first.covers(target) and second.covers(target) for first, second, target in pairs):
            message = f"two deviations are called {b.outcome!r} and say different things"
            yield file.document.mistake((*place, "deviations", index, "outcome"), message)


def _deviation(place: Place, case: Case, outcome: str) -> Place:
    """Where the last deviation of this name stands."""
    return (*place, "deviations", max(i for i, deviation in enumerate(case.deviations) if deviation.outcome == outcome))


def _indistinct(file: File, place: Place, case: Case, rows: list[Row], checks: list[Check]) -> Iterator[Mistake]:
    """Outcomes of a check that one and the same observation could fit."""
    said: set[frozenset[str]] = set()
    for check in checks:
        for (a, spec_a), (b, spec_b) in itertools.combinations(check.outcomes.items(), 2):
            pair = frozenset([a, b])
            if COMPILES not in pair and pair not in said and not distinct(spec_a, spec_b, case.tolerance):
                said.add(pair)
                where = (*place, "outcomes", b) if case.outcomes else _deviation(place, case, b)
                message = f"one observation could be both {a!r} and {b!r}: say what sets them apart"
                yield file.document.mistake(where, message, key=True)


FINEST = Tolerance(because="that of float64; where a case has its own, that one counts", rtol=1e-7, atol=1e-7)


def distinct(a: Spec, b: Spec, tolerance: Any = UNSET) -> bool:
    """Whether no observation can fit both, as far as it shows before a run.

    Outcomes that a reference value or an error's text would have to tell apart are taken to be distinct;
    the judge still refuses an observation that fits two.
    """
    left, right = dict(a.items()), dict(b.items())
    if ("raises" in left) != ("raises" in right):
        return True
    close = tolerance if isinstance(tolerance, Tolerance) else FINEST
    return any(_contradict(p, left[p], q, right[q], close) for p in left for q in right)


def _contradict(part: str, x: Any, other: str, y: Any, close: Tolerance) -> bool:
    """Whether two demands exclude each other."""
    if {part, other} <= {"value", "every", "rows"}:
        return not _alike(x, y, close, spread=part != other)
    if part != other:
        return False
    if part == "values":
        return len(x) != len(y) or not all(_alike(a, b, close) for a, b in zip(x, y, strict=True))
    if part == "raises":
        return not set([x] if isinstance(x, str) else x) & set([y] if isinstance(y, str) else y)
    if part == "dtype" and isinstance(x, str) != isinstance(y, str):
        return any(dtype != x for dtype in y) if isinstance(x, str) else any(dtype != y for dtype in x)
    if part in ("slices", "shards", "cotangents"):
        return any(x[key] != y[key] for key in x.keys() & y.keys())
    return bool(x != y)


def _alike(x: Any, y: Any, close: Tolerance, *, spread: bool = False) -> bool:
    """Whether one result could be both literals, which may be spread to a shape that fits both."""
    if isinstance(x, dict) and isinstance(y, dict):
        return x.keys() == y.keys() and all(_alike(x[key], y[key], close) for key in x)
    try:
        left, right = array(x), array(y)
        if left.shape != right.shape and not spread:
            return False
        whole = left.dtype.kind in "iu" and right.dtype.kind in "iu"
        equal = left == right if whole else np.isclose(left, right, rtol=close.rtol, atol=close.atol, equal_nan=True)
        apart = (left == 0) & (right == 0) & (np.signbit(left.real) != np.signbit(right.real)) & floats(x) & floats(y)
    except (ValueError, TypeError):
        return bool(x == y)
    return (left.dtype == bool) == (right.dtype == bool) and bool(np.all(equal & ~apart))
