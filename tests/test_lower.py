"""Programs in native words: the dialects, and what rewriting keeps."""

from __future__ import annotations

import ast
import builtins
import inspect
import json
import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance import vocabulary
from conformance.expand import Check
from conformance.framework import BUILTIN, Framework, frameworks
from conformance.lower import (
    LoweringError,
    lower,
    lower_function,
    native_function,
    reference_job,
)
from conformance.program import parse

FRAMEWORKS = [frameworks()[name] for name in BUILTIN]
NUMPY, TORCH, JAX, TENSORFLOW = FRAMEWORKS

Checks = Callable[..., list[Check]]


def lowered(text: str, framework: Framework = TORCH, *inputs: str) -> str:
    """The body of the program in native words."""
    source = lower_function("program", list(inputs or ("x", "y")), parse(text), framework)
    return source.partition(f"def program({', '.join(inputs or ('x', 'y'))}):\n    ")[2].strip()


# --- the dialects

LACKING = {framework.name: framework.lacks.keys() & vocabulary.FUNCTIONS.keys() for framework in FRAMEWORKS}
LACKING["numpy"] = vocabulary.TRANSFORMS
"""framework -> functions of the vocabulary that it has no row for; each lack is checked where a case meets it."""

ROWS = [(framework, name, row) for framework in FRAMEWORKS for name, row in framework.rows.items()]
ROWS += [(framework, name, row) for framework in FRAMEWORKS for rows in framework.ways.values() for name, row in rows.items()]


def parameters_of(name: str) -> set[str]:
    signature = vocabulary.FUNCTIONS[name]
    return {argument.arg for argument in [*signature.args, *signature.kwonlyargs]}


def module_names(framework: Framework) -> set[str]:
    """What a native module of the framework knows."""
    meshes = framework.meshes.imports if framework.meshes else ""
    tree = ast.parse("\n\n".join([framework.imports, meshes, *framework.preludes.values()]))
    names = {
        alias.asname or alias.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    return names | {node.name for node in tree.body if isinstance(node, ast.FunctionDef)} | set(dir(builtins)) | {"mesh"}


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=BUILTIN)
def test_every_function_has_a_row_or_a_reason(framework: Framework) -> None:
    said = framework.rows.keys() | framework.same
    assert vocabulary.FUNCTIONS.keys() - said == LACKING[framework.name]
    assert said - vocabulary.FUNCTIONS.keys() == set()
    assert framework.rows.keys() & framework.same == set()


@pytest.mark.parametrize(("framework", "name", "row"), ROWS, ids=[f"{framework.name}-{row}" for framework, _, row in ROWS])
def test_a_row_speaks_of_its_parameters_and_of_nothing_unknown(framework: Framework, name: str, row: str) -> None:
    tree = ast.parse(row, mode="eval")
    inner = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert names - parameters_of(name) - inner - module_names(framework) == set()
    required = vocabulary.FUNCTIONS[name].args[: len(vocabulary.FUNCTIONS[name].args) - len(vocabulary.FUNCTIONS[name].defaults)]
    assert {argument.arg for argument in required} <= names


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=BUILTIN)
def test_preludes_and_modes_are_python(framework: Framework) -> None:
    for name, source in framework.preludes.items():
        assert [node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)][-1] == name
    for wrap in framework.modes.values():
        ast.parse(wrap.replace("OPTIONS", "**OPTIONS"))
    assert next(iter(framework.modes.values())) == ""


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=BUILTIN)
@pytest.mark.parametrize("name", [*vocabulary.DTYPES, *vocabulary.CONSTANTS])
def test_every_dtype_and_constant_has_words(framework: Framework, name: str) -> None:
    assert ast.parse(lowered(f"({name}, x)", framework).removeprefix("return "), mode="eval")


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=BUILTIN)
@pytest.mark.parametrize("name", vocabulary.FUNCTIONS)
def test_every_function_can_be_called(framework: Framework, name: str) -> None:
    if name in LACKING[framework.name]:
        pytest.skip(f"{framework.name} has no {name}()")
    signature = vocabulary.FUNCTIONS[name]
    given = [argument.arg for argument in signature.args[: len(signature.args) - len(signature.defaults)]]
    keywords = ["axis=0"] if "axis" in parameters_of(name) - set(given) and name != "vecdot" else []
    program = f"{name}({', '.join(['x' if name != 'einsum' else '[x]'] * len(given) + keywords)})"
    source = lower_function("program", ["x"], parse(program), framework)
    compile(source, "f.py", "exec")


