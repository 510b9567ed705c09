"""Scripts stand alone: they run in a fresh process without this project, and show what the check saw."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from conformance import library
from conformance.framework import frameworks
from conformance.pool import Pool
from conformance.record import record
from conformance.repro import script

QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1"}


def find(case: str, target: str, row: str = ""):
    area, topic, _ = case.split("/")
    unit = library.unit(library.cases_path() / area / f"{topic}.yaml")
    for check in unit.checks:
        if unit.card(check).identity == case and check.target == target and check.row == row:
            return check, unit.card(check)
    raise AssertionError(f"there is no {case}[{row}] on {target}")


def run_alone(text: str, folder):
    path = folder / "script.py"
    path.write_text(text)
    assert "conformance" not in text
    # -I: no user site, no PYTHONPATH, no working directory; the package is hidden all the same.
    hide = "import sys; sys.modules['conformance'] = None; exec(compile(open(sys.argv[1]).read(), sys.argv[1], 'exec'))"
    return subprocess.run(
        [sys.executable, "-I", "-c", hide, path], env={**os.environ, **QUIET}, capture_output=True, text=True, timeout=120
    )


def numbers(text: str) -> list[float]:
    return [
        float(word)
        for word in re.findall(
            r"(?<![\w.])-?(?:\d+\.?\d*(?:e[-+]?\d+)?|nan|inf)", re.sub(r"dtype=\S+|shape=\S+|numpy=", "", text)
        )
    ]


TARGETS = [f"{f.name}:{mode}@cpu" for f in frameworks().values() for mode in f.running_modes]


@pytest.mark.parametrize("target", TARGETS)
def test_the_script_of_a_program_shows_the_same_values(target, tmp_path):
    check, card = find("matmul/broadcasting/rank-rules", target, "batch-matrix-float32")
    done = run_alone(script(check, card, "conforms"), tmp_path)
    assert done.returncode == 0, done.stderr
    pool = Pool({})
    try:
        seen = record(check, card, pool.answer(pool.submit(check.framework, [check.job])[0]), None, {})
    finally:
        pool.close()
    values = np.ravel(next(iter(seen.full.values()))["value"] if seen.full else seen.line.observation["results"][0]["value"])
    shown = numbers(done.stdout.split("tf.Tensor(")[-1])
    assert len(shown) >= 3
    for number in shown[:3]:
        assert np.isclose(values, number, rtol=1e-3, atol=1e-4).any(), (number, done.stdout)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("jax:compiled@cpu", [1, 1, 1, 1]),
        ("tensorflow:compiled@cpu", [1, 1, 1, 1]),
        ("tensorflow:xla@cpu", [1, 1, 1, 1]),
        ("torch:compiled@cpu", [1, 1, 2, 1]),
    ],
)
def test_the_script_of_a_scenario_shows_values_and_counts(target, said, tmp_path):
    check, card = find("capture/rebinding/outer-array-rebound", target)
    done = run_alone(script(check, card, None), tmp_path)
    assert done.returncode == 0, done.stderr
    shown = re.findall(r"(?:tensor\(|tf.Tensor\()?(\d)\.[^{]*{'\w+': (\d)}", done.stdout)
    assert [int(number) for pair in shown for number in pair] == said


def test_the_script_of_an_error_ends_in_that_error(tmp_path):
    check, card = find("masks/length/mask-to-lengths", "tensorflow:eager@cpu")
    done = run_alone(script(check, card, "no-boolean-sum"), tmp_path)
    assert done.returncode == 1
    assert "InvalidArgumentError" in done.stderr


@pytest.mark.parametrize("framework", ["torch", "jax", "tensorflow"])
def test_the_script_of_a_derivation_shows_the_gradients(framework, tmp_path):
    check, card = find("grad/jvp-then-transpose/product-plus-term", f"{framework}:eager@cpu")
    done = run_alone(script(check, card, None), tmp_path)
    assert done.returncode == 0, done.stderr
    assert numbers(done.stdout.splitlines()[-1])[:2] in ([4.0, 3.0], [4.0, 4.0])


def test_the_script_of_native_code_is_the_code(tmp_path):
    check, card = find("modules/registration/plain-list-of-layers", "torch:eager@cpu")
    assert run_alone(script(check, card, None), tmp_path).stdout.strip() == "0"


@pytest.mark.parametrize("framework", ["torch", "jax", "tensorflow"])
def test_the_script_of_a_layout_shows_what_the_devices_hold(framework, tmp_path):
    check, card = find("sharding/programs/constraint-inside", f"{framework}:eager@cpu", "exchanged")
    done = run_alone(script(check, card, None), tmp_path)
    assert done.returncode == 0, done.stderr
    # Rows 0 to 3 of the first two columns, twice 8 r + c and one: 1, 3, 17, 19, 33, 35, 49, 51.
    for pattern in (r"\b1\.?0?,? +3\.?\D", r"\b17\.?0?,? +19\.?\D", r"\b49\.?0?,? +51\.?\D"):
        assert re.search(pattern, done.stdout), done.stdout
    said = {"torch": "Shard(dim=1), Shard(dim=0)", "jax": "P('y', 'x')", "tensorflow": "['y', 'x']"}[framework]
    assert said in done.stdout


@pytest.mark.parametrize(("framework", "said"), [("torch", "all_reduce"), ("jax", "all-reduce")])
def test_the_script_of_communication_shows_the_collectives(framework, said, tmp_path):
    check, card = find("sharding/matmul/three-in-a-row", f"{framework}:eager@cpu")
    done = run_alone(script(check, card, None), tmp_path)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout


def test_complex_numbers_are_inputs_too(tmp_path):
    check, card = find("grad/complex/squared-magnitude", "torch:eager@cpu")
    done = run_alone(script(check, card, "plain"), tmp_path)
    assert done.stdout.strip() == "tensor(2.+4.j)"  # 2z at z = 1+2j
