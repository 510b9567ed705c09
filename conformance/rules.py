"""What a schema cannot say of a case file: names, numbers, programs and expectations that can mean nothing."""

from __future__ import annotations

import ast
import functools
import keyword
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from conformance import literal, vocabulary
from conformance.case import Case, Deviation, Input, Native, Spec, Step, Topic
from conformance.document import Document, Mistake, did_you_mean, short
from conformance.document import Path as Place
from conformance.framework import COMPANIONS, frameworks
from conformance.literal import is_complex, is_ragged, leaves
from conformance.parameters import almost_references, fill_holes, holes, is_open, references, row_keys, same
from conformance.program import Flaw, ProgramError, flaws, names_bound, names_used, parse, read, returns
from conformance.target import MODES, Selector, family

FILLS = ("normal", "uniform", "arange", "zeros", "ones", "integers")
MAX_ELEMENTS = 2**24
MAX_ROWS = 10_000
MAX_DEVICES = 8
"""Hosts make so many devices out of one processor."""

VERDICTS = ("unexpected", "crashed", "timed-out", "unsupported", "not-run")
"""Names that say something else than what was observed."""

_PYTHON_DTYPES = ("int", "float", "complex", "str")
_LISTS = ("values", "rows", "shape", "traces", "graphs", "compiles", "local_shape", "devices", "collectives")
_OF_DEVICES = ("split", "partial", "local_shape", "slices", "shards", "devices", "collectives")
REDUCTIONS = ("sum", "avg", "max", "min", "product")
COLLECTIVES = ("all-gather", "all-reduce", "all-to-all", "collective-permute", "reduce-scatter")
_PER_CALL = ("values", "traces", "graphs", "compiles")
_RESULTS = ("value", "values", "every", "rows", "shape", "dtype", "agree")
_NEEDS = {
    **dict.fromkeys(("traces", "graphs", "compiles"), "trace"),
    **dict.fromkeys(("linear", "cotangents"), "observe"),
    **dict.fromkeys(("entry", "memory"), "modes"),
}