# --- rewriting


@pytest.mark.parametrize(
    ("program", "native"),
    [
        ("sum(x, axis=1)", "return torch.sum(x, dim=1)"),
        ("sum(x)", "return torch.sum(x)"),
        ("sum(x, keepdims=True, axis=1)", "return torch.sum(x, dim=1, keepdim=True)"),
        ("matmul(x2=y, x1=x)", "return torch.matmul(x, y)"),
        ("astype(x, float32)", "return x.to(torch.float32)"),
        ("astype(x + y, float32)", "return (x + y).to(torch.float32)"),
        ("astype(-x, bool)", "return (-x).to(torch.bool)"),
        ("astype(x if y else x, int8)", "return (x if y else x).to(torch.int8)"),
        ("2 * astype(x, int8)[0]", "return 2 * x.to(torch.int8)[0]"),
        ("exp(sum(x * exp(y), axis=0))", "return torch.exp(torch.sum(x * torch.exp(y), dim=0))"),
        ("einsum('ij,jk->ik', [x, y])", "return torch.einsum('ij,jk->ik', *[x, y])"),
        ("sort(x, axis=-1)", "return torch.sort(x, dim=-1).values"),
        ("x[:, newaxis] + inf", "return x[:, None] + torch.inf"),
        ("arange(5)", "return torch.arange(5)"),
        ("arange(0, 5, dtype=int32)", "return torch.arange(0, 5, dtype=torch.int32)"),
        ("(x + y) * x", "return (x + y) * x"),
        ("x - (y - x)", "return x - (y - x)"),
        ("-x ** 2", "return -x ** 2"),
        ("not (x and y)", "return not (x and y)"),
        ("x.shape[0], len(x)", "return (x.shape[0], len(x))"),
        ("y = abs(x)\nreturn y", "y = torch.abs(x)\n    return y"),
        ("[abs(z) for z in x]", "return [torch.abs(z) for z in x]"),
        ("(lambda z: abs(z))(x)", "return (lambda z: torch.abs(z))(x)"),
        ("x['sum']", "return x['sum']"),
    ],
)
def test_a_program_in_native_words(program: str, native: str) -> None:
    assert lowered(program) == native


@pytest.mark.parametrize(
    ("framework", "native"),
    [
        (NUMPY, "return np.sum(x < np.pi, axis=0)"),
        (TORCH, "return torch.sum(x < torch.pi, dim=0)"),
        (JAX, "return jnp.sum(x < jnp.pi, axis=0)"),
        (TENSORFLOW, "return tf.reduce_sum(x < np.pi, axis=0)"),
    ],
    ids=BUILTIN,
)
def test_a_program_in_each_dialect(framework: Framework, native: str) -> None:
    assert lowered("sum(x < pi, axis=0)", framework) == native


@pytest.mark.parametrize(
    ("program", "native"),
    [
        ("abs", "return abs"),
        ("abs[0] + sum(x)", "return abs[0] + torch.sum(x)"),
        ("def sum(y):\n    return exp(y)\nreturn sum(x)", "def sum(y):\n        return torch.exp(y)\n    return sum(x)"),
        ("pi = 3\nreturn pi * x", "pi = 3\n    return pi * x"),
        ("f = lambda exp: exp\nreturn f(x)", "f = lambda exp: exp\n    return f(x)"),
    ],
)
def test_shadowed_names_are_left_alone(program: str, native: str) -> None:
    assert lowered(program, TORCH, "x", "abs") == native


@pytest.mark.parametrize(
    ("framework", "program", "message"),
    [
        (TENSORFLOW, "sum(x, dtype=int64)", "tensorflow's sum() takes no dtype"),
        (NUMPY, "argsort(x, descending=True, axis=0)", "numpy's argsort() takes no descending"),
        (TORCH, "eye(3, k=1)", "torch's eye() takes no k"),
        (TORCH, "flip(x)", "torch's flip() needs axis"),
        (NUMPY, "unstack(x)", "numpy's unstack() needs axis"),
        (NUMPY, "arange(0, step=2)", "numpy's arange() needs stop"),
        (TORCH, "take(x, y)", "torch's take() needs axis"),
        (TORCH, "sum", "sum is a function: call it"),
    ],
)
def test_what_a_dialect_cannot_say_is_told(framework: Framework, program: str, message: str) -> None:
    with pytest.raises(LoweringError) as caught:
        lowered(program, framework)
    assert str(caught.value) == message


