"""The report in a browser: it opens from disk, asks for nothing, and can be used with a keyboard and on a phone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from conformance.render import write_report
from conformance.results import CaseLine, CheckLine, Header, Run

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
HOSTILE = (
    "</script><script>document.title='owned'</script><img src=http://evil.invalid/x onerror=alert(2)>\"'&lt;\x00\u202e{{7*7}}"
)
TARGETS = [f"{name}:{mode}@cpu" for name in ("numpy", "torch", "jax", "tensorflow") for mode in ("eager", "compiled", "xla")]


def case(identity: str, claim: str) -> CaseLine:
    return CaseLine(
        identity, "Topic", claim, "why", ["https://a.example/" + "long/" * 30, "javascript:alert(3)"], "return x", "d"
    )


def check(identity: str, target: str, outcome: str, expected: str, row: str = "") -> CheckLine:
    seen = {"results": [{"dtype": "float32", "shape": [3], "value": [1.0, 2.0, 3.0]}], "traces": [1, 0]}
    return CheckLine(
        identity, row, {}, target, outcome, expected, outcome == expected, seen, {"traces": [1, 0]}, "", {}, "s", "f"
    )


def a_run() -> Run:
    """Three cases: one where all agree, one that differs, one that fails; in a fourth, every text is hostile."""
    cases = [
        case("grad/basics/agree", "all of them agree"),
        case("masks/length/differ", "some add up no booleans"),
        case("masks/length/fail", "this one is broken"),
        case("zoo/hostile/texts", HOSTILE),
    ]
    checks = [check("grad/basics/agree", target, "conforms", "conforms") for target in TARGETS]
    checks += [check("masks/length/differ", t, o, o) for t in TARGETS for o in ("live" if "torch" in t else "frozen",)]
    checks += [check("masks/length/fail", target, "unexpected", "conforms") for target in TARGETS[:2]]
    checks += [check("zoo/hostile/texts", target, HOSTILE, HOSTILE, row=HOSTILE) for target in TARGETS]
    source = f"import jax\n# {HOSTILE}\n" + "x = 1  # " + "a long line " * 20
    header = Header(1, {"platform": HOSTILE, "device": "cpu", "packages": {"jax": {"jax": HOSTILE}}}, "c")
    return Run(Path("run.jsonl"), header, {c.case: c for c in cases}, {"s": source}, checks, True, "2026-11-29T16:43:23+0000")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not Path(CHROMIUM).exists():
        pytest.fail(f"there is no browser at {CHROMIUM}: apt-get install chromium, or name another by CHROMIUM=PATH")
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_report([a_run()], tmp_path_factory.mktemp("site")).as_uri()


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """The open report. Whatever the browser complains of, or asks for elsewhere, fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    complaints: list[str] = []
    opened.on("console", lambda message: complaints.append(message.text))
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("dialog", lambda dialog: complaints.append(dialog.message))
    opened.on(
        "request", lambda request: complaints.append(request.url) if not request.url.startswith(("file:", "data:")) else None
    )
    opened.goto(address)
    yield opened
    context.close()
    assert complaints == []


def shown(page: Page) -> list[str]:
    return [node.get_attribute("id") or "" for node in page.locator(".case:visible").all()]


def test_opens_from_disk(page: Page) -> None:
    assert page.title() == "Conformance of numpy, torch, jax and tensorflow"
    assert len(shown(page)) == 4


def test_filter_by_text(page: Page) -> None:
    field = page.get_by_role("searchbox")
    field.fill("BOOLEANS add")
    assert shown(page) == ["masks/length/differ"]
    assert page.locator(".area:visible").count() == 1
    expect(page.locator(".filter output")).to_have_text("1 of 4 cases")
    field.fill("frozen")  # an outcome
    assert shown(page) == ["masks/length/differ"]
    field.fill("no such thing")
    expect(page.get_by_text("No case fits the filter.")).to_be_visible()
    field.fill("")
    assert len(shown(page)) == 4


def test_only_differences_and_only_failures(page: Page) -> None:
    differences, failures = page.get_by_label("Only differences"), page.get_by_label("Only failures")
    differences.check()
    assert shown(page) == ["masks/length/differ", "masks/length/fail"]
    failures.check()
    assert shown(page) == ["masks/length/fail"]
    failures.focus()
    page.keyboard.press("Space")
    assert shown(page) == ["masks/length/differ", "masks/length/fail"]


def test_details_open_by_keyboard(page: Page) -> None:
    details = page.locator("[id='grad/basics/agree'] details")
    details.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(details.get_by_text("Expected", exact=True)).to_be_visible()
    page.keyboard.press("Enter")
    expect(details.get_by_text("Expected", exact=True)).to_be_hidden()


def test_a_cell_leads_to_its_evidence(page: Page) -> None:
    page.locator("[id='masks/length/fail'] td a").first.focus()
    page.keyboard.press("Enter")
    evidence = page.locator("[id='masks/length/fail'] .evidence")
    expect(evidence).to_be_in_viewport()
    expect(evidence).to_contain_text("instead of the expected conforms")


def test_a_link_to_a_case_shows_it_despite_the_filter(page: Page) -> None:
    page.get_by_role("searchbox").fill("agree")
    page.evaluate("location.hash = 'masks/length/fail'")
    expect(page.locator("[id='masks/length/fail'] h3")).to_be_in_viewport()
    assert page.get_by_role("searchbox").input_value() == ""


def test_a_source_is_copied(page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("[id='grad/basics/agree'] summary").click()
    figure = page.locator("[id='grad/basics/agree'] figure").filter(has_text="jax code")
    figure.get_by_role("button", name="Copy the jax code").click()
    expect(figure.get_by_role("button")).to_contain_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == figure.locator("code").inner_text() + "\n"


def test_hostile_texts_stay_texts(page: Page) -> None:
    hostile = page.locator("[id='zoo/hostile/texts']")
    visible = HOSTILE.replace("\x00", "⟨U+0000⟩").replace("\u202e", "⟨U+202E⟩")
    assert hostile.locator("h3").inner_text() == visible
    assert hostile.locator("td").first.inner_text() == visible
    assert page.locator("script").count() == 1
    assert page.locator("img, iframe, object, form[action]").count() == 0
    assert hostile.locator("a[href^='javascript']").count() == 0
    expect(hostile).to_contain_text("javascript:alert(3)")


@pytest.mark.parametrize("width", [320, 390, 900, 1440])
def test_no_screen_is_too_narrow(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    matrix = page.locator(".scroll:has(.matrix)")
    overflows = matrix.evaluate("(each) => each.scrollWidth > each.clientWidth")
    assert overflows or width > 900  # the matrix scrolls by itself, and by keyboard
    if overflows:
        matrix.focus()
        page.keyboard.press("ArrowRight")
        expect(matrix).not_to_have_js_property("scrollLeft", 0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(browser: Browser, address: str, scheme: str) -> None:
    context = browser.new_context(color_scheme="dark" if scheme == "dark" else "light")
    opened = context.new_page()
    opened.goto(address)
    paper = opened.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    context.close()
    assert (sum(map(int, paper[4:-1].split(","))) < 200) == (scheme == "dark")


def test_without_scripts_everything_is_there(browser: Browser, address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    opened = context.new_page()
    opened.goto(f"{address}#masks/length/fail")
    assert opened.locator(".case:visible").count() == 4
    assert opened.locator(".filter:visible, .copy:visible").count() == 0
    opened.locator("[id='grad/basics/agree'] summary").click()
    assert opened.locator("[id='grad/basics/agree'] .evidence:visible").count() == 1
    assert opened.locator(".copy:visible").count() == 0
    context.close()
