"""Timelines -> all that a published site says, page by page, as frozen types; and the address of each page.

An address is made of names alone, so that it is the same in every site that is ever built of the same cases.
"""

from __future__ import annotations

import collections
import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from conformance.compare import Change, Changed
from conformance.framework import frameworks
from conformance.history import Edition, Span, Step, Timeline, newest
from conformance.kinds import FAILING, LEGEND, Kind, Tally, kind
from conformance.page import (
    Book,
    CaseView,
    Column,
    Group,
    Side,
    case_view,
    column_of,
    column_order,
    counted,
    date,
    differs,
    framework_order,
    natural,
    place,
    sides,
    styles,
    tinted,
)
from conformance.results import CheckLine, Key
from conformance.wording import Fact, anchor, count, listed, safe

RESERVED = ("assets", "badges", "files", "frameworks", "versions", "x")
"""Folders of the site, which no area can have."""
SHOWN = 250
"""Changes of one kind that a page lists."""
LATELY = 5
"""Changes of one release that the home page lists."""


class Glance(NamedTuple):
    """One outcome of a case on one framework, and how often it was seen."""

    css: str
    outcome: str
    number: int
    where: str
    """The modes, where not all showed the same."""


class Brief(NamedTuple):
    """A case in a list."""

    address: str
    identity: str
    topic: str
    claim: str
    glances: list[list[Glance]]
    """For each framework of the site."""
    differs: bool
    fails: bool


class Topic(NamedTuple):
    """The cases of one file."""

    anchor: str
    title: str
    cases: list[Brief]


class Area(NamedTuple):
    """An area's line of the matrix."""

    address: str
    name: str
    cases: int
    tallies: list[Tally]
    differing: int


class AreaPage(NamedTuple):
    """An area, with its cases."""

    area: Area
    frameworks: list[str]
    """Those that have a check in it."""
    topics: list[Topic]


class Stretch(NamedTuple):
    """Neighbouring releases that showed the same."""

    width: int
    css: str
    outcome: str
    expected: str
    first: str
    last: str


class Strip(NamedTuple):
    """Checks with one history."""

    modes: str
    rows: str
    stretches: list[Stretch]


class Move(NamedTuple):
    """A release in which something changed."""

    version: str
    address: str
    where: str
    before: str
    after: str
    css: str


class Past(NamedTuple):
    """A case on one framework, release by release."""

    framework: str
    device: str
    versions: list[str]
    strips: list[Strip]
    moves: list[Move]


class CasePage(NamedTuple):
    """A case, with all that is known of it."""

    address: str
    area: Area
    view: CaseView
    sides: list[Side]
    pasts: list[Past]
    before: Brief | None
    after: Brief | None


class Shift(NamedTuple):
    """One check that two releases do not agree on."""

    address: str
    """Empty where its case has no page."""
    claim: str
    identity: str
    target: str
    row: str
    before: Glance | None
    after: Glance | None
    because: str
    difference: str


class Shifts(NamedTuple):
    """All changes of one kind."""

    change: str
    number: int
    shown: list[Shift]


class VersionPage(NamedTuple):
    """A release: what it showed, and what it changed."""

    address: str
    framework: str
    version: str
    device: str
    when: str
    datetime: str
    packages: str
    tally: Tally
    before: str
    before_address: str
    why: str
    """Why it cannot be compared with the release before."""
    compared: int
    edited: int
    shifts: list[Shifts]
    new: int
    """Checks that were not run on the release before."""
    gone: int


class FrameworkPage(NamedTuple):
    """A framework: its releases, and where it departs from what others do."""

    address: str
    name: str
    version: str
    modes: list[Fact]
    """Mode -> how this framework is asked for it."""
    tally: Tally
    areas: list[tuple[Area, Tally]]
    versions: list[VersionPage]
    disagreements: list[tuple[str, list[tuple[Area, int]]]]
    """Other framework -> area -> cases in which the two did not show the same."""