class Rules:
    """What a schema cannot say of a file; each method yields mistakes.

    A case with parameters is checked twice: as it is written, where ``$name`` may stand for anything, and then filled in.
    """

    def __init__(self, document: Document, *, filled: bool = False) -> None:
        self.document = document
        self.filled = filled

    def mistake(self, place: Place, message: str, *, key: bool = False) -> Mistake:
        return self.document.mistake(place, message, key=key)

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
        if kinds == ["native", "steps"]:
            kinds = ["native"]
        if len(kinds) != 1:
            said = f"it has {' and '.join(kinds)}" if kinds else "it has none"
            yield self.mistake(place, f"a case is one of program, native, steps or observe; {said}")
            return
        wrong = [*self.kind(place, case, kinds[0]), *self.names(place, case)]
        if wrong:
            yield from wrong
            return
        yield from self.parameters(place, case)
        for name, known in (("modes", MODES), ("frameworks", tuple(frameworks()))):
            for index, value in enumerate(getattr(case, name)):
                if value not in known:
                    yield self.mistake((*place, name, index), f"unknown {name[:-1]} {value!r}{did_you_mean(value, known)}")
        for index, deviation in enumerate(case.deviations):
            yield from self.where((*place, "deviations", index, "where"), deviation, case)
        yield from self.row(place, case)

    def row(self, place: Place, case: Case) -> Iterator[Mistake]:
        """What has to be checked again once parameters are filled in."""
        yield from self.devices(place, case)
        if "reshard" in _words([case.program, case.define]) and not case.mesh:
            yield self.mistake(place, "reshard() lays something out over a mesh: the case has none")
        for name in ("inputs", "state", "at"):
            yield from self.inputs((*place, name), getattr(case, name), case)
        for index, step in enumerate(case.steps):
            yield from self.inputs((*place, "steps", index, "rebind"), step.rebind, case)
        yield from self.programs(place, case)
        yield from self.expectations(place, case)

    # --- kinds, parameters, names

    def kind(self, place: Place, case: Case, kind: str) -> Iterator[Mistake]:
        for name in {"steps": ["define"], "observe": ["define", "at"]}.get(kind, []):
            if not getattr(case, name):
                yield self.mistake(place, f"a case with {kind!r} needs {name!r}")
        if case.define and case.native:
            yield self.mistake((*place, "define"), "where `native` defines functions there is no `define`", key=True)
        if case.trace and not case.steps:
            yield self.mistake((*place, "trace"), "only a case with steps has a function to trace", key=True)
        for index, step in enumerate(case.steps):
            if sum(map(bool, (step.call, step.rebind, step.do))) != 1:
                yield self.mistake((*place, "steps", index), "a step is one of call, rebind or do")
            yield from self.per_framework((*place, "steps", index), step, case)
            for name in step.rebind:
                if name not in case.state:
                    message = f"{name!r} is not in `state`{did_you_mean(name, case.state)}"
                    yield self.mistake((*place, "steps", index, "rebind", name), message, key=True)

    def per_framework(self, place: Place, step: Step, case: Case) -> Iterator[Mistake]:
        """A step that is said in each framework's own words has to be said in the words of all of them."""
        for name in ("call", "do"):
            said = getattr(step, name)
            if not isinstance(said, dict):
                continue
            if not case.native:
                yield self.mistake((*place, name), f"`{name}` says something per framework only where `native` does")
            elif said.keys() != case.native.keys():
                known = ", ".join(case.native)
                yield self.mistake((*place, name), f"`{name}` speaks of {', '.join(said)}; `native` has {known}")

    def parameters(self, place: Place, case: Case) -> Iterator[Mistake]:
        used: set[str] = set()
        for where, name, _ in references(self.document.data["cases"][place[1]]):
            used.add(name)
            if name not in case.parametrize:
                known = did_you_mean(name, case.parametrize) if case.parametrize else "; the case has no parameters"
                yield self.mistake((*place, *where), f"${name} is not a parameter{known}")
        for where, text in almost_references(self.document.data["cases"][place[1]]):
            yield self.mistake((*place, *where), f"{short(text)} is no parameter: their names have letters, digits and _ only")
        for name, rows in case.parametrize.items():
            if any(holes(leaf) for leaf in leaves(rows) if isinstance(leaf, str)):
                yield self.mistake((*place, "parametrize", name), f"a value of {name!r} speaks of a parameter itself")
            if not rows:
                yield self.mistake((*place, "parametrize", name), f"the parameter {name!r} has no values")
            if name not in used:
                yield self.mistake((*place, "parametrize", name), f"the parameter {name!r} is never used", key=True)
        if math.prod(map(len, case.parametrize.values())) > MAX_ROWS:
            yield self.mistake((*place, "parametrize"), f"the parameters combine to more than {MAX_ROWS:,} rows")

    def where(self, place: Place, deviation: Deviation, case: Case) -> Iterator[Mistake]:
        for name, values in deviation.where.items():
            if name not in case.parametrize:
                message = f"{name!r} is not a parameter{did_you_mean(name, case.parametrize)}"
                yield self.mistake((*place, name), message, key=True)
                continue
            rows = row_keys(case.parametrize[name])
            for index, value in enumerate(values):
                if not any(same(value, row) for row in rows):
                    known = ", ".join(map(short, rows))
                    yield self.mistake((*place, name, index), f"{short(value)} is no row of {name!r}; it has {known}")

    def names(self, place: Place, case: Case) -> Iterator[Mistake]:
        for group in ("inputs", "state", "at"):
            for name in getattr(case, group):
                if not name.isidentifier() or keyword.iskeyword(name):
                    yield self.mistake((*place, group, name), f"{name!r} is not a name that a program can say", key=True)
                elif name in _reserved() or name in _functions(case.define):
                    yield self.mistake((*place, group, name), f"the name {name!r} is taken; choose another", key=True)

    # --- inputs

    def inputs(self, place: Place, inputs: dict[str, Any], case: Case) -> Iterator[Mistake]:
        for name, value in inputs.items():
            yield from self.input((*place, name), value, case)

    def input(self, place: Place, value: Any, case: Case) -> Iterator[Mistake]:
        if not isinstance(value, Input):
            yield from self.literal(place, value, UNSET, UNSET)
            return
        ways = ("fill", "value", "python", "list", "tuple", "dict")
        given = [way for way in ways if getattr(value, _FIELDS.get(way, way)) is not UNSET]
        if len(given) > 1:
            yield self.mistake(place, f"an input is made in one way, not by {' and '.join(given)}")
        needs_shape = not given or "fill" in given or value.value == "arange"
        if needs_shape and value.shape is UNSET:
            yield self.mistake(place, "an input needs a shape" if given else "an input needs a shape or a value")
        yield from self.known((*place, "fill"), "fill", value.fill, FILLS)
        yield from self.known((*place, "dtype"), "dtype", value.dtype, vocabulary.DTYPES)
        yield from self.size((*place, "shape"), value.shape)
        if value.value is not UNSET and value.value != "arange":
            yield from self.literal((*place, "value"), value.value, value.dtype, value.shape)
        yield from self.split(place, value.split, value.partial, case)
        if isinstance(value.shape, list) and isinstance(value.split, list) and len(value.split) != len(value.shape):
            message = f"`split` speaks of {len(value.split)} dimensions; the shape {value.shape} has {len(value.shape)}"
            yield self.mistake((*place, "split"), message)
        if value.partial is not UNSET and value.split is UNSET:
            yield self.mistake((*place, "partial"), "an input with `partial` needs `split`, if only of nulls", key=True)
        for name in ("list", "tuple", "dict"):
            children = getattr(value, _FIELDS[name])
            if isinstance(children, str) and not is_open(children):
                yield self.mistake((*place, name), f"{short(children)} is not a list of inputs")
            elif children is not UNSET and not isinstance(children, str):
                for key, child in children.items() if isinstance(children, dict) else enumerate(children):
                    yield from self.input((*place, name, key), child, case)

    def known(self, place: Place, kind: str, value: Any, known: Iterable[str]) -> Iterator[Mistake]:
        if value is not UNSET and value not in known and not is_open(value):
            yield self.mistake(place, f"unknown {kind} {value!r}{did_you_mean(value, known)}")

    def size(self, place: Place, shape: Any) -> Iterator[Mistake]:
        if shape is UNSET or is_open(shape):
            return
        sizes = shape if isinstance(shape, list) else [shape]
        wrong = [size for size in sizes if isinstance(size, str) and not is_open(size)]
        numbers = [size for size in sizes if isinstance(size, int)]
        if wrong:
            yield self.mistake(place, f"{short(wrong[0])} is not a size")
        elif any(size < 0 for size in numbers):
            yield self.mistake(place, f"the shape {shape} has a negative size")
        elif math.prod(numbers) > MAX_ELEMENTS:
            yield self.mistake(place, f"the shape {shape} has more than {MAX_ELEMENTS:,} elements")

    def literal(self, place: Place, value: Any, dtype: Any, shape: Any) -> Iterator[Mistake]:
        """What an array cannot be made of; a shape or dtype that is not known is not looked at."""
        if any(is_open(leaf) for leaf in leaves(value)):
            return
        if is_ragged(value):
            yield self.mistake(place, "the literal is ragged: its rows differ in length")
            return
        try:
            array = literal.array(value)
        except ValueError as error:
            yield self.mistake(place, str(error))
            return
        if dtype is UNSET:
            dtype = {"b": "bool", "f": "float32", "c": "complex64"}.get(array.dtype.kind, "int32")
        if dtype in vocabulary.DTYPES and not _holds(dtype, array):
            yield self.mistake(place, f"{short(value)} does not fit {dtype}")
        if isinstance(shape, list) and all(isinstance(size, int) for size in shape) and not _broadcasts(array.shape, shape):
            yield self.mistake(place, f"a value of shape {list(array.shape)} cannot fill the shape {shape}")

    def split(self, place: Place, split: Any, partial: Any, case: Case) -> Iterator[Mistake]:
        """Axes of the mesh, each of them used once."""
        seen = list[str]()
        for name, entries in (("split", split), ("partial", partial)):
            if entries is UNSET or is_open(entries):
                continue
            if isinstance(entries, str):
                kind = "list" if name == "split" else "mapping"
                yield self.mistake((*place, name), f"{name!r}: {short(entries)} is not a {kind}")
                continue
            axes = [axis for entry in entries for axis in (entry if isinstance(entry, list) else [entry]) if axis is not None]
            for axis in axes:
                if is_open(axis):
                    continue
                if axis not in case.mesh:
                    yield self.mistake((*place, name), f"{axis!r} is no axis of the mesh{did_you_mean(axis, case.mesh)}")
                elif axis in seen:
                    yield self.mistake((*place, name), f"the axis {axis!r} is used twice")
                seen.append(axis)
        for axis, reduction in partial.items() if isinstance(partial, dict) else ():
            yield from self.known((*place, "partial", axis), "reduction", reduction, REDUCTIONS)

    def devices(self, place: Place, case: Case) -> Iterator[Mistake]:
        if math.prod(case.mesh.values()) > MAX_DEVICES:
            yield self.mistake((*place, "mesh"), f"the mesh has more than {MAX_DEVICES} devices")
        if isinstance(case.devices, int) and not 0 <= case.devices <= MAX_DEVICES:
            yield self.mistake((*place, "devices"), f"there are {MAX_DEVICES} devices at most")
        elif isinstance(case.devices, int) and case.devices and case.mesh:
            yield self.mistake((*place, "devices"), "the mesh says how many devices there are; a list says which")
        elif isinstance(case.devices, list):
            count = math.prod(case.mesh.values()) if case.mesh else 0
            if not case.mesh:
                yield self.mistake((*place, "devices"), "a list of devices says how they fill a mesh: there is none")
            elif sorted(case.devices) != list(range(count)):
                yield self.mistake((*place, "devices"), f"the mesh takes each of the devices 0 to {count - 1} once")

    # --- programs

    def programs(self, place: Place, case: Case) -> Iterator[Mistake]:
        used = _words(case.parametrize)
        if case.program:
            yield from self.program((*place, "program"), case.program, {*case.inputs}, used)
            yield from self.returns((*place, "program"), case.program)
        if case.closed_form:
            yield from self.program((*place, "closed_form"), case.closed_form, {*case.inputs}, used)
            yield from self.returns((*place, "closed_form"), case.closed_form)
        if case.define:
            yield from self.program((*place, "define"), case.define, {*case.state}, used)
            yield from self.functions(place, case, _functions(case.define))
        for index, step in enumerate(case.steps):
            yield from self.step((*place, "steps", index), step, case, used)
        for name, native in case.native.items():
            yield from self.native((*place, "native", name), name, native, case)
            used |= _words(native if isinstance(native, str) else native.code)
        for group in ("inputs", "state"):
            for name in getattr(case, group):
                if name not in used and not self.filled:
                    yield self.mistake((*place, group, name), f"{name!r} is never used", key=True)

    def step(self, place: Place, step: Step, case: Case, used: set[str]) -> Iterator[Mistake]:
        for name in ("call", "do"):
            said = getattr(step, name)
            for where, text in [((name, key), said[key]) for key in said] if isinstance(said, dict) else [((name,), said)]:
                if case.native:
                    yield from self.python((*place, *where), text)
                    used |= _words(text)
                else:
                    yield from self.program((*place, *where), text, {*case.inputs, *case.state, *_functions(case.define)}, used)
                if name == "call" and _is_statement(text):
                    yield self.mistake((*place, *where), "`call` takes an expression; `do` takes statements")

    def functions(self, place: Place, case: Case, defined: dict[str, list[str]]) -> Iterator[Mistake]:
        if not defined:
            yield self.mistake((*place, "define"), "`define` defines no function")
        elif case.trace and case.trace not in defined:
            yield self.mistake((*place, "trace"), f"`define` defines no {case.trace!r}{did_you_mean(case.trace, defined)}")
        elif case.at and list(case.at) != (last := list(defined.items())[-1])[1]:
            yield self.mistake((*place, "at"), f"the point has {', '.join(case.at)}; {last[0]}() takes {', '.join(last[1])}")

    def program(self, place: Place, text: str, known: set[str], used: set[str]) -> Iterator[Mistake]:
        """Adds the names that the program reads to those used."""
        # A parameter stands for a literal or a name; before it is filled in, the program only has to parse.
        try:
            tree = parse(fill_holes(text))
        except ProgramError as error:
            yield from (self.flaw(place, flaw) for flaw in error.flaws)
            used |= _words(text)
            return
        used |= names_used(tree)
        yield from (self.flaw(place, flaw) for flaw in flaws(tree, known | holes(text), _reserved()))

    def native(self, place: Place, name: str, native: str | Native, case: Case) -> Iterator[Mistake]:
        if name not in frameworks():
            yield self.mistake(place, f"unknown framework {name!r}{did_you_mean(name, frameworks())}", key=True)
        code, where = (native, place) if isinstance(native, str) else (native.code, (*place, "code"))
        yield from self.python(where, code)
        if not case.steps:
            yield from self.returns(where, code)
        elif case.trace and case.trace not in _names(code):
            yield self.mistake((*place[:2], "trace"), f"{name}'s native block defines no {case.trace!r}")
        for index, need in enumerate(native.uses if isinstance(native, Native) else ()):
            if not _is_requirement(need):
                yield self.mistake((*place, "uses", index), f"{need!r} is not a library, such as 'flax' or 'flax>=0.12'")

    def python(self, place: Place, text: str) -> Iterator[Mistake]:
        try:
            read(fill_holes(text))
        except ProgramError as error:
            yield from (self.flaw(place, flaw) for flaw in error.flaws)

    def returns(self, place: Place, text: str) -> Iterator[Mistake]:
        try:
            if not returns(parse(fill_holes(text)) if place[-1] in ("program", "closed_form") else read(fill_holes(text))):
                yield self.mistake(place, "nothing is returned")
        except ProgramError:
            pass  # told already

    def flaw(self, place: Place, flaw: Flaw) -> Mistake:
        # What has been filled in may be longer or shorter than what is written.
        position = self.document.within(place, flaw.line, 1 if self.filled else flaw.column)
        return self.document.mistake(place, flaw.message)._replace(position=position)

    # --- expectations

    def expectations(self, place: Place, case: Case) -> Iterator[Mistake]:
        if not case.expect:
            yield self.mistake(place, "missing key 'expect': say what must be seen")
        if case.outcomes:
            for text, outcome in case.expect.items():
                yield from self.selector((*place, "expect", text), text, case, key=True)
                yield from self.outcome((*place, "expect", text), outcome, case)
        else:
            yield from self.spec((*place, "expect"), msgspec.convert(case.expect, Spec), case)
        for name, spec in case.outcomes.items():
            where = (*place, "outcomes", name)
            if name in VERDICTS:
                yield self.mistake(where, f"an outcome cannot be called {name!r}, which means something else", key=True)
            if not spec.items():
                yield self.mistake(where, f"the outcome {name!r} says nothing, so that it would fit anything")
            yield from self.spec(where, spec, case)
        for index, deviation in enumerate(case.deviations):
            yield from self.deviation((*place, "deviations", index), deviation, case)
        for index, unsupported in enumerate(case.unsupported):
            yield from self.selector((*place, "unsupported", index, "target"), unsupported.target, case)
            yield from self.python((*place, "unsupported", index, "absent"), unsupported.absent)
            if _is_statement(unsupported.absent):
                yield self.mistake((*place, "unsupported", index, "absent"), "not an expression")
        for index, variant in enumerate(case.variants):
            yield from self.selector((*place, "variants", index, "target"), variant.target, case)
            yield from self.outcome((*place, "variants", index, "expect"), variant.expect, case)

    def outcome(self, place: Place, name: Any, case: Case) -> Iterator[Mistake]:
        known = list(case.outcomes) or ["conforms", *(deviation.outcome for deviation in case.deviations)]
        if name not in known and not is_open(name):
            yield self.mistake(place, f"unknown outcome {name!r}{did_you_mean(str(name), known)}")

    def deviation(self, place: Place, deviation: Deviation, case: Case) -> Iterator[Mistake]:
        if case.outcomes:
            yield self.mistake(place, "a case with outcomes has no norm to deviate from: add an outcome and expect it")
        if deviation.outcome in ("conforms", *VERDICTS):
            message = f"a deviation cannot be called {deviation.outcome!r}, which means something else"
            yield self.mistake((*place, "outcome"), message)
        if not deviation.items():
            yield self.mistake(place, "a deviation must say what is seen instead")
        yield from self.selector((*place, "target"), deviation.target, case)
        yield from self.spec(place, deviation, case)

    def selector(self, place: Place, text: str, case: Case, *, key: bool = False) -> Iterator[Mistake]:
        try:
            selector = Selector.parse(text)
        except ValueError as error:
            yield self.mistake(place, str(error), key=key)
            return
        if message := _impossible(text, selector, case):
            yield self.mistake(place, message, key=key)

    # --- what must be seen

    def spec(self, place: Place, spec: Spec, case: Case) -> Iterator[Mistake]:
        parts = dict(spec.items())
        for name, value in parts.items():
            if name in _NEEDS and not getattr(case, _NEEDS[name]):
                yield self.mistake((*place, name), f"{name!r} is seen only in a case with {_NEEDS[name]!r}", key=True)
            if name in _OF_DEVICES and not case.device_count:
                yield self.mistake((*place, name), f"{name!r} is seen only in a case with 'mesh' or 'devices'", key=True)
            if name in _LISTS and isinstance(value, str) and not is_open(value):
                yield self.mistake((*place, name), f"{name!r}: {short(value)} is not a list")
        yield from self.result((*place, "value"), spec.value, case)
        yield from self.dtypes((*place, "dtype"), spec.dtype, case)
        if isinstance(spec.shape, list) and not all(map(_is_size, leaves(spec.shape))):
            yield self.mistake((*place, "shape"), f"{short(spec.shape)} is not a shape")
        if spec.rows == []:
            yield self.mistake((*place, "rows"), "a row without elements fits nothing")
        if isinstance(spec.every, str) and not is_open(spec.every) and not is_complex(spec.every):
            yield self.mistake((*place, "every"), f"{short(spec.every)} is not a number")
        yield from self.error(place, spec, case)
        yield from self.layout(place, spec, case)
        yield from self.per_call(place, parts, case)
        yield from self.derivation(place, spec)

    def result(self, place: Place, value: Any, case: Case) -> Iterator[Mistake]:
        if value == "reference":
            if case.closed_form:
                return
            if not case.program and "numpy" not in case.native:
                yield self.mistake(place, "`reference` needs a program, a `closed_form` or a native block for numpy")
            elif names := sorted(_words(case.program) & vocabulary.TRANSFORMS):
                yield self.mistake(place, f"NumPy has no {names[0]}(): say in `closed_form` what `reference` is")
        elif isinstance(value, str) and case.program and not is_open(value) and not is_complex(value):
            yield self.mistake(place, f"{short(value)} is not a value{did_you_mean(value, ['reference'])}")

    def dtypes(self, place: Place, dtype: Any, case: Case) -> Iterator[Mistake]:
        if not case.native and dtype is not UNSET:
            for name in [dtype] if isinstance(dtype, str) else dtype:
                yield from self.known(place, "dtype", name, (*vocabulary.DTYPES, *_PYTHON_DTYPES))

    def error(self, place: Place, spec: Spec, case: Case) -> Iterator[Mistake]:
        if isinstance(spec.matching, str) and not is_open(spec.matching):
            try:
                re.compile(spec.matching)
            except re.error as error:
                yield self.mistake((*place, "matching"), f"not a regular expression: {error}")
        if spec.raises is UNSET:
            for name in ("matching", "step"):
                if getattr(spec, name) is not UNSET:
                    yield self.mistake((*place, name), f"`{name}` is about an error: add `raises`", key=True)
            return
        names = [spec.raises] if isinstance(spec.raises, str) else spec.raises
        if not names:
            yield self.mistake((*place, "raises"), "`raises` names no class")
        for name in names:
            if not name.isidentifier() and not is_open(name):
                yield self.mistake((*place, "raises"), f"{name!r} is not the name of a class, such as 'ValueError'")
        if isinstance(spec.step, int) and not 0 <= spec.step < max(1, len(case.steps)):
            yield self.mistake((*place, "step"), f"there is no step {spec.step}; steps count from 0")
        if not case.steps and (result := next((name for name in _RESULTS if getattr(spec, name) is not UNSET), "")):
            yield self.mistake((*place, result), f"where an error is raised there is no {result!r} to see", key=True)

    def layout(self, place: Place, spec: Spec, case: Case) -> Iterator[Mistake]:
        # A native case may lay something out on a mesh of its own.
        if case.mesh:
            yield from self.split(place, spec.split, spec.partial, case)
        for index, name in enumerate(spec.collectives if isinstance(spec.collectives, list) else ()):
            yield from self.known((*place, "collectives", index), "collective", name, COLLECTIVES)
        for name in ("slices", "shards"):
            held = getattr(spec, name)
            if isinstance(held, str) and not is_open(held):
                yield self.mistake((*place, name), f"{name!r}: {short(held)} is not a mapping of devices")

    def per_call(self, place: Place, parts: dict[str, Any], case: Case) -> Iterator[Mistake]:
        calls = sum(bool(step.call) for step in case.steps) if case.steps else 1
        for name in _PER_CALL:
            if isinstance(parts.get(name), list) and len(parts[name]) != calls and "raises" not in parts:
                yield self.mistake((*place, name), f"{name!r} has {len(parts[name])} entries for {calls} calls")

    def derivation(self, place: Place, spec: Spec) -> Iterator[Mistake]:
        if spec.cotangents is not UNSET and not spec.linear:
            yield self.mistake((*place, "cotangents"), "`cotangents` needs `linear`, whose names it uses", key=True)
        for name, text in (spec.linear or {}).items():
            try:
                tree = parse(text)
            except ProgramError as error:
                yield from (self.flaw((*place, "linear", name), flaw) for flaw in error.flaws)
                continue
            if len(tree.body) != 1 or not all(isinstance(node, _LINEAR) for node in ast.walk(tree)):
                yield self.mistake((*place, "linear", name), "a linear program is made of names, numbers, +, -, * and /")


