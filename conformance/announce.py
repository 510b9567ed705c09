"""What a comparison came to, for people and machines: terminal, Markdown, GitHub's annotations, JUnit, JSON."""

from __future__ import annotations

import itertools
import shlex
from collections import Counter
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import msgspec

from conformance.compare import Change, Changed, Comparison, by_case
from conformance.contract import Verdict
from conformance.results import CaseLine, Run
from conformance.wording import count, observation, safe

ANNOTATIONS = 50
"""GitHub shows no more of one run."""
SUMMARY = 65_535
"""Bytes that GitHub takes of a comment."""


def title(comparison: Comparison) -> str:
    """What is compared with what, and what came of it."""
    return f"{_versions(comparison.before, comparison.after)}"


def terminal(verdict: Verdict) -> str:
    """All that counts with its evidence, and what does not in a line each."""
    comparison = verdict.comparison
    lines = [title(comparison), _summary(verdict), ""]
    for case, group in _counting(verdict):
        line = comparison.cases[case]
        lines += [f"{case}: {safe(line.claim)}"]
        for found in group:
            lines += [f"  {_place(found)}: {found.change}", *(f"    {text}" for text in _sides(found))]
        lines += [f"    show it: {text}" for text in _reproducers(group[0], comparison)] + [""]
    for found, allowed in verdict.tolerated:
        until = f" until {allowed.until}" if allowed.until else ""
        lines.append(f"tolerated{until}: {found.line.identity}: {found.change} ({safe(allowed.reason)})")
    if verdict.aside:
        lines.append(f"not counted: {_counts(verdict.aside)}")
    if comparison.edited:
        lines.append(f"not compared, for the case was edited: {', '.join(comparison.edited)}")
    return "\n".join(lines).rstrip()


def markdown(verdict: Verdict, limit: int = SUMMARY) -> str:
    """The same for a pull request. Detail is dropped, that of the least first, until it fits."""
    comparison = verdict.comparison
    head = [f"### {title(comparison)}", "", _summary(verdict), ""]
    tail = [f"Not counted: {_counts(verdict.aside)}.", ""] if verdict.aside else []
    tail += [f"Tolerated: `{f.line.identity}`, {f.change} ({_md(t.reason)})" for f, t in verdict.tolerated]
    blocks = [_block(comparison.cases[case], group, comparison) for case, group in _counting(verdict)]
    short = [f"- `{case}`: {_md(comparison.cases[case].claim)}" for case, _ in _counting(verdict)]
    for whole in range(len(blocks), -1, -1):
        for rest in (len(blocks), whole):
            left = len(blocks) - rest
            more = [f"- and {count(left, 'case')} more"] if left else []
            text = "\n".join([*head, *blocks[:whole], *short[whole:rest], *more, "", *tail]).rstrip() + "\n"
            if len(text.encode()) <= limit:
                return text
    return f"{head[0]}\n"[:limit]


def github(verdict: Verdict) -> str:
    """GitHub's workflow commands, the worst first."""
    said = []
    for found in itertools.islice(verdict.counting, ANNOTATIONS):
        text = f"{found.line.identity}: {found.change}. {'; '.join(_sides(found))}"
        said.append(f"::error title={_property(str(found.change))}::{_data(text)}")
    return "\n".join(said)


def junit(verdict: Verdict) -> str:
    """A suite with a failure for each change that counts; what was tolerated is skipped."""
    comparison = verdict.comparison
    suite = ElementTree.Element(
        "testsuite",
        name=title(comparison),
        tests=str(comparison.compared + len(comparison.edited)),
        failures=str(len(verdict.counting)),
        errors="0",
        skipped=str(len(verdict.tolerated)),
    )
    for found in verdict.counting:
        case = ElementTree.SubElement(suite, "testcase", classname=found.line.case, name=found.line.identity)
        failure = ElementTree.SubElement(case, "failure", message=str(found.change))
        failure.text = safe("\n".join([comparison.cases[found.line.case].claim, *_sides(found)]))
    for found, allowed in verdict.tolerated:
        case = ElementTree.SubElement(suite, "testcase", classname=found.line.case, name=found.line.identity)
        ElementTree.SubElement(case, "skipped", message=safe(allowed.reason))
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def data(verdict: Verdict) -> dict[str, Any]:
    """The same as plain data."""
    comparison = verdict.comparison
    return {
        "conformance-gate": 1,
        "before": {"file": str(comparison.before.path), "environment": comparison.before.header.environment},
        "after": {"file": str(comparison.after.path), "environment": comparison.after.header.environment},
        "compared": comparison.compared,
        "edited": comparison.edited,
        "counting": [_plain(found, comparison) for found in verdict.counting],
        "tolerated": [{**_plain(found, comparison), "reason": allowed.reason} for found, allowed in verdict.tolerated],
        "aside": [_plain(found, comparison) for found in verdict.aside],
    }


