"""Environments of releases: what may be asked for, which Python takes them, and what the registry says of them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from packaging.version import Version

from conformance import environment
from conformance.environment import CannotInstall, lock, locked, pinned, python_of, releases, why_not


def pip(monkeypatch: pytest.MonkeyPatch, out: str = "", err: str = "", status: int = 0) -> list[tuple[str, ...]]:
    """A pip that says this; what it was asked."""
    asked: list[tuple[str, ...]] = []

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        asked.append(arguments)
        return subprocess.CompletedProcess([], status, out, err)

    monkeypatch.setattr(environment, "_pip", run)
    return asked


def test_a_release_and_its_name(monkeypatch):
    plain = pinned("jax == 0.9.2")
    assert (plain.framework, plain.requirement, plain.version) == ("jax", "jax==0.9.2", Version("0.9.2"))
    assert pinned("tensorflow-cpu==2.21.0").framework == "tensorflow"
    assert pinned("jax[k8s]==0.9.2").requirement == "jax[k8s]==0.9.2"
    names = {plain.name, pinned("jax==0.9.2", ["flax==0.12.8"]).name, pinned("jax==0.9.1").name}
    assert len(names) == 3
    assert pinned("jax==0.9.2", ["a", "b"]).name == pinned("jax==0.9.2", ["b", "a"]).name


def test_the_releases_that_pip_lists_in_order(monkeypatch):
    pip(monkeypatch, "jax (0.10.2)\nAvailable versions: 0.10.2, 0.9.2, 0.10.0\n  INSTALLED: 0.10.2\n", "WARNING: experimental")
    assert releases("jax") == [Version("0.9.2"), Version("0.10.0"), Version("0.10.2")]
    pip(monkeypatch, "", "ERROR: No matching distribution found for jaxx", 1)
    with pytest.raises(CannotInstall, match="no releases of jaxx are to be had: ERROR: No matching"):
        releases("jaxx")


def test_a_release_that_is_no_good(monkeypatch):
    pip(monkeypatch, json.dumps({"install": [{"is_yanked": False}]}))
    assert why_not("jax==0.9.2") == ""
    asked = pip(monkeypatch, json.dumps({"install": [{"is_yanked": True}]}))
    assert why_not("jax==0.9.2") == "was yanked"
    assert "--dry-run" in asked[0]
    pip(monkeypatch, "", "ERROR: No matching distribution", 1)
    assert why_not("jax==0.9.2") == "has no wheel for this Python"


def test_the_first_python_that_takes_a_release_is_kept(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CONFORMANCE_CACHE", str(tmp_path))
    monkeypatch.setattr(environment, "_interpreters", lambda: ["old", "new"])
    made = []

    def make(folder: Path, python: Path, interpreter: str, requirements: list[str]) -> str:
        made.append((interpreter, requirements))
        if interpreter == "old":
            return "needs Python 3.12"
        python.parent.mkdir(parents=True)
        python.touch()
        return ""

    monkeypatch.setattr(environment, "_make", make)
    monkeypatch.setattr(environment, "_listed", lambda python: "flax==0.12.8\njax==0.10.2\nabsl-py==2.5.1\n")
    release = pinned("jax==0.10.2", ["flax==0.12.8"])
    python = python_of(release)
    assert python.exists()
    assert made == [(name, ["jax==0.10.2", "flax==0.12.8", "numpy", "packaging"]) for name in ("old", "new")]
    assert capsys.readouterr().err == "making an environment with jax==0.10.2 flax==0.12.8\n"
    assert python_of(release) == python
    assert len(made) == 2
    (tmp_path / "list").write_text(lock(release))
    assert (tmp_path / "list").read_text() == "jax==0.10.2\nabsl-py==2.5.1\nflax==0.12.8\n"
    assert locked(tmp_path / "list").companions == ("absl-py==2.5.1", "flax==0.12.8")


def test_no_python_that_takes_a_release(tmp_path, monkeypatch):
    monkeypatch.setenv("CONFORMANCE_CACHE", str(tmp_path))
    monkeypatch.setattr(environment, "_interpreters", lambda: ["one", "two"])
    monkeypatch.setattr(environment, "_make", lambda folder, python, interpreter, requirements: f"not on {interpreter}")
    with pytest.raises(CannotInstall, match=r"no Python here can install jax==99.0:\n  one: not on one\n  two: not on two"):
        python_of(pinned("jax==99.0"))
    assert list((tmp_path / "environments").iterdir()) == []


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("CONFORMANCE_CACHE", str(tmp_path / "file"))
    with pytest.raises(CannotInstall, match="cannot be made"):
        python_of(pinned("jax==0.9.2"))
