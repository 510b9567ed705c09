"""The published site: what it shows of which release, its addresses, and that no text of the results becomes anything else."""

from __future__ import annotations

import html.parser
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

import jsonschema
import pytest
from runs import ENVIRONMENT, case_line, check, seen, write

from conformance import library
from conformance.badge import badge
from conformance.cli import main
from conformance.compare import Change
from conformance.history import timelines
from conformance.kinds import Kind, Tally
from conformance.publish import publish
from conformance.results import CaseLine, CheckLine, Outline, ResultsError, Writer, outline
from conformance.site import Site, address, disagree, part
from conformance.wording import LIMIT

HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'`&lt;&#0;</style></pre></details><!-- "
    "{{ 7 * 7 }}{% raw %}\x00\x08\u202egnp.exe\u200f\u2028]]>../../../etc/passwd"
)
ONE, TWO, THREE = "masks/length/one", "masks/length/two", "grad/basics/three"


def results(path: Path, version: str, *checks: CheckLine, framework: str = "jax", **said: Any) -> Outline:
    packages = {framework: {framework: version, "numpy": "2.4.6"}}
    return outline(write(path, *checks, packages=packages, **said))


def named(case: str, outcome: str, **said: Any) -> CheckLine:
    return check(case, outcome=outcome, expected=outcome, **said)


@pytest.fixture
def runs(tmp_path: Path) -> list[Outline]:
    """Three releases of jax and one of torch; the files are not in the order of the releases."""
    torch = [named(ONE, "live", target="torch:eager@cpu"), check(THREE, target="torch:eager@cpu")]
    return [
        results(tmp_path / "b.jsonl", "0.10.2", named(ONE, "live"), check(TWO, observation=seen(2.0)), check(THREE)),
        results(tmp_path / "a.jsonl", "0.4.38", named(ONE, "frozen"), check(TWO), check(THREE, outcome="unexpected")),
        results(tmp_path / "c.jsonl", "0.9.2", named(ONE, "frozen"), check(TWO), check(THREE)),
        results(tmp_path / "t.jsonl", "2.13.0+cpu", *torch, framework="torch"),
    ]


def built(runs: list[Outline], folder: Path, **said: Any) -> Path:
    return publish(Site(timelines(runs)), folder, **said).parent


