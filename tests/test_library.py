"""Compiled case files and their cache."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance import library
from conformance.document import CaseError

CASE = """\
title: T
cases:
  - id: one
    claim: one and one make two
    inputs: {x: 1.0}
    program: x + x
    expect: {value: reference}
    tolerance: {because: it is tested, rtol: 0.5}
  - id: two
    claim: two and two make four, or not a number
    inputs: {x: [.nan, -.inf]}
    program: x * 2
    outcomes: {none: {every: .nan}, some: {value: [.nan, -.inf]}}
    expect: {any: some}
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CONFORMANCE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that are compiled, in order, rather than taken from the cache."""
    files: list[Path] = []
    compile_ = library._compile

    def counting(path: Path, device: str, shown: str) -> library.Unit:
        files.append(path)
        return compile_(path, device, shown)

    monkeypatch.setattr(library, "_compile", counting)
    return files


def write(folder: Path, name: str = "area/topic.yaml", text: str = CASE) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def same(a: library.Unit, b: library.Unit) -> bool:
    """NaN is not equal to itself, but is written the same."""
    return repr(a) == repr(b)


def test_a_unit_holds_cases_and_checks(tmp_path: Path, cache: Path) -> None:
    unit = library.unit(write(tmp_path))
    assert [card.identity for card in unit.cases] == ["area/topic/one", "area/topic/two"]
    assert len(unit.checks) == 18
    first = unit.checks[0]
    assert (first.name, first.target, unit.card(first)) == ("one[numpy:eager@cpu]", "numpy:eager@cpu", unit.cases[0])
    assert first.reference is not None
    assert first.reference.float64
    assert unit.checks[-1].reference is None


def test_what_was_compiled_is_read_back_the_same(tmp_path: Path, cache: Path, compiled: list[Path]) -> None:
    path = write(tmp_path)
    made = library.unit(path)
    assert same(library.unit(path), made)
    assert compiled == [path]


def test_touching_one_file_compiles_that_file_only(tmp_path: Path, cache: Path, compiled: list[Path]) -> None:
    paths = [write(tmp_path, f"area/{name}.yaml") for name in ("a", "b", "c")]
    for path in paths:
        library.unit(path)
    paths[1].write_text(CASE.replace("one and one", "one plus one"))
    compiled.clear()
    for path in paths:
        library.unit(path)
    assert compiled == [paths[1]]


def test_a_moved_file_is_another_topic(tmp_path: Path, cache: Path) -> None:
    library.unit(write(tmp_path))
    assert library.unit(write(tmp_path, "area/other.yaml")).cases[0].identity == "area/other/one"
    assert library.unit(write(tmp_path, "elsewhere/topic.yaml")).cases[0].identity == "elsewhere/topic/one"


def test_another_device_is_compiled_anew(tmp_path: Path, cache: Path) -> None:
    path = write(tmp_path)
    assert library.unit(path).checks[0].device == "cpu"
    assert library.unit(path, "tpu").checks[0].device == "tpu"


@pytest.mark.parametrize(
    "spoil", [lambda content: b"", lambda content: content[:-10], lambda content: b"\xff" * 100, lambda content: b"\x80"]
)
def test_a_broken_cache_file_is_ignored(
    tmp_path: Path, cache: Path, compiled: list[Path], spoil: Callable[[bytes], bytes]
) -> None:
    path = write(tmp_path)
    made = library.unit(path)
    (kept,) = cache.iterdir()
    kept.write_bytes(spoil(kept.read_bytes()))
    assert same(library.unit(path), made)
    assert len(compiled) == 2
    assert same(library.unit(path), made)
    assert len(compiled) == 2


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_text("in the way")
    monkeypatch.setenv("CONFORMANCE_CACHE", str(file / "cache"))
    assert library.unit(write(tmp_path)).checks
    assert file.read_text() == "in the way"


def test_what_the_cache_cannot_hold_is_compiled_each_time(tmp_path: Path, cache: Path, compiled: list[Path]) -> None:
    huge = f"native: {{numpy: return 1}}\n    expect: {{value: {2**70}}}"
    path = write(tmp_path, text=CASE.partition("    inputs")[0] + f"    {huge}\n")
    assert library.unit(path).checks[0].outcomes["conforms"].value == 2**70
    library.unit(path)
    assert len(compiled) == 2


def test_a_file_with_mistakes_is_not_kept(tmp_path: Path, cache: Path) -> None:
    path = write(tmp_path, text=CASE.replace("x + x", "x + y"))
    for _ in range(2):
        with pytest.raises(CaseError, match="unknown name 'y'"):
            library.unit(path)
    assert not cache.exists()


def test_mistakes_of_lowering_have_a_place(tmp_path: Path, cache: Path) -> None:
    path = write(tmp_path, text=CASE.replace("x + x", "sum(x, dtype=float64)"))
    with pytest.raises(CaseError) as caught:
        library.unit(path, shown="f.yaml")
    assert str(caught.value) == "f.yaml:6:14: tensorflow's sum() takes no dtype in case 'one'"


def test_case_files_are_those_with_cases(tmp_path: Path) -> None:
    wanted = [
        write(tmp_path, "b/two.yaml"),
        write(tmp_path, "a/one.yaml"),
        write(tmp_path, "a/bom.yaml", f"\ufeffcases:\n{CASE}"),
    ]
    write(tmp_path, "a/other.yaml", "name: CI\non: push\n")
    write(tmp_path, "a/text.txt")
    write(tmp_path, "a/not.yaml", "x: |\n  cases:\n")
    (tmp_path / "folder.yaml").mkdir()
    assert list(library.case_files([tmp_path])) == sorted(wanted)
    assert list(library.case_files([wanted[0], wanted[1]])) == wanted[:2]


def test_the_cases_that_come_along_are_found() -> None:
    assert any(library.case_files([library.cases_path()]))


def test_compiling_imports_no_framework(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom pathlib import Path\nimport conformance.cli, conformance.plugin, conformance.judge\n"
        "from conformance import library\n"
        f"assert library.unit(Path({str(write(tmp_path))!r})).checks\n"
        "print([name for name in ('torch', 'jax', 'jaxlib', 'tensorflow', 'keras', 'flax') if name in sys.modules])"
    )
    environment = {**os.environ, "CONFORMANCE_CACHE": str(tmp_path / "cache")}
    root = Path(__file__).parent.parent
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment, cwd=root)
    assert done.stdout.strip() == "[]"
