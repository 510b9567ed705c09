"""The gate over made-up runs: what is a change and what is none, what counts, what is refused, and what is said of it all."""

from __future__ import annotations

import datetime
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from random import Random
from xml.etree import ElementTree

import jsonschema
import msgspec
import pytest
from runs import array, case_line, check, edit, seen, write

from conformance import announce, recheck
from conformance.cli import main
from conformance.compare import Change, compare
from conformance.contract import Contract, ContractError, Tolerated, own_contract, read_contract, verdict
from conformance.findings import findings, schema
from conformance.render import render_findings
from conformance.results import ResultsError, outline
from conformance.side import Side, side

TODAY = datetime.date(2026, 11, 29)


def changes(tmp_path: Path, before, after):
    """What a change of one check comes to."""
    found = compare(outline(write(tmp_path / "a.jsonl", before)), outline(write(tmp_path / "b.jsonl", after))).changed
    assert len(found) <= 1
    return (found[0].change, found[0].difference) if found else None


def judged(before: Path, after: Path, contract: Contract | None = None, today: datetime.date = TODAY):
    return verdict(compare(outline(before), outline(after)), contract or Contract(), today)


def found_in(before: Path, after: Path, contract: Contract | None = None):
    sides = [Side(outline(path)) for path in (before, after)]
    return findings(judged(before, after, contract), sides, [str(before), str(after)], [])


# --- what is a change


OUTCOMES = [
    (check(), check(outcome="unexpected"), Change.BROKEN),
    (check(), check(outcome="crashed", observation={"text": "boom"}), Change.BROKEN),
    (check(), check(outcome="timed-out"), Change.BROKEN),
    (check(), check(outcome="unsupported"), Change.BROKEN),
    (check(), check(outcome="unsupported", expected="unsupported"), Change.LOST),
    (check(), check(outcome="not-run"), Change.BLIND),
    (check(outcome="crashed"), check(outcome="not-run"), Change.BLIND),
    (check(outcome="masked", expected="masked"), check(outcome="refused", expected="refused"), Change.OUTCOME),
    (check(outcome="crashed"), check(outcome="timed-out"), Change.OUTCOME),
    (check(outcome="unexpected"), check(outcome="live"), Change.OUTCOME),
    (check(outcome="unexpected"), check(), Change.MENDED),
    (check(outcome="crashed"), check(), Change.MENDED),
    (check(outcome="unsupported", expected="unsupported"), check(), Change.GAINED),
    (check(outcome="not-run"), check(), Change.SEEN),
    (check(outcome="not-run"), check(outcome="unexpected"), Change.SEEN),
]


@pytest.mark.parametrize(("before", "after", "change"), OUTCOMES)
def test_another_outcome(before, after, change, tmp_path):
    write(tmp_path / "a.jsonl", before, check("area/topic/other"))
    write(tmp_path / "b.jsonl", after, check("area/topic/other"))
    (found,) = compare(outline(tmp_path / "a.jsonl"), outline(tmp_path / "b.jsonl")).changed
    assert found.change is change


OBSERVATIONS = [
    (seen(1.0, traces=[1, 0]), seen(1.0, traces=[1, 1]), "traces[1]: 0 -> 1"),
    (seen(1.0, traces=[1]), seen(1.0), "traces: not seen now"),
    (seen(1.0), seen(1.0, compiles=[1]), "compiles: seen now"),
    (seen(1.0), seen(1.0, dtype="float64"), "results[0]: the dtype float32 -> float64"),
    (seen(1.0, 2.0), seen(1.0), "results[0]: the shape [2] -> [1]"),
    (seen(1.0), seen(1.1), "results[0]: [1.0] -> [1.1]"),
    (seen("nan"), seen(0.0), 'results[0]: ["nan"] -> [0.0]'),
    (seen("inf"), seen("-inf"), 'results[0]: ["inf"] -> ["-inf"]'),
    (seen(2**60, dtype="int64"), seen(2**60 + 1, dtype="int64"), f"results[0]: [{2**60}] -> [{2**60 + 1}]"),
    (seen("(1+2j)", dtype="complex64"), seen("(1-2j)", dtype="complex64"), 'results[0]: ["(1+2j)"] -> ["(1-2j)"]'),
    (
        {"raised": {"classes": ["A", "E"], "message": "m", "step": 0}},
        {"raised": {"classes": ["B", "E"], "message": "m", "step": 0}},
        "raised.classes[0]: A -> B",
    ),
    (
        {"raised": {"classes": ["A"], "message": "m", "step": 0}},
        {"raised": {"classes": ["A"], "message": "m", "step": 1}},
        "raised.step: 0 -> 1",
    ),
    ({"raised": {"classes": ["A"], "message": "m", "step": 0}}, seen(1.0), "raised: not seen now"),
    (
        seen(1.0, layout={"slices": {"0": ["0:1"]}}),
        seen(1.0, layout={"slices": {"0": ["1:2"]}}),
        "layout.slices.0[0]: 0:1 -> 1:2",
    ),
    (
        {"derivation": {"linear": [["a", "mul", ["b"]]]}},
        {"derivation": {"linear": [["a", "neg", ["b"]]]}},
        "derivation.linear[0][1]: mul -> neg",
    ),
    ({"results": [{"python": "str", "value": "add\nmul"}]}, {"results": [{"python": "str", "value": "mul\nadd"}]}, "value"),
    ({"results": [{"python": "int", "value": 1}]}, {"results": [{"python": "bool", "value": True}]}, "int -> bool"),
    ({"results": [{"dict": {"message": array(1.0)}}]}, {"results": [{"dict": {"message": array(2.0)}}]}, "results[0].message"),
    ({"results": [{"dict": {"a": array(1.0)}}]}, {"results": [{"dict": {"b": array(1.0)}}]}, "the keys ['a'] -> ['b']"),
    ({"results": [array(1.0), array(1.0)]}, {"results": [array(1.0)]}, "results"),
]


