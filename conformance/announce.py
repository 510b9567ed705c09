"""What a comparison came to, for people and machines: terminal, Markdown, GitHub's annotations, JUnit."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from xml.etree import ElementTree

from conformance.compare import Change
from conformance.findings import Case, Finding, Findings, Seen
from conformance.results import identity
from conformance.wording import count, observation, safe

ANNOTATIONS = 50
"""GitHub shows no more of one run."""
SUMMARY = 65_535
"""Bytes that GitHub takes of a comment."""
ROWS = 20
"""Changes of one case that Markdown lists."""


def by_case(found: Sequence[Finding]) -> Iterator[tuple[str, list[Finding]]]:
    """The changes of each case, the case with the worst change first."""
    places = {each.case: place for place, each in reversed(list(enumerate(found)))}
    for case, group in itertools.groupby(sorted(found, key=lambda each: places[each.case]), key=lambda each: each.case):
        yield case, list(group)


def summary(found: Findings) -> str:
    """What came of it, in a sentence."""
    compared = f"{count(found.compared, 'check')} compared"
    if not found.counting:
        changed = found.tolerated or found.unsteady or found.aside
        return f"{compared}: nothing has changed{' that counts' if changed else ''}"
    cases = len({each.case for each in found.counting})
    return f"{compared}, {count(len(found.counting), 'change')} in {count(cases, 'case')}: {counts(found.counting)}"


def counts(found: Iterable[Finding]) -> str:
    """How many changes there are of each kind."""
    numbers = Counter(each.change for each in found)
    return ", ".join(f"{numbers[change]} {change}" for change in Change if numbers[change])


def remarks(found: Findings) -> list[str]:
    """What was not compared, or does not count, and why; a line each."""
    said = [
        f"{side.name} is incomplete: what it lacks was not compared" for side in (found.before, found.after) if not side.complete
    ]
    for each in found.unsteady:
        said.append(f"did not hold when it was run again, and does not count: {name(each)}: {each.change}")
    for each in found.tolerated:
        said.append(f"tolerated{f' until {each.until}' if each.until else ''}: {name(each)}: {each.change} ({each.reason})")
    said += [f"not counted: {counts(found.aside)}"] if found.aside else []
    said += [f"could run in neither: {count(found.blind, 'check')}"] if found.blind else []
    said += [f"not compared, for the case was edited: {', '.join(found.edited)}"] if found.edited else []
    for framework, number in found.alone.items():
        said.append(f"not compared, for only one of the two has {framework}: {count(number, 'check')}")
    if found.shortened:
        said.append(f"compared by its first values, for the rest was not kept: {count(found.shortened, 'result')}")
    return said


def name(finding: Finding) -> str:
    """The name of the check."""
    return identity(finding.case, finding.row, finding.target)


def evidence(finding: Finding) -> list[str]:
    """What was seen, before and after; or what sets the two apart."""
    if finding.difference:
        told = [finding.difference]
    else:
        sides = (("before", finding.before), ("after", finding.after))
        told = [f"{side}: {_seen(seen)}" for side, seen in sides if seen]
    if finding.reason and finding.until:
        told.append(f"tolerated until {finding.until}, which is past: {finding.reason}")
    return told


def _seen(seen: Seen) -> str:
    facts = "; ".join(f"{fact.name} {' '.join(fact.text.split())}" for fact in observation(seen.observation, seen.because))
    expected = f", expected {seen.expected}" if seen.expected not in (None, seen.outcome) else ""
    return f"{seen.outcome}{expected}{f' ({_short(facts)})' if facts else ''}"


def _short(text: str, limit: int = 300) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"


def _place(finding: Finding) -> str:
    return f"{finding.target} [{finding.row}]" if finding.row else finding.target


# --- terminal


def terminal(found: Findings) -> str:
    """All that counts with its evidence, and what does not in a line each."""
    lines = [line(found.title), summary(found), ""]
    if found.counting and found.before.interpreter and found.after.interpreter:
        lines += [f"BEFORE={line(found.before.interpreter)}", f"AFTER={line(found.after.interpreter)}", ""]
    for case, group in by_case(found.counting):
        lines.append(line(f"{case}: {found.cases[case].claim}"))
        for finding in group:
            lines.append(f"  {line(_place(finding))}: {finding.change}")
            lines += [f"    {line(text)}" for text in evidence(finding)]
            lines.append(f"    show it: {line(finding.show)}")
        lines.append("")
    return "\n".join([*lines, *map(line, remarks(found))]).rstrip()


def line(text: str) -> str:
    """A text as one line, which is no command to the runner of a workflow."""
    shown = " ".join(safe(text).split()).replace("##[", "##\u200b[")
    return f"\u200b{shown}" if shown.startswith("::") else shown


# --- Markdown


def markdown(found: Findings, limit: int = SUMMARY) -> str:
    """The same for a pull request. Detail is dropped, that of the least first, until it fits."""
    head = [f"### {_prose(found.title)}", "", summary(found), ""]
    if found.counting and found.before.interpreter and found.after.interpreter:
        head += [f"`BEFORE` and `AFTER` are Python with {_code(found.before.name)} and with {_code(found.after.name)}.", ""]
    groups = list(by_case(found.counting))
    whole = [_block(case, found.cases[case], group) for case, group in groups]
    short = [f"- {_code(case)}: {_prose(found.cases[case].claim)}" for case, _ in groups]
    tail = _fitting([f"- {_prose(text)}" for text in remarks(found)], limit // 4)
    room = limit - _size([*head, *tail]) - 100  # for the line that says how many more there are
    full = _longest(whole, short, room)
    body = [*whole[:full], *_kept(short[full:], room - _size(whole[:full]))]
    more = [f"- and {count(len(groups) - len(body), 'case')} more"] if len(body) < len(groups) else []
    return "\n".join([*head, *body, *more, "", *tail]).rstrip() + "\n"


def _longest(whole: list[str], short: list[str], room: int) -> int:
    """How many of the first cases can be told in full where all others are to be named at least."""
    longer = (_size([long]) - _size([brief]) for long, brief in zip(whole, short, strict=True))
    used = itertools.accumulate(longer, initial=_size(short))
    return max((number for number, size in enumerate(used) if size <= room), default=0)


def _fitting(lines: list[str], room: int) -> list[str]:
    kept = _kept(lines, room - 100)
    return kept if len(kept) == len(lines) else [*kept, f"- and {count(len(lines) - len(kept), 'line')} more"]


def _kept(lines: list[str], room: int) -> list[str]:
    """The first lines, as many as there is room for."""
    sizes = itertools.accumulate(_size([text]) for text in lines)
    return [text for text, size in zip(lines, sizes, strict=True) if size <= room]


def _size(lines: Iterable[str]) -> int:
    return sum(len(text.encode()) + 1 for text in lines)


def _block(case: str, said: Case, group: list[Finding]) -> str:
    rows = [f"| {_code(_place(f))} | {f.change} | {_prose('; '.join(map(_short, evidence(f))))} |" for f in group[:ROWS]]
    more = [f"| and {len(group) - ROWS} more | | |"] if len(group) > ROWS else []
    return "\n".join(
        [
            f"#### {_code(case)}: {_prose(said.claim)}",
            "",
            "| target | change | seen |",
            "| --- | --- | --- |",
            *rows,
            *more,
            "",
            _code(group[0].show),
            "",
        ]
    )


def _code(text: str) -> str:
    return f"`{line(text).replace('`', ' ').replace('|', ' ')}`"


_MARKUP = {**{special: f"\\{special}" for special in "\\`*_{}[]|~"}, "<": "&lt;", ">": "&gt;", "&": "&amp;"}
_MARKUP |= {"@": "@\u200b", "#": "#\u200b"}


def _prose(text: str) -> str:
    """A text with nothing in it that would be markup, a mention, a link or another cell of a table."""
    return "".join(_MARKUP.get(character, character) for character in line(text)).replace("://", ":\u200b//")


# --- GitHub's annotations


def github(found: Findings) -> str:
    """GitHub's workflow commands, the worst first."""
    shown = found.counting if len(found.counting) <= ANNOTATIONS else found.counting[: ANNOTATIONS - 1]
    said = [_annotation(str(each.change), f"{name(each)}: {each.change}. {'; '.join(evidence(each))}") for each in shown]
    left = len(found.counting) - len(shown)
    return "\n".join([*said, *([_annotation("more", f"{count(left, 'change')} more")] if left else [])])


