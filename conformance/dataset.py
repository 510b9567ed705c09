"""A site's data -> plain types to take away, and what the scripts of its pages read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from conformance.framework import frameworks
from conformance.history import Span, Timeline
from conformance.kinds import Kind, kind
from conformance.page import Column
from conformance.results import CaseLine, CheckLine, Key
from conformance.site import Site, address
from conformance.wording import anchor

FORMAT = 1
KINDS = list(Kind)


class Stretch(msgspec.Struct, frozen=True, omit_defaults=True):
    """Neighbouring releases that showed the same."""

    first: Annotated[str, Meta(description="release; empty where it is unknown")]
    last: str
    kind: Annotated[Kind | None, Meta(description="what it comes to; null where the check was not in these runs")]
    outcome: str
    expected: str = ""
    observation: Annotated[int, Meta(description="another number, another observation of the same outcome")] = 0
    text: Annotated[int, Meta(description="0: the newest text of the case; another number, another text")] = 0


class Check(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one check saw on the newest release, and on those before."""

    target: Annotated[str, Meta(description="framework:mode@device")]
    row: Annotated[str, Meta(description="the row of parameters; empty where the case has none")]
    parameters: dict[str, str]
    release: str
    kind: Kind
    outcome: str
    expected: Annotated[str | None, Meta(description="the outcome that the case expects of this release, if any")]
    observation: Annotated[dict[str, Any], Meta(description="as it stands in the results file")]
    expectation: dict[str, Any]
    because: str = ""
    against: Annotated[dict[str, str], Meta(description="other outcome -> why what was seen is not that")] = {}
    evidence: Annotated[dict[str, Any], Meta(description="what was printed, and why the framework traced")] = {}
    source: Annotated[str, Meta(description="key of `sources`")] = ""
    history: list[Stretch] = []


class Case(msgspec.Struct, frozen=True, omit_defaults=True, rename={"format": "conformance-case"}):
    """One case, with all that is known of it."""

    format: Annotated[int, Meta(description="of this text; another number means another shape")]
    case: Annotated[str, Meta(description="area/topic/case")]
    title: str
    claim: str
    why: str
    reference: list[str]
    program: str
    digest: str
    checks: list[Check]
    sources: Annotated[dict[str, str], Meta(description="native source that ran, by digest")]
    full: Annotated[dict[str, Any], Meta(description="what is too long for an observation, by digest")] = {}


def schema() -> str:
    """The JSON Schema of a case."""
    made = msgspec.json.schema(Case)
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **made}, indent=2) + "\n"


def case_data(site: Site, identity: str, full: dict[str, Any]) -> bytes:
    """One line of JSON. ``full``: what lies beside the results, by digest."""
    line = site.cases.get(identity) or CaseLine(identity, "", "", "", [], "", "")
    pasts = {key: _history(timeline, spans) for timeline, key, spans in site.spans[identity]}
    pairs = site.book.by_case[identity]
    checks = [_check(check, site.release(column), pasts) for column, check in pairs]
    sources = {check.source: site.book.sources[check.source] for _, check in pairs if check.source in site.book.sources}
    made = Case(
        FORMAT, line.case, line.title, line.claim, line.why, line.reference, line.program, line.digest, checks,
        dict(sorted(sources.items())),
    )  # fmt: skip
    text = msgspec.json.encode(made)
    if full and (b'"digest"' in text or b"(all of it: " in text):
        whole = {name: full[name] for name in dict.fromkeys(_DIGEST.findall(text.decode())) if name in full}
        text = msgspec.json.encode(msgspec.structs.replace(made, full=whole))
    return text


_DIGEST = re.compile(r'(?<=\(all of it: )[0-9a-f]{16}|(?<="digest":")[0-9a-f]{16}')


def _check(check: CheckLine, release: str, pasts: dict[Key, list[Stretch]]) -> Check:
    key = Key(check.case, check.row, check.target)
    return Check(
        check.target, check.row, check.parameters, release, kind(check), check.outcome, check.expected, check.observation,
        check.expectation, check.because, check.against, check.evidence, check.source, pasts.get(key, []),
    )  # fmt: skip