@pytest.mark.parametrize(("before", "after", "said"), OBSERVATIONS)
def test_the_same_outcome_and_another_observation(before, after, said, tmp_path):
    found = changes(tmp_path, check(observation=before), check(observation=after))
    assert found is not None
    assert found[0] is Change.OBSERVATION
    assert said in found[1]


ALIKE = [
    (check(), check()),
    (check(observation=seen(1.0)), check(observation=seen(1.0 + 2e-6))),
    (check(observation=seen(0.0)), check(observation=seen(1e-6))),
    (check(observation=seen("nan", "inf")), check(observation=seen("nan", "inf"))),
    (check(observation=seen(1.0, dtype="bfloat16")), check(observation=seen(1.0078, dtype="bfloat16"))),
    (check(observation=seen("(1+2j)", dtype="complex64")), check(observation=seen("(1+2.000001j)", dtype="complex64"))),
    (
        check(observation={"raised": {"classes": ["E"], "message": "one way", "step": 0}}),
        check(observation={"raised": {"classes": ["E"], "message": "another way", "step": 0}}),
    ),
    (check(outcome="crashed", observation={"text": "a"}), check(outcome="crashed", observation={"text": "b"})),
    (check(observation=seen(1.0, unobservable="a")), check(observation=seen(1.0, unobservable="b"))),
    (check(evidence={"printed": "here"}), check(evidence={"printed": "there"})),
    (check(evidence={"reasons": [["new"]]}), check()),
    (check(against={"live": "why"}), check(against={"live": "another why"})),
    (check(outcome="live", expected="live"), check(outcome="live", expected="frozen")),
    (
        check(observation={"results": [{"python": "float", "value": 1.0}]}),
        check(observation={"results": [{"python": "float", "value": 1.0 + 1e-7}]}),
    ),
]


@pytest.mark.parametrize(("before", "after"), ALIKE)
def test_what_is_no_change(before, after, tmp_path):
    assert changes(tmp_path, before, after) is None


def test_a_case_has_its_own_tolerance(tmp_path):
    from conformance.case import Tolerance

    runs = []
    for name, value in (("a", 1.0), ("b", 1.001)):
        for kind, tolerance in (("wide", Tolerance("why", rtol=1e-2)), ("exact", Tolerance("why"))):
            line = case_line(tolerance=tolerance)
            value = 1.0 + (1e-9 if name == "b" else 0) if kind == "exact" else value
            runs.append(outline(write(tmp_path / f"{name}{kind}.jsonl", check(observation=seen(value)), cases=(line,))))
    assert not compare(runs[0], runs[2]).changed
    assert compare(runs[1], runs[3]).changed


LONG = {"dtype": "float32", "shape": [100], "digest": "x", "first": [1.0] * 8}


def beside(path: Path, digest: str, values: list[float]) -> None:
    line = {"digest": digest, "full": {"dtype": "float32", "shape": [100], "value": values}}
    path.with_name(path.name + ".full.jsonl").write_text(json.dumps(line) + "\n")


def test_long_arrays_are_compared_whole_where_they_were_kept(tmp_path):
    old = write(tmp_path / "a.jsonl", check(observation={"results": [LONG]}))
    new = write(tmp_path / "b.jsonl", check(observation={"results": [LONG | {"digest": "y"}]}))
    found = compare(outline(old), outline(new))
    assert (found.changed, found.shortened) == ([], 1)
    assert "first values" in announce.terminal(found_in(old, new))
    beside(old, "x", [1.0] * 100)
    beside(new, "y", [1.0] * 99 + [5.0])
    found = compare(outline(old), outline(new))
    assert found.shortened == 0
    assert found.changed[0].difference == "results[0]: 1.0 -> 5.0 at 99 of 100, the farthest apart"
    beside(new, "y", [1.0] * 99 + [1.0 + 1e-7])
    assert not compare(outline(old), outline(new)).changed


def test_long_whole_numbers_that_differ_are_a_change_wherever_that_is(tmp_path):
    whole = LONG | {"dtype": "int32", "first": [1] * 8}
    found = changes(tmp_path, check(observation={"results": [whole]}), check(observation={"results": [whole | {"digest": "y"}]}))
    assert found
    assert found[0] is Change.OBSERVATION


