"""A check -> a job for a host: native source, made by rewriting the program's syntax tree, and what to do with it."""

from __future__ import annotations

import ast
import functools
import re
import textwrap
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import UNSET

from conformance import vocabulary
from conformance.case import Case, Input, Inputs, Native, Step
from conformance.expand import Check
from conformance.framework import Framework, frameworks
from conformance.program import bind, names_bound, parse, read
from conformance.target import AHEAD

PATIENCE = 5
"""Times longer that a compiler for another device may take than a run: float64, for one, is taken apart for TPUs."""


class LoweringError(Exception):
    """The framework's dialect has no words for something in the program."""


class Job(msgspec.Struct, frozen=True):
    """All that a host needs to run a check. Inputs are plain data that the host makes arrays of."""

    source: str
    filename: str
    trace: str
    """The function to wrap for the mode, or nothing."""
    count: bool
    mode: str
    inputs: dict[str, Any]
    state: dict[str, Any]
    steps: list[tuple[str, Any]]
    """("call", expression), ("do", statements) or ("rebind", {name: input})"""
    options: dict[str, Any] = {}
    x64: bool = False
    float64: bool = False
    """Floating-point inputs in double precision: the reference."""
    observe: str = ""
    devices: int = 0
    """How many devices it needs; 0 where it is not about devices."""
    mesh: dict[str, int] = {}
    order: list[int] = []
    """The devices of the mesh, row by row."""
    collectives: bool = False
    """Whether to look for communication between devices."""
    uses: list[dict[str, str]] = []
    absent: str = ""
    timeout: float = 60.0

    def message(self, number: int) -> dict[str, Any]:
        """The job as it travels."""
        return {**msgspec.to_builtins(self), "id": number}


def lower(check: Check) -> Job:
    """The job of a check. Raises LoweringError where the dialect has no words for the program."""
    case, framework = check.case, frameworks()[check.target.framework].by_way(check.target.way)
    native = case.native.get(framework.name)
    source, steps = _source(check, framework)
    traced = case.trace if case.steps else "program"
    wraps = framework.modes[check.target.mode] != ""
    return Job(
        source=source,
        filename=f"{check.identity}.py",
        trace=_last_function(case.define) if case.observe else traced if wraps else "",
        count=bool(case.trace),
        mode=check.target.mode,
        inputs=_inputs(case.inputs or case.at),
        state=_inputs(case.state),
        steps=steps,
        options=check.options,
        x64=case.x64,
        observe=case.observe,
        devices=case.device_count,
        mesh=case.mesh,
        order=case.devices if isinstance(case.devices, list) else list(range(case.device_count)),
        collectives=any(spec.collectives is not UNSET for spec in check.outcomes.values()),
        uses=[_need(text) for text in native.uses] if isinstance(native, Native) else [],
        absent=check.absent,
        timeout=case.timeout * (PATIENCE if check.target.mode == AHEAD else 1),
    )


def reference_job(check: Check) -> Job | None:
    """The job that computes `reference` in float64 by NumPy; None where the case asks for none."""
    if not any(spec.value == "reference" for spec in check.outcomes.values()):
        return None
    case, inputs, numpy = check.case, check.case.inputs, frameworks()["numpy"]
    if case.closed_form or case.program:
        source = _lowered(case.closed_form or case.program, tuple(inputs), numpy.name, "")
    else:
        source = native_function("program", list(inputs), _code(case, numpy), numpy)
    return Job(source, f"{check.identity}.py", "", False, "eager", _inputs(inputs), {}, [_call(inputs)], float64=True)


def _source(check: Check, framework: Framework) -> tuple[str, list[tuple[str, Any]]]:
    """The module that a check runs, and the steps that run in it."""
    case = check.case
    if check.absent:
        return framework.imports + "\n", []
    several = bool(case.device_count)
    framework = _on_several(framework) if several else framework
    if case.program:
        return _lowered(case.program, tuple(case.inputs), framework.name, check.target.way, several), [_call(case.inputs)]
    if case.native and case.steps:
        return native_definitions(_code(case, framework), framework), [_native_step(step, framework) for step in case.steps]
    if case.native:
        return native_function("program", list(case.inputs), _code(case, framework), framework), [_call(case.inputs)]
    tree = read(case.define)
    known = {*case.inputs, *case.state, *(node.name for node in tree.body if isinstance(node, ast.FunctionDef))}
    steps, helpers = [], set[str]()
    for step in case.steps:
        text, needed = _rewritten(read(step.text(framework.name)), known, framework)
        steps.append((_kind(step), _inputs(step.rebind) if step.rebind else text))
        helpers |= needed
    return _module(framework, "", tree, set(case.state), helpers), steps


