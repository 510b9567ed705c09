"""Every mistake in a case file is one line, with the place where it is. In the texts here, § marks that place."""

from __future__ import annotations

import functools
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance.case import json_schema
from conformance.document import Document
from conformance.expand import expand
from conformance.load import load
from conformance.target import TOPOLOGY

ROOT = Path(__file__).parent.parent
CASES = sorted((ROOT / "cases").rglob("*.yaml"))

Complaints = Callable[[str | bytes], list[str]]

GOOD = """\
title: T
cases:
  - id: one
    claim: one and one make two
    inputs: {x: [1, 2]}
    program: x + x
    expect: {value: [2, 4]}
"""
"""A case file without mistakes; tests replace parts of it."""


def edit(*pairs: tuple[str, str], of: str = GOOD) -> str:
    """The text with each part replaced, which must be there."""
    for old, new in pairs:
        assert old in of
        of = of.replace(old, new)
    return of


SCENARIO = edit(
    ("    program: x + x\n", "    define: |\n      def f(x):\n          return x + c\n    state: {c: 1.0}\n    trace: f\n"),
    ("    expect: {value: [2, 4]}", "    steps: [{call: f(x)}, {rebind: {c: 2.0}}, {do: f(x)}]\n    expect: {traces: [1]}"),
)
DERIVATION = edit(
    ("    inputs: {x: [1, 2]}\n    program: x + x\n", "    define: |\n      def f(x):\n          return x * 4.0\n"),
    (
        "    expect: {value: [2, 4]}",
        "    at: {x: 2.0}\n    observe: derivation\n    expect: {linear: {a: xt * 4.0}, value: {x: 4.0}}",
    ),
)
NATIVE = edit(("program: x + x", "native: {torch: return x + x}"))
OUTCOMES = edit(("    expect: {value: [2, 4]}", "    outcomes: {a: {value: [2, 4]}, b: {value: [3, 4]}}\n    expect: {any: a}"))
DEVIATION = f"{GOOD}    deviations:\n      - {{target: torch, outcome: odd, value: [3, 4], because: it is}}\n"
UNSUPPORTED = f"{GOOD}    unsupported: [{{target: torch, because: it is, absent: torch.two}}]\n"
PARAMETERS = edit(("    program: x + x", "    parametrize: {q: [2, 3]}\n    program: x * $q"))
VARIANTS = edit(
    ("expect: {traces: [1]}", "outcomes: {a: {traces: [1]}, b: {traces: [0]}}\n    expect: {any: a}\n    variants:\n      - V"),
    ("- V", "- {id: v, target: torch, with: {dynamic: true}, expect: b}"),
    of=SCENARIO,
)
MESH = edit(("{x: [1, 2]}", "{x: {shape: [8, 2], split: [a, null]}}"), ("    program: x + x", "    mesh: {a: 4}\n    program: x"))


def program(*lines: str) -> str:
    return edit(("program: x + x", "program: |\n" + "\n".join(f"      {line}" for line in lines)))


GOOD_ONES = {
    "program": GOOD,
    "scenario": SCENARIO,
    "derivation": DERIVATION,
    "native": NATIVE,
    "outcomes": OUTCOMES,
    "mesh": MESH,
    "deviation": DEVIATION,
    "unsupported": UNSUPPORTED,
    "parameters": PARAMETERS,
    "variants": VARIANTS,
    "carriage returns": GOOD.replace("\n", "\r\n"),
    "old carriage returns": GOOD.replace("\n", "\r"),
    "byte order mark": f"\ufeff{GOOD}",
    "other devices": edit(("{any: a}", "{any: a, torch@cuda: b}"), of=OUTCOMES),
    "other versions": edit(("{any: a}", "{any: a, torch>=2.5: a, torch<2.5: b}"), of=OUTCOMES),
    "one outcome twice": edit(("{any: a}", "{any: a, torch: a, any:eager: a}"), of=OUTCOMES),
    "a tree of inputs": edit(("{x: [1, 2]}", "{x: {list: [1, {shape: [2]}, {dict: {a: {tuple: [3]}}}]}}")),
    "complex": edit(("[1, 2]", "[1+2j, -3j]"), ("[2, 4]", "[2+4j, -6j]")),
    "an expression in lines": edit(("x + x", "|\n      (x +\n       x)")),
    "statements": program("y = x", "for i in range(3):", "    y += 1 if i else 2", "return y"),
    "functions": program("def twice(f, y):", "    return f(f(y))", "return twice(lambda y: y + 1, x)"),
    "shadowed": program("def sum(y):", "    return y", "return sum(x)"),
    "a parameter for a function": edit(("x * $q", "$q(x)"), ("[2, 3]", "[sum, abs]"), of=PARAMETERS),
    "a parameter for an input": edit(("[1, 2]}", "[1], y: [1]}"), ("x * $q", "$q"), ("[2, 3]", "[x, y]"), of=PARAMETERS),
    "a parameter for an outcome": edit(
        ("x + x", "x + $q.x"),
        ("    program", "    parametrize: {q: [{x: 1, sees: a}]}\n    program"),
        ("any: a", "any: $q.sees"),
        of=OUTCOMES,
    ),
}


@pytest.mark.parametrize("text", GOOD_ONES.values(), ids=GOOD_ONES)
def test_a_good_file_has_no_mistakes(text: str, complaints: Complaints) -> None:
    assert complaints(text) == []


# --- what the types say