def test_a_function_without_a_row_is_told() -> None:
    poor = TORCH._replace(name="poor", rows={}, same=frozenset())
    with pytest.raises(LoweringError, match=r"the dialect of poor has no exp\(\)"):
        lowered("exp(x)", poor)


def test_helpers_come_with_what_calls_them() -> None:
    assert "def softmax" in lower_function("program", ["x"], parse("softmax(x)"), NUMPY)
    assert "def softmax" not in lower_function("program", ["x"], parse("exp(x)"), NUMPY)
    helped = NUMPY._replace(
        preludes={**NUMPY.preludes, "softmax": "def softmax(x):\n    return other(x)\n", "other": "def other(x):\n    return x\n"}
    )
    assert "def other" in lower_function("program", ["x"], parse("softmax(x)"), helped)


def test_a_second_way_says_the_same_in_other_words() -> None:
    assert "torch.func.grad(f, 0)(x)" in lower_function("program", ["f", "x"], parse("grad(f, 0)(x)"), TORCH)
    tape = lower_function("program", ["f", "x"], parse("grad(f, 0)(x)"), TORCH.by_way("tape"))
    assert "return tape_grad(f, 0)(x)" in tape
    assert [node.name for node in ast.parse(tape).body if isinstance(node, ast.FunctionDef)] == [
        *("tape_grad", "tape_leaves", "tape_value_and_grad", "program")
    ]


def test_native_code_stays_as_it_is_written() -> None:
    code = "# why\nif x:\n    text = '''a\n  b\n'''\n\nreturn text + f'''\nc'''"
    source = native_function("program", ["x"], code, NUMPY)
    space: dict[str, Any] = {}
    exec(source, space)
    assert space["program"](True) == "a\n  b\n\nc"
    assert "    # why\n    if x:\n" in source


# --- meaning


def oracle() -> dict[str, Any]:
    """The vocabulary as NumPy itself has it, since version 2.1 by the names of the standard."""

    def softmax(x: Any, *, axis: int) -> Any:
        e = np.exp(x - np.max(x, axis=axis, keepdims=True))
        return e / np.sum(e, axis=axis, keepdims=True)

    names = {name: getattr(np, name) for name in vocabulary.NAMES if hasattr(np, name)}
    names |= {name: getattr(np.linalg, name) for name in ("cholesky", "det", "eigh", "inv", "solve", "vector_norm")}
    return {
        **names,
        "einsum": lambda subscripts, operands: np.einsum(subscripts, *operands),
        "logsumexp": lambda x, axis: np.log(np.sum(np.exp(x), axis=axis)),
        "relu": lambda x: x * (x > 0),
        "sigmoid": lambda x: (np.tanh(x / 2) + 1) / 2,
        "softmax": softmax,
    }


INPUTS = {
    "x": np.array([[0.5, -1.25, 2.0], [3.0, 0.25, -0.5]], np.float32),
    "y": np.array([[1.5, 2.0, -1.0], [0.5, 4.0, 2.5]], np.float32),
    "i": np.array([[3, 1, 2], [6, 5, 4]], np.int32),
    "b": np.array([[True, False, True], [False, False, True]]),
    "s": np.array([[2.0, 0.5], [0.5, 1.0]], np.float32),
}

