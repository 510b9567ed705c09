"""Programs in the vocabulary: reading them, and finding what is wrong with them before any framework is imported."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator
from typing import NamedTuple

from conformance import vocabulary

_ALLOWED = (
    *(ast.Module, ast.FunctionDef, ast.Return, ast.Assign, ast.AugAssign, ast.If, ast.For, ast.While, ast.Expr),
    *(ast.Pass, ast.Break, ast.Continue, ast.arguments, ast.arg, ast.keyword, ast.expr_context),
    *(ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.IfExp),
    *(ast.Call, ast.Attribute, ast.Subscript, ast.Slice, ast.Starred, ast.Name, ast.Constant, ast.List, ast.Tuple),
    *(ast.Dict, ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.comprehension),
)


class Flaw(NamedTuple):
    """Something wrong in a program, at a line and column of its own text (from 1)."""

    line: int
    column: int
    message: str


class ProgramError(Exception):
    """Flaws of one program."""

    def __init__(self, flaws: list[Flaw]) -> None:
        self.flaws = flaws
        super().__init__("; ".join(flaw.message for flaw in flaws))


def parse(text: str) -> ast.Module:
    """Read a program; a bare expression is what it returns. Raises ProgramError for a syntax error."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        line, column = getattr(error, "lineno", 1) or 1, getattr(error, "offset", 1) or 1
        raise ProgramError([Flaw(line, column, f"not Python: {getattr(error, 'msg', error)}")]) from None
    except (RecursionError, MemoryError):
        raise ProgramError([Flaw(1, 1, "nested too deeply")]) from None
    if len(tree.body) == 1 and isinstance(expression := tree.body[0], ast.Expr):
        tree.body = [ast.copy_location(ast.Return(expression.value), expression)]
    return tree


def flaws(tree: ast.Module, known: set[str]) -> list[Flaw]:
    """What the program may not say, and names that are neither known, nor its own, nor of the vocabulary."""
    own = known | {name for node in ast.walk(tree) for name in _bound(node)}
    found = []
    for node in ast.walk(tree):
        message = _flaw(node, own)
        if message:
            found.append(Flaw(getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1, message))
    return found


def names_used(tree: ast.Module) -> set[str]:
    """All names that the program reads."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def _bound(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.FunctionDef):
        yield node.name
    elif isinstance(node, ast.arg):
        yield node.arg


def _flaw(node: ast.AST, own: set[str]) -> str:
    if not isinstance(node, _ALLOWED):
        return f"a program may not contain {type(node).__name__}; write a native block for what it cannot say"
    if isinstance(node, ast.FunctionDef) and node.decorator_list:
        return "a program may not decorate functions"
    if isinstance(node, ast.Attribute) and node.attr not in vocabulary.ATTRIBUTES:
        return f"the attribute .{node.attr} is not in the vocabulary, which has {', '.join(sorted(vocabulary.ATTRIBUTES))}"
    if isinstance(node, ast.Name) and node.id not in own | vocabulary.NAMES | vocabulary.BUILTINS:
        close = difflib.get_close_matches(node.id, [*vocabulary.NAMES, *own, *vocabulary.BUILTINS], 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        return f"unknown name {node.id!r}: not an input, not defined here, and not in the vocabulary{hint}"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in vocabulary.FUNCTIONS.keys() - own:
        try:
            bind(node, vocabulary.FUNCTIONS[node.func.id])
        except TypeError as error:
            return str(error)
    return ""


def bind(call: ast.Call, signature: ast.arguments) -> dict[str, ast.expr]:
    """Parameter -> argument. Raises TypeError where the call does not fit the signature."""
    assert isinstance(call.func, ast.Name)
    name = call.func.id
    positional = [a.arg for a in signature.args]
    allowed = [*positional, *(a.arg for a in signature.kwonlyargs)]
    if any(isinstance(argument, ast.Starred) for argument in call.args) or any(k.arg is None for k in call.keywords):
        raise TypeError(f"{name}() takes no * or ** here")
    if len(call.args) > len(positional):
        raise TypeError(f"{name}() takes {len(positional)} positional arguments; the rest by keyword: {', '.join(allowed)}")
    bound = dict(zip(positional, call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg not in allowed:
            raise TypeError(f"{name}() has no parameter {keyword.arg!r}; it has {', '.join(allowed)}")
        if keyword.arg in bound:
            raise TypeError(f"{name}() is given {keyword.arg!r} twice")
        assert keyword.arg is not None
        bound[keyword.arg] = keyword.value
    return bound