def _annotation(title: str, text: str) -> str:
    return f"::error title={_escaped(title).replace(':', '%3A').replace(',', '%2C')}::{_escaped(_short(line(text), 1000))}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


# --- JUnit


def junit(found: Findings) -> str:
    """A suite with a failure for each change that counts; what was tolerated or did not hold is skipped."""
    skipped = [(each, each.reason) for each in found.tolerated]
    skipped += [(each, "did not hold when it was run again") for each in found.unsteady]
    same = max(0, found.compared - len(found.counting) - len(skipped))
    numbers = {"tests": len(found.counting) + len(skipped) + 1, "failures": len(found.counting), "skipped": len(skipped)}
    suite = ElementTree.Element("testsuite", {"name": _xml(found.title), "errors": "0"})
    suite.attrib.update({key: str(number) for key, number in numbers.items()})
    # One test stands for all that did not change: a suite without a test would be no success to many who read it.
    ElementTree.SubElement(suite, "testcase", classname="conformance", name=f"{count(same, 'check')} without a change")
    for each in found.counting:
        failure = ElementTree.SubElement(_testcase(suite, each), "failure", message=str(each.change))
        failure.text = _xml("\n".join([found.cases[each.case].claim, *evidence(each), each.show]))
    for each, why in skipped:
        ElementTree.SubElement(_testcase(suite, each), "skipped", message=_xml(f"{each.change}: {why}"))
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _testcase(suite: ElementTree.Element, each: Finding) -> ElementTree.Element:
    return ElementTree.SubElement(suite, "testcase", classname=_xml(each.case), name=_xml(name(each)))


def _xml(text: str) -> str:
    """XML has no word at all for these two characters."""
    return safe(text).replace("\ufffe", "⟨U+FFFE⟩").replace("\uffff", "⟨U+FFFF⟩")