PROGRAMS = """
abs(x) ; acos(x / 4) ; add(x, y) ; all(b, axis=1, keepdims=True) ; any(b, axis=0) ; any(b) ; arange(5) ; arange(1, 7, 2)
arange(5, dtype=float32) ; argmax(x, axis=1) ; argmin(x, axis=0) ; argsort(x, axis=1) ; asarray(x, dtype=float64) ; asin(x / 4)
astype(x + y, int32) ; atan(x) ; atan2(x, y) ; bitwise_and(i, 3) ; bitwise_invert(i) ; bitwise_or(i, 8) ; bitwise_xor(i, i + 1)
broadcast_to(x[0], (2, 3)) ; ceil(x) ; clip(x, -1.0, 1.0) ; concat([x, y], axis=1) ; cos(x) ; cosh(x) ; count_nonzero(i, axis=1)
cumulative_sum(x, axis=1) ; divide(x, y) ; equal(x, y) ; exp(x) ; expand_dims(x, axis=1) ; expm1(x) ; eye(3, 4, k=1) ; flip(x, axis=1)
floor(x) ; floor_divide(i, 2) ; full((2, 3), 1.5) ; full_like(x, 2.0) ; greater(x, y) ; greater_equal(x, y) ; isfinite(x / 0.0)
isinf(x / 0.0) ; isnan(x) ; less(x, y) ; less_equal(x, y) ; linspace(0.0, 1.0, 5) ; log(abs(x)) ; log1p(abs(x)) ; logaddexp(x, y)
logical_and(b, x > 0) ; logical_not(b) ; logical_or(b, x > 0) ; logical_xor(b, x > 0) ; matmul(x, matrix_transpose(y)) ; max(x, axis=1)
maximum(x, y) ; mean(x, axis=0) ; min(x, axis=1, keepdims=True) ; minimum(x, y) ; multiply(x, y) ; negative(x) ; nonzero(b)[1]
not_equal(x, y) ; ones((2,), dtype=int32) ; ones_like(x) ; permute_dims(x, (1, 0)) ; positive(x) ; pow(abs(x), y) ; prod(x, axis=1)
remainder(i, 4) ; repeat(x, 2, axis=1) ; reshape(x, (3, 2)) ; roll(x, 1, axis=1) ; round(x) ; sign(x) ; sin(x) ; sinh(x) ; sort(x, axis=1)
sqrt(abs(x)) ; square(x) ; squeeze(x[None], 0) ; stack([x, y], axis=1) ; std(x, axis=1, correction=1) ; subtract(x, y)
sum(i, axis=1, dtype=int64) ; take(x, asarray([0, 2]), axis=1) ; take_along_axis(x, argsort(x, axis=1), axis=1) ; tan(x) ; tanh(x)
tensordot(x, y, axes=2) ; tile(x, (2, 1)) ; tril(x, k=1) ; triu(x, k=-1) ; trunc(x) ; unstack(x, axis=1)[2] ; var(x, axis=1) ; vecdot(x, y)
conj(x + 1j) ; cumulative_prod(x, axis=1) ; diagonal(x) ; imag(x + 1j) ; real(x + 1j) ; trace(x) ; vector_norm(x, axis=1, ord=1)
det(s) ; inv(s) ; cholesky(s) ; solve(s, s[0]) ; eigh(s)[0] ; logsumexp(x, axis=1) ; relu(x) ; sigmoid(x)
where(b, x, y) ; zeros((2, 3)) ; zeros_like(x) ; einsum('ij,ij->i', [x, y]) ; outer(x[0], y[0]) ; softmax(x, axis=1) ; x[:, newaxis] * pi
""".replace("\n", " ; ")
EXPRESSIONS = [text.strip() for text in PROGRAMS.split(";") if text.strip()]


def run_lowered(program: str) -> Any:
    space: dict[str, Any] = {}
    exec(lower_function("program", list(INPUTS), parse(program), NUMPY), space)
    with np.errstate(all="ignore"):
        return space["program"](**INPUTS)


def run_as_written(program: str) -> Any:
    with np.errstate(all="ignore"):
        return eval(program, {**oracle(), **INPUTS})


needs_standard_names = pytest.mark.skipif(not hasattr(np, "unstack"), reason="NumPy has the names of the standard since 2.1")


def test_every_function_is_among_the_expressions() -> None:
    called = {node.id for text in EXPRESSIONS for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    assert vocabulary.FUNCTIONS.keys() - vocabulary.TRANSFORMS <= called


@needs_standard_names
@pytest.mark.parametrize("program", EXPRESSIONS)
def test_a_function_of_numpy_means_what_the_standard_says(program: str) -> None:
    expected, found = run_as_written(program), run_lowered(program)
    assert np.asarray(found).dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def expressions(depth: int) -> st.SearchStrategy[str]:
    leaf = st.sampled_from(["x", "y", "2.0", "0.5", "pi"])
    if not depth:
        return leaf
    inner = expressions(depth - 1)
    binary = st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "**"]), inner).map(lambda p: f"({p[0]}) {p[1]} ({p[2]})")
    flat = st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(" ".join)
    unary = st.tuples(
        st.sampled_from(["-{}", "+{}", "-({})", "abs({})", "exp({})", "astype({}, float32)", "positive({})"]), inner
    )
    called = st.tuples(st.sampled_from(["add", "maximum", "logaddexp", "x2=x1", "where"]), inner, inner).map(_call)
    return leaf | binary | flat | unary.map(lambda p: p[0].format(p[1])) | called


