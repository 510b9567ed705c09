"""The command, end to end, on case files of a user's own: what is run, recorded, printed, and with which exit status."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conformance.results import read

# A shell that runs the tests in the background has them ignore an interrupt, and so would what they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


def conformance(*arguments, cwd, env=None, check=None):
    done = subprocess.run(
        [sys.executable, "-m", "conformance", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=300,
    )
    if check is not None:
        assert done.returncode == check, done.stdout + done.stderr
    return done


def write(folder: Path, text: str, name: str = "mine/cases.yaml") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def native(case_id: str, code: str, more: str = "") -> str:
    body = "".join(f"        {line}\n" for line in code.splitlines())
    return f"  - id: {case_id}\n    claim: a case that the tests made\n    native:\n      numpy: |\n{body}    expect: {{value: 1}}\n{more}"


GOOD = native("good", "return 1")


def outcomes(folder: Path, results: str = "reports/results.jsonl") -> dict[str, str]:
    return {check.case.split("/")[-1]: check.outcome for check in read(folder / results).checks}


def test_a_folder_of_ones_own_needs_no_conftest_and_no_options(tmp_path):
    write(tmp_path, f"title: Mine\ncases:\n{GOOD}")
    done = conformance("run", "mine", cwd=tmp_path, check=0)
    assert "1 passed" in done.stdout
    run = read(tmp_path / "reports/results.jsonl")
    assert run.complete
    assert [(c.case, c.outcome, c.passed) for c in run.checks] == [("mine/cases/good", "conforms", True)]


def test_a_set_is_printed_in_one_order(tmp_path):
    code = "print({'d', 'a', 'c', 'b'}, {'d': 1, 'a': 2})\nreturn int(str({'d', 'a', 'c', 'b'}))"
    write(tmp_path, f"title: Mine\ncases:\n{native('set', code).replace('value: 1', 'raises: ValueError, matching: a')}")
    conformance("run", "mine", cwd=tmp_path, check=0)
    (check,) = read(tmp_path / "reports/results.jsonl").checks
    assert check.evidence["printed"] == "{'a', 'b', 'c', 'd'} {'d': 1, 'a': 2}\n"
    assert check.observation["raised"]["message"].endswith("{'a', 'b', 'c', 'd'}\"")


def test_a_text_does_not_say_where_python_is(tmp_path):
    code = "import logging, numpy\nprint(logging.__file__, numpy.__file__)\nraise ValueError(logging.__file__)\nreturn 1"
    write(tmp_path, f"title: Mine\ncases:\n{native('place', code).replace('value: 1', 'raises: ValueError')}")
    conformance("run", "mine", cwd=tmp_path, check=0)
    (check,) = read(tmp_path / "reports/results.jsonl").checks
    assert check.evidence["printed"] == "logging/__init__.py numpy/__init__.py\n"
    assert check.observation["raised"]["message"] == "logging/__init__.py"


def test_what_a_job_prints_and_why_it_traced_is_kept_as_evidence(tmp_path):
    case = """
  - id: why
    claim: a function that prints while it is traced
    inputs: {a: [1.0], b: [[1.0]]}
    define: |
      def f(x):
          print("tracing", x.shape)
          return x
    trace: f
    steps: [{call: f(a)}, {call: f(a)}, {call: f(b)}, {call: "f(b[:, :0])"}]
    frameworks: [jax]
    expect: {traces: [1, 0, 1, 1], compiles: [1, 0, 1, 1]}
