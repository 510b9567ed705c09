"""The report: what it counts as good, what it says loudly, and that no text of the results becomes anything but text."""

from __future__ import annotations

import base64
import hashlib
import html.parser
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance.kinds import Kind, Tally, kind
from conformance.page import view
from conformance.render import render, write_report
from conformance.results import CaseLine, CheckLine, Header, ResultsError, Run
from conformance.wording import LIMIT

CASE = "masks/length/mask-to-lengths"
TEMPLATES = Path(__file__).parent.parent / "conformance" / "templates"
HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'`&lt;&#0;</style></pre></details><!-- "
    "{{ 7 * 7 }}{% raw %}\x00\x08\u202egnp.exe\u200f\u2028\ud800]]>"
)


def a_check(**changes: Any) -> CheckLine:
    said: dict[str, Any] = {
        "case": CASE,
        "row": "",
        "parameters": {},
        "target": "jax:eager@cpu",
        "outcome": "conforms",
        "expected": "conforms",
        "passed": True,
        "observation": {"results": [{"dtype": "int32", "shape": [3], "value": [3, 5, 4]}]},
        "expectation": {"value": [3, 5, 4]},
        "because": "",
        "against": {},
        "source": "s1",
        "trace": "",
    }
    return CheckLine(**{**said, **changes})


def a_case(**changes: Any) -> CaseLine:
    said: dict[str, Any] = {
        "case": CASE,
        "title": "Length masks",
        "claim": "the lengths are the sum of the mask over time",
        "why": "padding is everywhere",
        "reference": ["https://data-apis.org/array-api/latest/"],
        "program": "return sum(mask, axis=1)",
        "digest": "d1",
    }
    return CaseLine(**{**said, **changes})


def a_run(*checks: CheckLine, **changes: Any) -> Run:
    environment = {
        "platform": "Linux x86_64",
        "device": "cpu",
        "python": {"jax": "3.11.7"},
        "packages": {"jax": {"jax": "0.10.2", "jaxlib": "0.10.2"}, "tensorflow": {"numpy": "2.4.6", "tensorflow-cpu": "2.21.0"}},
    }
    cases = {check.case: a_case(case=check.case) for check in checks}
    run = Run(
        path=Path("somewhere/run.jsonl"),
        header=Header(1, environment, "c"),
        cases=cases,
        sources={"s1": "import jax\n\n\ndef program(mask):\n    return jnp.sum(mask, axis=1)\n"},
        checks=list(checks),
        complete=True,
        started="2026-11-29T16:43:23+0000",
    )
    return run._replace(**changes)


