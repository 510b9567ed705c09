"""A verdict -> all that is said of it, as plain types: what every output is made from, and what ``--json`` writes."""

from __future__ import annotations

import datetime
import json
import shlex
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from conformance.compare import Change, Changed
from conformance.contract import Verdict
from conformance.results import CheckLine, Outline
from conformance.side import Side

FORMAT: Literal[1] = 1


class Seen(msgspec.Struct, frozen=True):
    """What one run saw."""

    outcome: str
    expected: Annotated[str | None, Meta(description="the outcome that the case expects of this version, if any")]
    because: str
    observation: Annotated[dict[str, Any], Meta(description="as it stands in the results file")]


class Finding(msgspec.Struct, frozen=True):
    """One check that the two runs do not agree on."""

    change: Change
    case: str
    row: Annotated[str, Meta(description="the row of parameters; empty where the case has none")]
    target: Annotated[str, Meta(description="framework:mode@device")]
    before: Seen | None
    after: Seen | None
    difference: Annotated[str, Meta(description="what sets the observations apart, where the outcome is the same")]
    show: Annotated[str, Meta(description="a command for a shell that shows it")]
    reason: Annotated[str, Meta(description="why it is tolerated, or was until `until`; empty where it never was")] = ""
    until: datetime.date | None = None


class Case(msgspec.Struct, frozen=True):
    """What a changed case says."""

    claim: str
    reference: list[str]


class Compared(msgspec.Struct, frozen=True):
    """One of the two runs."""

    name: Annotated[str, Meta(description="as it was given: a file, a folder or a release")]
    interpreter: Annotated[str | None, Meta(description="of the environment that was made for a release")]
    complete: bool
    environment: dict[str, Any]


class Findings(msgspec.Struct, frozen=True, rename={"format": "conformance-gate"}):
    """What `conformance gate` found."""

    format: Annotated[Literal[1], Meta(description="of this text; another number means another shape")]
    title: str
    status: Annotated[Literal[0, 1, 2], Meta(description="the command's exit status")]
    before: Compared
    after: Compared
    compared: Annotated[int, Meta(description="checks that were compared")]
    blind: Annotated[int, Meta(description="checks that could run in neither of the two")]
    edited: Annotated[list[str], Meta(description="cases that were edited between the two, and so not compared")]
    alone: Annotated[dict[str, int], Meta(description="framework -> checks, where only one of the two has that framework")]
    shortened: Annotated[int, Meta(description="arrays of which only the first values could be compared")]
    counting: Annotated[list[Finding], Meta(description="changes that count, the worst first")]
    tolerated: list[Finding]
    unsteady: Annotated[list[Finding], Meta(description="changes that did not hold when they were looked for again")]
    aside: Annotated[list[Finding], Meta(description="not relied on, new, gone, or running only now")]
    cases: dict[str, Case]


def findings(verdict: Verdict, sides: Sequence[Side], names: Sequence[str], paths: Sequence[str]) -> Findings:
    """All that there is to say. ``names``: of the sides, as they were given; ``paths``: of the cases, where any were."""
    comparison = verdict.comparison
    shower = _Shower(paths, all(side.python for side in sides))
    lists: dict[str, list[Finding]] = {
        "counting": [shower.finding(f, *_expired(verdict, f)) for f in verdict.counting],
        "tolerated": [shower.finding(f, allowed.reason, allowed.until) for f, allowed in verdict.tolerated],
        "unsteady": [shower.finding(f) for f in verdict.unsteady],
        "aside": [shower.finding(f) for f in verdict.aside],
    }
    named = dict.fromkeys(finding.case for each in lists.values() for finding in each)
    cases = comparison.cases
    before, after = (_compared(side, name) for side, name in zip(sides, names, strict=True))
    return Findings(
        format=FORMAT,
        title=title(comparison.before, comparison.after),
        status=1 if verdict.counting else 0 if comparison.complete else 2,
        before=before,
        after=after,
        compared=len(comparison.compared),
        blind=comparison.blind,
        edited=comparison.edited,
        alone=comparison.alone,
        shortened=comparison.shortened,
        cases={name: Case(cases[name].claim, cases[name].reference) if name in cases else Case("", []) for name in named},
        **lists,
    )


def schema() -> str:
    """The JSON Schema of what ``--json`` writes."""
    made = msgspec.json.schema(Findings)
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **made}, indent=2) + "\n"


def title(before: Outline, after: Outline) -> str:
    """``jax 0.9.2 -> 0.10.2``: the packages that differ, or what is the same."""
    old, new = (dict(pair for of in run.header.packages.values() for pair in of.items()) for run in (before, after))
    moved = [f"{name} {old[name]} -> {new[name]}" for name in sorted(old.keys() & new.keys()) if old[name] != new[name]]
    same = [f"{name} {version}" for name, version in sorted(new.items()) if old.get(name) == version]
    return ", ".join(moved) if moved else f"no change of version ({', '.join(same)})"


class _Shower:
    """Makes findings, with the commands that show them."""

    def __init__(self, paths: Sequence[str], both: bool) -> None:
        self.paths = "".join(f" --path {shlex.quote(path)}" for path in paths)
        # A file, and no pipe: some frameworks read the source of what they trace.
        self.after = ' > show.py; "$BEFORE" show.py; "$AFTER" show.py' if both else ""

    def finding(self, found: Changed, reason: str = "", until: datetime.date | None = None) -> Finding:
        line = found.line
        row = f" --row {shlex.quote(line.row)}" if line.row else ""
        show = f"conformance repro {shlex.quote(line.case)}{row} --target {shlex.quote(line.target)}{self.paths}{self.after}"
        return Finding(
            found.change, line.case, line.row, line.target, _seen(found.before), _seen(found.after), found.difference, show,
            reason, until,
        )  # fmt: skip


def _seen(line: CheckLine | None) -> Seen | None:
    return Seen(line.outcome, line.expected, line.because, line.observation) if line else None


def _expired(verdict: Verdict, found: Changed) -> tuple[str, datetime.date | None]:
    was = verdict.expired.get(found.line.identity)
    return (was.reason, was.until) if was else ("", None)


def _compared(side: Side, name: str) -> Compared:
    python = str(side.python) if side.python else None
    return Compared(name, python, side.run.complete, side.run.header.environment)
