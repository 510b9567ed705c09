"""Runs in parts, runs that are repeated, and the search for the release that brought a change."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.version import Version
from runs import ENVIRONMENT, case_line, check, edit, seen, write
from test_run import conformance

from conformance.bisection import Skipped, search
from conformance.cli import main
from conformance.repeat import unstable
from conformance.results import ResultsError, outline, read

CASES = """
title: Mine
cases:
  - id: many
    claim: one is one, many times
    parametrize: {i: [0, 1, 2, 3, 4, 5, 6]}
    native: {numpy: return 1 + 0 * $i}
    expect: {value: 1}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/cases.yaml").write_text(CASES)
    return tmp_path


def test_shards_are_parts_of_a_run_and_merge_into_it(folder):
    conformance("run", "mine", "--results=whole.jsonl", cwd=folder, check=0)
    for index in (1, 2, 3):
        conformance("run", "mine", f"--shard={index}/3", f"--results=shards/{index}.jsonl", cwd=folder, check=0)
    sizes = [len(read(folder / f"shards/{index}.jsonl").checks) for index in (1, 2, 3)]
    assert sorted(sizes) == [2, 2, 3]
    files = [f"shards/{index}.jsonl" for index in (3, 1, 2)]
    done = conformance("merge", *files, "-o", "merged.jsonl", cwd=folder, check=0)
    assert "merged.jsonl: 7 checks" in done.stdout
    assert (folder / "merged.jsonl").read_bytes() == (folder / "whole.jsonl").read_bytes()
    assert len(read(folder / "merged.jsonl").checks) == 7
    for words in (["shards"], sorted(map(str, (folder / "shards").glob("*.jsonl")))):
        conformance("merge", *words, "-o", "again.jsonl", cwd=folder, check=0)
        assert (folder / "again.jsonl").read_bytes() == (folder / "whole.jsonl").read_bytes()
    conformance("gate", "whole.jsonl", "shards", cwd=folder, check=0)
    done = conformance("merge", *files[:2], "-o", "part.jsonl", cwd=folder, check=4)
    assert done.stderr == "conformance: of 3 shards, 2 is missing\n"
    done = conformance("gate", "whole.jsonl", "shards/1.jsonl", cwd=folder, check=2)
    assert "shards/1.jsonl is shard 1 of 3: merge them first" in done.stderr
    conformance("run", "mine", "-k", "many and not [6-", "--shard=2/3", "--results=shards/2.jsonl", cwd=folder, check=0)
    done = conformance("merge", *files, "-o", "mixed.jsonl", cwd=folder, check=4)
    assert "are shards of two runs, which did not select the same checks" in done.stderr


def test_a_shard_may_have_nothing_to_do(folder):
    conformance("run", "mine", "--shard=8/9", "--results=8.jsonl", cwd=folder, check=0)
    empty = read(folder / "8.jsonl")
    assert empty.complete
    assert empty.checks == []


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "a/b", "-1/2"])
def test_a_shard_that_is_none(text, folder):
    done = conformance("run", "mine", f"--shard={text}", cwd=folder, check=4)
    assert f"--shard {text!r}: write I/N" in done.stderr


def test_only_the_checks_that_a_file_names(folder):
    (folder / "names").write_text("mine/cases/many[3-numpy:eager@cpu]\n\nmine/cases/many[5-numpy:eager@cpu]\n")
    conformance("run", "mine", "--only=names", cwd=folder, check=0)
    assert [line.row for line in read(folder / "reports/results.jsonl").checks] == ["3", "5"]
    (folder / "names").write_text("mine/cases/none[numpy:eager@cpu]\n")
    done = conformance("run", "mine", "--only=names", cwd=folder, check=4)
    assert "there is no check 'mine/cases/none[numpy:eager@cpu]'" in done.stderr


def merge(*arguments: object) -> int:
    return main(["merge", *map(str, arguments)])


def test_what_is_merged_of_several_frameworks(tmp_path):
    write(tmp_path / "jax.jsonl", check())
    write(tmp_path / "torch.jsonl", check(target="torch:eager@cpu"), python={"torch": "3.12"}, packages={"torch": {"torch": "2"}})
    assert merge(tmp_path / "jax.jsonl", tmp_path / "torch.jsonl", tmp_path / "jax.jsonl", "-o", tmp_path / "all.jsonl") == 0
    run = read(tmp_path / "all.jsonl")
    assert [line.target for line in run.checks] == ["jax:eager@cpu", "torch:eager@cpu"]
    assert run.header.environment == ENVIRONMENT | {
        "python": {"jax": "3.11.7", "torch": "3.12"},
        "packages": {"jax": ENVIRONMENT["packages"]["jax"], "torch": {"torch": "2"}},
    }
    assert run.started


