"""Results files of runs that never were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from conformance.results import CaseLine, CheckLine, Writer

ENVIRONMENT = {
    "platform": "Linux x86_64",
    "device": "cpu",
    "python": {"jax": "3.11.7"},
    "packages": {"jax": {"jax": "0.9.2", "numpy": "2.4.6"}},
}
SUM = "area/topic/sum"


def array(*values: Any, dtype: str = "float32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": [len(values)], "value": list(values)}


def seen(*values: Any, dtype: str = "float32", **more: Any) -> dict[str, Any]:
    return {"results": [array(*values, dtype=dtype)], **more}


def check(case: str = SUM, **said: Any) -> CheckLine:
    """A check that conforms, but for what is said."""
    outcome = said.get("outcome", "conforms")
    expected = said.setdefault("expected", "conforms")
    plain = {
        "case": case,
        "row": "",
        "parameters": {},
        "target": "jax:eager@cpu",
        "outcome": outcome,
        "passed": None if outcome == "not-run" else outcome == expected,
        "observation": seen(1.0),
        "expectation": {},
        "because": "",
        "against": {},
        "source": "s",
        "trace": "",
    }
    return CheckLine(**{**plain, **said})


def case_line(name: str = SUM, **said: Any) -> CaseLine:
    plain = {"title": "T", "claim": "a claim", "why": "", "reference": [], "program": "", "digest": "d"}
    return CaseLine(**{"case": name, **plain, **said})


def write(path: Path, *checks: CheckLine, cases: tuple[CaseLine, ...] = (), complete: bool = True, **environment: Any) -> Path:
    """A results file with these checks."""
    writer = Writer(path)
    known = {line.case: line for line in cases}
    for line in checks:
        writer.check(line, known.get(line.case, case_line(line.case)), "source", {})
    return writer.close(ENVIRONMENT | environment, complete=complete)


def edit(path: Path, old: str, new: str, *, sign: bool = False) -> Path:
    """What a person with an editor does to a file; ``sign``: one who also takes the digest out of the footer."""
    text = path.read_text()
    assert old in text
    text = text.replace(old, new)
    if sign:
        *lines, footer = text.splitlines()
        data = msgspec.json.decode(footer)
        del data["digest"]
        text = "\n".join([*lines, msgspec.json.encode(data).decode()]) + "\n"
    path.write_text(text)
    return path
