"""Devices: one that is not there, one that only seems to be there, and one that programs are compiled for without having it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_run import GOOD, conformance, native, write

from conformance.chips import Chips
from conformance.results import read

FAULTY = Path(__file__).parent / "faulty"
TPU_PYTHON = os.environ.get("TPU_PYTHON", sys.executable)
"""An interpreter that has JAX and libtpu."""


def refused(done: subprocess.CompletedProcess[str], folder: Path) -> str:
    """The one message of a run that was refused before anything ran."""
    assert done.returncode == 4, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert " passed" not in done.stdout
    assert " failed" not in done.stdout
    assert not list((folder / "reports").glob("*"))
    return done.stderr


def with_path(*folders: Path) -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join([*map(str, folders), os.environ.get("PYTHONPATH", "")])}


def jax_case(case_id: str, code: str, expect: str, more: str = "") -> str:
    return f"""
  - id: {case_id}
    claim: a case that the tests made
    inputs: {{x: {{shape: [100, 100]}}}}
    native: {{jax: "{code}"}}
    modes: [aot]
    {expect}
{more}"""


# --- a device, or an interpreter, that is not there


@pytest.mark.parametrize(
    ("framework", "advice"),
    [("torch", "in its build for CUDA"), ("jax", "jax[cuda13]"), ("tensorflow", "tensorflow[and-cuda]")],
)
def test_a_device_that_is_not_there_is_one_message_that_says_what_is(tmp_path, framework, advice):
    write(
        tmp_path,
        "title: Mine\ncases:\n  - {id: one, claim: one and one is two, program: 1.0 + x, inputs: {x: 1.0}, expect: {value: 2.0}}",
    )
    done = conformance("run", "mine", "--device=cuda", f"--framework={framework}", cwd=tmp_path, env={"CUDA_VISIBLE_DEVICES": ""})
    said = refused(done, tmp_path)
    assert "sees no cuda, only cpu" in said
    assert advice in said


def test_only_frameworks_that_know_the_device_are_asked(tmp_path):
    cases = "  - {id: one, claim: one and one is two, program: 1.0 + x, inputs: {x: 1.0}, expect: {value: 2.0}}"
    write(tmp_path, f"title: Mine\ncases:\n{cases}")
    done = conformance("list", "mine", "--device=cuda", "--json", cwd=tmp_path, check=0)
    targets = [json.loads(line)["target"] for line in done.stdout.splitlines()]
    assert {target.partition(":")[0] for target in targets} == {"torch", "jax", "tensorflow"}


@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("/no/such/python", "No such file or directory"),
        ("/bin/cat", "it ended before it answered; is it a Python?"),
        ("empty/bin/python", "there is no numpy where it was looked for"),
    ],
)
def test_a_broken_interpreter_is_one_message(tmp_path, host, why, workers):
    write(tmp_path, f"title: Mine\ncases:\n{GOOD}")
    if host.startswith("empty"):
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "empty"], check=True)
        host = str(tmp_path / host)
    said = refused(conformance("run", "mine", f"--host=numpy={host}", *workers, cwd=tmp_path), tmp_path)
    assert why in said.splitlines()[-1 if said.splitlines()[-1] else -2]
    assert said.count("nothing was run") == said.count("numpy ") == 1


def test_an_interpreter_without_the_framework_is_named(tmp_path):
    case = (
        "title: Mine\ncases:\n  - {id: one, claim: one and one is two, program: 1.0 + x, inputs: {x: 1.0}, expect: {value: 2.0}}"
    )
    write(tmp_path, case)
    (tmp_path / "jax.py").write_text("raise ModuleNotFoundError(\"No module named 'jax'\")")
    done = conformance("run", "mine", f"--host=jax={sys.executable}", cwd=tmp_path, env=with_path(tmp_path))
    assert f"there is no jax where it was looked for (popen//python={sys.executable})" in refused(done, tmp_path)


# --- a device that only seems to be there

QUIET = """
from conformance.dialects.jax import FRAMEWORK as JAX
from twin_dialect import FRAMEWORK as TWIN
FRAMEWORK = TWIN._replace(name="quiet", runtime="quiet_runtime", devices=("cpu", "cuda"), meshes=JAX.meshes)
"""


@pytest.fixture
def quiet(tmp_path: Path) -> dict[str, str]:
    """A framework that takes any device and computes on the CPU; the environment that has it."""
    runtime = (FAULTY / "twin_runtime.py").read_text().replace('if device != "cpu":', "if False:")
    (tmp_path / "site").mkdir()
    (tmp_path / "site/quiet_dialect.py").write_text(QUIET)
    (tmp_path / "site/quiet_runtime.py").write_text(f"{runtime}\n\ndef devices():\n    return 1\n")
    info = tmp_path / "site/quiet-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: quiet\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[conformance.frameworks]\nquiet = quiet_dialect:FRAMEWORK\n")
    return with_path(tmp_path / "site", FAULTY)


def test_a_framework_that_silently_computes_on_the_cpu_is_caught(tmp_path, quiet):
    case = native("good", "return 1").replace("numpy:", "quiet:")
    write(tmp_path, f"title: Mine\ncases:\n{case}")
    conformance("run", "mine", "--framework=quiet", cwd=tmp_path, env=quiet, check=0)
    (tmp_path / "reports/results.jsonl").unlink()
    for left in (tmp_path / "reports").glob("*"):
        left.unlink()
    done = conformance("run", "mine", "--framework=quiet", "--device=cuda", cwd=tmp_path, env=quiet)
    assert "it was told to compute on cuda, and computed on cpu" in refused(done, tmp_path)


def test_a_case_for_several_devices_is_not_run_with_fewer(tmp_path, quiet):
    case = """
  - id: split
    claim: a case that the tests made
    mesh: {x: 2}
    inputs: {a: {shape: [4], split: [x]}}
    program: a
    frameworks: [quiet]
    expect: {local_shape: [2]}