"""
    write(tmp_path, f"title: Mine\ncases:{case}")
    conformance("run", "mine", "--report=site", cwd=tmp_path, check=0)
    (check,) = read(tmp_path / "reports/results.jsonl").checks
    assert check.evidence["printed"] == "tracing (1,)\ntracing (1, 1)\ntracing (1, 0)\n"
    never, again, shape, _ = check.evidence["reasons"]
    assert again == []
    assert "never seen function" in never[0]
    assert "f32[1,1]" in shape[0]
    assert "0x" not in json.dumps(check.evidence)
    page = (tmp_path / "site/index.html").read_text()
    assert "Why it traced" in page
    assert "tracing (1, 0)" in page


def test_what_a_crash_leaves_is_recorded_and_the_rest_goes_on(tmp_path):
    deaths = {
        "abort": "import os\nprint('my last words', flush=True)\nos.abort()\nreturn 1",
        "exit": "import os\nos._exit(3)\nreturn 1",
        "segfault": "import ctypes\nctypes.string_at(0)\nreturn 1",
        "killed": "import os\nos.kill(os.getpid(), 9)\nreturn 1",
    }
    cases = "".join(native(name, code) + native(f"after-{name}", "return 1") for name, code in deaths.items())
    write(tmp_path, f"title: Mine\ncases:\n{cases}")
    done = conformance("run", "mine", cwd=tmp_path, check=1)
    assert outcomes(tmp_path) == dict.fromkeys(deaths, "crashed") | {f"after-{name}": "conforms" for name in deaths}
    assert "my last words" in done.stdout
    assert "the process ended without a word, with exit status 3" in done.stdout
    assert "the process ended without a word, by SIGKILL" in done.stdout
    assert "Segmentation fault" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert read(tmp_path / "reports/results.jsonl").complete


def test_what_an_earlier_job_has_spoiled_is_run_again(tmp_path):
    text = "an operation failed. This error cancels all future operations"
    spoils = native("a", "import builtins\nbuiltins.spoiled = True\nreturn 1")
    suffers = native("b", f"import builtins\nif hasattr(builtins, 'spoiled'):\n    raise RuntimeError({text!r})\nreturn 1")
    its_own = native("c", f"raise RuntimeError({text!r})\nreturn 1")
    write(tmp_path, f"title: Mine\ncases:\n{spoils}{suffers}{its_own}".replace("numpy:", "tensorflow:"))
    conformance("run", "mine", cwd=tmp_path, check=1)
    assert outcomes(tmp_path) == {"a": "conforms", "b": "conforms", "c": "unexpected"}


def test_a_hang_is_ended_after_its_timeout(tmp_path):
    hang = native("hang", "while True: pass\nreturn 1", more="    timeout: 1\n")
    deaf = native("deaf", "import time\ntime.sleep(3600)\nreturn 1", more="    timeout: 1\n")
    write(tmp_path, f"title: Mine\ncases:\n{hang}{deaf}{GOOD}")
    started = time.monotonic()
    conformance("run", "mine", cwd=tmp_path, check=1)
    assert outcomes(tmp_path) == {"hang": "timed-out", "deaf": "timed-out", "good": "conforms"}
    assert time.monotonic() - started < 30


def test_a_job_that_forks_takes_no_other_job_s_answer(tmp_path):
    fork = native("fork", "import os\nos.fork()\nreturn 1")
    after = "".join(native(f"after-{i}", f"return {i}").replace("value: 1", f"value: {i}") for i in range(2, 6))
    write(tmp_path, f"title: Mine\ncases:\n{fork}{after}")
    conformance("run", "mine", cwd=tmp_path, check=0)


def test_what_the_suite_itself_cannot_bring_back_is_not_raised(tmp_path):
    code = "class Odd:\n    def __repr__(self): raise RuntimeError('odd')\nreturn Odd()"
    odd = native("odd", code).replace("{value: 1}", "{raises: RuntimeError}")
    dtype = native("dtype", "return np.float32").replace("value: 1", "value: <class 'numpy.float32'>")
    write(tmp_path, f"title: Mine\ncases:\n{odd}{dtype}{GOOD}")
    done = conformance("run", "mine", cwd=tmp_path, check=1)
    assert outcomes(tmp_path) == {"odd": "unexpected", "dtype": "unexpected", "good": "conforms"}
    assert "cannot be observed: odd" in done.stdout


def test_texts_that_no_file_can_hold_and_huge_ones(tmp_path):
    lone = native("lone", r"return '\ud800'").replace("value: 1", "dtype: str")
    raised = native("raised", r"raise ValueError('\ud800' + 'y' * 3_000_000)" + "\nreturn 1").replace(
        "{value: 1}", "{raises: ValueError}"
    )
    long = native("long", "return 'x' * 3_000_000").replace("value: 1", "dtype: str")
    write(tmp_path, f"title: Mine\ncases:\n{lone}{raised}{long}")
    conformance("run", "mine", cwd=tmp_path, check=0)
    assert (tmp_path / "reports/results.jsonl").stat().st_size < 20_000


def test_a_run_that_fails_to_end_leaves_the_files_of_an_earlier_one(tmp_path):
    write(tmp_path, f"title: Mine\ncases:\n{GOOD}")
    conformance("run", "mine", cwd=tmp_path, check=0)
    before = {path.name: path.read_bytes() for path in (tmp_path / "reports").iterdir()}
    conformance("run", "mine", "-k", "nothing", cwd=tmp_path, check=5)
    assert {path.name: path.read_bytes() for path in (tmp_path / "reports").iterdir()} == before


def test_two_files_with_one_identity_are_refused(tmp_path):
    for folder in ("one", "two"):
        write(tmp_path, f"title: Mine\ncases:\n{GOOD}", f"{folder}/area/topic.yaml")
    done = conformance("run", "one", "two", cwd=tmp_path, check=4)
    assert "both have a case area/topic/good" in done.stdout + done.stderr


def test_a_host_that_grows_is_renewed(tmp_path):
    growing = "import numpy.lib, os\nnumpy.lib.kept = getattr(numpy.lib, 'kept', []) + [bytearray(os.urandom(1)) * 400_000_000]\n"
    cases = "".join(native(f"grow-{i:02}", growing + "return os.getpid()").replace("value: 1", "dtype: int") for i in range(20))
    write(tmp_path, f"title: Mine\ncases:\n{cases}")
    conformance("run", "mine", cwd=tmp_path, check=0)
    pids = {check.observation["results"][0]["value"] for check in read(tmp_path / "reports/results.jsonl").checks}
    assert len(pids) > 1


def test_a_failure_shows_claim_source_expected_seen_and_how_to_reproduce_it(tmp_path):
    write(tmp_path, f"title: Mine\ncases:\n{native('wrong', 'return 2')}")
    done = conformance("run", "mine", cwd=tmp_path, check=1)
    for text in ("a case that the tests made", "expected  conforms (value: 1)", "2, not 1", "def program():", "return 2"):
        assert text in done.stdout
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("reproduce: conformance")]
    script = conformance(*line.split()[2:], cwd=tmp_path, check=0)
    assert "return 2" in script.stdout
    assert "conformance/plugin.py" not in done.stdout


DEVIATION = """\
    deviations:
      - {target: numpy, outcome: two, value: 2, because: the tests say so}