TYPES = [
    (edit(("expect:", "§expct:")), "unknown key 'expct' in case 'one'; did you mean 'expect'?"),
    (edit(("title:", "§titel:")), "unknown key 'titel'; did you mean 'title'?"),
    (edit(("[1, 2]", "{§shpe: [2]}")), "unknown key 'shpe' in case 'one'; did you mean 'shape'?"),
    (edit(("[1, 2]", "{list: [{§shpe: [2]}]}")), "unknown key 'shpe' in case 'one'; did you mean 'shape'?"),
    (edit(("{value:", "{§valeu:")), "unknown key 'valeu' in case 'one'; did you mean 'value'?"),
    (edit(("b: {value:", "b: {§valeu:"), of=OUTCOMES), "unknown key 'valeu' in case 'one'; did you mean 'value'?"),
    (edit(("{value: [2, 4]}", "{§any: conforms}")), "unknown key 'any' in case 'one'; known: value, values,"),
    (edit(("    program", "    §<<: {why: of a merge}\n    program")), "unknown key '<<' in case 'one'"),
    (edit(("    program", "    §on: 3\n    program")), "unknown key 'on' in case 'one'"),
    (edit(("title: T\ncases", "§cases")), "missing key 'title'"),
    (edit(("id: one", "§ids: one")), "unknown key 'ids'; did you mean 'id'?"),
    (edit(("id: one\n    claim", "§claim")), "missing key 'id'"),
    (edit(("id: one", "§id: one"), ("    claim: one and one make two\n", "")), "missing key 'claim' in case 'one'"),
    (
        edit(("id: one", "§id: one"), ("    expect: {value: [2, 4]}\n", "")),
        "missing key 'expect': say what must be seen in case 'one'",
    ),
    (edit((", because: it is", ""), ("{target", "§{target"), of=DEVIATION), "missing key 'because' in case 'one'"),
    (edit(("x + x", "§[x]")), "'program': ['x'] is not text in case 'one'"),
    (edit(("{value: [2, 4]}", "§[2, 4]")), "'expect': [2, 4] is not a mapping in case 'one'"),
    (edit(("[1, 2]", "§null")), "'x': nothing stands here in case 'one'"),
    (edit(("[1, 2]", "{shape: §3.5}")), "'shape': 3.5 is not a list or text in case 'one'"),
    (edit(("[1, 2]", "{shape: [§2.0]}")), "2.0 is not an integer or text in case 'one'"),
    (edit(("[1, 2]", "{shape: [§true]}")), "true is not an integer or text in case 'one'"),
    (edit(("[1, 2]", "{list: §3}")), "'list': 3 is not a list or text in case 'one'"),
    (edit(("[1, 2]", "{dict: §[3]}")), "'dict': [3] is not a mapping or text in case 'one'"),
    (edit(("one and one make two", "§12")), "'claim': 12 is not text in case 'one'"),
    (edit(("one and one make two", "§short")), "'claim': 'short' is too short in case 'one'"),
    (edit(("id: one", "id: §One Two")), "'One Two' is not lower-case words joined by hyphens in case 'One Two'"),
    (edit((", b:", ", §B_1:"), of=OUTCOMES), "'B_1' is not lower-case words joined by hyphens in case 'one'"),
    (edit(("    program", "    timeout: §-1\n    program")), "'timeout': -1 is less than or equal to the minimum of 0"),
    (edit(("    program", "    timeout: §.nan\n    program")), "Expected `float` > 0.0"),
    (
        edit(("    program", "    tolerance: {because: so, rtol: §-1.0}\n    program")),
        "'rtol': -1.0 is less than the minimum of 0",
    ),
    (edit(("{a: {value: [2, 4]}, b: {value: [3, 4]}}", "§{}"), of=OUTCOMES), "'outcomes': {} "),
    (edit(("{a: 4}", "{a: §0}"), of=MESH), "'a': 0 is less than the minimum of 1 in case 'one'"),
    (edit(("{value: [2, 4]}", "{slices: {§x: ['0:1']}}")), "'x' is not the number of a device in case 'one'"),
    (edit(("{value: [2, 4]}", "{slices: {0: [§all]}}")), "'all' is not start:stop in case 'one'"),
    (edit(("observe: derivation", "observe: §derivatin"), of=DERIVATION), "'observe': 'derivatin' does not match"),
    ("§", "nothing stands here"),
    ("§# only a comment", "nothing stands here"),
    ("§- 1\n- 2", "[1, 2] is not a mapping"),
    ("§text", "'text' is not a mapping"),
    ("title: T\ncases:§", "'cases': nothing stands here"),
    ("title: T\ncases: §[]", "no cases"),
    ("title: T\ncases: §{a: 1}", "'cases': {'a': 1} is not a list"),
    ("title: T\ncases: [§a]", "'a' is not a mapping"),
    (
        f"{GOOD}{edit(('id: one', 'id: §one')).partition('cases:')[2].lstrip()}".replace("\n- id", "\n  - id"),
        "two cases have the id 'one'",
    ),
    (edit(("    program", "    §claim: one and one again\n    program")), "the key 'claim' stands here twice"),
    (edit(("    program", "  §\tprogram")), "not YAML: "),
    (edit(("[1, 2]", "§!!python/object/apply:os.system [echo]")), "the tag !!python/object/apply:os.system is not allowed"),
]

# --- what a program may say