def pages(site: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(site.rglob("*.html")):
        yield path.relative_to(site).as_posix(), path.read_text(encoding="utf-8")


class Reader(html.parser.HTMLParser):
    """The tags of a page with the names of their attributes, its ids, its links and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, _ in attrs)))
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]
        self.ids += [value or "" for name, value in attrs if name == "id"]

    def handle_data(self, data: str) -> None:
        self.text += data


# --- releases


def test_the_newest_release_is_what_the_matrix_shows(runs):
    site = Site(timelines(runs))
    assert [(line.framework, line.versions) for line in site.lines] == [
        ("torch", ["2.13.0+cpu"]),
        ("jax", ["0.4.38", "0.9.2", "0.10.2"]),
    ]
    assert [group.version for group in site.home().groups] == ["2.13.0+cpu", "0.10.2"]


def test_a_history_says_in_which_release_what_changed(runs):
    (torch, jax) = Site(timelines(runs)).case_page(1, ONE, None, None).pasts
    (strip,) = jax.strips
    assert [(s.width, s.outcome, s.first, s.last) for s in strip.stretches] == [
        (2, "frozen", "0.4.38", "0.9.2"),
        (1, "live", "0.10.2", "0.10.2"),
    ]
    assert strip.stretches[0].css != strip.stretches[1].css
    assert [(m.version, m.before, m.after) for m in jax.moves] == [("0.10.2", "frozen", "live")]
    assert torch.moves == []


def test_the_same_outcome_of_another_observation_is_a_change(runs):
    (jax,) = Site(timelines(runs)).case_page(1, TWO, None, None).pasts
    assert [s.outcome for s in jax.strips[0].stretches] == ["conforms", "conforms"]
    assert jax.moves[0].after == "the same outcome, another observation"


def test_an_observation_that_comes_back_is_the_earlier_one(tmp_path):
    values = {"1.0": 1.0, "1.1": 2.0, "1.2": 1.0}
    files = [results(tmp_path / f"{v}.jsonl", v, check(observation=seen(value))) for v, value in values.items()]
    (line,) = timelines(files)
    assert [[span.observation for span in spans] for spans in line.spans.values()] == [[0, 1, 0]]


def test_a_version_page_says_what_the_gate_says(runs):
    site = Site(timelines(runs))
    first, second, third = [page for page in site.versions if page.framework == "jax"]
    assert first.before == ""
    assert [(s.change, s.number) for s in second.shifts] == [(Change.MENDED, 1)]
    assert [(s.change, s.number) for s in third.shifts] == [(Change.OUTCOME, 1), (Change.OBSERVATION, 1)]
    assert third.shifts[0].shown[0].address == "masks/length/one.html#jax:eager@cpu"
    assert third.shifts[1].shown[0].difference == "results[0]: [1.0] -> [2.0]"


def test_what_is_new_or_gone_is_counted_and_no_change(tmp_path):
    files = [
        results(tmp_path / "1.jsonl", "1.0", check(ONE), check(TWO)),
        results(tmp_path / "2.jsonl", "2.0", check(ONE), check(THREE)),
    ]
    page = Site(timelines(files)).versions[1]
    assert (page.shifts, page.new, page.gone, page.compared) == ([], 1, 1, 1)


def test_a_case_that_was_edited_is_not_compared(tmp_path):
    old = case_line(ONE, digest="old")
    files = [
        results(tmp_path / "1.jsonl", "1.0", named(ONE, "frozen"), check(TWO), cases=(old,)),
        results(tmp_path / "2.jsonl", "2.0", named(ONE, "live"), check(TWO)),
    ]
    site = Site(timelines(files))
    assert site.versions[1].shifts == []
    assert site.versions[1].edited == 1
    (past,) = site.case_page(0, ONE, None, None).pasts
    assert [s.outcome for s in past.strips[0].stretches] == ["another text of the case", "live"]
    assert past.moves == []


def test_releases_that_cannot_be_compared_are_said_to_be(tmp_path):
    files = [results(tmp_path / "1.jsonl", "1.0", check(ONE)), results(tmp_path / "2.jsonl", "2.0", check(TWO))]
    page = Site(timelines(files)).versions[1]
    assert "have no check in common: nothing can be compared" in page.why
    assert page.why in Reader((built(files, tmp_path / "site") / page.address).read_text()).text


def test_of_two_files_of_one_release_the_later_counts_and_keeps_what_the_other_has(tmp_path):
    printed = {"printed": "an IR"}
    files = [
        results(tmp_path / "1.jsonl", "1.0", named(ONE, "frozen", evidence=printed), check(TWO, evidence=printed)),
        results(tmp_path / "2.jsonl", "1.0", named(ONE, "live"), check(TWO, expectation={"value": [1.0]})),
    ]
    (run,) = Site(timelines(files)).runs
    assert [(c.outcome, c.evidence) for c in run.checks] == [("live", {}), ("conforms", printed)]


def test_a_file_without_sources_takes_them_from_the_one_that_has_them(tmp_path):
    path = tmp_path / "new.jsonl"
    bare = results(path, "2.0", check(ONE))._replace(sources={})
    old = results(tmp_path / "old.jsonl", "1.0", check(ONE))
    side = Site(timelines([bare, old])).case_page(0, ONE, None, None).sides[0]
    assert [source.text for source in side.sources] == ["source"]
    assert Site(timelines([bare])).case_page(0, ONE, None, None).sides[0].sources == []


def test_devices_have_histories_of_their_own(tmp_path):
    files = [
        results(tmp_path / "c.jsonl", "2.0", check(ONE)),
        results(tmp_path / "t.jsonl", "1.0", check(ONE, target="jax:eager@tpu"), device="tpu"),
    ]
    site = Site(timelines(files))
    assert [(page.version, page.device, page.address) for page in site.versions] == [
        ("2.0", "cpu", "versions/jax-2.0.html"),
        ("1.0", "tpu", "versions/jax-1.0-tpu.html"),
    ]
    assert [group.columns for group in site.home().groups] == [["eager @cpu"], ["eager @tpu"]]


def test_frameworks_disagree_where_one_row_in_one_mode_shows_two_things(tmp_path):
    def pairs(*checks: CheckLine) -> Any:
        packages = {"jax": {"jax": "1"}, "torch": {"torch": "1"}}
        site = Site(timelines([outline(write(tmp_path / "r.jsonl", *checks, packages=packages))]))
        return site.book.by_case[ONE]

    live = named(ONE, "live", target="torch:eager@cpu")
    assert disagree(pairs(check(ONE), live), "jax", "torch")
    assert not disagree(pairs(check(ONE, target="jax:compiled@cpu"), live), "jax", "torch")
    assert not disagree(pairs(check(ONE, outcome="not-run"), live), "jax", "torch")
    assert not disagree(pairs(named(ONE, "live"), live), "jax", "torch")


# --- addresses


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "a/../b",
        "a/b/..",
        "a/.git/c",
        "/a/b",
        "a/b",
        "files/b/c",
        "a/b/index",
        "a//c",
        "a/b c/d",
        HOSTILE,
        "é/b/c",
    ],
)
def test_a_name_that_is_no_address_is_replaced(name):
    assert re.fullmatch(r"x/x-[0-9a-f]{16}\.html", address(name))


def test_a_plain_name_is_an_address():
    assert address(ONE) == "masks/length/one.html"
    assert part("files") != "files"
    assert part("jax-0.10.2") == "jax-0.10.2"


def test_every_inner_link_leads_somewhere(runs, tmp_path):
    site = built(runs, tmp_path / "site")
    read = {name: Reader(text) for name, text in pages(site)}
    assert set(read) >= {
        "index.html",
        "masks/index.html",
        "masks/length/one.html",
        "frameworks/jax.html",
        "versions/jax-0.9.2.html",
    }
    for name, reader in read.items():
        assert len(reader.ids) == len(set(reader.ids)), name
        for link in reader.links:
            path, fragment = urldefrag(unquote(link))
            target = (site / name).parent / path if path else site / name
            assert target.is_file(), (name, link)
            if fragment and "=" not in fragment and target.suffix == ".html":
                assert fragment in read[os.path.relpath(target, site)].ids, (name, link)


def test_the_home_page_links_every_cell(runs, tmp_path):
    home = (built(runs, tmp_path / "site") / "index.html").read_text()
    assert 'href="find.html#area=masks&amp;target=jax%3Aeager%40cpu"' in home


def test_canonical_addresses_and_a_sitemap(runs, tmp_path):
    site = built(runs, tmp_path / "site", base_url="https://a.example/conformance/")
    for name, text in pages(site):
        assert f'<link rel="canonical" href="https://a.example/conformance/{name}">' in text
        assert f"<loc>https://a.example/conformance/{name}</loc>" in (site / "sitemap.xml").read_text()
    assert not (built(runs, tmp_path / "other") / "sitemap.xml").exists()


# --- texts stay texts


def hostile(folder: Path, text: str) -> Outline:
    """A run in which everything that can be any text is this one."""
    observation = {
        "results": [{"dtype": text, "shape": [1], "value": [text]}, {"dict": {text: {"python": text, "value": text}}}],
        "raised": {"classes": [text], "step": text, "message": text},
        text: {text: [text]},
    }
    line = CheckLine(
        case=text, row=text, parameters={text: text}, target=f"jax:{text}@cpu", outcome=text, expected=f"not {text}", passed=False,
        observation=observation, expectation={text: text}, because=text, against={text: text}, source="s", trace=text,
        evidence={"printed": text, "reasons": [[text]]},
    )  # fmt: skip
    case = CaseLine(text, text, text, text, [text], text, text)
    writer = Writer(folder / "run.jsonl")
    writer.check(line, case, text, {})
    writer.check(check(ONE), case_line(ONE), "source", {})
    environment = ENVIRONMENT | {"platform": text, "packages": {"jax": {"jax": text, text: text}}}
    return outline(writer.close(environment, complete=True))


def test_a_hostile_text_adds_no_tag_and_no_attribute(tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    harmless = built([hostile(tmp_path / "1", "harmless /\n" + "x" * 300)], tmp_path / "one")
    evil = built([hostile(tmp_path / "2", HOSTILE)], tmp_path / "two")
    tags = [sorted(tuple(sorted(set(Reader(text).tags))) for _, text in pages(site)) for site in (harmless, evil)]
    assert tags[0] == tags[1]
    for path in evil.rglob("*"):
        assert evil in path.resolve().parents
    (case,) = [text for name, text in pages(evil) if name.startswith("x/") and "index" not in name]
    assert "alert(1)</script>" in Reader(case).text
    assert not re.search("[\x00-\x08\u202e\u200f\u2028]", case)
    for script in [*evil.glob("files/*.js"), *evil.glob("files/targets/*.js")]:
        assert "\u2028" not in script.read_text(encoding="utf-8")
        assert script.read_text(encoding="utf-8").startswith("conformance.take(")


def test_a_megabyte_in_every_field_makes_no_large_page_and_is_there_as_a_file(tmp_path):
    site = built([hostile(tmp_path, "m" * 1_000_000)], tmp_path / "site")
    assert max(len(text) for _, text in pages(site)) < 1_000_000
    assert all("m" * (LIMIT + 1) not in text for _, text in pages(site))
    whole = [path.read_text() for path in site.glob("files/texts/*.txt")]
    assert "m" * 1_000_000 in whole


def test_many_rows_make_no_large_page(tmp_path):
    checks = [check(ONE, row=f"{n}-float32", parameters={"n": str(n)}, observation=seen(*[float(n)] * 60)) for n in range(3000)]
    site = built([results(tmp_path / "r.jsonl", "1.0", *checks)], tmp_path / "site")
    page = (site / "masks/length/one.html").read_text()
    assert len(page) < 1_000_000
    assert "more rows, which are in the" in Reader(page).text
    assert len(json.loads((site / "masks/length/one.json").read_text())["checks"]) == 3000


def test_a_value_that_was_too_long_for_the_results_can_be_had(tmp_path):
    writer = Writer(tmp_path / "r.jsonl")
    evidence = {"printed": "HloModule... (all of it: 0123456789abcdef)"}
    writer.check(check(ONE, evidence=evidence), case_line(ONE), "source", {"0123456789abcdef": "HloModule, whole"})
    run = outline(writer.close(ENVIRONMENT, complete=True))
    site = built([run], tmp_path / "site")
    (file,) = site.glob("files/texts/*.txt")
    assert file.read_text() == "HloModule, whole"
    assert f'href="../../files/texts/{file.name}"' in (site / "masks/length/one.html").read_text()


def test_no_page_needs_anything_but_the_files_of_the_site(runs, tmp_path):
    for _, text in pages(built(runs, tmp_path / "site")):
        assert "Content-Security-Policy" in text
        assert "unsafe" not in text
        assert not re.search(r"<style|<script(?! src)| style=| on\w+=|<iframe|<object|<form[^>]* action", text)
        assert not [link for link in Reader(text).links if re.match(r"[a-z]+:|//", link)]
    for name in ("parts.css", "site/site.css"):
        style = (Path(library.__file__).parent / "templates" / name).read_text()
        assert all(where.startswith(("data:", '"data:')) for where in re.findall(r"url\((.{6})", style))


# --- what is good


@pytest.mark.parametrize("outcome", ["not-run", "unsupported", "crashed", "timed-out", "unexpected"])
def test_what_is_no_pass_is_nowhere_green(outcome, tmp_path):
    passed = outcome == "unsupported" or None
    line = check(ONE, outcome=outcome, expected=outcome, passed=passed)
    site = built([results(tmp_path / "r.jsonl", "1.0", line, check(TWO))], tmp_path / "site")
    page = (site / "masks/length/one.html").read_text()
    assert not re.search(r'<(td|span|details|li)[^>]* class="[^"]*\b(conforms|named)\b', page)


def test_three_ways_not_to_know_have_three_shapes():
    style = (Path(library.__file__).parent / "templates/parts.css").read_text()
    shapes = dict(re.findall(r"^\.([\w-]+) \{.*--s: (var\(--\w+\))", style, re.M))
    assert set(shapes) == set(Kind)
    assert len(set(shapes.values())) == len(shapes)


def test_a_badge_is_green_only_for_what_holds():
    green = "#14622f"
    assert green in badge("jax", Tally(conforms=3, unsupported=1))
    assert green not in badge("jax", Tally(conforms=3, failed=1))
    assert green not in badge("jax", Tally(not_run=3))
    assert "nothing ran" in badge("jax", Tally(not_run=3))
    assert "<script>" not in badge("<script>", Tally())


# --- data


def test_the_data_is_as_its_schema_says(runs, tmp_path):
    site = built(runs, tmp_path / "site")
    validator = jsonschema.Draft202012Validator(json.loads((site / "files/schema.json").read_text()))
    lines = [line for file in sorted(site.glob("files/*.jsonl")) for line in file.read_text().splitlines()]
    lines += [file.read_text() for file in site.glob("masks/**/*.json")]
    assert len(lines) == 5
    for line in lines:
        validator.validate(json.loads(line))
    (one,) = [data for data in map(json.loads, lines[:3]) if data["case"] == ONE]
    jax = next(each for each in one["checks"] if each["target"] == "jax:eager@cpu")
    assert [(each["first"], each["last"], each["outcome"]) for each in jax["history"]] == [
        ("0.4.38", "0.9.2", "frozen"),
        ("0.10.2", "0.10.2", "live"),
    ]
    with pytest.raises(jsonschema.ValidationError):
        validator.validate({**one, "checks": [{**jax, "kind": "fine"}]})


def test_a_script_is_offered_where_the_case_is_still_what_was_run(tmp_path, write_cases, monkeypatch):
    monkeypatch.setenv("CONFORMANCE_CACHE", str(tmp_path / "cache"))
    file = write_cases(
        "title: T\ncases:\n- id: sum\n  claim: the elements are added up\n  inputs: {x: [1.0, 2.0]}\n  program: return sum(x)\n  expect: {value: 3.0}\n"
    )
    (card,) = library.unit(file, "cpu", "f").cases
    lines = [case_line(card.identity, digest=digest) for digest in (card.digest, "another")]
    files = [results(tmp_path / f"{n}.jsonl", "1.0", check(card.identity), cases=(line,)) for n, line in enumerate(lines)]
    same, other = (built([run], tmp_path / f"site-{n}", cases=[file]) for n, run in enumerate(files))
    script = (same / "area/topic/sum.jax.eager.cpu.py").read_text()
    assert "jnp.sum(x)" in script
    assert 'href="sum.jax.eager.cpu.py"' in (same / "area/topic/sum.html").read_text()
    assert not list(other.rglob("*.py"))


# --- the folder


def test_two_builds_are_byte_identical(runs, tmp_path):
    program = "import sys; from pathlib import Path; from conformance.cli import main; sys.exit(main(['report', *sys.argv[1:]]))"
    here = Path(__file__).parent
    made = []
    for seed in "12":
        environment = {
            **os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": f"{here.parent}", "TZ": f"UTC{seed}",
            "CONFORMANCE_CACHE": str(tmp_path / "cache"),
        }  # fmt: skip
        site = tmp_path / seed
        words = [*(str(run.path) for run in runs), "-o", str(site), "--path", str(here / "faulty")]
        subprocess.run([sys.executable, "-c", program, *words], env=environment, check=True, stdout=subprocess.DEVNULL)
        made.append({path.relative_to(site): path.read_bytes() for path in site.rglob("*") if path.is_file()})
    assert made[0] == made[1]


def test_a_page_of_an_earlier_build_is_taken_away(runs, tmp_path):
    site = built(runs, tmp_path / "site")
    (site / "CNAME").write_text("a.example")  # somebody else's, and stays
    assert (site / "versions/jax-0.9.2.html").exists()
    built([runs[0], runs[3]], site)
    assert not (site / "versions/jax-0.9.2.html").exists()
    assert (site / "CNAME").exists()


def test_a_folder_that_is_something_else_is_left_alone(runs, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.tex").touch()
    with pytest.raises(ResultsError, match=r"is there, and is no site of an earlier build: say another folder"):
        built(runs, tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.tex"]


def test_what_an_earlier_list_says_of_other_folders_is_not_believed(runs, tmp_path):
    site = built(runs, tmp_path / "site")
    (tmp_path / "precious").touch()
    listed = site / "files/pages.txt"
    listed.write_text(listed.read_text() + f"../precious\n{tmp_path}/precious\n")
    built(runs, site)
    assert (tmp_path / "precious").exists()


# --- the command


@pytest.fixture
def report(tmp_path, capsys):
    def run(*words: str) -> tuple[int, str]:
        status = main(["report", *words, "-o", str(tmp_path / "site"), "--path", str(Path(__file__).parent / "faulty")])
        return status, capsys.readouterr().err

    return run


def test_an_incomplete_run_is_not_published_unless_asked_for(report, tmp_path):
    path = write(tmp_path / "r.jsonl", check(ONE), complete=False)
    status, said = report(str(path))
    assert status == 2
    assert said == "conformance: r.jsonl.partial is incomplete, for its run did not end: run it again, or say --incomplete\n"
    assert not (tmp_path / "site").exists()
    assert report(str(path), "--incomplete")[0] == 0
    for _, text in pages(tmp_path / "site"):
        assert "Not a complete result. r.jsonl.partial is incomplete, for its run did not end." in " ".join(
            Reader(text).text.split()
        )


@pytest.mark.parametrize("outcome", ["crashed", "timed-out", "not-run"])
def test_a_run_in_which_nothing_came_to_an_end_is_not_published(outcome, report, tmp_path):
    path = write(tmp_path / "r.jsonl", check(ONE, outcome=outcome), check(TWO, outcome=outcome))
    assert report(str(path)) == (
        2,
        "conformance: r.jsonl says nothing: none of its checks came to an end: run it again, or say --incomplete\n",
    )


def test_a_run_of_nothing_makes_a_site_that_says_so(report, tmp_path):
    path = write(tmp_path / "r.jsonl")
    assert report(str(path))[0] == 2
    assert report(str(path), "--incomplete")[0] == 0
    assert "Nothing was run" in (tmp_path / "site/index.html").read_text()


def test_a_site_of_a_complete_run_has_no_warning(report, tmp_path):
    assert report(str(write(tmp_path / "r.jsonl", check(ONE))))[0] == 0
    assert not any("Not a complete result" in text for _, text in pages(tmp_path / "site"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--base-url", "javascript:x"], "--base-url 'javascript:x' is no address: it begins with https://"),
        (["missing.jsonl"], "missing.jsonl cannot be read: No such file or directory"),
    ],
)
def test_a_mistake_is_one_line(words, said, report, tmp_path):
    path = write(tmp_path / "r.jsonl", check(ONE))
    assert report(str(path), *words) == (4, f"conformance: {said}\n")


def test_one_file_is_still_to_be_had(report, tmp_path):
    assert report(str(write(tmp_path / "r.jsonl", check(ONE))), "--single-file")[0] == 0
    assert [path.name for path in (tmp_path / "site").iterdir()] == ["index.html"]