def test_the_worst_comes_first_and_one_case_stays_together(tmp_path):
    names = [f"area/topic/{name}" for name in "abc"]
    compiled = "jax:compiled@cpu"
    old = write(tmp_path / "a.jsonl", *map(check, names), check(names[0], target=compiled, outcome="unexpected"))
    new = write(
        tmp_path / "b.jsonl",
        check(names[0], observation=seen(2.0)),
        check(names[1], outcome="unexpected"),
        check(names[2], outcome="other", expected=None, passed=True),
        check(names[0], target=compiled),
    )
    found = found_in(old, new)
    assert [each.change for each in found.counting] == [Change.BROKEN, Change.OUTCOME, Change.OBSERVATION, Change.MENDED]
    assert [(case, len(group)) for case, group in announce.by_case(found.counting)] == [
        (names[1], 1),
        (names[2], 1),
        (names[0], 2),
    ]


# --- how much can be compared


def test_edited_new_gone_and_what_only_one_of_the_two_is_about(tmp_path):
    names = ["area/topic/same", "area/topic/edited", "area/topic/old"]
    old = write(tmp_path / "a.jsonl", *map(check, names), check(names[0], target="torch:eager@cpu"))
    new = write(
        tmp_path / "b.jsonl",
        check(names[0]),
        check(names[1], outcome="unexpected"),
        check("area/topic/new"),
        cases=(case_line(names[1], digest="another"),),
    )
    found = compare(outline(old), outline(new))
    assert [key.case for key in found.compared] == ["area/topic/same"]
    assert found.edited == ["area/topic/edited"]
    assert [(each.change, each.line.case) for each in found.changed] == [
        (Change.GONE, "area/topic/old"),
        (Change.NEW, "area/topic/new"),
    ]
    assert found.alone == {"torch": 1}
    told = announce.terminal(found_in(old, new))
    assert "1 check compared: nothing has changed that counts" in told
    assert "not counted: 1 gone, 1 new" in told
    assert "the case was edited: area/topic/edited" in told
    assert "only one of the two has torch: 1 check" in told


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ([check()], [check("area/topic/other")], "have no check in common"),
        ([check(outcome="not-run")], [check(outcome="not-run", because="why")], "none of them could run"),
        ([check()], [check(target="jax:eager@cuda")], "has checks on cpu and on cuda"),
        ([check()], [check(), check(target="jax:compiled@tpu")], "has checks on cpu and on tpu"),
    ],
)
def test_what_cannot_be_compared(before, after, said, tmp_path):
    runs = [outline(write(tmp_path / f"{name}.jsonl", *lines)) for name, lines in (("a", before), ("b", after))]
    with pytest.raises(ResultsError, match=said):
        compare(*runs)


def test_two_devices_and_only_edited_cases(tmp_path):
    plain = outline(write(tmp_path / "a.jsonl", check()))
    other = outline(write(tmp_path / "b.jsonl", check(target="jax:eager@tpu"), device="tpu"))
    with pytest.raises(ResultsError, match=r"a\.jsonl ran on cpu and .*b\.jsonl on tpu: compare runs of one device"):
        compare(plain, other)
    edited = outline(write(tmp_path / "c.jsonl", check(), cases=(case_line(digest="e"),)))
    with pytest.raises(ResultsError, match="but those of edited cases"):
        compare(plain, edited)


def test_what_could_run_in_neither_is_not_compared(tmp_path):
    lines = [check(), check("area/topic/flax", outcome="not-run")]
    found = compare(*(outline(write(tmp_path / f"{name}.jsonl", *lines)) for name in "ab"))
    assert (len(found.compared), found.blind) == (1, 1)


# --- files


def gate(*arguments: object) -> int:
    return main(["gate", *map(str, arguments)])