class Home(NamedTuple):
    """The first page."""

    sentence: str
    total: Tally
    groups: list[Group]
    columns: list[Column]
    areas: list[Area]
    totals: list[Tally]
    frameworks: list[FrameworkPage]
    lately: list[VersionPage]
    when: str
    datetime: str
    undated: bool
    legend: list[Fact]


class Site:
    """What the pages are made from. Cases are taken one by one: all their pages together are larger than the results."""

    def __init__(self, lines: Sequence[Timeline], shortcomings: Sequence[str] = ()) -> None:
        self.lines = sorted(lines, key=lambda line: (framework_order(line.framework), line.device))
        self.shortcomings = [safe(said) for said in shortcomings]
        self.runs = newest(self.lines)
        self.book = Book(self.runs)
        self.names = list(dict.fromkeys(line.framework for line in self.lines))
        """Frameworks, in the order of their columns."""
        self.cases = self.book.cases
        self.spans: dict[str, list[tuple[Timeline, Key, list[Span]]]] = collections.defaultdict(list)
        for line in self.lines:
            for key, spans in line.spans.items():
                self.spans[key.case].append((line, key, spans))

    # --- the whole

    @functools.cached_property
    def areas(self) -> list[Area]:
        made = []
        for name, identities in self.book.areas.items():
            checks: dict[Column, list[CheckLine]] = collections.defaultdict(list)
            for identity in identities:
                for column, check in self.book.by_case[identity]:
                    checks[column].append(check)
            tallies = [Tally.of(checks[column]) for column in self.book.columns]
            differing = sum(differs([check for _, check in self.book.by_case[identity]]) for identity in identities)
            made.append(Area(f"{part(name)}/index.html", safe(name), len(identities), tallies, differing))
        return made

    @functools.cached_property
    def versions(self) -> list[VersionPage]:
        return [
            self._version(line, edition, line.steps[n - 1] if n else None)
            for line in self.lines
            for n, edition in enumerate(line.editions)
        ]

    @functools.cached_property
    def frameworks(self) -> list[FrameworkPage]:
        return [self._framework(name) for name in self.names]

    def home(self) -> Home:
        checks = [check for run in self.runs for check in run.checks]
        total = Tally.of(checks)
        dates = sorted(run.started for run in self.runs if run.started)
        when, iso = date(dates[-1]) if dates else ("", "")
        return Home(
            sentence=self._sentence(total),
            total=total,
            groups=self.book.groups(self.book.columns),
            columns=self.book.columns,
            areas=self.areas,
            totals=[Tally.of(self.book.by_column[column]) for column in self.book.columns],
            frameworks=self.frameworks,
            lately=[page for line in self.lines if (page := self._lately(line))],
            when=when,
            datetime=iso,
            undated=any(not run.started for run in self.runs),
            legend=[Fact(each.css, LEGEND[Kind(each.css)]) for each in total.bar()],
        )

    def _lately(self, line: Timeline) -> VersionPage | None:
        """The newest release that changed anything."""
        mine = [page for page in self.versions if (page.framework, page.device) == (safe(line.framework), safe(line.device))]
        return next((page for page in reversed(mine) if page.shifts), None)

    def _sentence(self, total: Tally) -> str:
        releases = sum(len(line.editions) for line in self.lines)
        differing = sum(area.differing for area in self.areas)
        said = f"{count(len(self.cases), 'case')} on {listed(self.names)}, in {count(releases, 'release')}. "
        said += f"Of {count(total.total, 'check')} of the newest, {counted(total)}; "
        return said + f"{differing:,} of the cases {'shows' if differing == 1 else 'show'} a difference."

    # --- areas and cases

    def release(self, column: Column) -> str:
        return self.lines[column.run].newest.version

    def targets(self, line: Timeline) -> list[Column]:
        """The targets of a timeline, also those that its newest release does not have."""
        run = self.lines.index(line)
        return sorted((column_of(run, target) for target in {key.target for key in line.spans}), key=column_order)

    def area_page(self, number: int, briefs: list[Brief]) -> AreaPage:
        here = [n for n in range(len(self.names)) if any(brief.glances[n] for brief in briefs)]
        topics: dict[str, list[Brief]] = {}
        for brief in briefs:
            shown = brief._replace(glances=[brief.glances[n] for n in here])
            topics.setdefault(brief.identity.rpartition("/")[0], []).append(shown)
        made = [Topic(anchor(name.rpartition("/")[2]), cases[0].topic or name, cases) for name, cases in topics.items()]
        return AreaPage(self.areas[number], [safe(self.names[n]) for n in here], made)

    @functools.lru_cache(maxsize=4)  # noqa: B019  (lives as long as the site is written)
    def _styles(self, identity: str) -> dict[tuple[Kind, str], str]:
        return styles([check for _, check in self.book.by_case[identity]])

    def brief(self, identity: str) -> Brief:
        pairs = self.book.by_case[identity]
        css = self._styles(identity)
        line = self.cases.get(identity)
        return Brief(
            address=address(identity),
            identity=safe(identity),
            topic=safe(line.title if line else ""),
            claim=safe(line.claim if line and line.claim else identity),
            glances=[self._glances([p for p in pairs if p[0].framework == name], css) for name in self.names],
            differs=differs([check for _, check in pairs]),
            fails=any(kind(check) in FAILING for _, check in pairs),
        )

    def _glances(self, pairs: list[tuple[Column, CheckLine]], css: dict[tuple[Kind, str], str]) -> list[Glance]:
        """The outcomes of a case on one framework, the most frequent first; what fails before all others."""
        found: dict[tuple[Kind, str], list[Column]] = {}
        for column, check in pairs:
            found.setdefault((kind(check), check.outcome), []).append(column)
        every = {column for columns in found.values() for column in columns}
        ordered = sorted(found.items(), key=lambda item: (item[0][0] not in FAILING, -len(item[1])))
        glances = []
        for (what, outcome), columns in ordered:
            modes = list(dict.fromkeys(self.book.mode(column) for column in columns))
            where = ", ".join(modes) if set(columns) != every else ""
            glances.append(Glance(css[what, outcome], safe(outcome), len(columns), where))
        return glances

    def case_page(self, number: int, identity: str, before: Brief | None, after: Brief | None) -> CasePage:
        return CasePage(
            address=address(identity),
            area=self.areas[number],
            view=case_view(self.book, identity),
            sides=sides(self.book, identity),
            pasts=self._pasts(identity),
            before=before,
            after=after,
        )

    def _pasts(self, identity: str) -> list[Past]:
        css = dict(self._styles(identity))
        for _, _, spans in self.spans[identity]:
            for span in spans:
                if span.kind is not None and (span.kind, span.outcome) not in css:
                    css[span.kind, span.outcome] = tinted(span.kind, span.outcome, css)
        pasts = []
        for line, mine in itertools.groupby(self.spans[identity], key=lambda each: each[0]):
            pasts.append(_past(line, [(key, spans) for _, key, spans in mine], css, self.book))
        return pasts

    # --- releases

    def _version(self, line: Timeline, edition: Edition, step: Step | None) -> VersionPage:
        header = edition.run.header
        when, iso = date(edition.started)
        packages = header.packages.get(edition.framework, {})
        comparison = step.comparison if step else None
        changed = comparison.changed if comparison else []
        numbers = collections.Counter(found.change for found in changed)
        shifts = [
            Shifts(change, numbers[change], [self._shift(f) for f in _of(changed, change)][:SHOWN])
            for change in Change
            if numbers[change] and change not in (Change.NEW, Change.GONE)
        ]
        return VersionPage(
            address=version_address(edition),
            framework=safe(edition.framework),
            version=safe(edition.version or "version unknown"),
            device=safe(edition.device),
            when=when,
            datetime=iso,
            packages=safe(", ".join(f"{name} {version}" for name, version in sorted(packages.items()))),
            tally=_tally(line, edition),
            before=safe(step.before.version) if step else "",
            before_address=version_address(step.before) if step else "",
            why=safe(step.why) if step else "",
            compared=len(comparison.compared) if comparison else 0,
            edited=len(comparison.edited) if comparison else 0,
            shifts=shifts,
            new=numbers[Change.NEW],
            gone=numbers[Change.GONE],
        )

    def _shift(self, found: Changed) -> Shift:
        line = found.line
        case = self.cases.get(line.case)
        return Shift(
            address=self._address(line),
            claim=safe(case.claim if case and case.claim else line.case),
            identity=safe(line.case),
            target=safe(line.target),
            row=safe(line.row),
            before=_seen(found.before),
            after=_seen(found.after),
            because=safe(line.because),
            difference=safe(found.difference),
        )

    def _address(self, line: CheckLine) -> str:
        """Of a check: a newer release may not have it, or not even its case; then it is empty."""
        if line.case not in self.cases:
            return ""
        here = any(check.row == line.row and check.target == line.target for _, check in self.book.by_case[line.case])
        return address(line.case) + (f"#{place(line.row, line.target)}" if here else "")

    def _framework(self, name: str) -> FrameworkPage:
        columns = [(n, column) for n, column in enumerate(self.book.columns) if column.framework == name]
        known = frameworks().get(name)
        modes = list(dict.fromkeys(column.mode.partition(",")[0] for _, column in columns))
        asked = [Fact(safe(mode), safe(_asked(known.modes.get(mode, "") if known else ""))) for mode in modes]
        areas = [(area, Tally.sum(area.tallies[n] for n, _ in columns)) for area in self.areas]
        line = next(line for line in self.lines if line.framework == name)
        return FrameworkPage(
            address=f"frameworks/{part(name)}.html",
            name=safe(name),
            version=safe(line.newest.version),
            modes=asked,
            tally=Tally.sum(tally for _, tally in areas),
            areas=[(area, tally) for area, tally in areas if tally.total],
            versions=[page for page in reversed(self.versions) if page.framework == safe(name)],
            disagreements=[(safe(other), self._disagreements(name, other)) for other in self.names if other != name],
        )

    def _disagreements(self, one: str, other: str) -> list[tuple[Area, int]]:
        found = []
        for area, identities in zip(self.areas, self.book.areas.values(), strict=True):
            number = sum(disagree(self.book.by_case[identity], one, other) for identity in identities)
            found += [(area, number)] if number else []
        return found