"""


def test_an_expectation_fails_in_both_directions(tmp_path):
    cases = native("declared", "return 2", DEVIATION) + native("gone", "return 1", DEVIATION)
    write(tmp_path, f"title: Mine\ncases:\n{cases}")
    done = conformance("run", "mine", cwd=tmp_path, check=1)
    assert outcomes(tmp_path) == {"declared": "two", "gone": "conforms"}
    assert "1 failed, 1 passed" in done.stdout
    assert "the deviation 'two' is gone" in done.stdout


def test_a_missing_framework_is_not_run_and_the_others_are(tmp_path):
    code = GOOD.replace("    expect", "      jax: return 1\n    expect")
    write(tmp_path, f"title: Mine\ncases:\n{code}")
    hidden = tmp_path / "hidden"
    (hidden / "jax").mkdir(parents=True)
    (hidden / "jax/__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'jax'\", name='jax')")
    done = conformance("run", "mine", cwd=tmp_path, env={"PYTHONPATH": str(hidden)}, check=0)
    assert "jax is not installed: pip install 'framework-conformance[jax]'" in done.stdout
    run = read(tmp_path / "reports/results.jsonl")
    assert {check.target: check.passed for check in run.checks} == {"numpy:eager@cpu": True, "jax:eager@cpu": None}
    alone = conformance("run", "mine", "--target", "jax", cwd=tmp_path, env={"PYTHONPATH": str(hidden)})
    assert alone.returncode == 5  # nothing of it ran, which is no pass


def test_a_framework_that_breaks_at_import_is_no_pass(tmp_path):
    write(tmp_path, f"title: Mine\ncases:\n{GOOD.replace('      numpy', '      jax')}")
    hidden = tmp_path / "hidden"
    (hidden / "jax").mkdir(parents=True)
    (hidden / "jax/__init__.py").write_text("raise RuntimeError('built for another machine')")
    done = conformance("run", "mine", cwd=tmp_path, env={"PYTHONPATH": str(hidden)}, check=1)
    assert "built for another machine" in done.stdout


def test_a_library_that_a_case_uses_and_that_is_missing_is_not_run(tmp_path):
    uses = "      torch:\n        uses: [no-such-library>=2]\n        code: return 1\n"
    write(tmp_path, f"title: Mine\ncases:\n{GOOD.replace('    expect', uses + '    expect')}")
    done = conformance("run", "mine", cwd=tmp_path, check=0)
    assert "needs no-such-library>=2" in done.stdout
    assert outcomes(tmp_path)["good"] in ("not-run", "conforms")


def test_a_mistake_in_a_case_file_is_one_line_and_nothing_runs(tmp_path):
    path = write(tmp_path, f"title: Mine\ncases:\n{GOOD.replace('expect:', 'expct:')}")
    done = conformance("run", "mine", cwd=tmp_path, check=2)
    assert "mine/cases.yaml:8:5: unknown key 'expct' in case 'good'; did you mean 'expect'?" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    checked = conformance("validate", path, cwd=tmp_path, check=2)
    assert checked.stderr.splitlines() == [f"{path}:8:5: unknown key 'expct' in case 'good'; did you mean 'expect'?"]


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (["--framework", "nympy"], 4, "did you mean 'numpy'?"),
        (["--target", "jaxx:eager"], 4, "did you mean 'jax'?"),
        (["--target", "numpy:compiled"], 4, "numpy has the modes eager"),
        (["--mode", "eagre"], 4, "did you mean 'eager'?"),
        (["--device", "gpu"], 4, "unknown device 'gpu'"),
        (["--host", "numpy"], 4, "write FRAMEWORK=SPEC"),
        (["--host", "numpy=/no/such/python"], 4, "did not start"),
        (["--results", "/proc/nowhere/results.jsonl"], 4, "cannot be written"),
        (["-k", "nothing-has-this-name"], 5, "no check was selected"),
        (["--target", "torch"], 5, "no check was selected"),
        (["nowhere"], 4, "there is no nowhere"),
        (["--results", "mine"], 4, "it is a folder"),
        (["--report", "mine/cases.yaml"], 4, "it is a file"),
        (["--reslts", "x"], 4, "unrecognized arguments"),
    ],
)
def test_bad_options_say_what_is_wrong(tmp_path, options, status, said):
    write(tmp_path, f"title: Mine\ncases:\n{GOOD}")
    paths = [] if options == ["nowhere"] else ["mine"]
    done = conformance("run", *paths, *options, cwd=tmp_path, check=status)
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_an_interrupted_run_keeps_what_ran_and_is_not_complete(tmp_path):
    slow = native("slow", "import time\ntime.sleep(60)\nreturn 1")
    write(tmp_path, f"title: Mine\ncases:\n{GOOD}{slow}")
    process = subprocess.Popen(
        [sys.executable, "-m", "conformance", "run", "mine", "--report", "site"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    partial = tmp_path / "reports/results.jsonl.partial"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (
        partial.exists() and b'"good"' in partial.read_bytes().replace(b"mine/cases/", b"")
    ):
        if partial.exists() and b"mine/cases/good" in partial.read_bytes():
            break
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "incomplete: 1 of 2 checks" in said
    assert not (tmp_path / "reports/results.jsonl").exists()
    run = read(partial)
    assert not run.complete
    assert [check.case for check in run.checks] == ["mine/cases/good"]
    assert "incomplete" in (tmp_path / "site/index.html").read_text().lower()


@pytest.mark.parametrize("seconds", [0.2, 0.6])
def test_an_interrupt_while_the_command_is_being_loaded_is_answered_like_any_other(tmp_path, seconds):
    write(tmp_path, f"title: Mine\ncases:\n{GOOD}")
    process = subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "conformance", "run", "mine"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in process.stderr:
        if line.rstrip().endswith(" argparse"):  # the command's own imports have begun
            break
    time.sleep(seconds - 0.2)
    process.send_signal(signal.SIGINT)
    said, errors = process.communicate(timeout=60)
    assert process.returncode == 2, said
    assert "Traceback" not in said + errors


def test_a_killed_run_leaves_a_readable_file_and_no_hosts(tmp_path):
    slow = native("slow", "import time\ntime.sleep(61)\nreturn 1")
    write(tmp_path, f"title: Mine\ncases:\n{GOOD}{slow}")
    process = subprocess.Popen([sys.executable, "-m", "conformance", "run", "mine"], cwd=tmp_path, stdout=subprocess.DEVNULL)
    partial = tmp_path / "reports/results.jsonl.partial"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (partial.exists() and b"mine/cases/good" in partial.read_bytes()):
        time.sleep(0.1)
    children = _descendants(process.pid)
    assert children
    process.kill()
    process.wait()
    run = read(partial)
    assert not run.complete
    assert [check.outcome for check in run.checks] == ["conforms"]
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and any(_alive(pid) for pid in children):
        time.sleep(0.2)
    assert not [pid for pid in children if _alive(pid)]


def _descendants(pid: int) -> list[int]:
    told = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout
    children = [int(word) for word in told.split()]
    return [*children, *(child for parent in children for child in _descendants(parent))]


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] != "Z"
    except OSError:
        return False


def test_results_that_cannot_be_written_end_the_run_with_one_message(tmp_path):
    """A limit on the size of files stands for a disk that is full."""
    write(tmp_path, "title: Mine\ncases:\n" + "".join(native(f"case-{i}", "return 1") for i in range(100)))
    limit = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)); from conformance.cli import main; "
    done = subprocess.run(
        [sys.executable, "-c", limit + "sys.exit(main(['run', 'mine']))"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 2
    assert "could not be written to reports/results.jsonl.partial: File too large" in said
    assert "Traceback" not in said
    kept = read(tmp_path / "reports/results.jsonl.partial")
    assert kept.checks
    assert not kept.complete


def test_junit_lf_and_markers_work(tmp_path):
    write(tmp_path, f"title: Mine\ncases:\n{GOOD}{native('wrong', 'return 2')}")
    conformance("run", "mine", "--", "--junitxml=junit.xml", cwd=tmp_path, check=1)
    assert 'failures="1"' in (tmp_path / "junit.xml").read_text()
    again = conformance("run", "mine", "--", "--lf", cwd=tmp_path, check=1)
    assert "1 failed" in again.stdout
    assert "passed" not in again.stdout
    chosen = conformance("run", "mine", "-m", "numpy and eager and cpu and mine", "-k", "good", cwd=tmp_path, check=0)
    assert "1 passed" in chosen.stdout
    assert "2 deselected" in conformance("run", "mine", "-m", "torch", cwd=tmp_path, check=5).stdout


def test_list_names_each_check_without_running_it(tmp_path):
    write(tmp_path, f"title: Mine\ncases:\n{GOOD}")
    listed = [json.loads(line) for line in conformance("list", "mine", "--json", cwd=tmp_path, check=0).stdout.splitlines()]
    assert listed == [
        {
            "case": "mine/cases/good",
            "area": "mine",
            "claim": "a case that the tests made",
            "parameters": {},
            "target": "numpy:eager@cpu",
            "expected": "conforms",
        }
    ]


def test_hosts_of_another_interpreter_are_used(tmp_path):
    write(
        tmp_path,
        f"title: Mine\ncases:\n{GOOD.replace('return 1', 'import sys; return sys.executable').replace('value: 1', 'dtype: str')}",
    )
    other = tmp_path / "other"
    subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", "--without-pip", other], check=True)
    site = next((other / "lib").glob("python*/site-packages"))
    (site / "here.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    conformance("run", "mine", "--host", f"numpy={other}/bin/python", cwd=tmp_path, check=0)
    (check,) = read(tmp_path / "reports/results.jsonl").checks
    assert check.observation["results"][0]["value"] == f"{other}/bin/python"


@pytest.mark.parametrize("options", [["-n", "0"], ["-n", "2"], ["--", "-p", "no:randomly"]])
def test_the_same_outcomes_with_and_without_workers(tmp_path, options):
    cases = "".join(native(f"case-{i}", f"return {i % 3}") for i in range(12))
    two = cases.replace("    expect", "      torch: return 1\n    expect")
    write(tmp_path, f"title: Mine\ncases:\n{two}")
    conformance("run", "mine", *options, cwd=tmp_path, check=1)
    run = read(tmp_path / "reports/results.jsonl")
    assert run.complete
    expected = {f"mine/cases/case-{i}": "conforms" if i % 3 == 1 else "unexpected" for i in range(12)}
    assert {check.case: check.outcome for check in run.checks if check.target == "numpy:eager@cpu"} == expected
    assert {check.outcome for check in run.checks if check.target == "torch:eager@cpu"} == {"conforms"}