PROGRAMS = [
    (
        program("y = x + x", "return §summ(y)"),
        "unknown name 'summ': not an input, not defined here, and not in the vocabulary in case 'one'; did you",
    ),
    (program("", "# é😀", "return '😀', §summ(x)"), "unknown name 'summ'"),
    (edit(("x + x", "x + §summ(x)")), "unknown name 'summ'"),
    (edit(("x + x", "'x + §summ(x)'")), "unknown name 'summ'"),
    (edit(("x + x", "§>\n      x +\n      summ(x)")), "unknown name 'summ'"),
    (edit(("x + x", "§x +\n      summ(x)")), "unknown name 'summ'"),
    (
        edit(("program: x + x", "program: |  # why\n\n      y = x\n\n      return §summ(x)")).replace("\n", "\r\n"),
        "unknown name 'summ'",
    ),
    (program("return x + §eval('1')"), "unknown name 'eval'"),
    (program("return zeros((2,), dtype=§flot32) + x"), "unknown name 'flot32'"),
    (program("y = §(x +", "return y"), "not Python: '(' was never closed in case 'one'"),
    (edit(("x + x", "x + + §)")), "not Python: unmatched ')' in case 'one'"),
    (
        edit(("x + x", '§"x + \\0 x"')).replace('§"', '"§'),
        "not Python: source code string cannot contain null bytes in case 'one'",
    ),
    (edit(("x + x", f"§{'(' * 99}x{')' * 99}{'.T' * 101}")), "nested deeper than 100 levels in case 'one'"),
    (edit(("x + x", f"§{'-' * 50_000}x")), "nested too deeply in case 'one'"),
    (edit(("x + x", f"§x{' + x' * 50_000}")), "nested too deeply in case 'one'"),
    (
        edit(("[1, 2]", "§[1, 2]"), ("x + x", "|\n      y = 1\n      return y")).replace("{x: §", "{§x: "),
        "'x' is never used in case 'one'",
    ),
    (edit(("{x: [1, 2]}", "{x: [1, 2], §y: 1}"), ("x + x", "|\n      # y\n      return x")), "'y' is never used in case 'one'"),
    (
        program("§import os", "return x"),
        "a program may not contain Import; write a native block for what it cannot say in case 'one'",
    ),
    (program("§from os import path as p", "return x"), "a program may not contain ImportFrom"),
    (program("§class A: pass", "return x"), "a program may not contain ClassDef"),
    (program("§with x as y: pass", "return x"), "a program may not contain With"),
    (program("§try:", "    y = 1", "except: pass", "return x"), "a program may not contain Try"),
    (program("§match x:", "    case 1: pass", "return x"), "a program may not contain Match"),
    (program("§async def f(): pass", "return x"), "a program may not contain AsyncFunctionDef"),
    (program("§assert x", "return x"), "a program may not contain Assert"),
    (program("§raise x", "return x"), "a program may not contain Raise"),
    (program("§del x", "return x"), "a program may not contain Delete"),
    (program("§global x", "return x"), "a program may not contain Global"),
    (program("§y: int = 1", "return x"), "a program may not contain AnnAssign"),
    (program("y = §f'{x}'", "return x"), "a program may not contain JoinedStr"),
    (program("y = (§y := x)", "return x"), "a program may not contain NamedExpr"),
    (program("y = §{z for z in x}", "return x"), "a program may not contain SetComp"),
    (program("y = §yield x", "return x"), "a program may not contain Yield"),
    (program("y = §lambda a=2: a", "return x"), "the parameters of a lambda may not have defaults"),
    (program("y = §lambda *, a=2: a", "return x"), "the parameters of a lambda may not have defaults"),
    (program("@x", "§def f(a): return a", "return x"), "a program may not decorate functions"),
    (program("return §x.foo"), "the attribute .foo is not in the vocabulary, which has T, dtype, mT, ndim, shape in case 'one'"),
    (program("return §x.__class__"), "the attribute .__class__ is not in the vocabulary"),
    (program("§x.shape = 3", "return x"), "a program may not assign to attributes"),
    (program("y = §sum", "return y(x)"), "sum is a function: call it in case 'one'"),
    (program("return §float32(x)"), "float32 is not a function; astype(x, float32) converts to a dtype in case 'one'"),
    (program("return x + §pi()"), "pi is not a function in case 'one'"),
    (
        program("return §sum(x, 0)"),
        "sum() takes 1 arguments by position, the others by name: x, axis, dtype, keepdims in case 'one'",
    ),
    (program("return §sum(x, dim=0)"), "sum() has no parameter 'dim'; it has x, axis, dtype, keepdims in case 'one'"),
    (program("return §matmul(x, x2=x, x1=x)"), "matmul() is given 'x1' twice in case 'one'"),
    (program("return §matmul(x)"), "matmul() needs x2 in case 'one'"),
    (program("return x, §sum()"), "sum() needs x in case 'one'"),
    (program("return §sum(*x)"), "sum() takes no * or ** here in case 'one'"),
    (program("def f(sum):", "    return sum", "return f(§sum(x))"), "'sum' is not the function of the vocabulary here"),
    (program("§len = 3", "return x"), "the name 'len' is taken; choose another in case 'one'"),
    (program("§np = x", "return np"), "the name 'np' is taken; choose another in case 'one'"),
    (program("for §torch in x: pass", "return x"), "the name 'torch' is taken; choose another in case 'one'"),
    (edit(("{x:", "{§jnp:"), ("x + x", "jnp")), "the name 'jnp' is taken; choose another in case 'one'"),
    (edit(("{x:", "{§'x y':")), "'x y' is not a name that a program can say in case 'one'"),
    (edit(("{x:", "{§lambda:")), "'lambda' is not a name that a program can say in case 'one'"),
    (edit(("x + x", "§|\n      y = x")), "nothing is returned in case 'one'"),
    (edit(("x + x}", "x +§}"), of=NATIVE), "not Python: invalid syntax in case 'one'"),
    (
        edit(("{torch: return x + x}", "\n      torch: |\n        y = 1\n        return x +§"), of=NATIVE),
        "not Python: invalid syntax in case 'one'",
    ),
    (edit(("{torch", "{§trch"), of=NATIVE), "unknown framework 'trch' in case 'one'; did you mean 'torch'?"),
    (edit(("return x + x", "§'def f(x): return x'"), of=NATIVE), "nothing is returned in case 'one'"),
    (edit(("return x + x", f"§return {'-' * 50_000}x"), of=NATIVE), "nested too deeply in case 'one'"),
    (edit(("return x + x", "{code: return x, uses: [§'flax>=x']}"), of=NATIVE), "'flax>=x' is not a library, such as"),
    (edit(("return x + x", "{code: return x, uses: [§'!!']}"), of=NATIVE), "'!!' is not a library, such as"),
    (edit(("torch.two", "§torch."), of=UNSUPPORTED).replace("§torch.", "torch.§"), "not Python: "),
    (edit(("torch.two", "§import torch"), of=UNSUPPORTED), "not an expression in case 'one'"),
    (edit(("torch.two", f"§{'-' * 50_000}x"), of=UNSUPPORTED), "nested too deeply in case 'one'"),
]

# --- kinds of cases

NATIVE_SCENARIO = edit(
    ("    program: x + x\n", "    native:\n      torch: |\n        def f(x):\n            return x\n    trace: f\n"),
    ("    expect: {value: [2, 4]}", "    steps: [{call: f(x)}, {do: {torch: x.add_(1)}}]\n    expect: {traces: [1]}"),
)
"""A scenario in a framework's own words."""