def test_what_is_not_merged(tmp_path, capsys):
    good = write(tmp_path / "a.jsonl", check())
    for name, bad, said in [
        ("clash", write(tmp_path / "b.jsonl", check(observation=seen(2.0))), "do not agree on it"),
        ("edited", write(tmp_path / "c.jsonl", check(row="x"), cases=(case_line(digest="e"),)), "was edited between them"),
        ("cut", write(tmp_path / "d.jsonl", check(row="x"), complete=False), "is incomplete"),
        (
            "version",
            write(tmp_path / "e.jsonl", check(row="x"), packages={"jax": {"jax": "1"}}),
            "the packages of jax is jax 1 here",
        ),
        ("python", write(tmp_path / "f.jsonl", check(row="x"), python={"jax": "3.13"}), "the python of jax is 3.13 here"),
        ("hand", edit(write(tmp_path / "g.jsonl", check(row="x")), "conforms", "x"), "was edited since it was written"),
    ]:
        assert merge(good, bad, "-o", tmp_path / "out.jsonl") == 4, name
        assert said in capsys.readouterr().err
    assert not (tmp_path / "out.jsonl").exists()


# --- repeated


FLAKY = """
  - id: counts
    claim: the number of times that it was asked
    native:
      numpy: |
        import pathlib
        file = pathlib.Path("MARK")
        times = len(file.read_text()) if file.exists() else 0
        file.write_text("x" * (times + 1))
        return times
    expect: {value: 0}
"""


def test_checks_that_do_not_agree_with_themselves_are_named(folder):
    done = conformance("run", "mine", "--repeat=3", cwd=folder, check=0)
    assert "3 runs: 0 checks not the same each time" in done.stdout
    (folder / "mine/cases.yaml").write_text(CASES + FLAKY.replace("MARK", str(folder / "mark")))
    done = conformance("run", "mine", "--repeat=3", cwd=folder, check=1)
    assert "3 runs: 1 check not the same each time\nmine/cases/counts[numpy:eager@cpu]\n" in done.stdout
    assert "  run 1: conforms (result 0 (Python int))\n" in done.stdout
    assert "  run 3: unexpected" in done.stdout
    assert len(read(folder / "reports/results.jsonl").checks) == 8
    assert "say 2 or more" in conformance("run", "mine", "--repeat=1", cwd=folder, check=4).stderr


def test_what_is_rounding_is_the_same_each_time(tmp_path):
    runs = [
        outline(
            write(tmp_path / f"{i}.jsonl", check(observation=seen(1.0 + i * 1e-7)), check("area/topic/b", observation=seen(i)))
        )
        for i in range(3)
    ]
    (found,) = unstable(runs)
    assert found.name == "area/topic/b[jax:eager@cpu]"
    assert len(found.seen) == 3


# --- bisect


def releases(*texts: str) -> list[Version]:
    return [Version(text) for text in texts]


ALL = releases(*(f"0.{i}" for i in range(1, 11)))


@pytest.mark.parametrize("first", range(1, 10))
@pytest.mark.parametrize("missing", [(), (4,), (2, 3, 4, 5, 6, 7, 8), (1, 5, 8)])
def test_the_first_release_that_differs_is_found(first, missing, tmp_path):
    asked = []

    def look(version):
        asked.append(version)
        number = ALL.index(version)
        if number in missing and number not in (0, 9):
            raise Skipped("no wheel")
        return outline(
            write(tmp_path / f"{version}.jsonl", check(outcome="new" if number >= first else "old", expected=None, passed=True))
        )

    found = search(ALL, look)
    there = [number for number in range(10) if number not in missing or number in (0, 9)]
    assert found.bad == ALL[min(number for number in there if number >= first)]
    assert found.good == ALL[max(number for number in there if number < first)]
    assert list(found.tried) == sorted(asked)
    assert len(asked) == len(set(asked))
    assert found.between == [ALL[n] for n in range(10) if n in missing and found.good < ALL[n] < found.bad]
    assert found.tried[found.bad].text == "new"


def test_a_search_of_what_does_not_differ(tmp_path):
    with pytest.raises(ResultsError, match=r"0\.1 and 0\.10 show the same: conforms"):
        search(ALL, lambda version: outline(write(tmp_path / f"{version}.jsonl", check())))


@pytest.mark.parametrize(("blind", "said"), [("0.1", "none of the checks could run"), ("0.10", "0.10: its checks could not run")])
def test_a_search_whose_ends_could_not_run(blind, said, tmp_path):
    lines = {version: check(outcome="not-run" if str(version) == blind else "conforms") for version in ALL}
    with pytest.raises(ResultsError, match=said):
        search(ALL, lambda version: outline(write(tmp_path / f"{version}.jsonl", lines[version])))


def test_what_several_checks_of_a_case_showed(tmp_path):
    def look(version):
        new = check(observation=seen(2.0)) if version >= Version("0.4") else check()
        return outline(write(tmp_path / f"{version}.jsonl", new, check(row="x")))

    found = search(ALL, look)
    assert found.bad == Version("0.4")
    assert found.tried[found.bad].text == "2 conforms; 1 of 2 checks differs"
    assert found.tried[found.good].text == "2 conforms; 0 of 2 checks differ"