def _call(parts: tuple[str, str, str]) -> str:
    name, a, b = parts
    if name == "x2=x1":
        return f"subtract(x2={a}, x1={b})"
    return f"where(x > 0, {a}, {b})" if name == "where" else f"{name}({a}, {b})"


class Plain:
    """NumPy functions under the standard's parameter names, which ufuncs of NumPy do not have."""

    @staticmethod
    def subtract(x1: Any, x2: Any) -> Any:
        return np.subtract(x1, x2)

    @staticmethod
    def astype(x: Any, dtype: Any) -> Any:
        return np.asarray(x).astype(dtype)


@needs_standard_names
@given(expressions(3))
def test_lowering_keeps_the_meaning(program: str) -> None:
    program = f"asarray({program}) + zeros_like(x)"
    program = program.replace("astype(", "astype(0.0 + x * 0 + ")  # so that it is an array
    with np.errstate(all="ignore"):
        expected = eval(program, {**oracle(), **INPUTS, "subtract": Plain.subtract, "astype": Plain.astype})
    np.testing.assert_array_equal(run_lowered(program), expected)


@given(expressions(3))
def test_lowering_for_any_framework_is_python_without_words_of_the_vocabulary(program: str) -> None:
    for framework in FRAMEWORKS:
        source = lower_function("program", ["x", "y"], parse(program), framework)
        bare = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
        assert not bare & vocabulary.NAMES


def test_what_is_lowered_can_be_inspected() -> None:
    """AutoGraph and Dynamo read the source of functions."""
    source = lower_function("program", ["x"], parse("y = exp(x)\nreturn y"), NUMPY)
    linecache.cache["lowered.py"] = (len(source), None, source.splitlines(True), "lowered.py")
    space: dict[str, Any] = {}
    exec(compile(source, "lowered.py", "exec"), space)
    assert inspect.getsource(space["program"]) == "def program(x):\n    y = np.exp(x)\n    return y\n"


# --- jobs

CASE = """\
title: T
cases:
  - id: one
    claim: one and one make two
    BODY
"""
SCENARIO = """\
inputs: {x: [1.0, 2.0]}
    state: {c: 1.0}
    define: |
      def f(x):
          return x + c
    trace: f
    steps: [{call: 'f(softmax(x, axis=0))'}, {rebind: {c: {value: 2, dtype: int8}}}, {do: 'c = exp(c)'}]
    expect: {traces: [1]}"""


def job_of(checks: list[Check], target: str) -> Any:
    return lower(next(check for check in checks if str(check.target) == target))


def test_a_job_holds_all_that_a_host_needs(checks_of: Checks) -> None:
    body = (
        "inputs: {x: 1.0, y: {python: .nan}, z: {tuple: [{shape: [2], dtype: int8, fill: ones}, {dict: {a: {list: [1]}}}]}}\n"
        "    program: x + y, z\n    x64: true\n    timeout: 5.0\n    expect: {shape: [[], []]}"
    )
    job = job_of(checks_of(CASE.replace("BODY", body)), "jax:compiled@cpu")
    plain = {"dtype": None, "fill": None, "shape": None, "split": None, "partial": None}
    assert job.source.endswith("def program(x, y, z):\n    return (x + y, z)\n")
    assert job.steps == [("call", "program(x, y, z)")]
    assert job.inputs["x"] == {**plain, "value": 1.0}
    assert job.inputs["z"]["tuple"][0] == {**plain, "dtype": "int8", "fill": "ones", "shape": [2], "value": None}
    assert job.inputs["z"]["tuple"][1] == {"dict": {"a": {"list": [{**plain, "value": 1}]}}}
    assert (job.trace, job.mode, job.x64, job.timeout, job.count) == ("program", "compiled", True, 5.0, False)
    assert json.dumps(job.message(7)["inputs"]["y"]) == '{"python": NaN}'
    assert job.message(7)["id"] == 7