KINDS = [
    (edit(("trace: f", "trace: §g"), of=NATIVE_SCENARIO), "torch's native block defines no 'g' in case 'one'"),
    (
        edit(("    trace: f", "    §define: f\n    trace: f"), of=NATIVE_SCENARIO),
        "where `native` defines functions there is no `define`",
    ),
    (edit(("{torch: x.add_(1)}", "§{jax: x + 1}"), of=NATIVE_SCENARIO), "`do` speaks of jax; `native` has torch in case 'one'"),
    (edit(("x.add_(1)", "x +§"), of=NATIVE_SCENARIO), "not Python: invalid syntax"),
    (
        edit(("{call: f(x)}", "{call: {torch: §y = f(x)}}"), of=NATIVE_SCENARIO),
        "`call` takes an expression; `do` takes statements",
    ),
    (edit(("{do: f(x)}", "{do: §{jax: f(x)}}"), of=SCENARIO), "`do` says something per framework only where `native` does"),
    (edit(("{c: 1.0}", "{c: 1.0, §f: 1.0}"), of=SCENARIO), "the name 'f' is taken; choose another in case 'one'"),
    (edit(("x + x", "'grad(lambda x: x)(x)'"), ("[2, 4]", "§reference")), "NumPy has no grad(): say in `closed_form` what"),
    (edit(("x + x", "x + x\n    closed_form: §z")), "unknown name 'z'"),
    (
        edit(("    program", "    reference: §$x.a-b\n    program")),
        "'$x.a-b' is no parameter: their names have letters, digits and _ only in case 'one'",
    ),
    (edit(("value: [2, 4]", "agree: §2")), "'agree': 2 is not a boolean in case 'one'"),
    (
        edit(("id: one", "§id: one"), ("    program: x + x\n", "")),
        "a case is one of program, native, steps or observe; it has none",
    ),
    (
        edit(("id: one", "§id: one"), ("    program", "    native: {torch: return x}\n    program")),
        "a case is one of program, native, steps or observe; it has program and native",
    ),
    (
        edit(("id: one", "§id: one"), ("program: x + x", "steps: [{call: f(x)}]")),
        "a case with 'steps' needs 'define' in case 'one'",
    ),
    (edit(("id: one", "§id: one"), ("    at: {x: 2.0}\n", ""), of=DERIVATION), "a case with 'observe' needs 'at' in case 'one'"),
    (edit(("    program", "    §trace: f\n    program")), "only a case with steps has a function to trace in case 'one'"),
    (edit(("trace: f", "trace: §g"), of=SCENARIO), "`define` defines no 'g' in case 'one'; known: f"),
    (
        edit(
            ("|\n      def f(x):\n          return x + c", "§c"),
            ("trace: f\n", "frameworks: [jax]\n"),
            ("f(x)", "x"),
            ("traces: [1]", "values: [1]"),
            of=SCENARIO,
        ),
        "`define` defines no function in case 'one'",
    ),
    (edit(("{c: 2.0}", "{§d: 2.0}"), of=SCENARIO), "'d' is not in `state` in case 'one'; known: c"),
    (edit(("{call: f(x)}", "{call: §g(x)}"), of=SCENARIO), "unknown name 'g'"),
    (edit(("{call: f(x)}", "§{call: f(x), do: f(x)}"), of=SCENARIO), "a step is one of call, rebind or do in case 'one'"),
    (edit(("{call: f(x)}", "§{}"), of=SCENARIO), "a step is one of call, rebind or do in case 'one'"),
    (edit(("{call: f(x)}", "{call: §y = f(x)}"), of=SCENARIO), "`call` takes an expression; `do` takes statements in case 'one'"),
    (edit(("{call: f(x)}", "{call: f§(x}"), of=SCENARIO), "not Python: '(' was never closed in case 'one'"),
    (
        edit(("x + c", "x + c + §y"), ("{x: [1, 2]}", "{x: 1, y: 2}"), ("{do: f(x)}", "{do: f(y)}"), of=SCENARIO),
        "unknown name 'y'",
    ),
    (edit(("{c: 1.0}", "{c: 1.0, §d: 2.0}"), of=SCENARIO), "'d' is never used in case 'one'"),
    (edit(("{x: [1, 2]}", "{x: [1, 2], §z: 3}"), of=SCENARIO), "'z' is never used in case 'one'"),
    (edit(("at: {x: 2.0}", "at: §{y: 2.0}"), of=DERIVATION), "the point has y; f() takes x in case 'one'"),
]

# --- inputs

