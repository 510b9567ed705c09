"""The same cases give the same file, byte for byte: in one process, over workers, and in the opposite order."""

import os
import subprocess
import sys

from conformance.library import cases_path

PATHS = (
    *("capture/rebinding.yaml", "grad/jvp-then-transpose.yaml", "masks/in-place.yaml", "masks/packing.yaml"),
    *("modules/registration.yaml", "primitives/callbacks.yaml", "retrace/shapes.yaml", "sharding/placement.yaml"),
)

BACKWARD = """
import pytest

@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    items.reverse()
"""


def run(folder, name, *options):
    results = folder / f"{name}.jsonl"
    paths = [str(cases_path() / path) for path in PATHS]
    done = subprocess.run(
        [sys.executable, "-m", "conformance", "run", *paths, f"--results={results}", *options, "-q"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return results.read_bytes()


def test_order_and_workers_change_nothing(tmp_path):
    (tmp_path / "backward.py").write_text(BACKWARD)
    plain = run(tmp_path, "plain", "-n", "0", "--")
    assert plain.count(b'"kind":"check"') > 100
    assert run(tmp_path, "workers", "-n", "2", "--") == plain
    assert run(tmp_path, "backward", "--", "-p", "backward") == plain
