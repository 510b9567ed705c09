"""The published site in a browser, from disk: what a reader does with it, by mouse, by keyboard and without scripts."""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright
from runs import case_line, check, seen, write

from conformance.compare import compare
from conformance.history import timelines
from conformance.publish import publish
from conformance.results import CheckLine, outline
from conformance.site import Site

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
HOSTILE = (
    "</script><script>document.title='owned'</script><img src=http://evil.invalid/x onerror=alert(2)>\"'&lt;\x00\u202e{{7*7}}"
)
BOUND, ROWS, BAD, EVIL = "capture/rebinding/outer-array", "masks/length/rows", "masks/length/broken", "zoo/hostile/texts"
EVERY_KIND = {
    "index.html": "home",
    "masks/index.html": "area",
    "masks/length/rows.html": "case",
    "masks/length/broken.html": "case with failures",
    "frameworks/jax.html": "framework",
    "versions/jax-2.0.html": "release",
    "versions/index.html": "releases",
    "compare.html": "comparison",
    "find.html": "filter",
    "files/index.html": "data",
}


def lines(framework: str, version: int) -> list[CheckLine]:
    """Every kind of outcome; jax rebinds from its second release on."""
    targets = [f"{framework}:{mode}@cpu" for mode in ("eager", "compiled")]
    bound = "live" if framework == "torch" or version == 2 else "frozen"
    made = [check(BOUND, target=t, outcome=bound, expected=bound) for t in targets]
    for row in ("float32", "int8"):
        value = 2.0 if (row, version) == ("int8", 2) else 1.0
        made += [check(ROWS, row=row, parameters={"dtype": row}, target=t, observation=seen(value)) for t in targets]
    kinds = (
        {"eager": "unexpected", "compiled": "crashed"} if framework == "jax" else {"eager": "unsupported", "compiled": "not-run"}
    )
    for mode, outcome in kinds.items():
        expected = "unsupported" if outcome == "unsupported" else "conforms"
        made.append(check(BAD, target=f"{framework}:{mode}@cpu", outcome=outcome, expected=expected, because="a reason"))
    made.append(check(EVIL, target=targets[0], outcome=HOSTILE, expected=None, passed=True, because=HOSTILE, row=HOSTILE))
    return made


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    cases = (
        case_line(BOUND, claim="what a traced function sees when a captured array is rebound", program="return x + c"),
        case_line(ROWS, claim="the lengths are the sum of the mask", reference=["https://a.example/" + "long/" * 30]),
        case_line(BAD, claim="this one is broken"),
        case_line(EVIL, claim=HOSTILE, title=HOSTILE, why=HOSTILE, program=HOSTILE, reference=["javascript:alert(3)"]),
    )
    runs = []
    for framework, versions in {"torch": (1,), "jax": (1, 2)}.items():
        for version in versions:
            path = folder / f"{framework}-{version}.jsonl"
            packages = {framework: {framework: f"{version}.0"}}
            runs.append(outline(write(path, *lines(framework, version), cases=cases, packages=packages)))
    return publish(Site(timelines(runs)), tmp_path_factory.mktemp("site") / "sub path").parent


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not Path(CHROMIUM).exists():
        pytest.fail(f"there is no browser at {CHROMIUM}: apt-get install chromium, or name another by CHROMIUM=PATH")
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page. Whatever the browser complains of, or asks for elsewhere, fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    opened = context.new_page()
    complaints: list[str] = []
    opened.on("console", lambda message: complaints.append(message.text))
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("dialog", lambda dialog: complaints.append(dialog.message))
    opened.on(
        "request",
        lambda request: complaints.append(request.url) if not request.url.startswith(("file:", "data:", "blob:")) else None,
    )
    yield opened
    context.close()
    assert complaints == []


@pytest.fixture
def go(page: Page, site: Path) -> Any:
    return lambda address: page.goto(f"{site.as_uri()}/{address}")


def titles(page: Page) -> list[str]:
    return page.locator("#page\\:results .hit h2").all_inner_texts()


# --- search