INPUTS = [
    (edit(("[1, 2]", "{shape: [2], dtype: §flot32}")), "unknown dtype 'flot32' in case 'one'; did you mean 'float32'?"),
    (edit(("[1, 2]", "{shape: [2], fill: §nrmal}")), "unknown fill 'nrmal' in case 'one'; did you mean 'normal'?"),
    (
        edit(("[1, 2]", "§{shape: [2], fill: normal, value: 3}")),
        "an input is made in one way, not by fill and value in case 'one'",
    ),
    (edit(("[1, 2]", "§{dtype: int32}")), "an input needs a shape or a value in case 'one'"),
    (edit(("[1, 2]", "§{fill: normal}")), "an input needs a shape in case 'one'"),
    (edit(("[1, 2]", "§{value: arange}")), "an input needs a shape in case 'one'"),
    (edit(("[1, 2]", "{shape: §[2, -1]}")), "the shape [2, -1] has a negative size in case 'one'"),
    (
        edit(("[1, 2]", "{shape: §[100000, 100000]}")),
        "the shape [100000, 100000] has more than 16,777,216 elements in case 'one'",
    ),
    (edit(("[1, 2]", "{shape: §[a]}")), "'a' is not a size in case 'one'"),
    (edit(("[1, 2]", "{shape: §a}")), "'a' is not a size in case 'one'"),
    (edit(("[1, 2]", "§[[1, 2], [3]]")), "the literal is ragged: its rows differ in length in case 'one'"),
    (edit(("[1, 2]", "{value: §[[1, 2], 3]}")), "the literal is ragged: its rows differ in length in case 'one'"),
    (edit(("[1, 2]", "{tuple: [1, §[[1], 2]]}")), "the literal is ragged: its rows differ in length in case 'one'"),
    (edit(("[1, 2]", "§[1, two]")), "'two' is not a number in case 'one'"),
    (edit(("[1, 2]", "§two")), "'two' is not a number in case 'one'"),
    (edit(("[1, 2]", "§[1, null]")), "null is not a number in case 'one'"),
    (edit(("[1, 2]", "§99999999999")), "99999999999 does not fit int32 in case 'one'"),
    (edit(("[1, 2]", f"{{value: §{10**30}, dtype: int64}}")), f"{10**30} does not fit int64 in case 'one'"),
    (edit(("[1, 2]", "{value: §[-1], dtype: uint8}")), "[-1] does not fit uint8 in case 'one'"),
    (edit(("[1, 2]", "{value: §1.5, dtype: int32}")), "1.5 does not fit int32 in case 'one'"),
    (edit(("[1, 2]", "{value: §.nan, dtype: int32}")), "nan does not fit int32 in case 'one'"),
    (edit(("[1, 2]", "{value: §2, dtype: bool}")), "2 does not fit bool in case 'one'"),
    (edit(("[1, 2]", "{value: §1j, dtype: float32}")), "'1j' does not fit float32 in case 'one'"),
    (edit(("[1, 2]", "{value: §[1, 2], shape: [3]}")), "a value of shape [2] cannot fill the shape [3] in case 'one'"),
    (
        edit(("{shape: [8, 2], split: [a", "{shape: [8, 2], split: §[b"), of=MESH),
        "'b' is no axis of the mesh in case 'one'; known: a",
    ),
    (edit(("[a, null]", "§[a, a]"), of=MESH), "the axis 'a' is used twice in case 'one'"),
    (edit(("[a, null]", "§[[a, a], null]"), of=MESH), "the axis 'a' is used twice in case 'one'"),
    (edit(("[a, null]", "§rows"), of=MESH), "'split': 'rows' is not a list in case 'one'"),
    (edit(("[a, null]", "§[a, null, null]"), of=MESH), "`split` speaks of 3 dimensions; the shape [8, 2] has 2 in case 'one'"),
    (edit(("[a, null]", "§[a]"), of=MESH), "`split` speaks of 1 dimensions; the shape [8, 2] has 2 in case 'one'"),
    (edit(("[a, null]", "[a, null], partial: §{a: sum}"), of=MESH), "the axis 'a' is used twice in case 'one'"),
    (
        edit(("[a, null]", "[null, null], partial: {a: §som}"), of=MESH),
        "unknown reduction 'som' in case 'one'; did you mean 'sum'?",
    ),
    (
        edit(("split: [a, null]", "§partial: {a: sum}"), of=MESH),
        "an input with `partial` needs `split`, if only of nulls in case 'one'",
    ),
    (
        edit(("mesh: {a: 4}", "mesh: {a: 4}\n    devices: §[0, 1, 2, 2]"), of=MESH),
        "the mesh takes each of the devices 0 to 3 once in case 'one'",
    ),
    (
        edit(("mesh: {a: 4}", "mesh: {a: 4}\n    devices: §8"), of=MESH),
        "the mesh says how many devices there are; a list says which in case 'one'",
    ),
    (edit(("    program", "    devices: §9\n    program")), "there are 8 devices at most in case 'one'"),
    (
        edit(("    program", "    devices: §[0, 1]\n    program")),
        "a list of devices says how they fill a mesh: there is none in case 'one'",
    ),
    (edit(("{value: [2, 4]}", "{split: §[b, null]}"), of=MESH), "'b' is no axis of the mesh in case 'one'; known: a"),
    (edit(("{value: [2, 4]}", "{split: §[a, a]}"), of=MESH), "the axis 'a' is used twice in case 'one'"),
    (
        edit(("{value: [2, 4]}", "{collectives: [§all-reduces]}"), of=MESH),
        "unknown collective 'all-reduces' in case 'one'; did you mean 'all-reduce'?",
    ),
    (edit(("{value: [2, 4]}", "{slices: §whole}"), of=MESH), "'slices': 'whole' is not a mapping of devices in case 'one'"),
    (
        edit(("  - id", "  - §id"), ("x + x", "reshard(x, [None])")),
        "reshard() lays something out over a mesh: the case has none in case 'one'",
    ),
    (edit(("mesh: {a: 4}", "mesh: §{a: 4, b: 4}"), of=MESH), "the mesh has more than 8 devices in case 'one'"),
    (edit(("{c: 2.0}", "{c: §[[1], 2]}"), of=SCENARIO), "the literal is ragged"),
    (edit(("at: {x: 2.0}", "at: {x: §two}"), of=DERIVATION), "'two' is not a number in case 'one'"),
]

# --- parameters

