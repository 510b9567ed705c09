"""What the site costs at scale, beside merely writing the same bytes.

python benchmarks/site.py [FOLDER] [--cases 1000] [--targets 40] [--versions 10]
"""

from __future__ import annotations

import argparse
import gzip
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
from playwright.sync_api import sync_playwright

from conformance.results import CaseLine, CheckLine, Header, SourceLine, content, encode, source_digest

FRAMEWORKS = ("numpy", "torch", "jax", "tensorflow")
DEVICES = ("cpu", "cuda", "tpu", "rocm", "metal")
MODES = ("eager", "compiled")
OUTCOMES = ("conforms", "frozen", "live", "unsupported")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?")
    for name, default in (("cases", 1000), ("targets", 40), ("versions", 10)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(given.folder or scratch)
        write_results(folder / "results", given.cases, given.targets, given.versions)
        measure(folder / "results", folder / "site", folder / "copy")


def write_results(folder: Path, cases: int, targets: int, versions: int) -> None:
    """Results files of runs that never were: one for each framework, device and release."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"area-{n % 12}/topic-{n % 60}/case-{n}" for n in range(cases)]
    lines = [case_line(name, n) for n, name in enumerate(names)]
    places = [(f, d) for d in DEVICES for f in FRAMEWORKS][: max(1, targets // len(MODES))]
    for framework, device in places:
        for version in range(versions):
            environment = {
                "platform": "Linux x86_64",
                "device": device,
                "python": {framework: "3.11.7"},
                "packages": {framework: {framework: f"1.{version}.0"}},
            }
            newest = version == versions - 1
            sources = [source(name, framework) for name in names]
            rows = [encode(Header(1, environment, "")), *map(encode, lines)]
            rows += [encode(SourceLine(source_digest(text), text)) for text in sorted(set(sources))] if newest else []
            checks = [
                check(name, n, framework, device, mode, version, source_digest(text))
                for n, (name, text) in enumerate(zip(names, sources, strict=True))
                for mode in MODES
            ]
            rows += [encode(each) for each in sorted(checks, key=lambda each: each.identity)]
            (folder / f"{framework}-{device}-1.{version}.0.jsonl").write_bytes(content(rows, len(checks)))


def case_line(name: str, number: int) -> CaseLine:
    claim = f"what operation {number} of {name.split('/')[1]} does with an argument of the kind {number % 7}"
    return CaseLine(name, name.split("/")[1], claim, "It matters. " * 8, ["https://a.example/reference"], "return x + 1", "d")


def source(name: str, framework: str) -> str:
    return f"import {framework}\n\n\ndef program(x):\n" + f"    x = x + 1  # {name}\n" * 12 + "    return x\n"


def check(name: str, n: int, framework: str, device: str, mode: str, version: int, digest: str) -> CheckLine:
    """One check in fifty changes at some release, one in a hundred in its numbers alone."""
    shift = version >= n % 10 and n % 50 == 3
    outcome = OUTCOMES[(n + FRAMEWORKS.index(framework) * (n % 3 == 0) + shift) % 3 if n % 17 else 3]
    value = [float(n % 5 + (version > 5 and n % 100 == 7))] * 8
    seen = {"results": [{"dtype": "float32", "shape": [8], "value": value}], "traces": [1, 0]}
    because = "" if outcome == "conforms" else "a reason of one line, as a case gives it for what departs from the norm"
    return CheckLine(
        name, "", {}, f"{framework}:{mode}@{device}", outcome, outcome, True, seen, {"value": value}, because, {}, digest, "program"
    )  # fmt: skip


def measure(results: Path, site: Path, copy: Path) -> None:
    files = sorted(map(str, results.glob("*.jsonl")))
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "conformance", "report", *files, "-o", str(site)], check=True)
    took = time.perf_counter() - started
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    pages = [path for path in sorted(site.rglob("*")) if path.is_file()]
    contents = {path: path.read_bytes() for path in pages}
    started = time.perf_counter()
    for path, text in contents.items():
        beside = copy / path.relative_to(site)
        beside.parent.mkdir(parents=True, exist_ok=True)
        beside.write_bytes(text)
    written = time.perf_counter() - started
    size = sum(map(len, contents.values()))
    html = {path: len(text) for path, text in contents.items() if path.suffix == ".html"}
    answers = searched(site)
    figures = {
        "results": f"{len(files)} files, {sum(Path(file).stat().st_size for file in files) / 1e6:.0f} MB",
        "site": f"{len(pages)} files, {size / 1e6:.1f} MB",
        "seconds": round(took, 1),
        "seconds of CPU": round(used.ru_utime + used.ru_stime, 1),
        "seconds to write the same bytes": round(written, 2),
        "ratio": round(took / written, 1),
        "peak memory, MB": round(used.ru_maxrss / 1024),
        "home page, kB compressed": round(len(gzip.compress(contents[site / "index.html"])) / 1000, 1),
        "largest page, kB": round(max(html.values()) / 1000),
        "index of the search, kB compressed": round(len(gzip.compress(contents[site / "files/index.js"])) / 1000),
        "first answer of the search, ms": round(answers[0]),
        "slowest of the others, ms": round(max(answers[1:])),
    }
    print(msgspec.json.format(msgspec.json.encode(figures)).decode())


def searched(site: Path) -> list[float]:
    """Milliseconds from a key to the answers in the page; the first key also reads the index."""
    text = "what operation 42 of the area does with an argument"
    with sync_playwright() as browsers:
        browser = browsers.chromium.launch(executable_path=os.environ.get("CHROMIUM", shutil.which("chromium")))
        page = browser.new_page()
        page.goto((site / "index.html").as_uri())
        took = [page.evaluate(ANSWER, text[:length]) for length in range(9, len(text))]
        browser.close()
    return took


ANSWER = """text => new Promise(resolve => {
  const field = document.getElementById("page:search");
  new MutationObserver((_, observer) => { observer.disconnect(); resolve(performance.now() - started); })
    .observe(document.getElementById("page:found"), {childList: true});
  field.value = text;
  const started = performance.now();
  field.dispatchEvent(new Event("input"));
})"""


if __name__ == "__main__":
    main()