_FIELDS = {"list": "items", "tuple": "parts", "dict": "entries"}
_LINEAR = (
    *(ast.Module, ast.Return, ast.Name, ast.Load, ast.Constant, ast.BinOp, ast.UnaryOp, ast.USub),
    *(ast.Add, ast.Sub, ast.Mult, ast.Div),
)


def _impossible(text: str, selector: Selector, case: Case) -> str:
    """Why no check can ever be on such a target; empty where one can."""
    if selector.framework is None:
        known = {device for framework in frameworks().values() for device in framework.devices}
        return f"{text!r} cannot exist: there is {', '.join(sorted(known))}" if not _is_on(selector.device, known) else ""
    framework = frameworks().get(selector.framework)
    if framework is None:
        return f"unknown framework {selector.framework!r}{did_you_mean(selector.framework, ['any', *frameworks()])}"
    if selector.companion and selector.companion not in COMPANIONS:
        return f"{text!r}: of {selector.companion} no version is recorded{did_you_mean(selector.companion, COMPANIONS)}"
    if not _is_on(selector.device, framework.devices):
        return f"{text!r} cannot exist: {framework.name} runs on {', '.join(framework.devices)}"
    if selector.way not in {None, *framework.ways}:
        return f"{text!r} cannot exist: {framework.name} has {', '.join(framework.ways) or 'no ways of their own names'}"
    if selector.mode not in {None, *framework.modes}:
        return f"{text!r} cannot exist: {framework.name} has the modes {', '.join(framework.modes)}"
    for name in ("native", "frameworks"):
        if (named := getattr(case, name)) and framework.name not in named:
            return f"{text!r} cannot exist here: `{name}` has {', '.join(named)}"
    return f"{text!r} cannot exist here: {framework.name} does not trace" if case.trace and not framework.traced_modes else ""


