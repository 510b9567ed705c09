"""Observations -> outcomes. Every part of a spec is seen to hold, and to fail."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.ahead import foretold
from conformance.case import Spec, Tolerance
from conformance.judge import TOLERANCES, UNEXPECTED, Array, Observation, decode, judge, mismatch, seen_text, spec_text

NAN, INF = float("nan"), float("inf")


def array(value: Any, dtype: str = "float32") -> dict[str, Any]:
    """An array as a host sends it; bfloat16 travels as float32."""
    kept = np.asarray(value).astype("float32" if dtype == "bfloat16" else dtype)
    return {"dtype": dtype, "shape": list(kept.shape), "bytes": base64.b64encode(kept.tobytes()).decode()}


def python(value: Any) -> dict[str, Any]:
    return {"python": type(value).__name__, "data": value}


def results(*values: Any, **more: Any) -> Observation:
    return decode({"results": list(values), **more})


def error(*classes: str, message: str = "", step: int = 0, **more: Any) -> Observation:
    return decode({"raised": {"classes": list(classes), "message": message, "step": step}, **more})


def fits(seen: Observation, reference: Observation | None = None, tolerance: Any = None, **spec: Any) -> bool:
    return mismatch(seen, Spec(**spec), reference, tolerance) == ""


# --- values against literals


@pytest.mark.parametrize(
    ("dtype", "seen", "literal", "same"),
    [
        ("float32", 1.0, 1.0, True),
        ("float32", 1.0, 1, True),
        ("float32", 1.0, 2, False),
        ("float32", [1.0], 1.0, False),
        ("float32", [1.0, 2.0], [1.0, 2.0], True),
        ("float32", [1.0, 2.0], [2.0, 1.0], False),
        ("float32", [1.0, 2.0], [[1.0, 2.0]], False),
        ("float32", [1.0, 2.0], [1.0], False),
        ("float32", [], [], True),
        ("float32", [1.0], "text", False),
        ("float32", [1.0], None, False),
        ("float32", [1.0], {"a": 1.0}, False),
        ("float32", [1.0, 2.0], [[1.0], 2.0], False),
        ("int32", [1, 2], [1, 2], True),
        ("int32", [1, 2], [1, 3], False),
        ("int64", 2**53 + 1, 2**53 + 1, True),
        ("int64", 2**53 + 1, 2**53, False),
        ("uint64", 2**64 - 1, 2**64 - 1, True),
        ("uint64", 2**63, 2**63 - 1, False),
        ("int8", 1, 2**70, False),
        ("bool", [True, False], [True, False], True),
        ("bool", [True, False], [True, True], False),
        ("bool", True, 1, False),
        ("int32", 1, True, False),
        ("float32", 1.0, True, False),
        ("complex64", [1 + 2j], ["1+2j"], True),
        ("complex64", [1 + 2j], ["1-2j"], False),
        ("complex64", [1 + 0j], [1], True),
        ("float32", NAN, NAN, True),
        ("float32", NAN, 0.0, False),
        ("float32", 0.0, NAN, False),
        ("float32", INF, INF, True),
        ("float32", INF, -INF, False),
        ("float32", INF, 3e38, False),
        ("float32", [1.0, NAN, INF], [1.0, NAN, INF], True),
        ("float32", 0.0, 0.0, True),
        ("float32", -0.0, -0.0, True),
        ("float32", -0.0, 0.0, False),
        ("float32", 0.0, -0.0, False),
        ("float32", -0.0, 0, True),
        ("float32", [-0.0, 0.5], [0, 0.5], True),
        ("float32", [-0.0, 0.5], [0.0, 0.5], False),
        ("float32", -1e-9, 0.0, True),  # not zero: close to it
        ("int32", 0, 0.0, True),
        ("bfloat16", -0.0, 0.0, False),
        ("bfloat16", 1.0078125, 1.0, True),  # the next one
        ("bfloat16", 1.03125, 1.0, False),
        ("bfloat16", 0.01, 0.0, False),
        ("float16", 1.0009765625, 1.0, True),
        ("float16", 1.002, 1.0, False),
        ("float32", 1.00002, 1.0, False),
        ("float64", 1.000001, 1.0, False),
    ],
)
def test_an_array_against_a_literal(dtype: str, seen: Any, literal: Any, same: bool) -> None:
    assert fits(results(array(seen, dtype)), value=literal) is same


@pytest.mark.parametrize(
    ("seen", "literal", "same"),
    [
        (3, 3, True),
        (3, 4, False),
        (3, 3.0, False),
        (3, True, False),
        (True, True, True),
        (True, 1, False),
        (None, None, True),
        (None, 0, False),
        ("text", "text", True),
        ("text", "other", False),
        (0.1 + 0.2, 0.3, True),
        (0.3, 0.31, False),
        (0.0, -0.0, False),
        (-0.0, 0, True),
        (1.0, True, False),
        (1.0, "text", False),
        (NAN, NAN, True),
    ],
)
def test_a_python_value_against_a_literal(seen: Any, literal: Any, same: bool) -> None:
    assert fits(results(python(seen)), value=literal) is same


@pytest.mark.parametrize("dtype", TOLERANCES)
def test_a_tolerance_is_met_up_to_its_bound(dtype: str) -> None:
    rtol, atol = TOLERANCES[dtype]
    wide = "complex128" if dtype.startswith("complex") else "float64"
    expected = 8.0
    within, beyond = (np.asarray(expected + factor * (atol + rtol * expected), wide) for factor in (0.9, 1.5))
    for value, close in ((within, True), (beyond, False)):
        seen = Observation([Array(dtype, value)], None, {}, None, None)
        assert fits(seen, value=expected) is close


def rounded_to_bfloat16(values: np.ndarray) -> np.ndarray:
    return ((values.view(np.uint32) + 0x8000) & 0xFFFF0000).view(np.float32)


def test_a_matmul_that_goes_through_bfloat16_is_no_float32_matmul() -> None:
    random = np.random.RandomState(0)
    a, b = random.standard_normal((2, 8, 8)).astype(np.float32)
    reference = results(array(a.astype(np.float64) @ b.astype(np.float64), "float64"))
    through = rounded_to_bfloat16(a) @ rounded_to_bfloat16(b)
    assert fits(results(array(a @ b)), reference, value="reference")
    assert not fits(results(array(through)), reference, value="reference")
    assert not fits(results(array(through)), value=(a.astype(np.float64) @ b.astype(np.float64)).tolist())


def test_a_tolerance_of_the_case_counts_instead() -> None:
    seen = results(array(1.01))
    assert not fits(seen, value=1.0)
    assert fits(seen, tolerance=Tolerance(because="it is tested", rtol=0.1), value=1.0)
    assert not fits(results(array(1e-9)), tolerance=Tolerance(because="exact"), value=0.0)


@given(st.lists(st.floats(width=32), max_size=4), st.sampled_from(["float32", "float64"]))
def test_a_result_is_what_it_is(values: list[float], dtype: str) -> None:
    assert fits(results(array(values, dtype)), value=values)


@given(st.lists(st.floats(width=16), min_size=1, max_size=4), st.integers(0, 3), st.sampled_from([1.25, -1.0]))
def test_a_result_is_not_another_one(values: list[float], index: int, factor: float) -> None:
    index %= len(values)
    other = [*values]
    other[index] *= factor
    differs = abs(other[index] - values[index]) > 1e-3 or np.signbit(other[index]) != np.signbit(values[index])
    if differs and np.isfinite(values[index]):
        close_to_zero = abs(values[index]) < 1e-5 and values[index] != 0
        assert fits(results(array(values)), value=other) is close_to_zero


# --- several results


def test_nested_results_are_compared_each() -> None:
    seen = results([array([1.0, 2.0]), [array(3, "int32"), python(True)], {"dict": {"a": array(4.0)}}])
    assert fits(seen, value=[[1.0, 2.0], [3, True], {"a": 4.0}])
    assert not fits(seen, value=[[1.0, 2.0], [3, False], {"a": 4.0}])
    assert not fits(seen, value=[[1.0, 2.0], [3, True], {"a": 5.0}])
    assert not fits(seen, value=[[1.0, 2.0], [3, True], {"b": 4.0}])
    assert not fits(seen, value=[[1.0, 2.0], [3, True]])
    assert not fits(seen, value=1.0)


def test_what_no_literal_can_be_fits_none() -> None:
    for odd in ({"dtype": "string", "shape": [1], "bytes": "AAAA"}, {"dtype": "float8_e4m3fn", "shape": [1], "bytes": "AA=="}):
        seen = results(odd)
        assert not fits(seen, value=[0])
        assert odd["dtype"] in seen_text(seen)


# --- each part of a spec


def test_value_is_that_of_the_last_call() -> None:
    seen = results(array(1.0), array(2.0))
    assert fits(seen, value=2.0)
    assert not fits(seen, value=1.0)
    assert not fits(results(), value=1.0)


def test_reference_is_what_numpy_says() -> None:
    reference = results(array([1.0, 2.0], "float64"))
    assert fits(results(array([1.0, 2.0])), reference, value="reference")
    assert not fits(results(array([1.0, 2.1])), reference, value="reference")
    assert not fits(results(array([[1.0, 2.0]])), reference, value="reference")
    assert not fits(results(array([1, 2], "bool")), reference, value="reference")
    assert fits(results(python(3)), results(array(3, "int64")), value="reference")
    assert fits(results(array(-0.0)), results(array(0.0, "float64")), value="reference")
    assert not fits(results(array([1.0])), None, value="reference")
    why = mismatch(results(array(1.0)), Spec(value="reference"), error("ValueError", message="no"), None)
    assert why == "the reference itself raised ValueError: no"


def test_values_are_those_of_all_calls() -> None:
    seen = results(array(1.0), python(2))
    assert fits(seen, values=[1.0, 2])
    assert not fits(seen, values=[1.0, 3])
    assert not fits(seen, values=[1.0])
    assert mismatch(seen, Spec(values=[1.0, 3]), None, None).startswith("call 1: ")


def test_every_element_is_the_same() -> None:
    assert fits(results(array([[0.0, 0.0]])), every=0.0)
    assert not fits(results(array([[0.0, 1.0]])), every=0.0)
    assert not fits(results(array([[0.0, -0.0]])), every=0.0)
    assert fits(results(array([[0.0, -0.0]])), every=0)
    assert fits(results(array([NAN, NAN])), every=NAN)
    assert fits(results(array([True, True], "bool")), every=True)
    assert not fits(results(array([1, 1], "int32")), every=True)
    assert fits(results([array([1.0]), array(1.0)]), every=1.0)
    assert not fits(results([array([1.0]), array(2.0)]), every=1.0)
    assert fits(results(python(0.1 + 0.2)), every=0.3)


@pytest.mark.parametrize("seen", [results(), results(array([])), results([]), results([array([]), array([1.0])])])
def test_no_elements_are_not_every_element(seen: Observation) -> None:
    assert not fits(seen, every=1.0)
    assert not fits(seen, rows=[1.0])


def test_every_row_is_the_same() -> None:
    assert fits(results(array([[1.0, 2.0], [1.0, 2.0]])), rows=[1.0, 2.0])
    assert not fits(results(array([[1.0, 2.0], [1.0, 3.0]])), rows=[1.0, 2.0])
    assert not fits(results(array([[1.0, 2.0, 3.0]])), rows=[1.0, 2.0])
    assert not fits(results(array(1.0)), rows=[1.0])
    assert fits(results(array([[-0.0, 0.5]])), rows=[0, 0.5])
    assert not fits(results(array([[-0.0, 0.5]])), rows=[0.0, 0.5])


def test_results_agree_with_one_another() -> None:
    assert fits(results([array([1.0, 2.0]), array([1.0, 2.0]), array([1.0, 2.0000001])]), agree=True)
    assert not fits(results([array([1.0, 2.0]), array([1.0, 2.1])]), agree=True)
    assert fits(results([array([1.0, 2.0]), array([1.0, 2.1])]), agree=False)
    assert not fits(results([array([1.0]), array([1.0])]), agree=False)
    assert not fits(results([array(1.0), array([1.0])]), agree=True)
    assert not fits(results([array([NAN]), array([NAN])]), agree=True)
    assert not fits(results([array([NAN]), array([1.0])]), agree=False)
    assert not fits(results(array([1.0, 1.0])), agree=True)
    assert not fits(results([array([1.0])]), agree=True)
    assert not fits(error("ValueError"), agree=True)


def test_shapes_are_exact() -> None:
    seen = results(array([[1.0, 2.0]]))
    assert fits(seen, shape=[1, 2])
    assert not fits(seen, shape=[2])
    assert not fits(seen, shape=[2, 1])
    assert fits(results(python(3)), shape=[])
    assert fits(results([array([1.0]), array(1.0)]), shape=[[1], []])
    assert not fits(results([array([1.0]), array(1.0)]), shape=[[1], [1]])
    assert not fits(results(), shape=[])


def test_dtypes_are_exact() -> None:
    assert fits(results(array(1.0, "bfloat16")), dtype="bfloat16")
    assert not fits(results(array(1.0, "float32")), dtype="bfloat16")
    both = results([array(1.0), array(1, "int32")])
    assert fits(both, dtype=["float32", "int32"])
    assert not fits(both, dtype=["int32", "float32"])
    assert not fits(both, dtype="float32")
    assert fits(results([array(1.0), array(2.0)]), dtype="float32")
    assert fits(results(python(3)), dtype="int")
    assert not fits(results(), dtype="float32")


@pytest.mark.parametrize("name", ["traces", "graphs", "compiles"])
def test_counts_are_exact_and_may_be_missing(name: str) -> None:
    seen = results(**{name: [1, 0]})
    assert fits(seen, **{name: [1, 0]})
    assert mismatch(seen, Spec(**{name: [1, 1]}), None, None) == f"{name} are [1, 0], not [1, 1]"
    assert mismatch(results(), Spec(**{name: [0, 0]}), None, None) == f"{name} are not observed"
    assert mismatch(results(**{name: []}), Spec(**{name: [0]}), None, None) == f"{name} are [], not [0]"


def test_an_error_is_of_a_class_or_of_its_bases() -> None:
    seen = error("InvalidArgumentError", "OpError", "Exception", message="In[0] ndims must be 2")
    assert fits(seen, raises="InvalidArgumentError")
    assert fits(seen, raises="OpError")
    assert fits(seen, raises=["ValueError", "OpError"])
    assert not fits(seen, raises="ValueError")
    assert not fits(seen, raises=["ValueError", "Error"])
    assert not fits(results(array(1.0)), raises="ValueError")


def test_an_error_fits_nothing_that_does_not_speak_of_it() -> None:
    seen = error("ValueError", message="\n  first\nsecond", results=[array(1.0)], traces=[1])
    assert not fits(seen, value=1.0)
    assert not fits(seen, traces=[1])
    assert fits(seen, traces=[1], raises="ValueError")
    assert mismatch(seen, Spec(value=1.0), None, None) == "raised ValueError: first"


def test_the_text_of_an_error_matches() -> None:
    seen = error("ValueError", message="operands could not be broadcast")
    assert fits(seen, raises="ValueError", matching="could not|cannot")
    assert not fits(seen, raises="ValueError", matching="^could not")


def test_the_step_of_an_error_is_exact() -> None:
    seen = error("ValueError", step=2)
    assert fits(seen, raises="ValueError", step=2)
    assert not fits(seen, raises="ValueError", step=1)


LAYOUT = results(array([0.0]), layout={"local_shape": [[2, 8]], "slices": {"0": ["0:2", "0:8"], "1": ["0:2", "8:16"]}})


def test_layouts_are_exact() -> None:
    assert fits(LAYOUT, local_shape=[2, 8])
    assert not fits(LAYOUT, local_shape=[2, 16])
    assert fits(LAYOUT, slices={"1": ["0:2", "8:16"]})
    assert not fits(LAYOUT, slices={"1": ["0:2", "0:8"]})
    assert not fits(LAYOUT, slices={"2": ["0:2", "0:8"]})
    assert not fits(results(array(0.0)), local_shape=[2])
    assert not fits(results(array(0.0)), slices={"0": ["0:2"]})
    uneven = results(layout={"local_shape": [[1], [2]], "slices": {}})
    assert not fits(uneven, local_shape=[2])


def layout(**parts: Any) -> dict[str, Any]:
    slices = {"0": ["0:1"], "1": ["1:2"]}
    return {"axes": {"x": 2}, "split": ["x"], "partial": {}, "local_shape": [[1]], "slices": slices, **parts}


def test_the_split_of_a_result_is_exact() -> None:
    seen = results(array([1.0, 2.0]), layout=layout())
    assert fits(seen, split=["x"])
    assert not fits(seen, split=[None])
    assert not fits(seen, split=["x", None])
    assert not fits(results(array([1.0, 2.0])), split=["x"])


def test_a_result_that_is_still_to_be_reduced_is_said_to_be() -> None:
    seen = results(array([4.0]), layout=layout(split=[None], partial={"x": "sum"}, slices={"0": ["0:1"], "1": ["0:1"]}))
    assert not fits(seen, split=[None])
    assert not fits(seen, split=[None], partial={})
    assert not fits(seen, split=[None], partial={"x": "max"})
    assert fits(seen, split=[None], partial={"x": "sum"})


def test_each_device_holds_its_slice_of_the_result() -> None:
    seen = results(array([1.0, 2.0]), layout=layout())
    assert fits(seen, shards={"0": [1], "1": [2]})
    assert not fits(seen, shards={"0": [2]})
    assert not fits(seen, shards={"2": [2]})
    assert not fits(results(python(1)), shards={"0": [2]})


def test_what_is_no_slice_of_the_result_has_to_be_expected() -> None:
    whole = {"0": ["0:1"], "1": ["0:1"]}
    seen = results(array([1.0]), layout=layout(split=[None], slices=whole, shards={"0": [1.0], "1": [7.0]}))
    assert not fits(seen, value=[1], split=[None])
    assert fits(seen, split=[None], shards={"0": [1], "1": [7]})
    assert not fits(seen, split=[None], shards={"0": [1], "1": [1]})


def test_the_devices_of_a_result_are_all_of_them() -> None:
    seen = results(array([1.0, 2.0]), layout=layout())
    assert fits(seen, devices=[1, 0])
    assert not fits(seen, devices=[0])
    assert not fits(results(array(1.0)), devices=[0])


def test_collectives_are_exact_and_have_to_be_observed() -> None:
    seen = results(array(1.0), collectives=["all-gather", "all-reduce"])
    assert fits(seen, collectives=["all-reduce", "all-gather"])
    assert not fits(seen, collectives=["all-reduce"])
    assert not fits(seen, collectives=[])
    assert fits(results(array(1.0), collectives=[]), collectives=[])
    assert not fits(results(array(1.0)), collectives=[])


# f(x, y) = x * y + y at (2, 4), as JAX shows it: ft = (xt * 4 + 2 * yt) + yt
PROGRAM = [
    ["v0", "mul", ["xt", 4.0]],
    ["v1", "mul", [2.0, "yt"]],
    ["v2", "add_any", ["v0", "v1"]],
    ["v3", "add_any", ["v2", "yt"]],
]
COTANGENTS = {"v3": 1.0, "v2": 1.0, "v0": 1.0, "v1": 1.0, "yt": 3.0, "xt": 4.0}
DERIVED = results(derivation={"linear": PROGRAM, "result": "v3", "cotangents": COTANGENTS, "value": {"x": 4.0, "y": 3.0}})
LINEAR = {"a": "4.0 * xt", "b": "2.0 * yt", "c": "b + a", "ft": "yt + c"}


def test_linear_programs_are_the_same_up_to_names_and_order() -> None:
    assert fits(DERIVED, linear=LINEAR)
    assert fits(DERIVED, linear={"ft": "xt * 4.0 + 2.0 * yt + yt"})
    assert not fits(DERIVED, linear={**LINEAR, "b": "3.0 * yt"})
    assert not fits(DERIVED, linear={**LINEAR, "c": "b - a"})
    assert not fits(DERIVED, linear={"ft": "xt * 4.0 + (2.0 * yt + yt)"})
    assert not fits(DERIVED, linear={})
    only_values = results(derivation={"value": {"x": 4.0}})
    assert fits(only_values, linear={})
    assert not fits(only_values, linear=LINEAR)
    negative = results(derivation={"linear": [["v", "neg", ["xt"]]], "result": "v", "value": {}})
    assert fits(negative, linear={"ft": "-xt"})
    ordered = results(derivation={"linear": [["v", "sub", ["xt", "yt"]]], "result": "v", "value": {}})
    assert fits(ordered, linear={"ft": "xt - yt"})
    assert not fits(ordered, linear={"ft": "yt - xt"})


def test_cotangents_belong_to_the_terms_of_the_linear_program() -> None:
    assert fits(DERIVED, linear=LINEAR, cotangents={"ft": 1.0, "c": 1.0, "a": 1.0, "b": 1.0, "yt": 3.0, "xt": 4.0})
    assert fits(DERIVED, linear=LINEAR, cotangents={"yt": 3.0})
    assert not fits(DERIVED, linear=LINEAR, cotangents={"yt": 2.0})
    assert not fits(DERIVED, linear=LINEAR, cotangents={"zt": 2.0})
    assert not fits(results(derivation={"value": {"x": 4.0}}), linear={}, cotangents={"yt": 3.0})


def test_gradients_are_compared_as_the_float32_that_they_were() -> None:
    seen = results(derivation={"value": {"x": 0.3000003}})
    assert fits(seen, value={"x": 0.3})
    assert not fits(seen, value={"x": 0.3001})
    assert not fits(seen, value={"y": 0.3})


COMPILED = results(
    {"dtype": "float32", "shape": [2, 3]},
    compiled={"entry": "entry_computation_layout={()->f32[2,3]{1,0:T(2,128)}}", "memory": {"argument": 0, "output": 1024}},
)


def test_of_what_was_compiled_and_did_not_run_no_value_is_known() -> None:
    assert fits(COMPILED, shape=[2, 3], dtype="float32", entry=r"T\(2,128\)", memory={"output": 1024})
    for part in (
        {"shape": [3, 2]},
        {"dtype": "float64"},
        {"entry": "f64"},
        {"memory": {"output": 24}},
        {"memory": {"alias": 0}},
        {"value": [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]},
        {"raises": "ValueError"},
    ):
        assert not fits(COMPILED, **part)
    assert not fits(results(array(1.0)), entry="f32")
    assert not fits(results(array(1.0)), memory={"output": 4})
    assert seen_text(COMPILED).startswith("float32[2, 3]; entry_computation_layout=")
    assert "nothing ran" in seen_text(COMPILED)


def test_an_outcome_that_shows_without_a_run_goes_before_the_one_that_is_left() -> None:
    outcomes, expected = foretold(
        {"wide": Spec(dtype="float64"), "one": Spec(value=1.0, dtype="float32"), "two": Spec(value=2.0), "no": Spec(raises="E")},
        [("any", "one"), ("jax", "wide")],
    )
    assert outcomes == {"wide": Spec(dtype="float64"), "no": Spec(raises="E"), "compiles": Spec(dtype="float32")}
    assert expected == [("any", "compiles"), ("jax", "wide")]
    assert judge(COMPILED, outcomes, None, None).outcome == "compiles"
    assert judge(COMPILED, {**outcomes, "narrow": Spec(shape=[2, 3])}, None, None).outcome == "narrow"
    assert judge(error("E"), outcomes, None, None).outcome == "no"
    assert judge(error("F"), outcomes, None, None).outcome == UNEXPECTED


def test_what_shows_without_a_run_keeps_its_name() -> None:
    outcomes, expected = {"conforms": Spec(raises="TypeError")}, [("any", "conforms")]
    assert foretold(outcomes, expected) == (outcomes, expected)


def test_every_part_of_a_spec_is_tested_here() -> None:
    """A part that is added to the format belongs into this file."""
    tested = {"value", "values", "every", "rows", "agree", "shape", "dtype", "traces", "graphs", "compiles", "raises", "matching"}
    layouts = {"split", "partial", "local_shape", "slices", "shards", "devices", "collectives"}
    assert set(Spec.__struct_fields__) == tested | {"step", "linear", "cotangents", "entry", "memory"} | layouts


# --- naming what was seen


def test_the_outcome_is_the_one_that_fits() -> None:
    outcomes = {"frozen": Spec(values=[1.0, 1.0]), "live": Spec(values=[1.0, 2.0])}
    verdict = judge(results(array(1.0), array(2.0)), outcomes, None, None)
    assert verdict.outcome == "live"
    assert list(verdict.against) == ["frozen"]


def test_what_fits_no_outcome_is_unexpected() -> None:
    outcomes = {"one": Spec(value=1.0), "two": Spec(value=2.0)}
    verdict = judge(results(array(3.0)), outcomes, None, None)
    assert verdict.outcome == UNEXPECTED
    assert verdict.against == {"one": "3.0, not 1.0", "two": "3.0, not 2.0"}


def test_what_fits_two_outcomes_is_unexpected() -> None:
    outcomes = {"one": Spec(value=1.0), "small": Spec(shape=[]), "two": Spec(value=2.0)}
    verdict = judge(results(array(1.0)), outcomes, None, None)
    assert verdict.outcome == UNEXPECTED
    assert verdict.against == dict.fromkeys(["one", "small"], "what was seen fits more than one outcome of the case")


def test_all_parts_must_hold() -> None:
    seen = results(array([1.0]), traces=[1])
    assert fits(seen, value=[1.0], shape=[1], dtype="float32", traces=[1])
    for part in ({"value": [2.0]}, {"shape": [2]}, {"dtype": "int32"}, {"traces": [0]}):
        assert not fits(seen, **{"value": [1.0], "shape": [1], "dtype": "float32", "traces": [1], **part})


# --- what people read


def test_a_difference_says_where_and_how_much() -> None:
    why = mismatch(results(array([[1.0, 2.0], [3.0, 4.0]])), Spec(value=[[1.0, 2.5], [3.0, 4.5]]), None, None)
    assert why == "element [0, 1]: 2.0, not 2.5 (2 of 4 differ)"


def test_a_spec_is_told_as_it_is_written() -> None:
    spec = Spec(value=[NAN, -INF, True], dtype="float32", slices={"0": ["0:2"]})
    assert spec_text(spec) == "value: [.nan, -.inf, true], dtype: float32, slices: {0: [0:2]}"


def test_an_observation_is_told_in_a_line() -> None:
    assert seen_text(results(array([1.0, NAN]), python(2), traces=[1])) == "float32[2] [1.0, .nan]; int[] 2; traces [1]"
    assert seen_text(error("ValueError", message=" no\n", step=1)) == "raised ValueError at step 1: no"
