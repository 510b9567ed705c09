"""A check -> a job for a host: native source, made by rewriting the program's syntax tree, and what to do with it."""

from __future__ import annotations

import ast
import functools
import json
import re
import textwrap
from typing import Any

import msgspec
from msgspec import UNSET

from conformance import vocabulary
from conformance.case import Input, Inputs, Native, Step
from conformance.expand import Check
from conformance.framework import Framework, frameworks
from conformance.program import ProgramError, bind, flaws, parse


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
    mesh: dict[str, int] = {}
    uses: list[dict[str, str]] = []
    absent: str = ""
    timeout: float = 60.0

    def message(self, number: int) -> str:
        """The job as it travels. JSON of the standard library, since NaN and infinities must survive."""
        return json.dumps({**msgspec.to_builtins(self), "id": number})


def lower(check: Check) -> Job:
    """The job of a check. Raises LoweringError where the dialect has no words for the program."""
    case, framework = check.case, frameworks()[check.target.framework]
    native = case.native.get(framework.name)
    if check.absent:
        source = framework.imports + "\n"
    elif native is not None:
        code = native.code if isinstance(native, Native) else native
        source = native_function("program", list(case.inputs), code, framework)
    elif case.program:
        source = lower_function("program", list(case.inputs), _parsed(case.program), framework)
    else:
        source = lower_definitions(_parsed_definitions(case.define), set(case.state), framework)
    traced = case.trace if case.steps else "" if case.observe else "program"
    wraps = framework.modes[check.target.mode] != ""
    defined = re.findall(r"^def (\w+)", source, re.M)
    return Job(
        source=source,
        filename=f"{check.identity}.py",
        trace=defined[-1] if case.observe else traced if wraps else "",
        count=bool(case.trace),
        mode=check.target.mode,
        inputs=_inputs(case.inputs or case.at),
        state=_inputs(case.state),
        steps=_steps(check, framework),
        options=check.options,
        x64=case.x64,
        observe=case.observe,
        mesh=case.mesh,
        uses=[_need(text) for text in native.uses] if isinstance(native, Native) else [],
        absent=check.absent,
        timeout=case.timeout,
    )


def reference_job(check: Check) -> Job | None:
    """The job that computes `reference` in float64 by NumPy; None where the case asks for none."""
    if not any(spec.value == "reference" for spec in check.outcomes.values()):
        return None
    numpy = frameworks()["numpy"]
    case = check.case
    code = case.native.get("numpy")
    if code is not None:
        source = native_function("program", list(case.inputs), code.code if isinstance(code, Native) else code, numpy)
    else:
        source = lower_function("program", list(case.inputs), _parsed(case.program), numpy)
    call = f"program({', '.join(case.inputs)})"
    return Job(source, f"{check.identity}.py", "", False, "eager", _inputs(case.inputs), {}, [("call", call)], float64=True)


def _steps(check: Check, framework: Framework) -> list[tuple[str, Any]]:
    case = check.case
    if case.observe:
        return []
    if not case.steps:
        return [("call", f"program({', '.join(case.inputs)})")]
    known = set(case.inputs) | set(case.state) | set(re.findall(r"^def (\w+)", case.define, re.M))
    return [_step(step, known, framework) for step in case.steps]


def _step(step: Step, known: set[str], framework: Framework) -> tuple[str, Any]:
    if step.rebind:
        return "rebind", _inputs(step.rebind)
    kind = "call" if step.call else "do"
    return kind, lower_expression(step.call or step.do, known, framework)


def _inputs(inputs: Inputs) -> dict[str, Any]:
    return {name: _input(value) for name, value in inputs.items()}


