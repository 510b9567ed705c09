"""Runs that are kept: what a file says of an older release, and that it is read back whole."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import msgspec
import pytest
from runs import ENVIRONMENT, case_line, check, edit, seen, write

from conformance import baseline, environment, library, side
from conformance.cli import main
from conformance.environment import Pinned, pinned
from conformance.results import ResultsError, outline, read

OTHER = "area/topic/other"


def packages(version: str, framework: str = "jax") -> dict:
    return {
        "python": {framework: "3.11.7"},
        "packages": {framework: {framework: version, "numpy": "2.4.6"}},
    }


def kept(folder, *runs):
    """Keep runs that never were: (version, its checks)."""
    made = []
    for number, (version, *checks) in enumerate(runs):
        path = write(folder / f"run{number}{version}.jsonl", *checks, **packages(version))
        made += baseline.kept(outline(path))
    return {each.path.name: each for each in baseline.write(folder / "kept", made)}


def rows(folder, name):
    """What a kept file says, but for the header and the footer."""
    return [msgspec.json.decode(line) for line in (folder / "kept" / name).read_bytes().splitlines()[1:-1]]


def test_an_older_release_is_what_is_other_in_it(tmp_path):
    newest = [check(observation=seen(1.0)), check(OTHER)]
    written = kept(tmp_path, ("0.9.2", check(observation=seen(2.0)), check(OTHER)), ("0.10.2", *newest))
    assert [written[name].said for name in ("jax-0.10.2.jsonl", "jax-0.9.2.jsonl")] == [2, 1]
    assert [(row["kind"], row["case"]) for row in rows(tmp_path, "jax-0.9.2.jsonl")] == [("check", "area/topic/sum")]
    old = read(tmp_path / "kept/jax-0.9.2.jsonl")
    assert old.complete
    assert old.header.environment == ENVIRONMENT | packages("0.9.2")
    assert [line.observation for line in old.checks] == [seen(1.0), seen(2.0)]
    assert old.cases.keys() == {"area/topic/sum", OTHER}
    assert old.sources == {"s": "source"}


def test_each_release_is_told_from_the_next(tmp_path):
    written = kept(
        tmp_path,
        ("0.4.38", check(observation=seen(2.0)), check(OTHER)),
        ("0.9.2", check(observation=seen(2.0)), check(OTHER)),
        ("0.10.2", check(), check(OTHER)),
    )
    assert {name: (each.base, each.said) for name, each in written.items()} == {
        "jax-0.10.2.jsonl": ("", 2),
        "jax-0.9.2.jsonl": ("jax-0.10.2", 1),
        "jax-0.4.38.jsonl": ("jax-0.9.2", 0),
    }
    assert read(tmp_path / "kept/jax-0.4.38.jsonl").checks[1].observation == seen(2.0)


def test_new_and_gone_checks_and_cases_of_an_older_release(tmp_path):
    kept(tmp_path, ("0.9.2", check(OTHER, source="t")), ("0.10.2", check()))
    assert [row["kind"] for row in rows(tmp_path, "jax-0.9.2.jsonl")] == ["case", "source", "gone", "check"]
    old = read(tmp_path / "kept/jax-0.9.2.jsonl")
    assert (list(old.cases), list(old.sources), [line.case for line in old.checks]) == ([OTHER], ["t"], [OTHER])


@pytest.mark.parametrize(
    ("again", "stays"),
    [
        (check(observation=seen(1.0000001)), True),
        (check(observation=seen(1.1)), False),
        (check(outcome="other", expected="other"), False),
        (check(expected="other"), False),
        (check(source="t"), False),
    ],
)
def test_a_line_stays_where_the_gate_would_not_tell_it_from_another(again, stays, tmp_path):
    kept(tmp_path, ("0.10.2", check()))
    before = (tmp_path / "kept/jax-0.10.2.jsonl").read_bytes()
    kept(tmp_path, ("0.10.2", again))
    assert ((tmp_path / "kept/jax-0.10.2.jsonl").read_bytes() == before) is stays


def test_a_newer_release_takes_the_place_of_the_newest(tmp_path):
    kept(tmp_path, ("0.9.2", check(observation=seen(2.0))), ("0.10.2", check()))
    older = (tmp_path / "kept/jax-0.9.2.jsonl").read_bytes()
    written = kept(tmp_path, ("0.11.0", check(observation=seen(3.0))))
    assert {name: each.base for name, each in written.items()}["jax-0.10.2.jsonl"] == "jax-0.11.0"
    assert (tmp_path / "kept/jax-0.9.2.jsonl").read_bytes() == older
    assert [read(tmp_path / f"kept/jax-{v}.jsonl").checks[0].observation for v in ("0.9.2", "0.10.2", "0.11.0")] == [
        seen(2.0),
        seen(1.0),
        seen(3.0),
    ]


def test_a_run_of_several_frameworks_is_kept_by_frameworks_and_without_evidence(tmp_path):
    both = {
        "python": {"jax": "3.11.7", "numpy": "3.11.7"},
        "packages": {"jax": {"jax": "0.10.2"}, "numpy": {"numpy": "2.4.6"}},
    }
    checks = [check(evidence={"printed": "text"}), check(OTHER, target="numpy:eager@cpu")]
    path = write(tmp_path / "run.jsonl", *checks, **both)
    written = baseline.write(tmp_path / "kept", baseline.kept(outline(path)))
    assert sorted(each.path.name for each in written) == ["jax-0.10.2.jsonl", "numpy-2.4.6.jsonl"]
    run = read(tmp_path / "kept/jax-0.10.2.jsonl")
    assert run.header.environment["packages"] == {"jax": {"jax": "0.10.2"}}
    assert (list(run.cases), run.checks[0].evidence) == (["area/topic/sum"], {})


def test_a_run_that_does_not_say_which_release_it_is_of(tmp_path):
    path = write(tmp_path / "run.jsonl", check(), packages={})
    with pytest.raises(ResultsError, match="does not say which release of jax was run"):
        baseline.kept(outline(path))


def test_a_file_without_its_base_or_with_another(tmp_path):
    kept(tmp_path, ("0.9.2", check(observation=seen(2.0))), ("0.10.2", check()))
    folder = tmp_path / "kept"
    newest = folder / "jax-0.10.2.jsonl"
    newest.rename(folder / "away")
    with pytest.raises(ResultsError, match=r"says what is other than in jax-0.10.2.jsonl, which is not beside it"):
        outline(folder / "jax-0.9.2.jsonl")
    write(newest, check(observation=seen(5.0)))
    with pytest.raises(ResultsError, match="is not the file that it was written for"):
        outline(folder / "jax-0.9.2.jsonl")
    (folder / "away").rename(newest)
    edit(folder / "jax-0.9.2.jsonl", "[2.0]", "[2.5]")
    with pytest.raises(ResultsError, match="was edited"):
        outline(folder / "jax-0.9.2.jsonl")


@pytest.mark.parametrize("name", ["jax-0.9.2.jsonl", "../run00.9.2.jsonl", "/etc/passwd"])
def test_a_file_that_builds_on_itself_or_on_one_that_is_elsewhere(name, tmp_path):
    kept(tmp_path, ("0.9.2", check(observation=seen(2.0))), ("0.10.2", check()))
    path = edit(tmp_path / "kept/jax-0.9.2.jsonl", '"file":"jax-0.10.2.jsonl"', f'"file":"{name}"', sign=True)
    with pytest.raises(ResultsError, match="cannot be what it builds on"):
        outline(path)


def test_files_that_are_broken_are_renewed_together(tmp_path):
    runs = [("0.9.2", check(observation=seen(2.0))), ("0.10.2", check())]
    kept(tmp_path, *runs)
    newest = tmp_path / "kept/jax-0.10.2.jsonl"
    whole = newest.read_bytes()
    write(newest, check(observation=seen(5.0)))
    with pytest.raises(ResultsError, match="is not the file that it was written for"):
        kept(tmp_path, runs[1])
    kept(tmp_path, *runs)
    assert newest.read_bytes() == whole
    assert read(tmp_path / "kept/jax-0.9.2.jsonl").checks[0].observation == seen(2.0)


def test_the_project_keeps_a_baseline_of_each_release_that_it_pins():
    root = Path(__file__).parent.parent
    kept_here = {(each.framework, str(each.version)) for each in baseline.baselines(root / "reports/baselines")}
    pins = re.findall(r"^    (numpy|torch|jax|tensorflow)==([\d.]+)", (root / "tox.ini").read_text(), re.M)
    assert {name for name, _ in pins} == {"numpy", "torch", "jax", "tensorflow"}
    assert {(name, version) for name, version in pins} <= {(name, version.partition("+")[0]) for name, version in kept_here}


# --- the command


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine on which environments are made and cases are run at once; what was run."""
    monkeypatch.setenv("CONFORMANCE_CACHE", str(tmp_path / "cache"))
    ran: list[Pinned] = []

    def python_of(release):
        folder = tmp_path / "cache/environments" / release.name
        folder.mkdir(parents=True, exist_ok=True)
        lines = [release.requirement, *release.companions, "numpy==2.4.6"]
        (folder / environment.INSTALLED).write_text("\n".join(dict.fromkeys(lines)))
        ran.append(release)
        return folder / "python"

    def run_on(framework, python, cases, results, *more):
        version = str(ran[-1].version)
        first = not more
        line = check(outcome="crashed", observation={"text": "boom"}) if first else check(observation=seen(float(len(version))))
        write(results, line, **packages(version))

    monkeypatch.setattr(side, "python_of", python_of)
    monkeypatch.setattr(side, "run_on", run_on)
    return ran