def disagree(pairs: list[tuple[Column, CheckLine]], one: str, other: str) -> bool:
    """Whether two frameworks showed different things of one row in a mode that both have."""
    seen: dict[tuple[str, str, str], dict[str, set[str]]] = {}
    for column, check in pairs:
        if column.framework in (one, other) and kind(check) is not Kind.NOT_RUN:
            place = seen.setdefault((check.row, column.mode.partition(",")[0], column.device), {})
            place.setdefault(column.framework, set()).add(check.outcome)
    return any(len(each) == 2 and each[one] != each[other] for each in seen.values())


# --- addresses


def address(identity: str) -> str:
    """Of a case's page. A name that is no address, or that would lead elsewhere, is replaced by its digest."""
    parts = identity.split("/")
    if len(parts) == 3 and all(map(_PART.fullmatch, parts)) and parts[0] not in RESERVED and parts[2] != "index":
        return f"{identity}.html"
    return f"x/{anchor(f'{identity} ')}.html"


def part(name: str) -> str:
    """The name of an area, a framework or a release as a part of an address."""
    return name if _PART.fullmatch(name) and name not in RESERVED else anchor(f"{name} ")


_PART = re.compile(r"\w[\w.-]{0,99}", re.ASCII)


def version_address(edition: Edition) -> str:
    device = f"-{edition.device}" if edition.device not in ("cpu", "") else ""
    return f"versions/{part(f'{edition.framework}-{edition.version}{device}'.replace('+', '_'))}.html"