@pytest.mark.parametrize(
    ("old", "new", "sign", "said"),
    [
        ('"outcome":"conforms"', '"outcome":"refused"', False, "was edited since it was written"),
        ('"digest":"d"', '"digest":"e"', True, "its cases are not those that its header was made for"),
        ('"case":"area/topic/sum","row"', '"case":"area/topic/xxx","row"', True, "nothing in the file says what the case area/topic/xxx is"),
        ('"checks":1', '"checks":2', False, "has 1 checks, and its footer says 2: the file was cut or edited"),
        ('{"conformance":1', '{"conformance":2', False, "is written in format 2; this version reads format 1"),
        ('{"conformance":1', '{"conformance":0', False, "is written in format 0; this version reads format 1"),
        ('{"conformance":1', '{"conformance":"1"', False, "not a line of a results file"),
        ('{"conformance":1', '{"version":1', False, "is not a results file: its first line is not a header"),
        ('"kind":"check"', '"kind":"chess"', False, "not a line of a results file"),
        ('"complete":true', '"complete":false', False, "is incomplete"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_as_it_was_written(old, new, sign, said, tmp_path, capsys):
    good, bad = (write(tmp_path / f"{name}.jsonl", check()) for name in "ab")
    edit(bad, old, new, sign=sign)
    assert gate(good, bad) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1


@pytest.mark.parametrize("cut", [1, 30, 200, 600])
def test_a_file_that_was_cut(cut, tmp_path, capsys):
    good, bad = (write(tmp_path / f"{name}.jsonl", check()) for name in "ab")
    bad.write_bytes(bad.read_bytes()[:-cut])
    assert gate(good, bad) == 2
    assert re.fullmatch(r"conformance: .*(incomplete|cut or edited|not a line of a results file).*\n", capsys.readouterr().err)


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"\xff\xfe\x00", b'{"conformance":1', b"[]\n", b'{"conformance":1,"environment":3}\n']
)
def test_what_is_no_results_file(content, tmp_path, capsys):
    bad = tmp_path / "b.jsonl"
    bad.write_bytes(content)
    assert gate(write(tmp_path / "a.jsonl", check()), bad) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_lines_that_end_as_on_windows(tmp_path):
    good = write(tmp_path / "a.jsonl", check())
    other = tmp_path / "b.jsonl"
    other.write_bytes(good.read_bytes().replace(b"\n", b"\r\n"))
    assert gate(good, other) == 0


def test_a_check_that_is_there_twice(tmp_path, capsys):
    good, bad = (write(tmp_path / f"{name}.jsonl", check()) for name in "ab")
    lines = bad.read_text().splitlines()
    line = next(line for line in lines if '"kind":"check"' in line)
    lines[-1] = lines[-1].replace('"checks":1', '"checks":2')
    bad.write_text("\n".join([*lines[:-1], line.replace("conforms", "refused"), lines[-1]]) + "\n")
    edit(bad, "conformance", "conformance", sign=True)
    assert gate(good, bad) == 2
    assert "has two lines for area/topic/sum[jax:eager@cpu]" in capsys.readouterr().err


def test_a_run_that_did_not_end(tmp_path, capsys):
    good = write(tmp_path / "a.jsonl", check(), check("area/topic/other"))
    part = write(tmp_path / "b.jsonl", check(), complete=False)
    assert part.name == "b.jsonl.partial"
    assert gate(good, part) == 2
    assert "is incomplete" in capsys.readouterr().err
    assert gate(good, part, "--incomplete") == 2
    assert "is incomplete: what it lacks was not compared" in capsys.readouterr().out
    worse = write(tmp_path / "c.jsonl", check(outcome="unexpected"), complete=False)
    assert gate(good, worse, "--incomplete") == 1


def test_a_run_that_was_killed_has_no_header(tmp_path):
    good = write(tmp_path / "a.jsonl", check())
    killed = tmp_path / "b.jsonl.partial"
    killed.write_bytes(b"\n".join(good.read_bytes().split(b"\n")[1:-2]) + b'\n{"kind":"check","ca')
    assert gate(good, killed, "--incomplete") == 2


def test_a_folder_is_one_run(tmp_path):
    for folder in "ab":
        write(tmp_path / folder / "jax.jsonl", check())
        write(
            tmp_path / folder / "torch.jsonl",
            check(target="torch:eager@cpu"),
            python={"torch": "3.12"},
            packages={"torch": {"torch": "2.13"}},
        )
    run = side(str(tmp_path / "a"), [], []).run
    assert sorted(run.header.environment["packages"]) == sorted(run.header.environment["python"]) == ["jax", "torch"]
    assert gate(tmp_path / "a", tmp_path / "b") == 0
    write(
        tmp_path / "b/torch.jsonl",
        check(target="torch:eager@cpu", outcome="unexpected"),
        python={"torch": "3.12"},
        packages={"torch": {"torch": "2.13"}},
    )
    assert gate(tmp_path / "a", tmp_path / "b") == 1


@pytest.mark.parametrize(
    ("line", "more", "said"),
    [
        (check(outcome="unexpected"), {}, "both have area/topic/sum[jax:eager@cpu], and do not agree on it"),
        (check("area/topic/other"), {"packages": {"jax": {"jax": "0.10"}}}, "the packages of jax is jax 0.10 here, and jax 0.9.2, numpy 2.4.6 there"),
        (check("area/topic/other", target="jax:eager@tpu"), {"device": "tpu"}, "the device is tpu here, and cpu there"),
        (check("area/topic/other"), {"platform": "Darwin arm64"}, "the platform is Darwin arm64 here"),
    ],
)  # fmt: skip
def test_a_folder_of_files_that_do_not_belong_together(line, more, said, tmp_path, capsys):
    write(tmp_path / "a/one.jsonl", check())
    write(tmp_path / "a/two.jsonl", line, **more)
    assert gate(write(tmp_path / "b.jsonl", check()), tmp_path / "a") == 2
    assert said in capsys.readouterr().err


def test_nothing_is_there(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    good = write(tmp_path / "a.jsonl", check())
    for text, said in [
        (tmp_path / "empty", "there is no results file in"),
        (tmp_path / "missing.jsonl", "cannot be read"),
        ("jaxx==0.9", "neither a file that there is, nor a release of numpy, torch, jax, tensorflow"),
        ("a b c", "nor a release of numpy"),
        ("?", "nor a release such as jax==0.9.2"),
        ("jax>=0.9", "name one release, such as jax==1.2.3"),
        ("jax==0.9.*", "name one release"),
        ("jax", "name one release"),
    ]:
        assert gate(good, text) == 2
        assert said in capsys.readouterr().err


def test_whatever_was_edited_there_is_one_message_or_an_answer(tmp_path, capsys):
    """A few bytes of a file without a digest are changed, cut, doubled or moved, many times over."""
    random = Random(7)
    error = {"raised": {"classes": ["E"], "message": "m", "step": 0}}
    lines = [
        check(),
        check("area/topic/b", observation=seen("nan", 2.0, traces=[1]), row="r"),
        check("area/topic/c", observation=error),
    ]
    good = write(tmp_path / "a.jsonl", *lines)
    whole = edit(write(tmp_path / "b.jsonl", *lines), "conformance", "conformance", sign=True).read_bytes()
    contract_file = contract(tmp_path, 'targets = ["jax"]')
    statuses = set()
    for _ in range(150):
        start = random.randrange(len(whole))
        stop = start + random.choice([0, 1, 2, 10, 60])
        new = random.choice(
            [b"", b"0", b"[]", b"{}", b"null", b'"x"', b"\n", b"\xff", b"-1e999", whole[start:stop] * 2, b"true,"]
        )
        bad = tmp_path / "bad.jsonl"
        bad.write_bytes(whole[:start] + new + whole[stop:])
        status = gate(
            good,
            bad,
            "--contract",
            contract_file,
            "--html",
            tmp_path / "g.html",
            "--markdown",
            tmp_path / "g.md",
            "--junit",
            tmp_path / "g.xml",
        )
        told = capsys.readouterr().err
        assert (told.count("\n") == 1) == (status in (2, 4)), (status, told)
        statuses.add(status)
    assert statuses >= {0, 1, 2}


# --- contracts


def contract(tmp_path: Path, text: str, name: str = "contract.toml") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def two(tmp_path: Path) -> tuple[Path, Path]:
    """Two cases that break on jax and on torch."""
    checks = [
        check(name, target=target) for name in ("area/one/a", "area/two/b") for target in ("jax:eager@cpu", "torch:eager@cpu")
    ]
    old = write(tmp_path / "old.jsonl", *checks)
    new = write(tmp_path / "new.jsonl", *(check(line.case, target=line.target, outcome="unexpected") for line in checks))
    return old, new


@pytest.mark.parametrize(
    ("contract", "counting"),
    [
        (Contract(), 4),
        (Contract(cases=["area"]), 4),
        (Contract(cases=["area/one"]), 2),
        (Contract(cases=["area/*/b"]), 2),
        (Contract(cases=["area/one/a"], targets=["jax"]), 1),
        (Contract(targets=["torch:eager@cpu"]), 2),
        (Contract(tolerated=[Tolerated("area/one", "we know")]), 2),
        (Contract(tolerated=[Tolerated("area/one", "we know", "jax")]), 3),
        (Contract(tolerated=[Tolerated("area", "we know", until=datetime.date(2026, 11, 29))]), 0),
        (Contract(tolerated=[Tolerated("area", "we know", until=datetime.date(2026, 11, 28))]), 4),
        (Contract(tolerated=[Tolerated("area", "until a day", until=datetime.date(2026, 1, 1)), Tolerated("area", "ever")]), 0),
    ],
)
def test_what_counts(contract, counting, tmp_path):
    found = judged(*two(tmp_path), contract)
    assert len(found.counting) == counting
    assert len(found.counting) + len(found.tolerated) + len(found.aside) == 4


def test_a_toleration_that_has_ended_is_named(tmp_path):
    found = found_in(*two(tmp_path), Contract(tolerated=[Tolerated("area/one", "we know", until=datetime.date(2026, 1, 1))]))
    assert announce.terminal(found).count("tolerated until 2026-01-01, which is past: we know") == 2
    found = found_in(*two(tmp_path), Contract(tolerated=[Tolerated("area/one", "we know", until=datetime.date(2999, 1, 1))]))
    assert "tolerated until 2999-01-01: area/one/a[jax:eager@cpu]: no longer as expected (we know)" in announce.terminal(found)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('cases = ["aera"]', "the contract's 'aera' matches no case of the two runs"),
        ('targets = ["tensorflow"]', "the contract's 'tensorflow' matches no target"),
        ('tolerated = [{case = "area/three", reason = "r"}]', "the contract's 'area/three' matches no case"),
        ('tolerated = [{case = "area/one", reason = "r", target = "jax:xla"}]', "tolerates 'area/one' on 'jax:xla', and neither run has that"),
        ('targets = ["jax>=0.5"]', "the versions are those of the two runs"),
        ('targets = ["jax:fast"]', "unknown mode 'fast'"),
        ('targets = ["!"]', "is not a target selector"),
        ('case = ["area"]', "unknown field `case`"),
        ('tolerated = [{case = "area"}]', "missing required field `reason`"),
        ('tolerated = [{case = "area", reason = ""}]', "length >= 1"),
        ('tolerated = [{case = "area", reason = "r", until = "soon"}]', "RFC3339 encoded date"),
        ("cases = [", "is not TOML"),
        ('cases = "area"', "Expected `array`"),
    ],
)  # fmt: skip
def test_a_contract_that_can_mean_nothing(text, said, tmp_path, capsys):
    old, new = two(tmp_path)
    assert gate(old, new, "--contract", contract(tmp_path, text)) == 4
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1