def _is_on(device: str | None, known: Iterable[str]) -> bool:
    return device is None or family(device) in known


def _functions(text: str) -> dict[str, list[str]]:
    """The functions that a text defines, each with its parameters."""
    try:
        tree = parse(fill_holes(text))
    except ProgramError:
        return {}
    return {node.name: [argument.arg for argument in node.args.args] for node in tree.body if isinstance(node, ast.FunctionDef)}


def _names(text: str) -> set[str]:
    """What a text gives a meaning to."""
    try:
        return names_bound(read(fill_holes(text)))
    except ProgramError:
        return set()


def _is_statement(text: str) -> bool:
    """Whether a text is Python, but no expression."""
    try:
        tree = read(fill_holes(text))
    except ProgramError:
        return False
    return bool(text) and (len(tree.body) != 1 or not isinstance(tree.body[0], ast.Expr))


@functools.cache
def _reserved() -> frozenset[str]:
    """Names that native source uses itself: modules, helpers of dialects, and the builtins of programs."""
    taken = set(vocabulary.BUILTINS)
    for framework in frameworks().values():
        for node in ast.walk(ast.parse(framework.imports)):
            if isinstance(node, ast.alias):
                taken.add(node.asname or node.name.split(".")[0])
        taken |= framework.preludes.keys() - vocabulary.FUNCTIONS.keys()
    return frozenset(taken)


