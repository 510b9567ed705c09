"""Case files in a folder of their own, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from conformance import library
from conformance.document import CaseError
from conformance.expand import Check, expand
from conformance.load import load


@pytest.fixture
def write_cases(tmp_path: Path) -> Callable[[str | bytes], Path]:
    """Write a case file ``area/topic.yaml``."""

    def write(text: str | bytes) -> Path:
        path = tmp_path / "area" / "topic.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture
def checks_of(write_cases: Callable[[str | bytes], Path]) -> Callable[..., list[Check]]:
    """The checks of a case file."""
    return lambda text, device="cpu": expand(load(write_cases(text), "f.yaml"), device)


@pytest.fixture
def complaints(
    write_cases: Callable[[str | bytes], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str | bytes], list[str]]:
    """The lines that are said of a case file; none where it has no mistake. Any other error is a bug."""
    monkeypatch.setenv("CONFORMANCE_CACHE", str(tmp_path / "cache"))

    def say(text: str | bytes) -> list[str]:
        try:
            library.unit(write_cases(text), "cpu", "f.yaml")
        except CaseError as error:
            return str(error).splitlines()
        return []

    return say