def test_the_command_runs_releases_and_runs_them_again_in_the_same_environment(machine, tmp_path, capsys):
    folder = tmp_path / "kept"
    assert main(["baseline", "jax==0.9.2 flax==0.12.0", "jax==0.10.2", "-o", str(folder)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{folder}/jax-0.10.2.jsonl: 1 check",
        f"{folder}/jax-0.9.2.jsonl: 1 check, 1 other than jax-0.10.2",
    ]
    assert (folder / "jax-0.9.2.txt").read_text() == "jax==0.9.2\nflax==0.12.0\nnumpy==2.4.6\n"
    machine.clear()
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert main(["baseline", "-o", str(folder), "--fresh"]) == 0
    assert {release.requirement: release.companions for release in machine} == {
        "jax==0.10.2": ("numpy==2.4.6",),
        "jax==0.9.2": ("flax==0.12.0", "numpy==2.4.6"),
    }
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_only_case_files_that_were_edited_are_run_again(machine, tmp_path, monkeypatch, capsys):
    files: list[list[str]] = []

    def run_on(framework, python, cases, results, *more):
        found = list(library.case_files(cases))
        cards = [card for file in found for card in library.unit(file).cases]
        files.append([file.stem for file in found])
        lines = [check(card.identity, observation=seen(float(len(files)))) for card in cards]
        write(
            results,
            *lines,
            cases=tuple(case_line(card.identity, digest=card.digest) for card in cards),
            **packages(str(machine[-1].version)),
        )

    def say(topic, claim, framework="jax"):
        text = f"title: T\ncases:\n  - {{id: sum, claim: {claim}, native: {{{framework}: return 1}}, expect: {{value: 1}}}}\n"
        (tmp_path / f"area/{topic}.yaml").write_text(text)

    def seen_now():
        kept = read(tmp_path / "kept/jax-0.9.2.jsonl")
        return {line.case: line.observation["results"][0]["value"] for line in kept.checks}

    monkeypatch.setattr(side, "run_on", run_on)
    (tmp_path / "area").mkdir()
    for topic in ("one", "two", "three"):
        say(topic, "one is the number one")
    command = ["baseline", "-o", str(tmp_path / "kept"), "--path", str(tmp_path / "area")]
    assert main([*command, "jax==0.9.2"]) == 0
    say("two", "one is not another number")
    say("four", "one is one in a new file")
    (tmp_path / "area/three.yaml").unlink()
    assert main([*command, "--edited"]) == 0
    assert files == [["one", "three", "two"], ["four", "two"]]
    assert seen_now() == {"area/one/sum": [1.0], "area/two/sum": [2.0], "area/four/sum": [2.0]}
    shutil.rmtree(tmp_path / "cache")  # on another machine
    assert main([*command, "--edited"]) == 0
    assert len(files) == 2
    say("two", "one is the number one", "numpy")
    assert main([*command, "--edited"]) == 0
    assert (len(files), seen_now().keys()) == (2, {"area/one/sum", "area/four/sum"})
    assert main([*command, "jax==0.9.2 flax==0.12.0", "--edited"]) == 0
    assert files[2:] == [["four", "one", "two"]]


def test_the_command_without_anything_to_keep(tmp_path, capsys):
    assert main(["baseline", "-o", str(tmp_path)]) == 4
    assert "lists no release to run again: name one" in capsys.readouterr().err
    assert main(["baseline", "-o", str(tmp_path), "nothing"]) == 2
    assert "'nothing' is neither a file that there is, nor a release" in capsys.readouterr().err


def test_a_release_with_what_comes_along():
    assert pinned("jax == 0.9.2").companions == ()
    both = pinned("jax==0.9.2 flax==0.12.0 absl-py", ["optax==0.2.8"])
    assert (both.requirement, both.companions) == ("jax==0.9.2", ("flax==0.12.0", "absl-py", "optax==0.2.8"))


def test_cases_that_were_edited_since(tmp_path):
    kept(tmp_path, ("0.10.2", check()))
    path = write(tmp_path / "new.jsonl", check(), cases=(case_line(digest="e"),), **packages("0.11.0"))
    baseline.write(tmp_path / "kept", baseline.kept(outline(path)))
    old = read(tmp_path / "kept/jax-0.10.2.jsonl")
    assert old.cases["area/topic/sum"].digest == "d"


# --- the gate against a folder


def test_the_gate_takes_the_release_that_the_other_side_ran_or_the_newest(tmp_path, capsys):
    kept(tmp_path, ("0.9.2", check(observation=seen(2.0))), ("0.10.2", check()))
    write(tmp_path / "same.jsonl", check(observation=seen(2.0)), **packages("0.9.2"))
    write(tmp_path / "later.jsonl", check(), **packages("0.11.0"))
    folder = str(tmp_path / "kept")
    assert main(["gate", folder, str(tmp_path / "same.jsonl")]) == 0
    assert main(["gate", folder, str(tmp_path / "later.jsonl")]) == 0
    assert "jax 0.10.2 -> 0.11.0" in capsys.readouterr().out
    write(tmp_path / "other.jsonl", check(observation=seen(3.0)), **packages("0.10.2"))
    assert main(["gate", folder, str(tmp_path / "other.jsonl")]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == (
        f"If it is to be so: conformance baseline {tmp_path}/other.jsonl -o {folder}"
    )
