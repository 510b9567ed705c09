"""Results -> one HTML page that opens from disk, asks for nothing, and shows every text of the results as text.

What the page says is computed in page.py; ``templates/report.html`` only lays it out.
"""

from __future__ import annotations

import base64
import hashlib
import os
from pathlib import Path

import jinja2
from markupsafe import Markup

from conformance.page import view
from conformance.results import ResultsError, Run


def write_report(runs: list[Run], directory: Path) -> Path:
    """Write ``directory/index.html`` and return its path. Raises ResultsError where that cannot be done."""
    path = directory / "index.html"
    beside = directory / "index.html.new"
    content = render(runs).encode()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        beside.write_bytes(content)
        os.replace(beside, path)
    except OSError as error:
        raise ResultsError(f"the report cannot be written to {path}: {error.strerror or error}") from None
    return path


def render(runs: list[Run]) -> str:
    """The page. The same runs always give the same text."""
    folder = Path(__file__).parent / "templates"
    script = (folder / "report.js").read_text(encoding="utf-8")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html").render(
        page=view(runs),
        style=Markup((folder / "report.css").read_text(encoding="utf-8")),
        script=Markup(script),
        script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