def _input(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        value = msgspec.convert(value, Input)
    if not isinstance(value, Input):
        return {"shape": None, "dtype": None, "fill": None, "value": value, "split": None}
    if value.python is not UNSET:
        return {"python": value.python}
    if value.items is not UNSET:
        return {"list": [_input(child) for child in value.items]}
    if value.parts is not UNSET:
        return {"tuple": [_input(child) for child in value.parts]}
    if value.entries is not UNSET:
        return {"dict": {key: _input(child) for key, child in value.entries.items()}}
    return {name: None if (part := getattr(value, name)) is UNSET else part for name in ("shape", "dtype", "fill", "value", "split")}


def _need(text: str) -> dict[str, str]:
    name, versions = re.fullmatch(r"([\w.-]+)\s*(.*)", text).groups()  # type: ignore[union-attr]
    return {"name": name, "versions": versions}


def _parsed(text: str) -> ast.Module:
    return _checked(parse(text))


def _parsed_definitions(text: str) -> ast.Module:
    return _checked(ast.parse(text))


def _checked(tree: ast.Module) -> ast.Module:
    """Calls are checked again here: a parameter may have put a function's name in."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - vocabulary.NAMES
    found = flaws(tree, names)
    if found:
        raise ProgramError(found)
    return tree


def lower_function(name: str, parameters: list[str], body: ast.Module, framework: Framework) -> str:
    """Native source of a module in which ``name(*parameters)`` has this body. Raises LoweringError."""
    return _module(framework, f"def {name}({', '.join(parameters)}):\n", body, set(parameters))


def lower_definitions(tree: ast.Module, known: set[str], framework: Framework) -> str:
    """Native source of a module with these function definitions. Raises LoweringError."""
    return _module(framework, "", tree, known)


def lower_expression(text: str, known: set[str], framework: Framework) -> str:
    """One expression or some statements, without the imports and preludes. Raises LoweringError."""
    tree = ast.parse(text)
    return ast.unparse(_Rewrite(framework, known | _own(tree)).visit(tree))


def native_function(name: str, parameters: list[str], code: str, framework: Framework) -> str:
    """Source of a module in which ``name(*parameters)`` has this native body, as written."""
    return f"{framework.imports}\n\n\ndef {name}({', '.join(parameters)}):\n{textwrap.indent(code.rstrip(), '    ')}\n"


def _module(framework: Framework, header: str, tree: ast.Module, known: set[str]) -> str:
    rewrite = _Rewrite(framework, known | _own(tree))
    body = ast.unparse(ast.fix_missing_locations(rewrite.visit(_copy(tree))))
    if header:
        body = header + textwrap.indent(body, "    ")
    preludes = [framework.preludes[name] for name in sorted(rewrite.preludes)]
    return "\n\n".join([framework.imports + "\n", *preludes, body + "\n"])


def _copy(tree: ast.Module) -> ast.Module:
    return ast.parse(ast.unparse(ast.fix_missing_locations(tree)))


def _own(tree: ast.AST) -> set[str]:
    stored = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    functions = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    return stored | functions | {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}


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
        unused = arguments.keys() - {n.id for n in ast.walk(row) if isinstance(n, ast.Name)}
        if unused:
            raise LoweringError(f"{self.framework.name}'s {name}() takes no {', '.join(sorted(unused))}")
        self.preludes |= {n.id for n in ast.walk(row) if isinstance(n, ast.Name)} & self.framework.preludes.keys()
        filled = {parameter: self.visit(argument) for parameter, argument in arguments.items()}
        return _Fill(filled, parameters).visit(row)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self.own or node.id not in vocabulary.NAMES or not isinstance(node.ctx, ast.Load):
            return node
        if node.id in vocabulary.FUNCTIONS:
            raise LoweringError(f"{node.id} is a function: call it")
        return ast.parse(native_name(self.framework, node.id), mode="eval").body


class _Fill(ast.NodeTransformer):
    """Puts arguments into a row; what was not given drops out of the calls in it."""

    def __init__(self, arguments: dict[str, ast.expr], parameters: set[str]) -> None:
        self.arguments = arguments
        self.missing = parameters - arguments.keys()

    def visit_Call(self, node: ast.Call) -> ast.AST:
        def given(argument: ast.expr) -> bool:
            return not (isinstance(argument, ast.Name) and argument.id in self.missing)

        node.args = [argument for argument in node.args if given(argument)]
        node.keywords = [keyword for keyword in node.keywords if given(keyword.value)]
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self.missing:
            raise LoweringError(f"the argument {node.id!r} is needed here")
        return self.arguments.get(node.id, node)


def native_name(framework: Framework, name: str) -> str:
    """A dtype's or constant's native expression."""
    return framework.names.get(name, f"{framework.module}.{name}")


def _row(framework: Framework, name: str) -> ast.expr:
    return ast.parse(_row_text(framework.name, name, framework.rows.get(name), name in framework.same, framework.module), mode="eval").body


@functools.cache
def _row_text(framework: str, name: str, row: str | None, same: bool, module: str) -> str:
    if row is not None:
        return row
    if not same:
        raise LoweringError(f"the dialect of {framework} has no {name}()")
    signature = vocabulary.FUNCTIONS[name]
    arguments = [a.arg for a in signature.args] + [f"{a.arg}={a.arg}" for a in signature.kwonlyargs]
    return f"{module}.{name}({', '.join(arguments)})"
