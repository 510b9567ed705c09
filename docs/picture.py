"""The pictures in the README, of a real site.

python docs/picture.py reports/site
"""

import os
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

CASE = "masks/fully-masked-rows/attention-over-nothing.html"


def main(site: str) -> None:
    folder = Path(__file__).parent
    with sync_playwright() as playwright:
        chromium = os.environ.get("CHROMIUM", "/usr/bin/chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for name, address, height in (("site", "index.html", 900), ("case", CASE, 760)):
            page = browser.new_page(viewport={"width": 1440, "height": height})
            page.goto(f"{Path(site).resolve().as_uri()}/{address}")
            page.screenshot(path=folder / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