def _code(case: Case, framework: Framework) -> str:
    native = case.native[framework.name]
    return native.code if isinstance(native, Native) else native


def _kind(step: Step) -> str:
    return "rebind" if step.rebind else "call" if step.call else "do"


def _native_step(step: Step, framework: Framework) -> tuple[str, Any]:
    return _kind(step), _inputs(step.rebind) if step.rebind else step.text(framework.name).rstrip()


@functools.cache
def _lowered(program: str, inputs: tuple[str, ...], framework: str, way: str, several: bool = False) -> str:
    """Every row and mode of a case runs the same source, unless a parameter is written into it."""
    speaks = frameworks()[framework].by_way(way)
    return lower_function("program", list(inputs), parse(program), _on_several(speaks) if several else speaks)


def _on_several(framework: Framework) -> Framework:
    """The framework, with what it imports where there are several devices."""
    assert framework.meshes is not None, "or there is no check"
    return framework._replace(imports=f"{framework.imports}\n{framework.meshes.imports}")


def _call(inputs: Inputs) -> tuple[str, Any]:
    return "call", f"program({', '.join(inputs)})"


def _last_function(define: str) -> str:
    return [node.name for node in read(define).body if isinstance(node, ast.FunctionDef)][-1]


def _inputs(inputs: Inputs) -> dict[str, Any]:
    return {name: _input(value) for name, value in inputs.items()}


def _input(value: Any) -> dict[str, Any]:
    if not isinstance(value, Input):
        return {"shape": None, "dtype": None, "fill": None, "value": value, "split": None, "partial": None}
    if value.python is not UNSET:
        return {"python": value.python}
    assert not any(isinstance(children, str) for children in (value.items, value.parts, value.entries)), "filled in by now"
    if value.items is not UNSET:
        return {"list": [_input(child) for child in value.items]}
    if value.parts is not UNSET:
        return {"tuple": [_input(child) for child in value.parts]}
    if value.entries is not UNSET:
        return {"dict": _inputs(value.entries)}  # type: ignore[arg-type]  # no text, as asserted above
    names = ("shape", "dtype", "fill", "value", "split", "partial")
    return {name: None if (part := getattr(value, name)) is UNSET else part for name in names}


def _need(text: str) -> dict[str, str]:
    name, versions = re.fullmatch(r"([\w.-]+)\s*(.*)", text).groups()  # type: ignore[union-attr]  # the rules let no other text pass
    return {"name": name, "versions": versions}


def lower_function(name: str, parameters: list[str], body: ast.Module, framework: Framework) -> str:
    """Native source of a module in which ``name(*parameters)`` has this body. Raises LoweringError."""
    return _module(framework, f"def {name}({', '.join(parameters)}):\n", body, set(parameters))


def native_function(name: str, parameters: list[str], code: str, framework: Framework) -> str:
    """Source of a module in which ``name(*parameters)`` has this native body, as written."""
    inside = {
        line  # of a text that goes on: what stands before it belongs to the text
        for node in ast.walk(read(code))
        if isinstance(node, (ast.Constant, ast.JoinedStr))
        for line in range(node.lineno, node.end_lineno or 0)
    }
    lines = [line if number in inside or not line else f"    {line}" for number, line in enumerate(code.rstrip().split("\n"))]
    return f"{framework.imports}\n\n\ndef {name}({', '.join(parameters)}):\n" + "\n".join(lines) + "\n"


def native_definitions(code: str, framework: Framework) -> str:
    """Source of a module with these native definitions, as written."""
    return f"{framework.imports}\n\n\n{code.rstrip()}\n"


def _module(framework: Framework, header: str, tree: ast.Module, known: set[str], helpers: Iterable[str] = ()) -> str:
    body, needed = _rewritten(tree, known, framework)
    if header:
        body = header + textwrap.indent(body, "    ")
    return "\n\n".join([framework.imports + "\n", *_preludes(framework, needed.union(helpers)), body + "\n"])