# --- parts of pages


def _past(line: Timeline, checks: list[tuple[Key, list[Span]]], css: dict[tuple[Kind, str], str], book: Book) -> Past:
    groups: dict[tuple[Span, ...], list[Key]] = {}
    for key, seen in sorted(checks, key=lambda each: (natural(each[0].row), column_order(column_of(0, each[0].target)))):
        groups.setdefault(tuple(seen), []).append(key)
    versions = [safe(version or "unknown") for version in line.versions]
    strips, moves = [], []
    for spans, keys in groups.items():
        modes = ", ".join(dict.fromkeys(book.mode(column_of(0, key.target)) for key in keys))
        rows = list(dict.fromkeys(key.row for key in keys if key.row))
        label = ", ".join(rows[:4]) + (f" and {len(rows) - 4} more" if len(rows) > 4 else "")
        stretches = [
            _stretch(span, spans[n + 1].first if n + 1 < len(spans) else len(versions), versions, css)
            for n, span in enumerate(spans)
        ]
        first = spans[0].first
        stretches = [Stretch(first, "none", "not run", "", versions[0], versions[first - 1]), *stretches] if first else stretches
        strips.append(Strip(safe(modes), safe(label), stretches))
        moves += [_move(line, before, after, modes, label, css) for before, after in itertools.pairwise(spans)]
    order = {version: n for n, version in enumerate(versions)}
    made = sorted((move for move in moves if move), key=lambda move: -order[move.version])
    return Past(safe(line.framework), safe(line.device), versions, strips, made)