PARAMETRIZED = [
    (edit(("{q:", "{§q:"), ("x * $q", "x"), of=PARAMETERS), "the parameter 'q' is never used in case 'one'"),
    (
        edit(("{q:", "{§q:"), ("x * $q", "x"), ("one and one", "$q and $q"), of=PARAMETERS),
        "the parameter 'q' is never used in case 'one'",
    ),
    (edit(("x * $q", "§x * $q * $r"), of=PARAMETERS), "$r is not a parameter in case 'one'; known: q"),
    (edit(("[1, 2]", "§$q")), "$q is not a parameter; the case has no parameters in case 'one'"),
    (
        edit(("x * $q", "§x * $q.a"), ("[2, 3]", "[{a: 1}, {b: 1}]"), of=PARAMETERS),
        "with the parameters q1: $q.a: the row has no 'a' in case 'one'",
    ),
    (
        edit(("x * $q", "§x * $q.a.b"), ("[2, 3]", "[{a: 1}]"), of=PARAMETERS),
        "with the parameters q0: $q.a.b: the row has no 'b' in case 'one'",
    ),
    (edit(("[2, 3]", "§[]"), of=PARAMETERS), "the parameter 'q' has no values in case 'one'"),
    (
        edit(("{q: [2, 3]}", "§{q: [2, 2]}"), of=PARAMETERS),
        "2 checks have the name 'one[2-numpy:eager@cpu]': call the rows by different names",
    ),
    (edit(("[2, 3]", "§[2, $r]"), of=PARAMETERS), "a value of 'q' speaks of a parameter itself in case 'one'"),
    (
        edit(("{q: [2, 3]}", "§{q: Q, r: Q, s: Q}"), ("Q", json.dumps(list(range(22)))), ("$q", "$q * $r * $s"), of=PARAMETERS),
        "the parameters combine to more than 10,000 rows",
    ),
    (edit(("x * $q", "§x + $q"), ("[2, 3]", "[x, y]"), of=PARAMETERS), "with the parameters y: unknown name 'y'"),
    (edit(("x * $q", "§x + $q"), ("[2, 3]", "['1', '1)']"), of=PARAMETERS), "with the parameters 1_: not Python: unmatched ')'"),
    (
        edit(("x * $q", "§x + $q"), ("[2, 3]", "[\"__import__('os')\"]"), of=PARAMETERS),
        "with the parameters __import___os_: unknown name '__import__'",
    ),
    (
        edit(("x * $q", "|\n      y = x\n      §return $q(y)"), ("[2, 3]", "[sum, summ]"), of=PARAMETERS),
        "with the parameters summ: unknown name 'summ'",
    ),
    (
        edit(("[1, 2]", "{shape: §$q}"), ("x * $q", "x"), ("[2, 3]", "[[2], 1.5]"), of=PARAMETERS),
        "with the parameters 1.5: 'shape': 1.5 is not a list or text",
    ),
    (
        edit(("[1, 2]", "{shape: §[$q]}"), ("x * $q", "x"), ("[2, 3]", "[-3]"), of=PARAMETERS),
        "with the parameters -3: the shape [-3] has a negative size",
    ),
    (
        edit(("[1, 2]", "{shape: §$q}"), ("x * $q", "x"), ("[2, 3]", "[[100000, 100000]]"), of=PARAMETERS),
        "with the parameters q0: the shape [100000, 100000] has more than",
    ),
    (
        edit(("[1, 2]", "{value: §$q}"), ("x * $q", "x"), ("[2, 3]", "[[[1, 2], [3]]]"), of=PARAMETERS),
        "with the parameters q0: the literal is ragged",
    ),
    (
        edit(("[1, 2]", "{shape: [2], dtype: §$q}"), ("x * $q", "x"), ("[2, 3]", "[int8, flot32]"), of=PARAMETERS),
        "with the parameters flot32: unknown dtype 'flot32'",
    ),
    (
        edit(("[2, 3]", "[3]"), ("[2, 4]", "[2, 4], dtype: §$q"), of=PARAMETERS),
        "with the parameters 3: 'dtype': 3 is not text or a list",
    ),
    (
        edit(("{value: [2, 4]}", "{raises: ValueError, matching: §$q}"), ("x * $q", "x"), ("[2, 3]", "[a, '(']"), of=PARAMETERS),
        "with the parameters q1: not a regular expression",
    ),
    (
        edit(("    program", "    timeout: §$q\n    program"), of=PARAMETERS).replace("$q}", "$q}"),
        "'timeout': '$q' is not a number",
    ),
]

# --- expectations