class Reader(html.parser.HTMLParser):
    """The tags of a page, with the names of their attributes; and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, _ in attrs)))
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "srcset", "action")]

    def handle_data(self, data: str) -> None:
        self.text += data


# --- what counts as good


@pytest.mark.parametrize("passed", [True, False, None])
@pytest.mark.parametrize("outcome", ["unexpected", "crashed", "timed-out", "not-run", "unsupported"])
def test_what_is_no_pass_is_never_counted_as_one(outcome: str, passed: bool | None) -> None:
    tally = Tally.of([a_check(outcome=outcome, expected=outcome, passed=passed)])
    assert (tally.expected, tally.total) == (0, 1)


@pytest.mark.parametrize(
    ("changes", "becomes"),
    [
        ({}, Kind.CONFORMS),
        ({"outcome": "frozen", "expected": "frozen"}, Kind.NAMED),
        ({"outcome": "frozen"}, Kind.FAILED),
        ({"outcome": "frozen", "passed": False}, Kind.FAILED),
        ({"outcome": "conforms", "expected": "frozen", "passed": False}, Kind.FAILED),
        ({"outcome": "unsupported", "passed": False}, Kind.FAILED),
        ({"outcome": "unsupported", "expected": "unsupported"}, Kind.UNSUPPORTED),
        ({"outcome": "not-run", "passed": None}, Kind.NOT_RUN),
        ({"passed": None}, Kind.NOT_RUN),
        ({"outcome": "timed-out", "expected": "timed-out"}, Kind.CRASHED),
        ({"outcome": "frozen", "expected": None}, Kind.OPEN),
    ],
)
def test_what_a_check_comes_to(changes: dict[str, Any], becomes: Kind) -> None:
    assert kind(a_check(**changes)) is becomes


def test_the_sentence_adds_up() -> None:
    checks = [
        a_check(),
        a_check(target="tensorflow:eager@cpu", outcome="no-boolean-sum", expected="no-boolean-sum"),
        a_check(target="tensorflow:xla@cpu", outcome="unexpected", passed=False),
        a_check(target="torch:eager@cpu", outcome="unsupported", expected="unsupported"),
        a_check(target="numpy:eager@cpu", outcome="not-run", passed=None),
    ]
    assert view([a_run(*checks)]).sentence == (
        "Of 5 checks of 1 case on 5 targets, 2 saw what was expected, 1 did not, 1 is unsupported and 1 was not run; "
        "1 of the cases shows a difference."
    )


def test_a_matrix_cell_says_every_count_in_words() -> None:
    tally = Tally(conforms=3, named=1, failed=1, crashed=1, unsupported=2, not_run=4)
    said = [(part.number, part.words) for part in tally.lines()]
    assert said == [(4, "as expected"), (1, "named"), (2, "not as expected"), (2, "unsupported"), (4, "not run")]


def test_a_failure_is_said_where_it_is_and_ahead_of_the_cases() -> None:
    page = view([a_run(a_check(outcome="live", expected="frozen", passed=False))])
    (area,) = page.areas
    (failing,) = page.failures
    assert area.cases[0].fails
    assert area.cases[0].rows[0].cells[0] == failing.failures[0].cell
    assert failing.failures[0].cell.expected == "frozen"
    assert "instead of the expected frozen" in Reader(render([a_run(*[a_check(outcome="live", expected="frozen")])])).text


def test_a_difference_is_between_targets_or_from_the_norm() -> None:
    def differs(*checks: CheckLine) -> bool:
        return view([a_run(*checks)]).areas[0].cases[0].differs

    live = {"outcome": "live", "expected": "live"}
    assert not differs(a_check(), a_check(target="torch:eager@cpu"))
    assert not differs(a_check(**live), a_check(target="torch:eager@cpu", **live))
    assert not differs(a_check(), a_check(target="torch:eager@cpu", outcome="unsupported", expected="unsupported"))
    assert differs(a_check(outcome="frozen", expected="frozen"), a_check(target="torch:eager@cpu", **live))
    assert differs(a_check(outcome="needs-rank-2", expected="needs-rank-2", against={"conforms": "raised ValueError"}))


# --- what is said loudly


def test_an_incomplete_run_is_not_mistaken_for_a_whole_one() -> None:
    whole, cut = a_run(a_check()), a_run(a_check(), complete=False, path=Path("run.jsonl.partial"))
    assert "Not a complete result" not in render([whole])
    assert "The run of run.jsonl.partial did not end: 1 check came back" in Reader(render([whole, cut])).text


@pytest.mark.parametrize("checks", [[], [a_check(outcome="not-run", passed=None)]])
def test_nothing_ran(checks: list[CheckLine]) -> None:
    assert "Nothing ran" in Reader(render([a_run(*checks)])).text


def test_no_run_at_all() -> None:
    assert "Nothing ran" in Reader(render([])).text


def test_a_case_without_checks_is_not_passed_over() -> None:
    run = a_run(a_check())
    run.cases["masks/other/lost"] = a_case(case="masks/other/lost")
    assert "No check of this case came back" in Reader(render([run])).text


def test_an_edited_case_is_said_to_be_one() -> None:
    run, other = a_run(a_check()), a_run(a_check(), cases={CASE: a_case(digest="d2")})
    assert "The case was edited between these runs" in Reader(render([run, other])).text
    assert "The case was edited" not in render([run, run])


# --- where things are


def test_columns_are_in_a_known_order_with_their_versions() -> None:
    targets = ["tensorflow:xla@cpu", "tensorflow:eager@cpu", "jax:compiled@cpu", "jax:eager@cpu", "numpy:eager@cpu"]
    groups = view([a_run(*(a_check(target=target) for target in targets))]).groups
    assert groups == [
        ("numpy", "", ["eager"]),
        ("jax", "0.10.2", ["eager", "compiled"]),
        ("tensorflow", "2.21.0", ["eager", "xla"]),
    ]


def test_two_runs_of_one_target_are_two_columns() -> None:
    old = a_run(a_check())
    new = a_run(a_check(outcome="live", passed=False), header=Header(1, {"packages": {"jax": {"jax": "0.11.0"}}}, ""))
    assert [group.version for group in view([old, new]).groups] == ["0.10.2", "0.11.0"]
    assert [group.version for group in view([old, old]).groups] == ["0.10.2 run 1", "0.10.2 run 2"]


def test_devices_are_said_where_there_are_several() -> None:
    groups = view([a_run(a_check(), a_check(target="jax:eager@tpu"))]).groups
    assert groups[0].columns == ["eager @cpu", "eager @tpu"]


def test_rows_are_in_the_order_of_their_numbers() -> None:
    rows = [a_check(row=f"{n}-float32", parameters={"size": n, "dtype": "float32"}) for n in ("10", "2")]
    case = view([a_run(*rows, a_check())]).areas[0].cases[0]
    assert [row.label for row in case.rows] == ["as stated", "2 · float32", "10 · float32"]


def test_an_outcome_looks_the_same_in_the_table_and_in_its_evidence() -> None:
    seen = {"torch:eager@cpu": "live", "jax:eager@cpu": "frozen", "tensorflow:eager@cpu": "frozen"}
    case = view([a_run(*(a_check(target=t, outcome=name, expected=name) for t, name in seen.items()))]).areas[0].cases[0]
    assert [cell and cell.css for cell in case.rows[0].cells] == ["named t0", "named t1", "named t1"]
    assert [evidence.css for evidence in case.evidence] == ["named t0", "named t1"]


def test_the_same_evidence_is_shown_once() -> None:
    same = [a_check(target=f"jax:{mode}@cpu", seconds=seconds) for mode, seconds in (("eager", 0.002), ("compiled", 1.5))]
    other = a_check(target="torch:eager@cpu", observation={"results": []})
    case = view([a_run(*same, other)]).areas[0].cases[0]
    assert [(e.where[0].text, e.seconds) for e in case.evidence] == [
        ("torch eager", ""),
        ("jax eager, compiled", "2.0 ms to 1.5 s"),
    ]
    assert len(case.sources) == 2  # torch and jax


def test_evidence_is_readable() -> None:
    raised = {"classes": ["TypeError", "Exception", "BaseException"], "step": 0, "message": "no booleans\n"}
    arrays = [{"dtype": "float32", "shape": [], "value": "nan"}, {"dtype": "int8", "shape": [99], "digest": "d", "first": [1, 2]}]
    derivation = {"linear": [["a", "mul", ["xt", 4.0]]], "result": "a", "cotangents": None}
    layout = {"split": ["x", None], "local_shape": [[2, 3]], "slices": {"0": ["0:2", "0:3"]}}
    seen = {"results": arrays, "traces": [1, 0], "raised": raised, "derivation": derivation, "layout": layout}
    spec = {"value": {"reference": {"dtype": "float64", "shape": [1], "value": [0.5]}}, "shape": [2, 3]}
    (evidence,) = view([a_run(a_check(observation=seen, expectation=spec))]).areas[0].cases[0].evidence
    assert [fact[:2] for fact in evidence.expected] == [("value (reference)", "float64[1]  [0.5]"), ("shape", "[2, 3]")]
    assert evidence.seen[-1].picture.startswith("<svg")
    assert [fact[:2] for fact in evidence.seen] == [
        ("call 0", "float32[]  nan"),
        ("call 1", "int8[99]  digest d\nfirst [1, 2]"),
        ("traces", "[1, 0]"),
        ("raised", "TypeError"),
        ("at step", "0"),
        ("text", "no booleans"),
        ("linear", "a = mul(xt, 4.0)"),
        ("result", "a"),
        ("split", "[x, none]"),
        ("local shape", "[[2, 3]]"),
        ("slices", "device 0: [0:2, 0:3]"),
    ]


@pytest.mark.parametrize("odd", [None, 3, "text", [], [None], {}, {"a": [{}]}, [[["x"]]], True])
def test_an_observation_of_any_shape_is_shown(odd: Any) -> None:
    seen = dict.fromkeys(("results", "raised", "derivation", "layout", "other"), odd)
    assert CASE in render([a_run(a_check(observation=seen, expectation={"value": odd, "reference": {"reference": odd}}))])


# --- texts stay texts


def hostile_run(text: str) -> Run:
    """A run in which everything that can be any text is this one."""
    seen = {
        "results": [{"dtype": text, "shape": [1], "value": [text]}, {"dict": {text: {"python": text, "value": text}}}],
        "raised": {"classes": [text], "step": text, "message": text},
        text: {text: [text]},
    }
    check = a_check(
        case=text,
        row=text,
        parameters={text: text},
        target=text,
        outcome=text,
        expected=f"not {text}",
        passed=False,
        observation=seen,
        expectation={text: text},
        because=text,
        against={text: text},
    )
    case = a_case(case=text, title=text, claim=text, why=text, reference=[text], program=text, digest=text)
    environment = {"platform": text, "device": text, "python": {text: text}, "packages": {text: {text: text}}}
    return Run(Path("run.jsonl"), Header(1, environment, text), {text: case}, {"s1": text}, [check], False, text)


def test_a_hostile_text_adds_no_tag_and_no_attribute() -> None:
    harmless, hostile = Reader(render([hostile_run("harmless")])), Reader(render([hostile_run(HOSTILE)]))
    assert hostile.tags == harmless.tags
    assert "alert(1)</script>" in hostile.text
    assert "{{ 7 * 7 }}" in hostile.text


def test_what_is_unseen_is_made_visible() -> None:
    page = render([hostile_run(HOSTILE)])
    page.encode()  # a half of a character would be refused here
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e\u200f\u2028]", page)
    assert "⟨U+0000⟩⟨U+0008⟩⟨U+202E⟩gnp.exe⟨U+200F⟩⟨U+2028⟩⟨U+D800⟩" in page


def test_only_web_addresses_become_links() -> None:
    links = ["https://a.example/x?y=1&z=2#f", "http://b.example/"]
    others = [
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "//c.example",
        "https:/d",
        "Abadi et al., 2016",
        "https://[x",
    ]
    run = a_run(a_check(), cases={CASE: a_case(reference=links + others)})
    page = Reader(render([run]))
    assert [link for link in page.links if not link.startswith(("#", "data:image/"))] == links
    assert all(other in page.text for other in others)
    assert page.tags.count(("a", ("href", "rel"))) == len(links)


def test_a_long_text_is_cut_and_its_code_is_not_copied() -> None:
    run = a_run(a_check(because="b" * 5000), sources={"s1": "s" * 5000})
    page = render([run])
    assert "b" * LIMIT + "… (3,000 more characters)" in page
    assert not re.search(rf"b{{{LIMIT + 1}}}|s{{{LIMIT + 1}}}", page)
    assert 'class="copy"' not in page
    assert 'class="copy"' in render([a_run(a_check())])


def test_ids_are_distinct_and_every_inner_link_leads_somewhere() -> None:
    page = render([a_run(a_check(), a_check(case="masks"), a_check(case="a b/c"), a_check(case="a%20b/c")), hostile_run(HOSTILE)])
    ids = re.findall(r' id="([^"]*)"', page)
    assert CASE in ids
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in Reader(page).links if link.startswith("#")} <= set(ids)


# --- the page as a file


def test_nothing_is_loaded_from_elsewhere() -> None:
    page = render([a_run(a_check(), cases={CASE: a_case(reference=[])})])
    assert all(link.startswith(("#", "data:image/svg+xml")) for link in Reader(page).links)
    assert all(where.startswith(("data:", '"data:')) for where in re.findall(r"url\((.{6})", page))
    assert not re.search(r"@import|\bfetch\(|XMLHttpRequest|type=.module", page)


def test_the_policy_admits_the_script_of_the_page_and_no_other() -> None:
    page = render([a_run(a_check())])
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.S)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page
    assert "default-src 'none'" in page


def test_two_calls_give_the_same_bytes() -> None:
    runs = [
        a_run(*(a_check(target=t, outcome=o) for t, o in (("jax:eager@cpu", "x"), ("torch:eager@cpu", "y")))),
        hostile_run(HOSTILE),
    ]
    assert render(runs) == render(runs)


def test_the_page_does_not_depend_on_the_hashes_of_this_process() -> None:
    program = (
        "import hashlib, test_render as t; from conformance.render import render;"
        "print(hashlib.sha256(render([t.hostile_run(t.HOSTILE), t.a_run(t.a_check())]).encode()).hexdigest())"
    )
    here = Path(__file__).parent
    printed = set()
    for seed in "12":
        environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": f"{here}:{here.parent}", "TZ": f"UTC{seed}"}
        made = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
        printed.add(made.stdout)
    assert len(printed) == 1


def test_the_report_is_written(tmp_path: Path) -> None:
    path = write_report([a_run(a_check())], tmp_path / "new" / "site")
    assert path == tmp_path / "new" / "site" / "index.html"
    assert path.read_bytes() == render([a_run(a_check())]).encode()
    assert [file.name for file in path.parent.iterdir()] == ["index.html"]


def test_a_report_that_cannot_be_written_is_an_error_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ResultsError, match=r"^the report cannot be written to .*index\.html: \w.*") as caught:
        write_report([a_run(a_check())], tmp_path / "file")
    assert "\n" not in str(caught.value)


def test_three_thousand_checks_fit_a_page() -> None:
    modes = ["numpy:eager", *(f"{name}:{mode}" for name in ("torch", "jax", "tensorflow") for mode in ("eager", "compiled"))]
    checks = []
    for number in range(430):
        for index, mode in enumerate(modes):
            seen = {"results": [{"dtype": "float32", "shape": [8], "value": [number / 7 + index // 2] * 8}], "traces": [1, 0]}
            checks.append(a_check(case=f"area-{number % 9}/topic/case-{number}", target=f"{mode}@cpu", observation=seen))
    assert len(checks) > 3000
    assert len(render([a_run(*checks)]).encode()) < 3_000_000


def test_colours_can_be_told_from_their_background() -> None:
    style = (TEMPLATES / "parts.css").read_text(encoding="utf-8")
    pairs_of = re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", style)
    light, dark = ({name: pair[side] for name, *pair in pairs_of} for side in (0, 1))
    for colours in (light, dark):
        pairs = [(name, f"{name}-bg") for name in ("good", "bad", "crash", "gone", "t0", "t1", "t2", "t3", "warn")]
        pairs += [(name, on) for on in ("paper", "card") for name in ("ink", "quiet", "link", "good", "bad", "gone", "t0")]
        pairs += [("ink", "code")]
        low = {pair: contrast(*(colours[name] for name in pair)) for pair in pairs}
        assert {pair: value for pair, value in low.items() if value < 4.5} == {}
        assert contrast(colours["edge"], colours["paper"]) >= 3


def contrast(one: str, other: str) -> float:
    """https://www.w3.org/TR/WCAG21/#dfn-contrast-ratio"""

    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