def _stretch(span: Span, until: int, versions: list[str], css: dict[tuple[Kind, str], str]) -> Stretch:
    width, first, last = until - span.first, versions[span.first], versions[until - 1]
    if span.kind is None:
        return Stretch(width, "none", "not run", "", first, last)
    if span.text:
        return Stretch(width, "edited", "another text of the case", "", first, last)
    expected = span.expected if span.kind in FAILING else ""
    return Stretch(width, css.get((span.kind, span.outcome), span.kind), safe(span.outcome), safe(expected), first, last)


def _move(line: Timeline, before: Span, after: Span, modes: str, rows: str, css: dict[tuple[Kind, str], str]) -> Move | None:
    """None where a release was not run, or ran another text of the case: then nothing is known to have changed."""
    if before.kind is None or after.kind is None or before.text != after.text:
        return None
    edition = line.editions[after.first]
    where = f"{modes}, {rows}" if rows else modes
    new = after.outcome if after.outcome != before.outcome else "the same outcome, another observation"
    if before[1:3] != after[1:3] and before.outcome == after.outcome:
        new = f"{after.outcome}, where {after.expected or 'nothing'} is expected now"
    tint = css.get((after.kind, after.outcome), str(after.kind))
    return Move(safe(edition.version), version_address(edition), safe(where), safe(before.outcome), safe(new), tint)


def _seen(check: CheckLine | None) -> Glance | None:
    return Glance(kind(check), safe(check.outcome), 1, "") if check else None


def _of(changed: list[Changed], change: Change) -> Iterator[Changed]:
    return (found for found in changed if found.change is change)


def _tally(line: Timeline, edition: Edition) -> Tally:
    number = line.editions.index(edition)
    kinds: collections.Counter[Kind | None] = collections.Counter()
    for spans in line.spans.values():
        here = [span for span in spans if span.first <= number]
        if here:
            kinds[here[-1].kind] += 1
    return Tally(*(kinds[each] for each in Kind))


def _asked(wrap: str) -> str:
    """How a framework is asked for a mode, as one would write it."""
    return re.sub(r",? ?OPTIONS", "", wrap).replace("FUNCTION", "f")