def test_search_answers_as_one_types(page, go):
    go("index.html")
    page.keyboard.press("/")
    page.keyboard.type("what happens to a captured array in torch?")
    first = page.get_by_role("option").first
    expect(first).to_contain_text("what a traced function sees when a captured array is rebound")
    expect(first).to_contain_text("torch live")
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("option").last).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowDown")
    expect(first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/capture/rebinding/outer-array\.html$"))
    page.go_back()
    expect(page).to_have_url(re.compile(r"/index\.html$"))


def test_search_from_a_page_that_is_deep_and_what_is_not_found(page, go):
    go("masks/length/rows.html")
    page.get_by_role("combobox", name="Search the cases").fill("zyzzyva")
    expect(page.get_by_text("No case fits")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_text("No case fits")).to_be_hidden()
    page.get_by_role("combobox", name="Search the cases").fill("broken")
    page.get_by_role("option").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("this one is broken")


# --- filters


def test_filters_and_their_addresses(page, go):
    go("find.html")
    expect(page.locator("#page\\:summary")).to_have_text("4 cases, 18 checks")
    page.get_by_label("Area").select_option("masks")
    expect(page.locator("#page\\:summary")).to_have_text("2 cases, 12 checks")
    page.get_by_label("Outcome").select_option("bad")
    expect(page.locator("#page\\:summary")).to_have_text("1 case, 2 checks")
    assert page.url.endswith("find.html#area=masks&outcome=bad")
    page.go_back()
    expect(page.locator("#page\\:summary")).to_have_text("2 cases, 12 checks")
    expect(page.get_by_label("Outcome")).to_have_value("")
    page.go_back()
    expect(page.locator("#page\\:summary")).to_have_text("4 cases, 18 checks")


@pytest.mark.parametrize(
    ("filter", "found"),
    [
        ("version=jax+1.0&text=rebound", ["what a traced function sees when a captured array is rebound"]),
        ("framework=jax&against=torch&area=capture", []),
        ("framework=jax&against=torch&area=masks", ["this one is broken"]),
        ("mode=compiled&outcome=crashed", ["this one is broken"]),
        ("outcome=unsupported", ["this one is broken"]),
        ("target=jax%3Aeager%40cpu&area=masks", ["this one is broken", "the lengths are the sum of the mask"]),
        ("device=tpu", []),
    ],
)
def test_a_filter_is_an_address(filter, found, page, go):
    go(f"find.html#{filter}")
    expect(page.locator("#page\\:summary")).not_to_be_empty()
    assert titles(page) == found


def test_a_release_shows_what_it_showed(page, go):
    go("find.html#version=jax+1.0&area=capture")
    expect(page.locator(".hit")).to_contain_text("jax 1.0 eager, compiled frozen ×2")
    go("find.html#area=capture&framework=jax")
    expect(page.locator(".hit")).to_contain_text("jax 2.0 eager, compiled live ×2")


def test_a_cell_of_the_matrix_leads_to_its_checks(page, go):
    go("index.html")
    page.locator(".matrix tbody tr", has_text="masks").locator("a.cell").nth(2).click()
    expect(page.locator("#page\\:summary")).to_have_text("2 cases, 3 checks on jax:eager@cpu")


# --- compare


def test_two_releases_as_the_gate_would_say(page, go):
    go("compare.html#a=jax:eager@cpu&av=1.0&b=jax:eager@cpu&bv=2.0")
    expect(page.locator("#page\\:summary")).to_have_text(
        "jax:eager@cpu 1.0 and jax:eager@cpu 2.0: 2 of 5 checks that both have differ."
    )
    assert page.locator("#page\\:results h2").all_inner_texts() == ["Another outcome 1", "Same outcome, another observation 1"]
    expect(page.locator("#page\\:results li").first).to_contain_text("frozen → live")
    static = page.context.new_page()
    static.goto(page.url.split("compare.html")[0] + "versions/jax-2.0.html")
    assert static.locator("main h3").all_inner_texts() == [
        "Another outcome 2",
        "Same outcome, another observation 2",
    ]  # both modes


STATES: dict[str, dict[str, Any]] = {
    "conforms": {},
    "other": {"observation": seen(2.0)},
    "frozen": {"outcome": "frozen", "expected": "frozen"},
    "live": {"outcome": "live", "expected": "live"},
    "open": {"outcome": "open", "expected": None, "passed": True},
    "wrong": {"outcome": "live", "expected": "frozen"},
    "unexpected": {"outcome": "unexpected"},
    "crashed": {"outcome": "crashed"},
    "unsupported": {"outcome": "unsupported", "expected": "unsupported"},
    "not-run": {"outcome": "not-run"},
}


def test_every_change_is_what_the_gate_makes_of_it(page, tmp_path):
    pairs = [(before, after) for before in STATES for after in STATES]
    files = [
        outline(write(
            tmp_path / f"{n}.jsonl",
            *(check(f"a/b/{pair[0]}-{pair[1]}", **STATES[pair[n]]) for pair in pairs),
            packages={"jax": {"jax": f"{n + 1}.0"}},
        ))
        for n in range(2)
    ]  # fmt: skip
    expected = {(str(found.change), found.line.case) for found in compare(*files).changed}
    site = publish(Site(timelines(files)), tmp_path / "site").parent
    page.goto(f"{site.as_uri()}/compare.html")
    expect(page.locator("#page\\:results li").first).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="As JSON").click()
    assert {(row["change"], row["case"]) for row in json.loads(download.value.path().read_text())} == expected
    assert len(expected) > 60


