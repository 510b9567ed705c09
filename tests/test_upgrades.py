"""Upgrades of the world outside, end to end: the gate reports what is known to have changed, and nothing of it where it did not.

Environments with real releases are made, kept, and used again; the first time this takes some minutes.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from conformance.environment import pinned
from conformance.library import cases_path

pytestmark = pytest.mark.slow

UPGRADES: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "upgrades.yaml").read_text())
SILENT = sorted({(*pair, case) for upgrade in UPGRADES for pair in upgrade["silent"] for case in upgrade["changes"]})


def files(framework: str) -> list[str]:
    """The case files that any upgrade of the framework is about: so each release is run once."""
    cases = {case for upgrade in UPGRADES if pinned(upgrade["before"]).framework == framework for case in upgrade["changes"]}
    return sorted({str(cases_path() / f"{case.rpartition('/')[0]}.yaml") for case in cases})


def gate(before: str, after: str, folder: Path) -> dict[str, set[str]]:
    """Which cases the gate says have changed, and how."""
    paths = [word for file in files(pinned(before).framework) for word in ("--path", file)]
    command = [sys.executable, "-m", "conformance", "gate", before, after, *paths, "--json", str(folder / "gate.json")]
    done = subprocess.run(command, capture_output=True, text=True)
    if "no Python here can install" in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.returncode in (0, 1), done.stderr
    found = msgspec.json.decode((folder / "gate.json").read_bytes())
    assert not found["unsteady"]
    changed: dict[str, set[str]] = {}
    for each in found["counting"]:
        changed.setdefault(each["case"], set()).add(each["change"])
    return changed


@pytest.mark.parametrize("upgrade", UPGRADES, ids=lambda upgrade: f"{upgrade['before']} -> {upgrade['after']}")
def test_the_gate_reports_what_is_known_to_have_changed(upgrade, tmp_path):
    changed = gate(upgrade["before"], upgrade["after"], tmp_path)
    assert {case: changed.get(case) for case in upgrade["changes"]} == {
        case: {change} for case, change in upgrade["changes"].items()
    }


@pytest.mark.parametrize("pair", sorted({(before, after) for before, after, _ in SILENT}), ids=" -> ".join)
def test_the_gate_is_silent_of_what_has_not_changed(pair, tmp_path):
    changed = gate(*pair, tmp_path)
    assert changed.keys() & {case for *of, case in SILENT if tuple(of) == pair} == set()
