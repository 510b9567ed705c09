"""Results, or what a gate found -> one HTML page that opens from disk, asks for nothing, and shows every text as text.

What the pages say is computed in page.py and findings.py; ``templates/`` only lay it out.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import jinja2
from markupsafe import Markup

from conformance.announce import by_case, counts, name, remarks, summary
from conformance.findings import Findings
from conformance.page import view
from conformance.results import ResultsError, Run, replace_file
from conformance.wording import anchor, is_web, observation, safe


def write_report(runs: list[Run], directory: Path) -> Path:
    """Write ``directory/index.html`` and return its path. Raises ResultsError where that cannot be done."""
    path = directory / "index.html"
    content = render(runs).encode()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        replace_file(path, content)
    except OSError as error:
        raise ResultsError(f"the report cannot be written to {path}: {error.strerror or error}") from None
    return path


def render(runs: list[Run]) -> str:
    """The page. The same runs always give the same text."""
    script, style = _text("copy.js") + _text("report.js"), _text("parts.css") + _text("report.css")
    return (
        environment()
        .get_template("report.html")
        .render(
            page=view(runs),
            style=Markup(style),
            script=Markup(script),
            style_digest=_digest(style),
            script_digest=_digest(script),
        )
    )


def render_findings(found: Findings) -> str:
    """What a gate found, as a page: before beside after."""
    templates = environment()
    templates.filters |= {
        "safe_text": safe,
        "anchor": anchor,
        "by_case": by_case,
        "counts": counts,
        "name": name,
        "facts": lambda seen: observation(seen.observation, seen.because),
    }
    templates.tests["web"] = is_web
    others = {"Tolerated": found.tolerated, "Did not hold when it was run again": found.unsteady, "Not counted": found.aside}
    return templates.get_template("gate.html").render(
        found=found, summary=summary(found), remarks=remarks(found), others=list(others.items()), style=Markup(_text("gate.css"))
    )


TEMPLATES = Path(__file__).parent / "templates"


def environment() -> jinja2.Environment:
    """Templates in which every text is escaped."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _text(file: str) -> str:
    return (TEMPLATES / file).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """As a Content-Security-Policy names an inline text."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