def _history(line: Timeline, spans: list[Span]) -> list[Stretch]:
    ends = [span.first for span in spans[1:]] + [len(line.editions)]
    return [
        Stretch(line.versions[s.first], line.versions[end - 1], s.kind, s.outcome, s.expected, s.observation, s.text)
        for s, end in zip(spans, ends, strict=True)
    ]


# --- what the scripts of the pages read


def index_script(site: Site) -> str:
    """Cases, targets and releases, for the search and for every choice that a page offers."""
    cases = []
    for identity in site.book.by_case:
        brief = site.brief(identity)
        line = site.cases.get(identity)
        answers = [
            [number, glance.css.partition(" ")[0], glance.outcome]
            for number, glances in enumerate(brief.glances)
            for glance in glances[:2]
        ]
        words = " ".join(sorted(_words(site, identity, line)))
        cases.append([address(identity), brief.identity, brief.claim, brief.topic, words, int(brief.differs), answers])
    data = {
        "frameworks": site.names,
        "kinds": [str(each) for each in KINDS],
        "cases": cases,
        "targets": [_target(line, target) for line in site.lines for target in site.targets(line)],
    }
    return _script("index", data)


def _target(line: Timeline, column: Column) -> list[Any]:
    return [column.target, column.framework, column.mode, column.device, target_file(line, column.target), line.versions]


def target_file(line: Timeline, target: str) -> str:
    """The script with what one target showed. A target that is compiled for a device may be so on several others."""
    here = f"{target} {line.device}" if line.device and not target.endswith(f"@{line.device}") else target
    plain = re.fullmatch(r"[\w-]+(/\w+)?:[\w-]*@\w*( \w+)?", here, re.ASCII) and len(here) < 100
    name = here.translate(str.maketrans("/: ", "~..")) if plain else anchor(f"{here} ")
    return f"files/targets/{name}.js"


def target_script(line: Timeline, target: str, numbers: dict[str, int], checks: list[tuple[str, str, list[Span]]]) -> str:
    """What a target showed on each release, check by check."""
    outcomes: dict[str, int] = {}
    rows: dict[str, int] = {}
    said = []
    for case, row, spans in checks:
        stretches = [
            [
                span.first,
                -1 if span.kind is None else KINDS.index(span.kind),
                outcomes.setdefault(span.outcome, len(outcomes)),
                outcomes.setdefault(span.expected, len(outcomes)),
                span.observation,
                span.text,
            ]
            for span in spans
        ]
        said.append([numbers[case], rows.setdefault(row, len(rows)), stretches])
    return _script(target_file(line, target), {"outcomes": list(outcomes), "rows": list(rows), "checks": said})


def _script(name: str, data: Any) -> str:
    """A classic script: it can be read from a disk, where a page cannot fetch anything."""
    return f"conformance.take({_json(name)}, {_json(data)});\n"


def _json(data: Any) -> str:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return re.sub("[\u2028\u2029\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)


def _words(site: Site, identity: str, line: CaseLine | None) -> Iterator[str]:
    """What a reader may look for beside the claim: outcomes, modes as a framework names them, native functions."""
    said: set[str] = set()
    pairs = site.book.by_case[identity]
    for column, check in pairs:
        known = frameworks().get(column.framework)
        said |= {check.outcome, check.row, *_NAMES.findall(known.modes.get(column.mode.partition(",")[0], "") if known else "")}
    for digest in {check.source for _, check in pairs}:
        said |= set(_NAMES.findall(site.book.sources.get(digest, "")))
    said |= set(re.findall(r"\w{4,}", line.program if line else ""))
    yield from (word[:80].lower() for word in sorted(said)[:60] if word)


_NAMES = re.compile(r"\b[a-z]\w*(?:\.\w+)+", re.ASCII)