EXPECTATIONS = [
    (edit(("any: a", "any: §aa"), of=OUTCOMES), "unknown outcome 'aa' in case 'one'; did you mean 'a'?"),
    (edit(("expect: b", "expect: §c"), of=VARIANTS), "unknown outcome 'c' in case 'one'; known: a, b"),
    (edit(("any: a", "§Torch: a"), of=OUTCOMES), "'Torch' is not a target selector"),
    (edit(("any: a", "any: a, §trch: b"), of=OUTCOMES), "unknown framework 'trch' in case 'one'; did you mean 'torch'?"),
    (
        edit(("any: a", "any: a, §jax+flx<0.12: b"), of=OUTCOMES),
        "'jax+flx<0.12': of flx no version is recorded in case 'one'; did you mean 'flax'?",
    ),
    (edit(("any: a", "any: a, §jax:fast: b"), of=OUTCOMES), "'jax:fast': unknown mode 'fast'"),
    (edit(("any: a", "any: a, §torch>=x: b"), of=OUTCOMES), "'torch>=x': '>=x' is not a version specifier"),
    (edit(("any: a", "any: a, §any>=2: b"), of=OUTCOMES), "'any>=2': versions need a framework"),
    (
        edit(("any: a", "any: a, §numpy:compiled: b"), of=OUTCOMES),
        "'numpy:compiled' cannot exist: numpy has the modes eager in case 'one'",
    ),
    (
        edit(("any: a", "any: a, §torch:xla: b"), of=OUTCOMES),
        "'torch:xla' cannot exist: torch has the modes eager, compiled, inductor in case 'one'",
    ),
    (edit(("any: a", "any: a, §numpy@tpu: b"), of=OUTCOMES), "'numpy@tpu' cannot exist: numpy runs on cpu in case 'one'"),
    (
        edit(("any: a", "any: a, §any@toaster: b"), of=OUTCOMES),
        "'any@toaster' cannot exist: there is cpu, cuda, tpu in case 'one'",
    ),
    (
        edit(("any: a", "any: a, torch: a, §any:eager: b"), of=OUTCOMES),
        "'torch' and 'any:eager' both fit torch:eager@cpu, and neither is more specific in case 'one'",
    ),
    (
        edit(("any: a", "any: a, torch>=2.5: a, §torch<2.7: b"), of=OUTCOMES),
        "'torch>=2.5' and 'torch<2.7' both fit torch:eager@cpu, and neither is more specific in case 'one'",
    ),
    (edit(("{any: a}", "§{torch: a}"), of=OUTCOMES), "nothing is expected of numpy:eager@cpu, jax:eager@cpu"),
    (
        edit(("{any: a}", "{any: a, §any:xla: b}"), ("    program", "    frameworks: [jax]\n    program"), of=OUTCOMES),
        "'any:xla' fits no target of the case in case 'one'",
    ),
    (
        edit(("b: {value: [3, 4]}", "b: §{}"), of=OUTCOMES),
        "the outcome 'b' says nothing, so that it would fit anything in case 'one'",
    ),
    (
        edit(("b: {value: [3, 4]}", "§b: {dtype: int32}"), of=OUTCOMES),
        "one observation could be both 'a' and 'b': say what sets them apart in case 'one'",
    ),
    (
        edit(("b: {value", "crashed: §{value"), of=OUTCOMES).replace("crashed: §", "§crashed: "),
        "an outcome cannot be called 'crashed', which means something else",
    ),
    (
        edit(("[3, 4], because", "[2, 4], because"), ("- {", "- §{"), of=DEVIATION),
        "one observation could be both 'conforms' and 'odd'",
    ),
    (edit(("value: [3, 4], ", ""), ("- {", "- §{"), of=DEVIATION), "a deviation must say what is seen instead in case 'one'"),
    (
        edit(("odd", "§conforms"), of=DEVIATION),
        "a deviation cannot be called 'conforms', which means something else in case 'one'",
    ),
    (edit(("odd", "§not-run"), of=DEVIATION), "a deviation cannot be called 'not-run', which means something else in case 'one'"),
    (edit(("torch", "§torch:xla"), of=DEVIATION), "'torch:xla' cannot exist"),
    (
        edit(("target: torch", "target: §torch"), ("    program", "    frameworks: [jax]\n    program"), of=DEVIATION),
        "'torch' cannot exist here: `frameworks` has jax in case 'one'",
    ),
    (
        edit(("target: torch", "target: §any:xla"), ("    program", "    frameworks: [jax]\n    program"), of=DEVIATION),
        "'any:xla' fits no target of the case in case 'one'",
    ),
    (
        edit(("- {", "- §{"), of=DEVIATION) + "    unsupported: [{target: torch, because: it is, absent: torch.two}]\n",
        "'torch' is unsupported, so it cannot deviate in case 'one'",
    ),
    (
        f"{DEVIATION}      - §{{target: torch, outcome: odder, value: [5, 4], because: it is}}\n",
        "'torch' and 'torch' both fit torch:eager@cpu",
    ),
    (
        f"{DEVIATION}      - {{target: torch:eager, outcome: §odd, value: [5, 4], because: it is}}\n",
        "two deviations are called 'odd' and say different things in case 'one'",
    ),
    (edit(("value: [3", "where: {§q: [1]}, value: [3"), of=DEVIATION), "'q' is not a parameter in case 'one'"),
    (
        edit(
            ("    expect: {value: [2, 4]}\n", DEVIATION.partition("x + x\n")[2]),
            ("value: [3", "where: {q: [2, §5]}, value: [3"),
            of=PARAMETERS,
        ),
        "5 is no row of 'q'; it has 2, 3 in case 'one'",
    ),
    (
        edit(
            ("    expect: {value: [2, 4]}\n", DEVIATION.partition("x + x\n")[2]),
            ("value: [3", "where: {q: [§true]}, value: [3"),
            ("[2, 3]", "[1, 3]"),
            of=PARAMETERS,
        ),
        "true is no row of 'q'; it has 1, 3 in case 'one'",
    ),
    (
        edit(
            ("    expect: {value: [2, 4]}\n", DEVIATION.partition("x + x\n")[2]),
            ("value: [3", "where: §{q: []}, value: [3"),
            of=PARAMETERS,
        ),
        "no row of the parameters fits in case 'one'",
    ),
    (
        f"{OUTCOMES}    deviations:\n      - §{{target: torch, outcome: odd, value: [3, 4], because: it is}}\n",
        "a case with outcomes has no norm to deviate from",
    ),
    (
        edit(
            (
                "expect: {traces: [1]}",
                "expect: {traces: [1]}\n    deviations: [{target: §numpy, outcome: odd, traces: [2], because: it is}]",
            ),
            of=SCENARIO,
        ),
        "'numpy' cannot exist here: numpy does not trace in case 'one'",
    ),
    (
        edit(("return x + x}", "return x + x}\n    unsupported: [{target: §jax, because: it is, absent: jax.two}]"), of=NATIVE),
        "'jax' cannot exist here: `native` has torch in case 'one'",
    ),
    (edit(("target: torch", "target: §torch:eager"), of=VARIANTS), "'torch:eager' fits no target of the case in case 'one'"),
    (
        edit(("- {id", "§- {id"), of=VARIANTS) + "      - {id: v, target: torch, with: {}, expect: a}\n",
        "2 checks have the name 'one[v-torch:compiled@cpu]': call the variants by different names",
    ),
    (
        edit(("    program", "    modes: [§compild]\n    program")),
        "unknown mode 'compild' in case 'one'; did you mean 'compiled'?",
    ),
    (
        edit(("    program", "    frameworks: [jax, §tensorfow]\n    program")),
        "unknown framework 'tensorfow' in case 'one'; did you mean 'tensorflow'?",
    ),
    (
        edit(("id: one", "§id: one"), ("    program", "    modes: [xla]\n    frameworks: [torch]\n    program")),
        "no target fits: nothing would run in case 'one'",
    ),
    (edit(("value: [2, 4]", "value: §referense")), "'referense' is not a value in case 'one'; did you mean 'reference'?"),
    (
        edit(("value: [2, 4]", "value: §reference"), of=NATIVE),
        "`reference` needs a program, a `closed_form` or a native block for numpy in case 'one'",
    ),
    (
        edit(("traces: [1]", "value: §reference"), of=SCENARIO),
        "`reference` needs a program, a `closed_form` or a native block for numpy in case 'one'",
    ),
    (edit(("value: [2, 4]", "dtype: §flot32")), "unknown dtype 'flot32' in case 'one'; did you mean 'float32'?"),
    (edit(("value: [2, 4]", "dtype: §[int32, flot32]")), "unknown dtype 'flot32' in case 'one'; did you mean 'float32'?"),
    (edit(("value: [2, 4]", "shape: §[2, -1]")), "[2, -1] is not a shape in case 'one'"),
    (edit(("value: [2, 4]", "shape: §two")), "'shape': 'two' is not a list in case 'one'"),
    (edit(("value: [2, 4]", "rows: §[]")), "a row without elements fits nothing in case 'one'"),
    (edit(("value: [2, 4]", "every: §two")), "'two' is not a number in case 'one'"),
    (edit(("value: [2, 4]", "values: §[1, 2]")), "'values' has 2 entries for 1 calls in case 'one'"),
    (edit(("traces: [1]", "traces: §[1, 0, 0]"), of=SCENARIO), "'traces' has 3 entries for 1 calls in case 'one'"),
    (edit(("value: [2, 4]", "§traces: [1]")), "'traces' is seen only in a case with 'trace' in case 'one'"),
    (edit(("value: [2, 4]", "§local_shape: [2]")), "'local_shape' is seen only in a case with 'mesh' or 'devices' in case 'one'"),
    (edit(("value: [2, 4]", "§linear: {a: x}")), "'linear' is seen only in a case with 'observe' in case 'one'"),
    (edit(("xt * 4.0", "§xt ** 4.0"), of=DERIVATION), "a linear program is made of names, numbers, +, -, * and / in case 'one'"),
    (edit(("xt * 4.0", "§sin(xt)"), of=DERIVATION), "a linear program is made of names, numbers, +, -, * and / in case 'one'"),
    (
        edit(("linear: {a: xt * 4.0}", "§cotangents: {a: 1.0}"), of=DERIVATION),
        "`cotangents` needs `linear`, whose names it uses in case 'one'",
    ),
    (edit(("value: [2, 4]", "raises: ValueError, matching: §'('")), "not a regular expression: missing )"),
    (edit(("value: [2, 4]", "value: [2, 4], §matching: a")), "`matching` is about an error: add `raises` in case 'one'"),
    (edit(("value: [2, 4]", "value: [2, 4], §step: 0")), "`step` is about an error: add `raises` in case 'one'"),
    (edit(("value: [2, 4]", "raises: ValueError, step: §1")), "there is no step 1; steps count from 0 in case 'one'"),
    (edit(("value: [2, 4]", "raises: §[]")), "`raises` names no class in case 'one'"),
    (
        edit(("value: [2, 4]", "raises: §jax.errors.TracerError")),
        "'jax.errors.TracerError' is not the name of a class, such as 'ValueError'",
    ),
    (
        edit(("value: [2, 4]", "raises: ValueError, §value: 3")),
        "where an error is raised there is no 'value' to see in case 'one'",
    ),
]

