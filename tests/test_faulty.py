"""The suite tested: frameworks with one fault each, which the cases must see, and healthy ones, in which they must see nothing.

Those with a twin are found by entry point, so this is also the test of adding a framework; the others are torch, jax and tensorflow
with a part replaced. See tests/faulty/changes.py for how to review and update what each fault is expected to change.
"""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "faulty"


def _module(path: Path):
    """Loaded by its place: with its folder on the path, other tests would find the faulty frameworks too."""
    spec = importlib.util.spec_from_file_location(f"faulty_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


changes = _module(HERE / "changes.py")
REVIEWED = changes.reviewed()


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faulty")
    cache = str(folder / "cache")
    return {twin: changes.run(twin, folder / f"{twin}.jsonl", CONFORMANCE_CACHE=cache) for twin in changes.CASES}


@pytest.fixture(scope="module")
def found(runs):
    """The frameworks that are patched pass everything before; or this fails."""
    of_twins = {name: cases for run in runs.values() for name, cases in changes.changes(run).items()}
    return of_twins | changes.run_patched()


def test_every_fault_is_run_and_reviewed(found):
    said = subprocess.run(
        [sys.executable, "-c", "import faults, gradient_faults; print(*faults.FAULTS, *gradient_faults.FAULTS)"],
        env=changes.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.split() == list(changes.twins())
    assert [*changes.twins(), *changes.patches.FAULTS] == list(REVIEWED)
    assert found.keys() == REVIEWED.keys()
    assert [name for name, entry in REVIEWED.items() if entry["fault"] == "TODO"] == []


def test_the_healthy_twin_passes_everything(runs):
    checks = [check for check in runs["twin"].checks if check.target.startswith("twin:")]
    assert runs["twin"].complete
    assert {check.target for check in checks} == {"twin:eager@cpu", "twin:compiled@cpu"}
    assert {check.case.rpartition("/")[0] for check in checks} >= {"matmul/broadcasting", "masks/length", "retrace/shapes"}
    assert [f"{check.identity}: {check.outcome}" for check in checks if not check.passed] == []


@pytest.mark.parametrize("name", list(REVIEWED))
def test_a_fault_is_seen_by_the_cases_that_name_it_and_by_no_others(name, found):
    seen = found[name]
    assert sorted(seen) == sorted(changes.listed(REVIEWED[name])), REVIEWED[name]["fault"]
    assert any(change.visible for each in seen.values() for change in each), "no outcome has changed"