def test_two_targets_side_by_side_and_back(page, go):
    go("compare.html")
    page.get_by_label("Left target").select_option("torch:eager@cpu")
    page.get_by_label("Right target").select_option("jax:eager@cpu")
    expect(page.locator("#page\\:summary")).to_contain_text("torch:eager@cpu 1.0 and jax:eager@cpu 2.0: 1 of 5")
    expect(page.locator("#page\\:results h2")).to_have_text("Only the right has it 1")
    page.get_by_role("button", name="Swap the two").click()
    expect(page.locator("#page\\:results h2")).to_have_text("Only the left has it 1")
    page.go_back()
    expect(page.locator("#page\\:results h2")).to_have_text("Only the right has it 1")
    page.reload()
    expect(page.locator("#page\\:results h2")).to_have_text("Only the right has it 1")


# --- a case


def test_a_link_to_a_check_shows_it(page, go):
    go("masks/length/rows.html#int8-jax:compiled@cpu")
    expect(page.locator("td:target")).to_have_text("conforms")
    page.locator("td:target a").click()
    expect(page.locator("details:target")).to_have_attribute("open", "")
    expect(page.locator("details:target")).to_be_in_viewport()


def test_a_history_is_a_strip(page, go):
    go("capture/rebinding/outer-array.html")
    strip = page.get_by_role("region", name="History of jax")
    assert strip.locator("tbody td").all_inner_texts() == ["frozen", "live"]
    page.locator(".moves a").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("jax 2.0")