MISTAKES = [*TYPES, *PROGRAMS, *KINDS, *INPUTS, *PARAMETRIZED, *EXPECTATIONS]


@pytest.mark.parametrize(("text", "message"), MISTAKES, ids=[f"{i}-{message[:60]}" for i, (_, message) in enumerate(MISTAKES)])
def test_a_mistake_is_one_line_with_its_place(text: str, message: str, complaints: Complaints) -> None:
    before, mark, _ = text.partition("§")
    assert mark
    before = before.replace("\r\n", "\n")
    said = complaints(text.replace("§", ""))
    assert len(said) == 1, said
    place = f"f.yaml:{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}: "
    assert said[0].startswith(place + message)


def test_all_mistakes_are_told_in_the_order_of_their_places(complaints: Complaints) -> None:
    text = edit(("[1, 2]", "{shape: [-1], dtype: flot32}"), ("x + x", "summ(x) + y"), ("{value: [2, 4]}", "{dtype: in32}"))
    assert [line.split(": ")[0] for line in complaints(text)] == [
        "f.yaml:5:25",
        "f.yaml:5:38",
        "f.yaml:6:14",
        "f.yaml:6:24",
        "f.yaml:7:21",
    ]


def test_all_unknown_and_missing_keys_are_told(complaints: Complaints) -> None:
    assert len(complaints("titel: T\nodd: 1\neven: 2\n")) == 4


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (GOOD.encode("utf-16"), "f.yaml:1:1: not UTF-8: byte 0xff"),
        (GOOD.replace("one and", "é and").encode("latin-1"), "f.yaml:4:12: not UTF-8: byte 0xe9"),
        (GOOD.replace("one and", "é and").encode() + b"\xff", "f.yaml:8:1: not UTF-8: byte 0xff"),
    ],
)
def test_what_is_not_utf_8_is_told_with_its_place(content: bytes, said: str, complaints: Complaints) -> None:
    assert complaints(content) == [said]


def test_a_file_that_is_not_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.yaml")


LINE = re.compile(r"f\.yaml:\d+:\d+: \S")
PIECES = [
    "",
    "[",
    "]",
    "{",
    "}",
    ":",
    ": ",
    "- ",
    "\n",
    "  ",
    "\t",
    "'",
    '"',
    "$q",
    "&a ",
    "*a",
    "!!set ",
    "|",
    "#",
    "?",
    "\0",
    "é",
    "😀",
    "-1",
    ".nan",
    ",",
]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_edit_of_a_file_makes_more_than_mistakes(complaints: Complaints, data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(list(GOOD_ONES.values())))
    for _ in range(data.draw(st.integers(1, 3))):
        at, cut = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 20))
        text = text[:at] + data.draw(st.sampled_from(PIECES)) + text[at + cut :]
    assert all(map(LINE.match, complaints(text)))


VALUES = [
    None,
    True,
    0,
    -1,
    2**40,
    10**30,
    1.5,
    float("nan"),
    "",
    "a",
    "$q",
    "reference",
    "x +",
    "any@cuda",
    [],
    {},
    [[1], [2, 3]],
    {"shape": [2]},
]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_value_in_any_place_makes_more_than_mistakes(complaints: Complaints, data: st.DataObject) -> None:
    document = Document("f.yaml", data.draw(st.sampled_from(list(GOOD_ONES.values()))))
    *way, last = data.draw(st.sampled_from([place for place in document.values if place]))
    parent = document.data
    for step in way:
        parent = parent[step]
    parent[last] = data.draw(st.sampled_from(VALUES))
    text = json.dumps(document.data).replace("NaN", ".nan")
    assert all(map(LINE.match, complaints(text)))


# --- the schema


def test_the_kept_schema_is_that_of_the_types() -> None:
    kept = json.loads((ROOT / "docs" / "case-file.schema.json").read_text())
    assert kept == json_schema(), "run: python -m conformance.case > docs/case-file.schema.json"


def test_the_schema_is_printed() -> None:
    done = subprocess.run([sys.executable, "-m", "conformance.case"], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == (ROOT / "docs" / "case-file.schema.json").read_text()


@functools.cache
def kept_schema() -> jsonschema.Draft202012Validator:
    schema = json.loads((ROOT / "docs" / "case-file.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_case_file_is_valid_against_the_kept_schema(path: Path) -> None:
    assert not list(kept_schema().iter_errors(Document(str(path), path.read_text()).data))


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_case_file_has_no_mistakes(path: Path) -> None:
    assert [*expand(load(path)), *expand(load(path), TOPOLOGY)]