def _is_requirement(text: str) -> bool:
    match = re.fullmatch(r"[A-Za-z0-9][\w.-]*\s*(.*)", text)
    try:
        return match is not None and bool(SpecifierSet(match[1]) is not None)
    except InvalidSpecifier:
        return False


def _words(value: Any) -> set[str]:
    """All words of all texts in a piece of plain data."""
    return {word for leaf in leaves(value) if isinstance(leaf, str) for word in re.findall(r"\w+", leaf)}


def _is_size(value: Any) -> bool:
    return is_open(value) or (isinstance(value, int) and not isinstance(value, bool) and value >= 0)


def _holds(dtype: str, array: np.ndarray) -> bool:
    """Whether integers stay what they are, and nothing complex is cut; that floating point is rounded is as it should be."""
    if dtype.startswith("complex"):
        return array.dtype != object
    if dtype == "bfloat16" or np.dtype(dtype).kind == "f":
        return array.dtype.kind in "biuf"
    with np.errstate(invalid="ignore"):
        return array.dtype.kind in "biuf" and bool(np.all(array.astype(dtype) == array))


def _broadcasts(shape: tuple[int, ...], to: list[int]) -> bool:
    try:
        return np.broadcast_shapes(shape, tuple(to)) == tuple(to)
    except ValueError:
        return False