def _preludes(framework: Framework, names: set[str]) -> list[str]:
    """The helpers of these names, and those that they call."""
    found: dict[str, str] = {}
    pending = sorted(names)
    while pending:
        name = pending.pop()
        if name not in found:
            found[name] = framework.preludes[name]
            pending += set(re.findall(r"(?<![.\w])\w+(?=\()", found[name])) & framework.preludes.keys()
    return [found[name] for name in sorted(found)]


def _rewritten(tree: ast.Module, known: set[str], framework: Framework) -> tuple[str, set[str]]:
    """Native text, and the helpers that it calls."""
    rewrite = _Rewrite(framework, known | names_bound(tree))
    fresh = ast.parse(ast.unparse(ast.fix_missing_locations(tree)))
    return ast.unparse(ast.fix_missing_locations(rewrite.visit(fresh))), rewrite.preludes


class _Rewrite(ast.NodeTransformer):
    """Replaces vocabulary calls and names by native ones; the program's own names are left alone."""

    def __init__(self, framework: Framework, own: set[str]) -> None:
        self.framework = framework
        self.own = own
        self.preludes: set[str] = set()

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if not isinstance(node.func, ast.Name) or node.func.id in self.own or node.func.id not in vocabulary.FUNCTIONS:
            return self.generic_visit(node)
        name = node.func.id
        row = _row(self.framework, name)
        arguments = bind(node, vocabulary.FUNCTIONS[name])
        parameters = {a.arg for a in [*vocabulary.FUNCTIONS[name].args, *vocabulary.FUNCTIONS[name].kwonlyargs]}
        names = {n.id for n in ast.walk(row) if isinstance(n, ast.Name)}
        if unused := arguments.keys() - names:
            raise LoweringError(f"{self.framework.name}'s {name}() takes no {', '.join(sorted(unused))}")
        self.preludes |= names & self.framework.preludes.keys()
        filled = {parameter: self.visit(argument) for parameter, argument in arguments.items()}
        native: ast.AST = _Fill(f"{self.framework.name}'s {name}()", filled, parameters).visit(row)
        return native

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self.own or node.id not in vocabulary.NAMES or not isinstance(node.ctx, ast.Load):
            return node
        if node.id in vocabulary.FUNCTIONS:
            raise LoweringError(f"{node.id} is a function: call it")
        return ast.parse(native_name(self.framework, node.id), mode="eval").body


class _Fill(ast.NodeTransformer):
    """Puts arguments into a row; what was not given drops out of the calls in it."""

    def __init__(self, function: str, arguments: dict[str, ast.expr], parameters: set[str]) -> None:
        self.function = function
        self.arguments = arguments
        self.missing = parameters - arguments.keys()

    def visit_Call(self, node: ast.Call) -> ast.AST:
        given = [argument for argument in node.args if not self.is_missing(argument)]
        # What stands before an argument cannot drop out: the argument would move into its place.
        if given == node.args[: len(given)]:
            node.args = given
        node.keywords = [keyword for keyword in node.keywords if not self.is_missing(keyword.value)]
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if self.is_missing(node):
            raise LoweringError(f"{self.function} needs {node.id}")
        return self.arguments.get(node.id, node)

    def is_missing(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id in self.missing


def native_name(framework: Framework, name: str) -> str:
    """A dtype's or constant's native expression."""
    return framework.names.get(name, f"{framework.module}.{name}")


def _row(framework: Framework, name: str) -> ast.expr:
    text = _row_text(framework.name, name, framework.rows.get(name), name in framework.same, framework.module)
    return ast.parse(text, mode="eval").body


@functools.cache
def _row_text(framework: str, name: str, row: str | None, same: bool, module: str) -> str:
    if row is not None:
        return row
    if not same:
        raise LoweringError(f"the dialect of {framework} has no {name}()")
    signature = vocabulary.FUNCTIONS[name]
    arguments = [a.arg for a in signature.args] + [f"{a.arg}={a.arg}" for a in signature.kwonlyargs]
    return f"{module}.{name}({', '.join(arguments)})"