def test_a_source_is_copied(page, go):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    go("masks/length/rows.html")
    page.get_by_role("button", name="Copy the jax code").click()
    expect(page.get_by_role("button", name="Copied the jax code")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "source\n"


def test_hostile_texts_stay_texts(page, go, site):
    go("capture/rebinding/outer-array.html")
    go("zoo/hostile/texts.html")
    visible = HOSTILE.replace("\x00", "⟨U+0000⟩").replace("\u202e", "⟨U+202E⟩")
    assert page.get_by_role("heading", level=1).inner_text() == visible
    assert page.locator("img, iframe, object, form").count() == 0
    go("find.html#area=zoo")
    expect(page.locator(".hit").first).to_contain_text("owned")
    go("compare.html#a=torch:eager@cpu&av=1.0&b=jax:eager@cpu&bv=2.0")
    page.get_by_role("combobox", name="Search the cases").fill("owned")
    expect(page.get_by_role("option").first).to_contain_text("<img src=")
    assert "owned" not in page.title()


# --- taking away


def test_what_is_on_the_screen_as_csv_and_json(page, go):
    go("find.html#outcome=crashed")
    expect(page.locator(".hit")).to_have_count(1)
    with page.expect_download() as download:
        page.get_by_role("button", name="As CSV").click()
    rows = list(csv.DictReader(download.value.path().read_text().splitlines()))
    assert [(row["case"], row["target"], row["release"], row["kind"]) for row in rows] == [
        (BAD, "jax:compiled@cpu", "2.0", "crashed")
    ]
    with page.expect_download() as download:
        page.get_by_role("button", name="As JSON").click()
    assert json.loads(download.value.path().read_text())[0]["outcome"] == "crashed"


def test_a_formula_in_a_sheet_is_a_text(page, go):
    go("index.html")
    assert page.evaluate("conformance.csv([['=1+1', 'a \"b\"', '-2']])") == '"\'=1+1","a ""b""","\'-2"\r\n'


def test_the_outcomes_of_a_case_as_csv(page, go):
    go("masks/length/rows.html")
    with page.expect_download() as download:
        page.get_by_role("button", name="Outcomes as CSV").click()
    rows = list(csv.reader(download.value.path().read_text().splitlines()))
    assert rows[0] == ["dtype", "torch 1.0 eager", "torch 1.0 compiled", "jax 2.0 eager", "jax 2.0 compiled"]
    assert rows[1] == ["float32", "conforms", "conforms", "conforms", "conforms"]


# --- everywhere


def test_a_theme_is_chosen_and_kept(page, go):
    paper = "getComputedStyle(document.documentElement).backgroundColor"
    go("index.html")
    light = page.evaluate(paper)
    button = page.locator("#page\\:theme")
    button.click()
    button.click()
    expect(button).to_have_text("Theme: dark")
    dark = page.evaluate(paper)
    assert sum(map(int, re.findall(r"\d+", dark))) < 200 < sum(map(int, re.findall(r"\d+", light)))
    go("masks/length/rows.html")
    assert page.evaluate(paper) == dark
    button.click()
    assert page.evaluate(paper) == light


@pytest.mark.parametrize("address", EVERY_KIND)
@pytest.mark.parametrize("width", [320, 900])
def test_no_screen_is_too_narrow(address, width, page, go):
    page.set_viewport_size({"width": width, "height": 800})
    go(address)
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("address", EVERY_KIND)
def test_nothing_stands_in_the_way_of_assistive_technology(address, scheme, page, go):
    page.emulate_media(color_scheme=scheme)
    go(address)
    if address in ("compare.html", "find.html"):
        expect(page.locator("#page\\:results > *").first).to_be_visible()
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true })")
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
    found = Axe().run(page, options={"runOnly": {"type": "tag", "values": tags}, "resultTypes": ["violations"], "preload": False})
    assert found.violations_count == 0, found.generate_report()


def test_an_open_search_is_accessible(page, go):
    go("index.html")
    page.locator("#page\\:search").fill("mask")
    expect(page.get_by_role("option").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    found = Axe().run(page, options={"preload": False})
    assert found.violations_count == 0, found.generate_report()


def test_with_a_keyboard_alone(page, go):
    go("index.html")
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to the content")
    page.keyboard.press("Enter")
    page.locator(".matrix th a", has_text="masks").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/masks/index\.html$"))
    page.get_by_role("link", name="the lengths are the sum of the mask").focus()
    page.keyboard.press("Enter")
    page.locator("details.evidence summary").first.focus()
    before = page.locator("details.evidence").first.get_attribute("open")
    page.keyboard.press("Enter")
    assert page.locator("details.evidence").first.get_attribute("open") != before


def test_without_scripts_everything_can_be_read(browser, site):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site.as_uri()}/index.html")
    assert page.locator(".scripted:visible, button:visible, input:visible").count() == 0
    page.get_by_role("link", name="masks", exact=True).click()
    page.get_by_role("link", name="the lengths are the sum of the mask").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("the lengths are the sum of the mask")
    page.locator("td a").first.click()
    assert page.locator("figure pre:visible").count() == 2
    page.goto(f"{site.as_uri()}/compare.html")
    page.locator("noscript a", has_text="jax 2.0").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("jax 2.0")
    page.goto(f"{site.as_uri()}/find.html")
    expect(page.locator("noscript a", has_text="masks")).to_be_visible()
    context.close()


def test_on_paper(page, go):
    go("masks/length/rows.html")
    page.emulate_media(media="print")
    assert page.locator("header nav:visible, .finder:visible, .theme:visible, .copy:visible").count() == 0
    expect(page.locator("table.cells")).to_be_visible()
