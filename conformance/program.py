"""Programs in the vocabulary: reading them, and finding what is wrong with them before any framework is imported."""

from __future__ import annotations

import ast
import difflib
import functools
from collections.abc import Iterator
from typing import NamedTuple

from conformance import vocabulary

MAX_DEPTH = 100

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


def read(text: str) -> ast.Module:
    """Any Python text. Raises ProgramError for a syntax error."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError) as error:
        line, column = getattr(error, "lineno", 1) or 1, getattr(error, "offset", 1) or 1
        raise ProgramError([Flaw(line, column, f"not Python: {getattr(error, 'msg', error)}")]) from None
    except (RecursionError, MemoryError):
        raise ProgramError([Flaw(1, 1, "nested too deeply")]) from None


@functools.cache
def parse(text: str) -> ast.Module:
    """Read a program; a bare expression is what it returns. Raises ProgramError for a syntax error.

    Every target of a case reads the same program, so the tree is shared: it must not be changed.
    """
    tree = read(text)
    if not _shallow(tree):
        raise ProgramError([Flaw(1, 1, f"nested deeper than {MAX_DEPTH} levels")])
    if not text.isascii():
        _count_characters(tree, text)
    if len(tree.body) == 1 and isinstance(expression := tree.body[0], ast.Expr):
        tree.body = [ast.copy_location(ast.Return(expression.value), expression)]
    return tree


def flaws(tree: ast.Module, known: set[str], reserved: frozenset[str] = vocabulary.BUILTINS) -> list[Flaw]:
    """What the program may not say, and names that are neither known, nor its own, nor of the vocabulary."""
    checker = _Checker(tree, known, reserved)
    found = []
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        message = checker.flaw(node)
        if message:
            found.append(Flaw(getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1, message))
        if isinstance(node, _ALLOWED):
            pending += ast.iter_child_nodes(node)
    return found


def names_used(tree: ast.Module) -> set[str]:
    """All names that the program reads."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def names_bound(tree: ast.AST) -> set[str]:
    """All names that the program gives a meaning to."""
    return {name for node in ast.walk(tree) for name in _bound(node)}


def returns(tree: ast.Module) -> bool:
    """Whether anything returns, functions and classes inside aside."""
    pending: list[ast.AST] = [*tree.body]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Return):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            pending += ast.iter_child_nodes(node)
    return False


def _shallow(tree: ast.AST) -> bool:
    """Whether recursive functions can walk the tree."""
    level = [tree]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return not level


def _count_characters(tree: ast.AST, text: str) -> None:
    """Columns count bytes of UTF-8; people count characters."""
    lines = text.split("\n")
    for node in ast.walk(tree):
        if isinstance(node, (ast.stmt, ast.expr)):
            node.col_offset = len(lines[node.lineno - 1].encode()[: node.col_offset].decode(errors="replace"))


def _bound(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.FunctionDef):
        yield node.name
    elif isinstance(node, ast.arg):
        yield node.arg


class _Checker:
    """What is wrong with a single node of a program."""

    def __init__(self, tree: ast.Module, known: set[str], reserved: frozenset[str]) -> None:
        self.own = known | names_bound(tree)
        self.variables = self.own - {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        self.called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        self.reserved = reserved

    def flaw(self, node: ast.AST) -> str:
        for name in _bound(node):
            if name in self.reserved:
                return f"the name {name!r} is taken; choose another"
        if isinstance(node, ast.Name):
            return self.name(node.id, id(node) in self.called)
        if isinstance(node, ast.Attribute):
            return _attribute(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in self.own:
            return _misfit(node, vocabulary.FUNCTIONS.get(node.func.id))
        if isinstance(node, ast.FunctionDef) and node.decorator_list:
            return "a program may not decorate functions"
        if isinstance(node, ast.Lambda) and (node.args.defaults or any(node.args.kw_defaults)):
            return "the parameters of a lambda may not have defaults; define a function"
        if not isinstance(node, _ALLOWED):
            return f"a program may not contain {type(node).__name__}; write a native block for what it cannot say"
        return ""

    def name(self, name: str, called: bool) -> str:
        if name in self.own:
            if called and name in vocabulary.FUNCTIONS.keys() & self.variables:
                return f"{name!r} is not the function of the vocabulary here: it is a variable too, so rename that"
            return ""
        if name in vocabulary.FUNCTIONS:
            return "" if called else f"{name} is a function: call it"
        if name in vocabulary.NAMES:
            hint = f"; astype(x, {name}) converts to a dtype" if name in vocabulary.DTYPES else ""
            return f"{name} is not a function{hint}" if called else ""
        if name in vocabulary.BUILTINS:
            return ""
        close = difflib.get_close_matches(name, [*vocabulary.NAMES, *self.own, *vocabulary.BUILTINS], 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        return f"unknown name {name!r}: not an input, not defined here, and not in the vocabulary{hint}"


def _attribute(node: ast.Attribute) -> str:
    if node.attr not in vocabulary.ATTRIBUTES:
        return f"the attribute .{node.attr} is not in the vocabulary, which has {', '.join(sorted(vocabulary.ATTRIBUTES))}"
    return "" if isinstance(node.ctx, ast.Load) else "a program may not assign to attributes"


def _misfit(call: ast.Call, signature: ast.arguments | None) -> str:
    try:
        if signature is not None:
            bind(call, signature)
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
        raise TypeError(f"{name}() takes {len(positional)} arguments by position, the others by name: {', '.join(allowed)}")
    bound = dict(zip(positional, call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg not in allowed:
            raise TypeError(f"{name}() has no parameter {keyword.arg!r}; it has {', '.join(allowed)}")
        if keyword.arg in bound:
            raise TypeError(f"{name}() is given {keyword.arg!r} twice")
        assert keyword.arg is not None
        bound[keyword.arg] = keyword.value
    missing = [parameter for parameter in positional[: len(positional) - len(signature.defaults)] if parameter not in bound]
    if missing:
        raise TypeError(f"{name}() needs {', '.join(missing)}")
    return bound