"""
    write(tmp_path, f"title: Mine\ncases:{case}")
    done = conformance("run", "mine", cwd=tmp_path, env=quiet, check=5)
    assert "2 checks not run: needs 2 devices; there are 1" in done.stdout


# --- which host sees which chip


def test_hosts_of_a_gpu_machine_are_spread_over_its_chips(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,6")
    chips = Chips("cuda")
    first, second, third = (chips.take(False) for _ in range(3))
    assert [chips.environment(taken)["CUDA_VISIBLE_DEVICES"] for taken in (first, second, third)] == ["4", "6", "4"]
    assert chips.environment(chips.take(True)) == {}
    assert chips.room(False)


def test_a_tpu_chip_has_one_host_at_a_time(monkeypatch):
    monkeypatch.setenv("TPU_VISIBLE_CHIPS", "0,1")
    chips = Chips("tpu")
    first = chips.take(False)
    assert chips.environment(first)["TPU_VISIBLE_CHIPS"] == "0"
    assert chips.room(False)
    assert not chips.room(True)
    second = chips.take(False)
    assert not chips.room(False)
    chips.give(first)
    assert chips.room(False)
    chips.give(second)
    assert chips.room(True)


def test_what_computes_on_the_cpu_is_told_of_no_chips():
    assert Chips("cpu").environment(Chips("cpu").take(False)) == {}


# --- a device that programs are compiled for


def test_a_topology_without_its_compiler_is_one_message(tmp_path):
    write(tmp_path, f"title: Mine\ncases:{jax_case('one', 'return x', 'expect: {dtype: float32}')}")
    (tmp_path / "libtpu.py").write_text("raise ImportError('hidden')")
    done = conformance("run", "mine", "--device=tpu-v5e-2x4", cwd=tmp_path, env=with_path(tmp_path))
    assert "it needs libtpu: pip install 'jax[tpu]'" in refused(done, tmp_path)


@pytest.fixture(scope="module")
def tpu_python() -> str:
    if subprocess.run([TPU_PYTHON, "-c", "import jax, libtpu"], capture_output=True).returncode:
        pytest.skip(f"{TPU_PYTHON} has no libtpu: pip install 'jax[tpu]', or name one that has in TPU_PYTHON")
    return TPU_PYTHON


def test_programs_are_compiled_for_a_topology_and_nothing_is_claimed_of_their_values(tmp_path, tpu_python):
    cases = [
        jax_case("value", "return x + 1.0", "expect: {shape: [100, 100], value: 7.0}"),
        jax_case("wrong-dtype", "return x + 1.0", "expect: {dtype: int32, value: 7}"),
        # Rows to a multiple of 8, columns to one of 128, and four bytes each.
        jax_case("padded", "return x + 1.0", "expect: {memory: {argument: 53248, output: 53248}, entry: 'T[(]8,128[)]'}"),
        jax_case("refused", "return jnp.linalg.eig(x)", "expect: {raises: NotImplementedError, matching: platform tpu}"),
        jax_case("named", "return x", "outcomes: {a: {value: 1.0}, b: {value: 2.0}, c: {dtype: int8}}\n    expect: {jax@cpu: a}"),
        jax_case("donated", "return x + 1.0", "expect: {memory: {alias: 0}}").replace(
            "expect: {memory: {alias: 0}}",
            "outcomes: {kept: {memory: {alias: 0}}, taken: {memory: {alias: 53248}}}\n    expect: {jax: kept}\n"
            "    variants: [{id: donated, target: jax, with: {donate_argnums: [0]}, expect: taken}]",
        ),
    ]
    write(tmp_path, f"title: Mine\ncases:{''.join(cases)}")
    options = ["--device=tpu-v5e-2x4", f"--host=jax={tpu_python}", "--report=site"]
    done = conformance("run", "mine", *options, cwd=tmp_path, check=1)
    run = read(tmp_path / "reports/results.jsonl")
    assert {f"{check.case.split('/')[-1]} {check.row}".strip(): check.outcome for check in run.checks} == {
        "value": "compiles",
        "wrong-dtype": "unexpected",
        "padded": "conforms",
        "refused": "conforms",
        "named": "compiles",
        "donated": "kept",
        "donated donated": "taken",
    }
    assert {check.target for check in run.checks} == {"jax:aot@tpu-v5e-2x4"}
    assert run.header.environment["device"] == "tpu-v5e-2x4"
    assert run.header.environment["ran"] is False
    assert "nothing ran" in done.stdout
    assert "nothing ran" in (tmp_path / "site/index.html").read_text()
    (value,) = [check for check in run.checks if check.case == "mine/cases/value"]
    assert value.expectation == {"shape": [100, 100]}
    assert value.observation["results"] == [{"dtype": "float32", "shape": [100, 100]}]


def test_a_script_compiles_the_same_without_this_project(tmp_path, tpu_python):
    path = write(tmp_path, f"title: Mine\ncases:{jax_case('padded', 'return x + 1.0', 'expect: {memory: {output: 53248}}')}")
    made = conformance("repro", "mine/cases/padded", f"--path={path}", "--target=jax:aot@tpu-v5e-2x4", cwd=tmp_path, check=0)
    done = subprocess.run([tpu_python, "-"], input=made.stdout, capture_output=True, text=True, check=True)
    assert "f32[100,100]{1,0:T(8,128)}" in done.stdout
    assert "'output': 53248" in done.stdout