def test_what_does_not_trace_wraps_nothing(checks_of: Checks) -> None:
    checks = checks_of(CASE.replace("BODY", "inputs: {x: 1.0}\n    program: x\n    expect: {value: 1.0}"))
    assert job_of(checks, "jax:eager@cpu").trace == ""


def test_steps_are_lowered_and_bring_their_helpers(checks_of: Checks) -> None:
    text = CASE.replace("BODY", SCENARIO)
    job = job_of(checks_of(text), "tensorflow:compiled@cpu")
    assert job.steps == [
        ("call", "f(tf.nn.softmax(x, axis=0))"),
        ("rebind", {"c": {"dtype": "int8", "fill": None, "shape": None, "split": None, "partial": None, "value": 2}}),
        ("do", "c = tf.exp(c)"),
    ]
    assert (job.trace, job.count) == ("f", True)
    assert job.source.endswith("def f(x):\n    return x + c\n")
    untraced = text.replace("trace: f", "frameworks: [numpy]").replace("traces: [1]", "values: [[1.0, 1.0]]")
    assert "def softmax" in job_of(checks_of(untraced), "numpy:eager@cpu").source


def test_functions_and_steps_mean_the_state_by_its_names(checks_of: Checks) -> None:
    body = (
        "state: {pi: [1.0]}\n    inputs: {x: [1.0]}\n    frameworks: [numpy]\n"
        "    define: |\n      def f(x):\n          return sum(x) + pi\n"
        "    steps: [{do: 'pi[0] = exp(pi)[0]'}, {call: f(exp(x))}]\n    expect: {values: [[1.0]]}"
    )
    job = job_of(checks_of(CASE.replace("BODY", body)), "numpy:eager@cpu")
    assert job.source.endswith("def f(x):\n    return np.sum(x) + pi\n")
    assert job.steps == [("do", "pi[0] = np.exp(pi)[0]"), ("call", "f(np.exp(x))")]


def test_a_derivation_is_of_the_last_function(checks_of: Checks) -> None:
    body = (
        "define: |\n      def g(x):\n          return x * x\n      def f(x):\n          return g(x)\n"
        "    at: {x: 2.0}\n    observe: derivation\n    expect: {value: {x: 4.0}}\n"
        "    unsupported: [{target: torch, because: it is, absent: torch.none}]"
    )
    checks = checks_of(CASE.replace("BODY", body))
    job = job_of(checks, "jax:eager@cpu")
    assert (job.trace, job.observe, job.steps, list(job.inputs)) == ("f", "derivation", [], ["x"])
    assert job_of(checks, "torch:eager@cpu").absent == "torch.none"


def test_an_unsupported_check_runs_no_program(checks_of: Checks) -> None:
    body = SCENARIO + "\n    unsupported: [{target: torch, because: it is, absent: torch.none}]"
    job = job_of(checks_of(CASE.replace("BODY", body)), "torch:compiled@cpu")
    assert (job.source, job.steps, job.absent) == ("import numpy as np\nimport torch\n", [], "torch.none")


def test_native_code_may_need_libraries(checks_of: Checks) -> None:
    body = "native: {jax: {code: return 1, uses: ['flax>=0.12,<1', chex]}}\n    expect: {value: 1}"
    (check,) = checks_of(CASE.replace("BODY", body))
    assert lower(check).uses == [{"name": "flax", "versions": ">=0.12,<1"}, {"name": "chex", "versions": ""}]


@pytest.mark.parametrize(
    ("body", "source"),
    [
        ("inputs: {x: 1.0}\n    program: exp(x)\n    expect: {value: reference}", "def program(x):\n    return np.exp(x)\n"),
        ("native: {torch: return 2, numpy: return 1}\n    expect: {value: reference}", "def program():\n    return 1\n"),
    ],
)
def test_a_reference_is_computed_by_numpy_in_float64(body: str, source: str, checks_of: Checks) -> None:
    job = reference_job(checks_of(CASE.replace("BODY", body))[-1])
    assert job is not None
    assert job.source.endswith(source)
    assert (job.float64, job.mode, job.trace) == (True, "eager", "")


def test_no_reference_is_computed_where_none_is_asked_for(checks_of: Checks) -> None:
    (first, *_) = checks_of(CASE.replace("BODY", "inputs: {x: 1.0}\n    program: exp(x)\n    expect: {shape: []}"))
    assert reference_job(first) is None
