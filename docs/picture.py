"""The picture in the README, of a real report.

python docs/picture.py reports/site/index.html
"""

import os
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

CASE = "masks/fully-masked-rows/attention-over-nothing"


def main(page_file: str) -> None:
    with sync_playwright() as playwright:
        chromium = os.environ.get("CHROMIUM", "/usr/bin/chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1560, "height": 860})
        page.goto(Path(page_file).resolve().as_uri())
        page.screenshot(path=Path(__file__).parent / "report.png")
        page.goto(f"{Path(page_file).resolve().as_uri()}#{CASE}")
        page.set_viewport_size({"width": 1200, "height": 380})
        page.screenshot(path=Path(__file__).parent / "case.png")
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