def test_the_contract_of_a_project(tmp_path, monkeypatch, capsys):
    old, new = two(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert own_contract() == Contract()
    project = contract(tmp_path, '[project]\nname = "mine"\n', "pyproject.toml")
    assert own_contract() == Contract()
    with pytest.raises(ContractError, match="has no table"):
        read_contract(project)
    contract(
        tmp_path,
        '[tool.conformance]\ncases = ["area/one"]\n[[tool.conformance.tolerated]]\ncase = "area/one"\nreason = "ok"\nuntil = 2999-01-01\n',
        "pyproject.toml",
    )
    assert gate(old, new) == 0
    assert "tolerated until 2999-01-01" in capsys.readouterr().out
    contract(tmp_path, "tool = 3", "pyproject.toml")
    assert gate(old, new) == 4


# --- the command


def test_exit_statuses_and_a_gate_of_a_file_against_itself(tmp_path, capsys):
    old, new = two(tmp_path)
    assert gate(old, old) == 0
    assert "4 checks compared: nothing has changed\n" in capsys.readouterr().out
    assert gate(old, new) == 1
    assert "4 checks compared, 4 changes in 2 cases: 4 no longer as expected" in capsys.readouterr().out
    assert gate(old, new, "--contract", "missing.toml") == 4
    assert gate(old, new, "--path", "missing") == 4
    assert gate(old, new, "--markdown", tmp_path) == 4
    with pytest.raises(SystemExit) as ended:
        gate(old)
    assert ended.value.code == 4


def test_what_a_change_says(tmp_path, capsys):
    old = write(tmp_path / "a.jsonl", check(outcome="masked", expected="masked", row="float32"))
    error = {"raised": {"classes": ["ValueError", "Exception"], "message": "must be bool", "step": 0}}
    new = write(
        tmp_path / "b.jsonl",
        check(outcome="refused", expected="refused", row="float32", observation=error),
        packages={"jax": {"jax": "0.10.2"}},
    )
    assert gate(old, new, "--annotations") == 1
    assert capsys.readouterr().out == (
        "jax 0.9.2 -> 0.10.2\n"
        "1 check compared, 1 change in 1 case: 1 another outcome\n"
        "\n"
        "area/topic/sum: a claim\n"
        "  jax:eager@cpu [float32]: another outcome\n"
        "    before: masked (result float32[1] [1.0])\n"
        "    after: refused (raised ValueError; at step 0; text must be bool)\n"
        "    show it: conformance repro area/topic/sum --row float32 --target jax:eager@cpu\n"
        "::error title=another outcome::area/topic/sum[float32-jax:eager@cpu]: another outcome. "
        "before: masked (result float32[1] [1.0]); after: refused (raised ValueError; at step 0; text must be bool)\n"
    )


HOSTILE = "x`|\n::error::owned\r\n##[add-mask]y\x1b[31m\u202e\ud7ff\ufffe<script>alert(1)</script>![a](http://e.vil/)@all #1 %0A]]>&amp;\\"


def hostile(tmp_path: Path):
    """Two runs with a text that means something to somebody in every place for text."""
    line = case_line(HOSTILE, claim=HOSTILE, reference=[HOSTILE])
    same = check("area/topic/same")
    said = {"row": HOSTILE, "because": HOSTILE, "observation": {"results": [{"python": HOSTILE, "value": HOSTILE}]}}
    packages = {"jax": {HOSTILE: "1"}}
    old = write(tmp_path / "a.jsonl", check(HOSTILE, outcome=HOSTILE, **said), same, cases=(line,), packages=packages)
    packages = {"jax": {HOSTILE: HOSTILE}}
    new = write(tmp_path / "b.jsonl", check(HOSTILE, outcome="other", **said), same, cases=(line,), packages=packages)
    return old, new


def test_no_text_is_markup_or_a_command(tmp_path):
    old, new = hostile(tmp_path)
    contracts = [Contract(), Contract(tolerated=[Tolerated("*", HOSTILE)])]
    for found in (found_in(old, new, each) for each in contracts):
        terminal, markdown, annotations, junit = (
            of(found) for of in (announce.terminal, announce.markdown, announce.github, announce.junit)
        )
        for text in (terminal, markdown, annotations):
            assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", text)
        assert not re.search(r"^\s*::", terminal, re.M)
        assert "##[" not in terminal
        assert all(line.startswith("::error title=") for line in annotations.splitlines())
        prose = re.sub(r"`[^`\n]*`", "", markdown)
        assert "<script" not in prose
        assert not re.search(r"(?<!\\)!?\[", prose)
        assert not re.search(r"@(?!\u200b)|#(?!\u200b|#|\s)|://", prose)
        (suite,) = [ElementTree.fromstring(junit)]
        assert suite.tag == "testsuite"
        assert len(suite.findall("testcase")) == int(suite.attrib["tests"])


def test_rows_of_a_table_stay_rows(tmp_path):
    found = found_in(*hostile(tmp_path))
    (row,) = [line for line in announce.markdown(found).splitlines() if line.startswith("| `")]
    assert len(re.findall(r"(?<!\\)\|", row)) == 4


def many(tmp_path: Path, cases: int, rows: int = 1):
    checks = [check(f"area/topic/case-{i:04}", row=f"r{j}") for i in range(cases) for j in range(rows)]
    old = write(tmp_path / "a.jsonl", *checks)
    new = write(
        tmp_path / "b.jsonl", *(check(line.case, row=line.row, outcome="unexpected", observation=seen(2.0)) for line in checks)
    )
    return found_in(old, new)


@pytest.mark.parametrize("limit", [65_535, 20_000, 3_000, 500])
def test_markdown_fits_and_drops_detail_from_the_end(limit, tmp_path):
    text = announce.markdown(many(tmp_path, 100, 2), limit)
    assert len(text.encode()) <= limit
    told, named = (len(re.findall(pattern, text, re.M)) for pattern in (r"^#### `area", r"^- `area"))
    left = re.search(r"^- and (\d+) cases? more", text, re.M)
    assert told + named + (int(left[1]) if left else 0) == 100
    if limit == 65_535:
        assert told == 100
    if limit == 20_000:
        assert told
        assert named
    assert text.index("case-0000") > 0


def test_markdown_of_more_than_anyone_reads(tmp_path):
    text = announce.markdown(many(tmp_path, 2_000))
    assert len(text.encode()) <= 65_535
    assert "more" in text
    text = announce.markdown(many(tmp_path, 1, 500))
    assert "| and 480 more |" in text


def test_at_most_fifty_annotations(tmp_path):
    assert announce.github(many(tmp_path, 50)).count("::error ") == 50
    lines = announce.github(many(tmp_path, 60)).splitlines()
    assert len(lines) == 50
    assert lines[-1] == "::error title=more::11 changes more"


def test_the_files_that_are_asked_for(tmp_path):
    old, new = two(tmp_path)
    assert (
        gate(
            old,
            new,
            "--markdown",
            tmp_path / "o/g.md",
            "--junit",
            tmp_path / "o/g.xml",
            "--json",
            tmp_path / "o/g.json",
            "--report",
            tmp_path / "o/site",
        )
        == 1
    )
    suite = ElementTree.parse(tmp_path / "o/g.xml").getroot()
    assert (suite.attrib["tests"], suite.attrib["failures"]) == ("5", "4")
    data = json.loads((tmp_path / "o/g.json").read_text())
    assert data["conformance-gate"] == 1
    assert data["status"] == 1
    assert [each["change"] for each in data["counting"]] == ["no longer as expected"] * 4
    assert data["cases"]["area/one/a"]["claim"] == "a claim"
    assert "jax" in (tmp_path / "o/g.md").read_text()
    assert (tmp_path / "o/site/index.html").exists()


# --- what is run again


def again(path: Path, before, after, more_before, more_after, monkeypatch) -> set[str]:
    """What is unsteady of a change that, when it is looked for again, shows two other lines."""
    old, new = (outline(write(path / f"{name}.jsonl", line)) for name, line in (("a", before), ("b", after)))
    more = {
        run.path.stem: run
        for run in (outline(write(path / f"{name}2.jsonl", line)) for name, line in (("a", more_before), ("b", more_after)))
    }
    monkeypatch.setattr(recheck, "run_again", lambda side, cases, keys: more[side.run.path.stem + "2"])
    sides = (Side(old, "jax", Path("old/python")), Side(new, "jax", Path("new/python")))
    return recheck.unsteady(compare(old, new).changed, sides, [])


GOOD, BAD, WORSE = check(), check(outcome="unexpected"), check(outcome="crashed")
ONE, TWO, THREE = (check(observation=seen(value)) for value in (1.0, 2.0, 3.0))


@pytest.mark.parametrize(
    ("lines", "holds"),
    [
        ((GOOD, BAD, GOOD, BAD), True),
        ((GOOD, BAD, GOOD, WORSE), True),
        ((GOOD, BAD, GOOD, GOOD), False),
        ((GOOD, BAD, BAD, BAD), False),
        ((GOOD, BAD, BAD, GOOD), False),
        ((ONE, TWO, ONE, TWO), True),
        ((ONE, TWO, ONE, ONE), False),
        ((ONE, TWO, TWO, ONE), False),
        ((ONE, TWO, ONE, THREE), False),
        ((ONE, TWO, check(observation=seen(1.0 + 1e-7)), TWO), True),
    ],
)
def test_a_change_is_looked_for_again(lines, holds, tmp_path, monkeypatch):
    assert again(tmp_path, *lines, monkeypatch) == (set() if holds else {"area/topic/sum[jax:eager@cpu]"})


def test_what_does_not_hold_is_named_and_does_not_count(tmp_path):
    old, new = two(tmp_path)
    found = judged(old, new).without({"area/one/a[jax:eager@cpu]"})
    said = findings(found, [Side(outline(old)), Side(outline(new))], ["a", "b"], [])
    assert len(said.counting) == 3
    assert "did not hold when it was run again, and does not count: area/one/a[jax:eager@cpu]" in announce.terminal(said)
    assert ElementTree.fromstring(announce.junit(said)).attrib["skipped"] == "1"


FLAKY = """
title: Mine
cases:
  - id: flaky
    claim: what was never so before is so now
    parametrize: {steady: [0, 1]}
    native:
      numpy: |
        import pathlib
        mark = pathlib.Path("MARK/ran" + ("" if $steady else ".flaky"))
        known = mark.exists()
        mark.touch()
        return int(known) if not $steady else 1
    expect: {value: 1}
  - id: other
    claim: what nobody runs a second time
    native: {numpy: return 1}
    expect: {value: 1}
"""


def test_releases_end_to_end_with_one_check_that_is_flaky(tmp_path, monkeypatch, capfd):
    """The first run of a check sees what no later one does. Both releases are this Python, so that nothing is installed."""
    monkeypatch.setenv("CONFORMANCE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("conformance.side.python_of", lambda release: Path(sys.executable))
    cases = tmp_path / "mine/cases.yaml"
    cases.parent.mkdir()
    cases.write_text(FLAKY.replace("MARK", str(tmp_path)))
    assert gate("numpy==1.0", "numpy==2.0", "--path", cases) == 0
    said = capfd.readouterr()
    assert "did not hold when it was run again, and does not count: mine/cases/flaky[0-numpy:eager@cpu]" in said.out
    assert "running 1 changed check again" in said.err
    assert said.err.count("1 passed, 2 deselected") == 2
    assert gate("numpy==2.0", "numpy==2.0", "--path", cases, "--fresh") == 0
    said = capfd.readouterr()
    assert "3 checks compared: nothing has changed\n" in said.out
    assert said.err.count("3 passed") == 2


def test_a_release_that_does_not_start_is_not_compared(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("CONFORMANCE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("conformance.side.python_of", lambda release: Path("/no/such/python"))
    cases = tmp_path / "mine/cases.yaml"
    cases.parent.mkdir()
    cases.write_text(FLAKY)
    for _ in range(2):  # and what came of it is not kept
        assert gate("numpy==1.0", "numpy==2.0", "--path", cases) == 2
        assert "conformance: numpy==1.0 cannot be run here: the host of numpy did not start" in capfd.readouterr().err


# --- what outputs promise


def everything(tmp_path: Path):
    """Findings with something in every list, and hostile texts in all of them."""
    old, new = hostile(tmp_path)
    found = found_in(old, new)
    (tmp_path / "more").mkdir()
    usual = found_in(*two(tmp_path / "more"))
    (worst,) = found.counting
    a, b, c, d = usual.counting
    tolerated = msgspec.structs.replace(a, reason=HOSTILE, until=TODAY)
    return msgspec.structs.replace(
        found, counting=[worst, b], tolerated=[tolerated], unsteady=[c], aside=[d], cases=found.cases | usual.cases, shortened=2,
        edited=[HOSTILE], alone={HOSTILE: 3}, blind=1,
    )  # fmt: skip


def test_json_is_as_its_schema_says(tmp_path):
    path = Path(__file__).parent.parent / "docs/gate.schema.json"
    assert path.read_text() == schema(), (
        "write it anew: python -c 'from conformance.findings import schema; print(schema(), end=\"\")'"
    )
    validator = jsonschema.Draft202012Validator(json.loads(schema()))
    validator.check_schema(validator.schema)
    for found in (everything(tmp_path), found_in(*two(tmp_path))):
        data = json.loads(msgspec.json.encode(found))
        validator.validate(data)
        assert msgspec.json.decode(msgspec.json.encode(found), type=type(found)) == found
        data["counting"][0]["change"] = "worse"
        assert not validator.is_valid(data)


class Page(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


def test_the_page_shows_texts_as_text_and_asks_for_nothing(tmp_path):
    page = Page(render_findings(everything(tmp_path)))
    assert not {tag for tag, _ in page.tags} & {"script", "img", "link", "iframe", "form", "input"}
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on") or name in ("src", "style")]
    links = [attributes["href"] for tag, attributes in page.tags if tag == "a"]
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert links
    assert {link.removeprefix("#") for link in links} == set(ids)
    assert len(ids) == len(set(ids))
    assert "url(" not in page.text
    assert "<script>alert(1)</script>" in page.text
    assert "\u202e" not in page.text
    for said in (
        "What counts",
        "Tolerated: 1",
        "Did not hold when it was run again: 1",
        "Not counted: 1",
        "no longer as expected",
    ):
        assert said in page.text


def test_the_page_of_nothing(tmp_path):
    old, _ = two(tmp_path)
    assert gate(old, old, "--html", tmp_path / "gate.html") == 0
    text = Page((tmp_path / "gate.html").read_text()).text
    assert "4 checks compared: nothing has changed" in text
    assert "What counts" not in text