def _plain(found: Changed, comparison: Comparison) -> dict[str, Any]:
    sides = {
        name: {"outcome": line.outcome, "expected": line.expected, "observation": line.observation}
        for name, line in (("before", found.before), ("after", found.after))
        if line
    }
    line = found.line
    said = {"case": line.case, "row": line.row, "target": line.target, "claim": comparison.cases[line.case].claim}
    return msgspec.to_builtins({"change": found.change, **said, **sides, "difference": found.difference})  # type: ignore[no-any-return]


# --- parts


def _counting(verdict: Verdict) -> Iterator[tuple[str, list[Changed]]]:
    yield from by_case(verdict.comparison._replace(changed=verdict.counting))


def _versions(before: Run, after: Run) -> str:
    """``jax 0.9.2 -> 0.10.2``: the packages that differ, or what is the same."""
    old, new = ({name: version for of in _packages(run) for name, version in of.items()} for run in (before, after))
    moved = [f"{name} {old[name]} -> {new[name]}" for name in sorted(old.keys() & new.keys()) if old[name] != new[name]]
    same = [f"{name} {version}" for name, version in sorted(new.items()) if old.get(name) == version]
    return safe(", ".join(moved)) if moved else f"no change of version ({safe(', '.join(same))})"


def _packages(run: Run) -> list[dict[str, str]]:
    packages = run.header.environment.get("packages")
    return [of for of in packages.values() if isinstance(of, dict)] if isinstance(packages, dict) else []


def _summary(verdict: Verdict) -> str:
    compared = f"{count(verdict.comparison.compared, 'check')} compared"
    if not verdict.counting:
        return f"{compared}: nothing has changed" + (" that counts" if verdict.tolerated or verdict.aside else "")
    cases = len({found.line.case for found in verdict.counting})
    return f"{compared}, {count(len(verdict.counting), 'change')} in {count(cases, 'case')}: {_counts(verdict.counting)}"


def _counts(changed: list[Changed]) -> str:
    counts = Counter(found.change for found in changed)
    return ", ".join(f"{counts[change]} {change}" for change in Change if counts[change])


def _place(found: Changed) -> str:
    return " ".join(filter(None, [safe(found.line.target), f"[{safe(found.line.row)}]" if found.line.row else ""]))


def _sides(found: Changed) -> list[str]:
    if found.difference:
        return [safe(found.difference)]
    return [f"{name}: {_seen(line)}" for name, line in (("before", found.before), ("after", found.after)) if line]


def _seen(line: Any) -> str:
    facts = "; ".join(f"{fact.name} {' '.join(fact.text.split())}" for fact in observation(line.observation, line.because))
    expected = f", expected {line.expected}" if line.expected not in (None, line.outcome) else ""
    return safe(f"{line.outcome}{expected} ({facts[:300]})" if facts else f"{line.outcome}{expected}")


def _reproducers(found: Changed, comparison: Comparison) -> list[str]:
    line = found.line
    row = f" --row {shlex.quote(line.row)}" if line.row else ""
    return [f"conformance repro {line.case}{row} --target {line.target}"]


def _block(case: CaseLine, group: list[Changed], comparison: Comparison) -> str:
    rows = [f"| {_code(_place(found))} | {found.change} | {_md('; '.join(_sides(found)))} |" for found in group]
    return "\n".join(
        [
            f"#### `{case.case}`: {_md(case.claim)}",
            "",
            "| target | change | seen |",
            "| --- | --- | --- |",
            *rows,
            "",
            *map(_code, _reproducers(group[0], comparison)),
            "",
        ]
    )


def _code(text: str) -> str:
    return f"`{text.replace('`', ' ').replace('|', ' ')}`"


def _md(text: str) -> str:
    """A text in a cell of a table, with nothing in it that would be markup."""
    for special in "\\`*_{}[]<>|~#@":
        text = text.replace(
            special, f"\\{special}" if special not in "<>@" else {"<": "&lt;", ">": "&gt;", "@": "@\u200b"}[special]
        )
    return " ".join(safe(text).split())


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
