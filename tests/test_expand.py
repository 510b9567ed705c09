"""Cases -> checks: rows of parameters, targets, expectations, and whether outcomes are distinct."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from conformance.case import Input, Spec, Tolerance
from conformance.document import CaseError
from conformance.expand import Check, case_digest, distinct, expected_outcome
from conformance.judge import Array, Observation, mismatch
from conformance.load import load
from conformance.lower import lower

Checks = Callable[..., list[Check]]

PARAMETERS = """\
title: T
cases:
  - id: one
    claim: one and one make two
    parametrize: {q: ROWS}
    frameworks: [numpy]
    inputs: {x: {python: $q}}
    program: x
    expect: {value: 1}
"""

CASE = """\
title: T
cases:
  - id: one
    claim: one and one make two
    BODY
"""
PROGRAM = "inputs: {x: 1}\n    program: x + x\n    expect: {value: 2}"
SCENARIO = """\
inputs: {x: 1}
    define: |
      def f(x):
          return x
    trace: f
    steps: [{call: f(x)}]
    outcomes: {once: {traces: [1]}, twice: {traces: [2]}}
    expect: {any: once}"""


def targets(checks: list[Check]) -> list[str]:
    return [str(check.target) for check in checks]


GRADIENT = "inputs: {x: 1.0}\n    program: 'grad(lambda x: x * x)(x)'\n    expect: {value: 2.0}"
LINEAR = "inputs: {x: 1.0}\n    program: 'linearize(lambda x: x * x, (x,))[0]'\n    expect: {value: 2.0}"
NATIVE = """\
native:
      torch: |
        def f(x):
            return x
      jax: |
        def f(x):
            return x
    inputs: {x: 1}
    trace: f
    steps: [{call: f(x)}, {do: {torch: x.add_(1), jax: x + 1}}]
    expect: {value: 1}"""


def test_transforms_run_where_there_are_some_and_in_every_way(checks_of: Checks) -> None:
    checks = checks_of(CASE.replace("BODY", GRADIENT))
    assert targets(checks) == [
        *("torch:eager@cpu", "torch/tape:eager@cpu", "torch:compiled@cpu", "torch/tape:compiled@cpu"),
        *("torch:inductor@cpu", "torch/tape:inductor@cpu", "jax:eager@cpu", "jax:compiled@cpu"),
        *("tensorflow:eager@cpu", "tensorflow:compiled@cpu", "tensorflow:xla@cpu"),
    ]
    (lacking,) = (check for check in checks_of(CASE.replace("BODY", LINEAR)) if str(check.target) == "tensorflow:eager@cpu")
    assert (lacking.absent, lacking.expected) == ("tf.autodiff.linearize", [("any", "unsupported")])


def test_a_tie_is_none_where_a_third_selector_decides(checks_of: Checks) -> None:
    expect = "{any: two, torch/tape: one, 'torch:compiled': two, 'torch/tape:compiled': one}"
    body = GRADIENT.replace(
        "expect: {value: 2.0}", f"outcomes: {{one: {{value: 1.0}}, two: {{value: 2.0}}}}\n    expect: {expect}"
    )
    checks = {str(check.target): check.expected for check in checks_of(CASE.replace("BODY", body))}
    assert expected_outcome(checks["torch/tape:compiled@cpu"], {}) == "one"
    with pytest.raises(CaseError, match="neither is more specific"):
        checks_of(CASE.replace("BODY", body.replace(", 'torch/tape:compiled': one", "")))


def test_a_native_scenario_runs_where_it_is_said(checks_of: Checks) -> None:
    checks = checks_of(CASE.replace("BODY", NATIVE))
    assert targets(checks) == ["torch:compiled@cpu", "torch:inductor@cpu", "jax:compiled@cpu"]
    assert [lower(check).steps for check in checks[1:]] == [
        [("call", "f(x)"), ("do", "x.add_(1)")],
        [("call", "f(x)"), ("do", "x + 1")],
    ]


# --- rows


@pytest.mark.parametrize(
    "value", [1, True, False, 1.0, -0.0, 1e-300, None, "text", "", [1, [2.5]], {"a": {"b": [1]}}, [], {}, 10**18, "on", "1"]
)
def test_a_parameter_keeps_its_type(value: Any, checks_of: Checks) -> None:
    (check,) = checks_of(PARAMETERS.replace("ROWS", f"[{_yaml(value)}]"))
    made = check.case.inputs["x"]
    assert isinstance(made, Input)
    assert (type(made.python), repr(made.python)) == (type(value), repr(value))


def _yaml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_yaml(item)}' for key, item in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_yaml, value))}]"
    return {None: "null", True: "true", False: "false"}[value] if value is None or isinstance(value, bool) else repr(value)


def test_not_a_number_is_a_parameter(checks_of: Checks) -> None:
    (check,) = checks_of(PARAMETERS.replace("ROWS", "[.nan]"))
    assert math.isnan(check.case.inputs["x"].python)  # type: ignore[union-attr, arg-type]


@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        ("[1, 1.0, -2, 1.0e-7, true, 'one', null]", ["1", "1.0", "-2", "1e-07", "true", "one", "none"]),
        ("[[1], {a: 1}, [2]]", ["q0", "q1", "q2"]),
        ("{first: [1], second-row: {a: 1}, 3: 3}", ["first", "second-row", "3"]),
        ("['a b', 'x[0]::y', 'é', \"a\\nb\", 'ij,jk->ik']", ["a_b", "x_0_y", "é", "a_b", "ij_jk-_ik"]),
        ("['', '?', '!!', " + "'" + "x" * 41 + "']", ["q0", "q1", "q2", "q3"]),
    ],
)
def test_rows_are_called_by_what_is_readable_of_them(rows: str, labels: list[str], checks_of: Checks) -> None:
    if len(set(labels)) < len(labels):
        with pytest.raises(CaseError, match="call the rows by different names"):
            checks_of(PARAMETERS.replace("ROWS", rows))
    else:
        assert [check.row for check in checks_of(PARAMETERS.replace("ROWS", rows))] == labels


@given(st.lists(st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=50), min_size=1, max_size=4))
def test_names_of_checks_are_unique_and_plain(tmp_path_factory: pytest.TempPathFactory, values: list[str]) -> None:
    path = tmp_path_factory.mktemp("area") / "topic.yaml"
    rows = ", ".join("'" + value.replace("'", "''").replace("$", "") + "'" for value in values)
    path.write_text(PARAMETERS.replace("ROWS", f"[{rows}]"))
    from conformance.expand import expand

    try:
        names = [check.name for check in expand(load(path))]
    except CaseError:
        return
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"one\[[\w.+-]+-numpy:eager@cpu\]", name) for name in names)


def test_parameters_combine_in_the_order_that_they_are_written_in(checks_of: Checks) -> None:
    text = PARAMETERS.replace("{q: ROWS}", "{q: [1, 2], dtype: [int8, int16]}").replace(
        "program: x", "program: astype(x, $dtype)"
    )
    checks = checks_of(text)
    assert [check.row for check in checks] == ["1-int8", "1-int16", "2-int8", "2-int16"]
    assert checks[1].parameters == {"q": "1", "dtype": "int16"}
    assert checks[1].name == "one[1-int16-numpy:eager@cpu]"


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("3", "x * 3"),
        ("-3", "x * (-3)"),
        ("true", "x * True"),
        ("null", "x * None"),
        (".nan", "x * float('nan')"),
        ("-.inf", "x * float('-inf')"),
        ("[1, .inf, two]", "x * [1, float('inf'), 'two']"),
        ("{a: .nan}", "x * {'a': float('nan')}"),
        ("pi", "x * pi"),
        ("'1 + pi'", "x * 1 + pi"),
    ],
)
def test_in_code_a_parameter_is_its_text(value: str, code: str, checks_of: Checks) -> None:
    text = PARAMETERS.replace("ROWS", f"[{value}]").replace("program: x", "program: x * $q")
    (check,) = checks_of(text)
    assert check.case.program == code


def test_references_are_filled_in_at_once_and_as_long_as_they_are(checks_of: Checks) -> None:
    text = PARAMETERS.replace("{q: ROWS}", "{q: [{a: {b: 1}}], q_a: [2]}").replace("{python: $q}", "{python: $q.a}")
    (check,) = checks_of(text.replace("program: x", "program: (x, $q.a.b, $q_a, '$q_a.')"))
    assert check.case.program == "(x, 1, 2, '2.')"
    assert check.case.inputs["x"].python == {"b": 1}  # type: ignore[union-attr]


def test_only_code_is_filled_in_by_text(checks_of: Checks) -> None:
    text = PARAMETERS.replace("ROWS", "[[2]]").replace("{x: {python: $q}}", "{code: {shape: $q}, do: {python: $q}}")
    (check,) = checks_of(text.replace("program: x", "program: code + do").replace("one and one", "$q and $q"))
    assert check.case.inputs["code"].shape == [2]  # type: ignore[union-attr]
    assert check.case.inputs["do"].python == [2]  # type: ignore[union-attr]
    assert check.case.claim == "$q and $q make two"


def test_a_digest_changes_when_and_only_when_the_case_does(write_cases: Callable[[str], Any]) -> None:
    def digest(text: str) -> str:
        return case_digest(load(write_cases(text)), 0)

    text = CASE.replace("BODY", PROGRAM)
    assert digest(text) == digest(text.replace("    inputs", "    # a comment\n\n    inputs").replace("{x: 1}", "{ x : 1 }"))
    assert digest(text) != digest(text.replace("x: 1", "x: 1.0"))


# --- targets


def test_a_program_runs_everywhere(checks_of: Checks) -> None:
    checks = checks_of(CASE.replace("BODY", PROGRAM))
    assert targets(checks) == [
        *("numpy:eager@cpu", "torch:eager@cpu", "torch:compiled@cpu", "torch:inductor@cpu"),
        *("jax:eager@cpu", "jax:compiled@cpu", "tensorflow:eager@cpu", "tensorflow:compiled@cpu", "tensorflow:xla@cpu"),
    ]
    assert [check.on_request for check in checks] == [check.target.mode == "inductor" for check in checks]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"modes: [xla, inductor]\n    {PROGRAM}", ["torch:inductor@cpu", "tensorflow:xla@cpu"]),
        (f"frameworks: [jax]\n    {PROGRAM}", ["jax:eager@cpu", "jax:compiled@cpu"]),
        ("native: {jax: return 2, numpy: return 2}\n    expect: {value: 2}", ["numpy:eager@cpu", "jax:eager@cpu"]),
        ("native: {jax: return 2}\n    modes: [eager, compiled]\n    expect: {value: 2}", ["jax:eager@cpu", "jax:compiled@cpu"]),
        (f"modes: [compiled]\n    {SCENARIO}", ["torch:compiled@cpu", "jax:compiled@cpu", "tensorflow:compiled@cpu"]),
        (
            SCENARIO.replace("trace: f\n    ", "").replace("traces", "values"),
            ["numpy:eager@cpu", "torch:eager@cpu", "jax:eager@cpu", "tensorflow:eager@cpu"],
        ),
        (
            f"mesh: {{a: 2}}\n    {PROGRAM}",
            ["torch:eager@cpu", "jax:eager@cpu", "jax:compiled@cpu", "tensorflow:eager@cpu", "tensorflow:compiled@cpu"],
        ),
        ("devices: 8\n    native: {jax: return 2, numpy: return 2}\n    expect: {value: 2}", ["jax:eager@cpu"]),
    ],
)
def test_a_case_runs_where_it_applies(body: str, expected: list[str], checks_of: Checks) -> None:
    assert targets(checks_of(CASE.replace("BODY", body))) == expected


def test_a_mode_that_a_case_names_is_not_on_request(checks_of: Checks) -> None:
    checks = checks_of(CASE.replace("BODY", f"modes: [inductor]\n    {PROGRAM}"))
    assert [check.on_request for check in checks] == [False]


def test_a_second_way_is_traced_on_request_alone(checks_of: Checks) -> None:
    derivative = "inputs: {x: 1.0}\n    MODES\n    program: 'grad(lambda x: sin(x))(x)'\n    expect: {value: 1.0}"
    ways = [check for check in checks_of(CASE.replace("BODY", derivative.replace("MODES\n    ", ""))) if check.target.way]
    assert {str(check.target): check.on_request for check in ways} == {
        "torch/tape:eager@cpu": False,
        "torch/tape:compiled@cpu": True,
        "torch/tape:inductor@cpu": True,
    }
    named = checks_of(CASE.replace("BODY", derivative.replace("MODES", "modes: [compiled]")))
    assert [check.on_request for check in named if check.target.way] == [False]


def test_a_device_is_that_of_the_run(checks_of: Checks) -> None:
    assert {check.target.device for check in checks_of(CASE.replace("BODY", PROGRAM), "tpu")} == {"tpu"}


def test_expectations_for_another_device_do_not_count_here(checks_of: Checks) -> None:
    text = CASE.replace("BODY", SCENARIO.replace("{any: once}", "{any: once, jax@tpu: twice}"))
    assert {outcome for check in checks_of(text) for _, outcome in check.expected} == {"once"}
    on_tpu = [expected_outcome(check.expected, {}) for check in checks_of(text, "tpu") if check.target.framework == "jax"]
    assert on_tpu == ["twice"]


def test_a_case_need_not_speak_of_all_devices(checks_of: Checks) -> None:
    text = CASE.replace("BODY", SCENARIO.replace("{any: once}", "{any@cpu: once}"))
    assert {expected_outcome(check.expected, {}) for check in checks_of(text, "tpu")} == {None}
    with pytest.raises(CaseError, match="nothing is expected of"):
        checks_of(text.replace("any@cpu", "any@tpu"))


@pytest.mark.parametrize(
    "body",
    [
        "inputs: {x: {shape: [2], dtype: bfloat16}}\n    program: x + x\n    expect: {shape: [2]}",
        "inputs: {x: {list: [{shape: [2], dtype: bfloat16}]}}\n    program: x[0]\n    expect: {shape: [2]}",
        "inputs: {x: {shape: [2]}}\n    program: astype(x, bfloat16)\n    expect: {shape: [2]}",
    ],
)
def test_a_dtype_that_a_framework_lacks_is_unsupported_there(body: str, checks_of: Checks) -> None:
    checks = {str(check.target): check for check in checks_of(CASE.replace("BODY", body))}
    assert checks["numpy:eager@cpu"].absent == "np.bfloat16"
    assert checks["numpy:eager@cpu"].expected == [("any", "unsupported")]
    assert checks["jax:eager@cpu"].absent == ""


def test_a_comment_about_a_dtype_asks_for_nothing(checks_of: Checks) -> None:
    body = "inputs: {x: 1}\n    program: |\n      # not bfloat16\n      return x\n    expect: {value: 1}"
    assert not any(check.absent for check in checks_of(CASE.replace("BODY", body)))


def test_what_a_case_declares_unsupported_is(checks_of: Checks) -> None:
    body = f"{PROGRAM}\n    unsupported: [{{target: tensorflow:xla, because: it is, absent: tf.none}}]"
    absent = {str(check.target): check for check in checks_of(CASE.replace("BODY", body)) if check.absent}
    assert list(absent) == ["tensorflow:xla@cpu"]
    assert absent["tensorflow:xla@cpu"].because == {"unsupported": "it is"}


def test_variants_run_beside_the_case_in_modes_that_trace(checks_of: Checks) -> None:
    body = f"{PROGRAM}\n    variants: [{{id: dynamic, target: torch, with: {{dynamic: true}}, expect: conforms}}]"
    checks = [check for check in checks_of(CASE.replace("BODY", body)) if check.options]
    assert [check.name for check in checks] == ["one[dynamic-torch:compiled@cpu]", "one[dynamic-torch:inductor@cpu]"]
    assert checks[0].options == {"dynamic": True}
    assert checks[0].parameters == {"variant": "dynamic"}


# --- expectations


@pytest.mark.parametrize(
    ("version", "outcome"), [("2.4", "any"), ("2.5", "newer"), ("2.7", "newest"), ("2.6.0.dev1+cpu", "newer"), (None, "newest")]
)
def test_the_most_specific_expectation_counts(version: str | None, outcome: str) -> None:
    expected = [("any", "any"), ("torch>=2.5,<2.7", "newer"), ("torch>=2.7", "newest")]
    assert expected_outcome(expected, {"torch": Version(version)} if version else {}) == outcome


def test_nothing_is_expected_where_nothing_fits() -> None:
    assert expected_outcome([("torch<2", "old")], {"torch": Version("2.5")}) is None


def test_an_expectation_may_depend_on_a_library_beside_the_framework() -> None:
    expected = [("jax", "now"), ("jax+flax<0.12.9", "before")]
    versions = {"jax": Version("0.11.1"), "flax": Version("0.12.8")}
    assert expected_outcome(expected, versions) == "before"
    assert expected_outcome(expected, versions | {"flax": Version("0.12.9")}) == "now"


def test_a_deviation_is_for_its_rows_only(checks_of: Checks) -> None:
    text = PARAMETERS.replace("ROWS", "[1, true, 1.0]") + (
        "    deviations: [{target: numpy, where: {q: [1]}, outcome: odd, value: 3, because: it is}]\n"
    )
    assert [list(check.outcomes) for check in checks_of(text)] == [["conforms", "odd"], ["conforms"], ["conforms"]]


# --- whether outcomes are distinct

SPECS = [
    ({"value": 1}, {"value": 2}, True),
    ({"value": 1}, {"value": 1.0}, False),
    ({"value": 1}, {"value": [1]}, True),
    ({"value": 1}, {"value": True}, True),
    ({"value": [1, 2]}, {"value": [1, 2, 3]}, True),
    ({"value": [1.0, 2.0]}, {"value": [1.0, 2.0 + 1e-12]}, False),
    ({"value": 2**31}, {"value": 2**31 - 1}, True),
    ({"value": float("nan")}, {"value": float("nan")}, False),
    ({"value": [1.0, float("nan")]}, {"value": [1.0, float("nan")]}, False),
    ({"value": float("nan")}, {"value": 0.0}, True),
    ({"value": float("inf")}, {"value": float("-inf")}, True),
    ({"value": 0.0}, {"value": -0.0}, True),
    ({"value": 0}, {"value": -0.0}, False),
    ({"value": "1+2j"}, {"value": "1+3j"}, True),
    ({"value": "reference"}, {"value": "reference"}, False),
    ({"value": "reference"}, {"value": 3}, True),
    ({"value": {"x": 1.0}}, {"value": {"x": 1.0}}, False),
    ({"value": {"x": 1.0}}, {"value": {"x": 2.0}}, True),
    ({"value": [[1, 2], [3]]}, {"value": [[1, 2], [4]]}, True),
    ({"values": [1.0, float("nan")]}, {"values": [1, float("nan")]}, False),
    ({"values": [1, 2]}, {"values": [1]}, True),
    ({"every": 1}, {"value": [1, 1]}, False),
    ({"every": 1}, {"value": [1, 2]}, True),
    ({"every": float("nan")}, {"every": 0.0}, True),
    ({"every": 0.0}, {"rows": [0.0, 0.0]}, False),
    ({"every": 0.0}, {"every": -0.0}, True),
    ({"rows": [1, 2]}, {"value": [[1, 2], [1, 2]]}, False),
    ({"rows": [1, 2]}, {"value": [[1, 2], [1, 3]]}, True),
    ({"rows": [1, 2]}, {"rows": [1, 2, 3]}, True),
    ({"shape": [2]}, {"shape": [3]}, True),
    ({"shape": [2]}, {"dtype": "int32"}, False),
    ({"shape": [2]}, {"value": [1, 1]}, False),
    ({"dtype": "int32"}, {"dtype": "int64"}, True),
    ({"dtype": "int32"}, {"dtype": ["int32", "int32"]}, False),
    ({"dtype": "int32"}, {"dtype": ["int32", "int64"]}, True),
    ({"traces": [1, 0]}, {"traces": [1, 1]}, True),
    ({"traces": [1, 0]}, {"values": [1, 0]}, False),
    ({"raises": "ValueError"}, {"value": 1}, True),
    ({"raises": "ValueError"}, {"raises": "TypeError"}, True),
    ({"raises": "ValueError"}, {"raises": ["ValueError", "TypeError"]}, False),
    ({"raises": "ValueError"}, {"raises": "ValueError", "matching": "a"}, False),
    ({"raises": "ValueError", "matching": "b"}, {"raises": "ValueError", "matching": "a"}, True),
    ({"raises": "ValueError", "step": 0}, {"raises": "ValueError", "step": 1}, True),
    ({"raises": "ValueError", "traces": [1]}, {"raises": "ValueError", "traces": [2]}, True),
    ({"local_shape": [2]}, {"local_shape": [4]}, True),
    ({"slices": {"0": ["0:1"]}}, {"slices": {"1": ["0:1"]}}, False),
    ({"slices": {"0": ["0:1"]}}, {"slices": {"0": ["1:2"]}}, True),
    ({"linear": {}}, {"linear": {"a": "x * 2.0"}}, True),
    ({"split": ["x"]}, {"split": [None]}, True),
    ({"split": ["x"], "partial": {}}, {"split": ["x"], "partial": {"y": "sum"}}, True),
    ({"slices": {"0": ["0:1"]}}, {"slices": {"1": ["0:1"]}}, False),
    ({"slices": {"0": ["0:1"]}}, {"slices": {"0": ["1:2"]}}, True),
    ({"shards": {"0": [1]}}, {"shards": {"0": [2]}}, True),
    ({"collectives": []}, {"collectives": ["all-reduce"]}, True),
    ({"cotangents": {"a": 1.0}}, {"cotangents": {"b": 1.0}}, False),
    ({"cotangents": {"a": 1.0}}, {"cotangents": {"a": 2.0}}, True),
]


@pytest.mark.parametrize(("a", "b", "apart"), SPECS, ids=[f"{a}-{b}" for a, b, _ in SPECS])
def test_whether_outcomes_are_distinct(a: dict[str, Any], b: dict[str, Any], apart: bool) -> None:
    assert distinct(Spec(**a), Spec(**b)) is apart
    assert distinct(Spec(**b), Spec(**a)) is apart


def test_a_tolerance_sets_apart_what_is_small() -> None:
    kept, flushed = Spec(value=7e-43), Spec(value=0.0)
    assert not distinct(kept, flushed)
    assert distinct(kept, flushed, Tolerance(because="both are small"))


numbers = st.sampled_from([0, 1, 2, 0.0, -0.0, 1.0, 1.5, float("nan"), float("inf"), True, False])
literals = numbers | st.lists(numbers, max_size=3)
specs = st.one_of(
    st.builds(Spec, value=literals),
    st.builds(Spec, every=numbers),
    st.builds(Spec, rows=st.lists(numbers, min_size=1, max_size=3)),
    st.builds(Spec, value=literals, dtype=st.sampled_from(["float32", "bool"])),
    st.builds(Spec, shape=st.lists(st.integers(0, 3), max_size=1)),
)


@given(specs, specs, literals, st.sampled_from(["float32", "float64", "bool"]))
def test_what_fits_two_outcomes_shows_that_they_are_not_distinct(a: Spec, b: Spec, value: Any, dtype: str) -> None:
    with np.errstate(invalid="ignore"):
        seen = Observation([Array(dtype, np.asarray(value).astype(dtype))], None, {}, None, None)
    if not mismatch(seen, a, None, None) and not mismatch(seen, b, None, None):
        assert not distinct(a, b)
