"""Results -> all that the report says, as frozen types. Between two calls on the same results nothing changes."""

from __future__ import annotations

import collections
import datetime
import functools
import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from conformance.expand import CONFORMS
from conformance.framework import BUILTIN
from conformance.history import own_versions
from conformance.kinds import FAILING, LEGEND, Kind, Tally, kind
from conformance.results import CaseLine, CheckLine, Run
from conformance.target import MODES
from conformance.wording import LIMIT, Fact, anchor, count, expectation, fact, is_web, listed, mapping, observation, safe

MOST_FAILURES = 40
"""Failures listed ahead of the cases; the rest are found by the filter."""
TINTS = 4
"""Colours that tell the named outcomes of a case apart, beside their names."""


class RunView(NamedTuple):
    """Where and when a run was."""

    number: int
    file: str
    frameworks: list[tuple[str, str]]
    companions: list[tuple[str, str]]
    """Framework -> the versions of what came along with it."""
    device: str
    platform: str
    python: str
    when: str
    datetime: str
    complete: bool


class Column(NamedTuple):
    """A target of a run."""

    run: int
    framework: str
    mode: str
    device: str
    target: str


class Group(NamedTuple):
    """Neighbouring columns of one framework in one run."""

    framework: str
    version: str
    columns: list[str]


class Reference(NamedTuple):
    """Something to read; ``url`` is empty where it cannot be a link."""

    text: str
    url: str


class Cell(NamedTuple):
    """What one check saw. ``expected`` is said only where that was something else."""

    identity: str
    css: str
    outcome: str
    expected: str
    evidence: str


class Row(NamedTuple):
    """One set of parameters; None where a target does not apply."""

    label: str
    cells: list[Cell | None]


class Source(NamedTuple):
    """Native code that ran. One that was cut is not offered for copying: half a program helps nobody."""

    framework: str
    used: str
    text: str
    whole: bool
    digest: str
    check: str
    """The first check that ran it."""


class Evidence(NamedTuple):
    """What some checks have in common: what they expected, what they saw, and what was made of it."""

    identity: str
    css: str
    outcome: str
    verdict: str
    where: list[Fact]
    """Rows -> targets"""
    expected: list[Fact]
    seen: list[Fact]
    because: str
    against: list[Fact]
    reasons: list[Fact]
    """Call -> why the framework traced it, in its own words"""
    printed: Fact
    seconds: str


class Side(NamedTuple):
    """All that one framework has of a case."""

    framework: str
    version: str
    sources: list[Source]
    evidence: list[Evidence]


class CaseView(NamedTuple):
    """One case, with all that was seen of it."""

    anchor: str
    identity: str
    topic: str
    claim: str
    why: str
    references: list[Reference]
    program: str
    edited: bool
    """Whether two runs had different versions of the case."""
    groups: list[Group]
    stub: str
    """Names of the parameters; empty where there is nothing to tell rows apart by."""
    rows: list[Row]
    sources: list[Source]
    evidence: list[Evidence]
    differs: bool
    fails: bool


class AreaView(NamedTuple):
    """An area's line of the matrix, and its cases."""

    anchor: str
    name: str
    tallies: list[Tally]
    cases: list[CaseView]


class Failure(NamedTuple):
    """A check that did not see what was expected."""

    where: str
    cell: Cell


class FailingCase(NamedTuple):
    """A case with failures."""

    anchor: str
    claim: str
    failures: list[Failure]


class Page(NamedTuple):
    """The whole report."""

    title: str
    sentence: str
    total: Tally
    warnings: list[str]
    runs: list[RunView]
    groups: list[Group]
    totals: list[Tally]
    areas: list[AreaView]
    failures: list[FailingCase]
    more_failures: int
    legend: list[Fact]


def view(runs: list[Run]) -> Page:
    """All that the page says."""
    book = Book(runs)
    checks = [check for run in runs for check in run.checks]
    total = Tally.of(checks)
    areas = [_area(book, name, identities) for name, identities in book.areas.items()]
    failures = _failures([case for area in areas for case in area.cases])
    frameworks = list(dict.fromkeys(column.framework for column in book.columns))
    return Page(
        title=f"Conformance of {listed(frameworks)}" if frameworks else "Conformance report",
        sentence=_sentence(book, total, areas),
        total=total,
        warnings=_warnings(runs, total),
        runs=[_run(number, run) for number, run in enumerate(runs, start=1)],
        groups=book.groups(book.columns),
        totals=[Tally.of(book.by_column[column]) for column in book.columns],
        areas=areas,
        failures=failures,
        more_failures=total.failing - sum(len(case.failures) for case in failures),
        legend=[Fact(part.css, LEGEND[Kind(part.css)]) for part in total.bar()],
    )


# --- the whole


class Book:
    """The checks of all runs, looked up by case and by column, and the words for columns."""

    def __init__(self, runs: list[Run]) -> None:
        self.cases = {line.case: line for run in runs for line in run.cases.values()}
        self.sources = {digest: text for run in runs for digest, text in run.sources.items()}
        self.by_case: dict[str, list[tuple[Column, CheckLine]]] = {identity: [] for identity in self.cases}
        self.by_column: dict[Column, list[CheckLine]] = collections.defaultdict(list)
        self._versions = {(n, name): text for n, run in enumerate(runs) for name, text in own_versions(run.header).items()}
        self._digests = collections.defaultdict(set)
        for number, run in enumerate(runs):
            for line in run.cases.values():
                self._digests[line.case].add(line.digest)
            for check in run.checks:
                column = column_of(number, check.target)
                self.by_case.setdefault(check.case, []).append((column, check))
                self.by_column[column].append(check)
        self.columns = sorted(self.by_column, key=column_order)
        self._runs = collections.Counter(column.target for column in self.columns)
        self.areas: dict[str, list[str]] = {}
        for identity in sorted(self.by_case):
            self.areas.setdefault(identity.split("/")[0], []).append(identity)

    @functools.cached_property
    def devices(self) -> bool:
        """Whether a column must say its device."""
        return len({column.device for column in self.columns}) > 1

    @functools.cached_property
    def _labels(self) -> dict[tuple[int, str], str]:
        """What tells the groups of a framework apart: its version, else the run."""
        pairs = dict.fromkeys((column.run, column.framework) for column in self.columns)
        said = collections.Counter((name, self._versions.get((run, name), "")) for run, name in pairs)
        labels = {}
        for run, name in pairs:
            version = self._versions.get((run, name), "")
            labels[run, name] = version if said[name, version] == 1 else f"{version} run {run + 1}".strip()
        return labels

    def groups(self, columns: list[Column]) -> list[Group]:
        found: dict[tuple[int, str], list[str]] = {}
        for column in columns:
            found.setdefault((column.run, column.framework), []).append(self.mode(column))
        return [Group(safe(name), safe(self._labels[run, name]), modes) for (run, name), modes in found.items()]

    def mode(self, column: Column) -> str:
        return safe(f"{column.mode} @{column.device}" if self.devices and column.device else column.mode)

    def targets(self, columns: Iterable[Column]) -> str:
        """Columns in a line of text."""
        several = collections.Counter(name for _, name in self._labels)
        parts = []
        groups: dict[tuple[int, str], list[str]] = {}
        for column in columns:
            groups.setdefault((column.run, column.framework), []).append(self.mode(column))
        for (run, name), modes in groups.items():
            version = f" {self._labels[run, name]}" if several[name] > 1 else ""
            parts.append(f"{name}{version} {', '.join(dict.fromkeys(modes))}")
        return safe("; ".join(parts))

    def edited(self, identity: str) -> bool:
        return len(self._digests[identity]) > 1

    def place(self, column: Column, check: CheckLine) -> str:
        """The name of a check among those of its case, as the target of a link."""
        return place(check.row, check.target, f"~{column.run + 1}" if self._runs[column.target] > 1 else "")


def place(row: str, target: str, more: str = "") -> str:
    """The name of a check within its case, as the target of a link."""
    name = f"{row}-{target}{more}" if row else f"{target}{more}"
    return name if re.fullmatch(r"[\w.,:@/+=~-]{1,200}", name, re.ASCII) else anchor(f"{name} ")


@functools.cache
def column_of(run: int, target: str) -> Column:
    """Taken apart without complaint: a report is not the place to refuse a target."""
    place, _, device = target.partition("@")
    framework, _, mode = place.partition(":")
    if second := re.fullmatch(r"([\w-]+)/([a-z]+)", framework):
        framework, mode = second[1], ", ".join(filter(None, [mode, second[2]]))
    return Column(run, framework, mode, device, target)


def framework_order(name: str) -> tuple[int, str]:
    """The frameworks that come along are first, in their own order."""
    return BUILTIN.index(name) if name in BUILTIN else len(BUILTIN), name


@functools.cache
def column_order(column: Column) -> tuple[Any, ...]:
    known = column.mode.partition(",")[0]
    mode = MODES.index(known) if known in MODES else len(MODES)
    return framework_order(column.framework), column.run, mode, column.mode, column.device


def _run(number: int, run: Run) -> RunView:
    environment = run.header.environment
    versions = own_versions(run.header)
    tested = {column_of(0, check.target).framework for check in run.checks}
    names = sorted({*tested, *versions}, key=lambda name: column_order(Column(0, name, "", "", "")))
    companions = []
    for name, packages in sorted(mapping(environment.get("packages")).items()):
        companions.append((safe(name), safe(", ".join(f"{p} {v}" for p, v in sorted(mapping(packages).items())))))
    when, iso = date(run.started)
    return RunView(
        number=number,
        file=safe(run.path.name),
        frameworks=[(safe(name), safe(versions.get(name, ""))) for name in names],
        companions=companions,
        device=safe(environment.get("device", ""))
        + (" (compiled ahead of time: nothing ran)" if environment.get("ran") is False else ""),
        platform=safe(environment.get("platform", "")),
        python=safe(listed(sorted({str(v) for v in mapping(environment.get("python")).values()}))),
        when=when,
        datetime=iso,
        complete=run.complete,
    )


_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def date(started: str) -> tuple[str, str]:
    """A date for people and the same for machines. Months are spelt here: strftime would ask the locale."""
    try:
        when = datetime.datetime.fromisoformat(started)
    except ValueError:
        return safe(started), ""
    zone = f" {when.tzname()}" if when.tzinfo else ""
    return f"{when.day} {_MONTHS[when.month - 1]} {when.year}, {when:%H:%M}{zone}", when.isoformat()


def _warnings(runs: list[Run], total: Tally) -> list[str]:
    said = []
    for run in runs:
        if not run.complete:
            came = count(len(run.checks), "check")
            said.append(f"The run of {safe(run.path.name)} did not end: {came} came back, and the rest is not known.")
    if not total.total:
        said.append("Nothing ran: there is no check in these results.")
    elif not total.ran:
        said.append("Nothing ran: every check was left out, for the reasons given with it.")
    return said


def _sentence(book: Book, total: Tally, areas: list[AreaView]) -> str:
    if not total.total:
        return "No check was run."
    cases = [case for area in areas for case in area.cases]
    differing = sum(case.differs for case in cases)
    targets = len({column.target for column in book.columns})
    head = f"Of {count(total.total, 'check')} of {count(len(cases), 'case')} on {count(targets, 'target')}, "
    tail = f"; {differing:,} of the cases {'shows' if differing == 1 else 'show'} a difference." if differing else "."
    return head + counted(total) + tail


def counted(total: Tally) -> str:
    """How many checks came to what."""
    said = [f"{total.expected:,} saw what was expected"]
    said += [f"{total.failing:,} did not" if total.failing else "none saw anything else"]
    said += [f"{total.open:,} {'has' if total.open == 1 else 'have'} no expectation"] if total.open else []
    said += [f"{total.unsupported:,} {'is' if total.unsupported == 1 else 'are'} unsupported"] if total.unsupported else []
    said += [f"{total.not_run:,} {'was' if total.not_run == 1 else 'were'} not run"] if total.not_run else []
    return listed(said)


# --- an area, a case


def _area(book: Book, name: str, identities: list[str]) -> AreaView:
    checks: dict[Column, list[CheckLine]] = collections.defaultdict(list)
    for identity in identities:
        for column, check in book.by_case[identity]:
            checks[column].append(check)
    tallies = [Tally.of(checks[column]) for column in book.columns]
    return AreaView(f"area:{anchor(name)}", safe(name), tallies, [case_view(book, identity) for identity in identities])


def case_view(book: Book, identity: str) -> CaseView:
    checks = book.by_case[identity]
    line = book.cases.get(identity) or CaseLine(identity, "", identity, "", [], "", "")
    columns = sorted({column for column, _ in checks}, key=column_order)
    css = styles([check for _, check in checks])
    evidence, found = _evidence(book, checks, css)
    rows = _rows(columns, checks, found, css)
    names = {tuple(check.parameters) for _, check in checks}
    plain = len(rows) == 1 and not checks[0][1].row if checks else True
    return CaseView(
        anchor=anchor(identity),
        identity=safe(identity),
        topic=safe(line.title),
        claim=safe(line.claim),
        why=safe(line.why),
        references=[Reference(safe(text), text if is_web(text) else "") for text in line.reference],
        program=safe(line.program),
        edited=book.edited(identity),
        groups=book.groups(columns),
        stub="" if plain else safe(" · ".join(names.pop()) if len(names) == 1 else "") or "variant",
        rows=rows,
        sources=list(_sources(book, checks)),
        evidence=evidence,
        differs=differs([check for _, check in checks]),
        fails=any(kind(check) in FAILING for _, check in checks),
    )


def sides(book: Book, identity: str) -> list[Side]:
    """A case framework by framework, for a page that has room for one beside the other."""
    checks = book.by_case[identity]
    css = styles([check for _, check in checks])
    made = []
    for group in dict.fromkeys((column.run, column.framework) for column in sorted({c for c, _ in checks}, key=column_order)):
        mine = [(column, check) for column, check in checks if (column.run, column.framework) == group]
        (said,) = book.groups([mine[0][0]])
        made.append(Side(said.framework, said.version, list(_sources(book, mine)), _evidence(book, mine, css)[0]))
    return made


def styles(checks: list[CheckLine]) -> dict[tuple[Kind, str], str]:
    """(kind, outcome) -> classes. Each named outcome of a case has a tint, the first one to be met the first tint."""
    found: dict[tuple[Kind, str], str] = {}
    for check in sorted(checks, key=lambda check: (natural(check.row), column_order(column_of(0, check.target)))):
        if (what := kind(check), check.outcome) not in found:
            found[what, check.outcome] = tinted(what, check.outcome, found)
    return found


def tinted(what: Kind, outcome: str, others: dict[tuple[Kind, str], str]) -> str:
    """The classes of an outcome that is not among the others."""
    if what not in (Kind.NAMED, Kind.OPEN) or outcome == CONFORMS:
        return str(what)
    named = list(dict.fromkeys(name for each, name in others if each in (Kind.NAMED, Kind.OPEN) and name != CONFORMS))
    return f"{what} t{(named.index(outcome) if outcome in named else len(named)) % TINTS}"


def _rows(
    columns: list[Column],
    checks: list[tuple[Column, CheckLine]],
    evidence: dict[int, tuple[str, str]],
    css: dict[tuple[Kind, str], str],
) -> list[Row]:
    """A table; two checks in one place cannot be, and if they are, the worse one is seen."""
    table: dict[str, dict[Column, CheckLine]] = {}
    for column, check in checks:
        place = table.setdefault(check.row, {})
        if column not in place or kind(place[column]) not in FAILING:
            place[column] = check

    def cell(check: CheckLine) -> Cell:
        what = kind(check)
        expected = check.expected if what in FAILING else None
        place, seen = evidence[id(check)]
        return Cell(place, css[what, check.outcome], safe(check.outcome), safe(expected or ""), seen)

    rows = []
    for name in sorted(table, key=natural):
        cells = [cell(table[name][column]) if column in table[name] else None for column in columns]
        rows.append(Row(_row_label(next(iter(table[name].values()))), cells))
    return rows


def _row_label(check: CheckLine) -> str:
    return safe(" · ".join(check.parameters.values()) or check.row or "as stated")


@functools.lru_cache(maxsize=10_000)
def natural(row: str) -> tuple[Any, ...]:
    """2 before 10, and the row without a name before all others."""
    parts = re.split(r"([0-9]+)", row[:200])
    return tuple((int(part), "") if part.isascii() and part.isdigit() else (0, part) for part in parts), row


def differs(checks: list[CheckLine]) -> bool:
    """Whether targets saw different things of one row, or one of them departed from the norm."""
    norm = any(CONFORMS in (check.outcome, check.expected, *check.against) for check in checks)
    rows: dict[str, set[str]] = collections.defaultdict(set)
    for check in checks:
        if kind(check) not in (Kind.UNSUPPORTED, Kind.NOT_RUN):
            rows[check.row].add(check.outcome)
    return any(len(seen) > 1 or (norm and seen != {CONFORMS}) for seen in rows.values())


def _sources(book: Book, checks: list[tuple[Column, CheckLine]]) -> Iterator[Source]:
    """The distinct native sources; which rows and modes each belongs to is said where a framework has several."""
    used: dict[tuple[str, str], list[tuple[Column, CheckLine]]] = {}
    for column, check in sorted(checks, key=lambda pair: column_order(pair[0])):
        if book.sources.get(check.source, "").strip() and kind(check) is not Kind.UNSUPPORTED:
            used.setdefault((column.framework, check.source), []).append((column, check))
    several = collections.Counter(framework for framework, _ in used)
    for (framework, digest), pairs in used.items():
        text = book.sources[digest].strip("\n")
        where = "; ".join(f"{fact.name}: {fact.text}".removeprefix(": ") for fact in _where(book, pairs))
        shown = safe(where) if several[framework] > 1 else ""
        yield Source(safe(framework), shown, safe(text), len(text) <= LIMIT, digest, pairs[0][1].identity)


def _failures(cases: list[CaseView]) -> list[FailingCase]:
    """The first failures, by case."""
    found: list[FailingCase] = []
    left = MOST_FAILURES
    for case in cases:
        failures = list(itertools.islice(_failing_cells(case), left))
        if failures:
            left -= len(failures)
            found.append(FailingCase(case.anchor, case.claim, failures))
    return found


def _failing_cells(case: CaseView) -> Iterator[Failure]:
    targets = [" ".join(filter(None, [g.framework, g.version, mode])) for g in case.groups for mode in g.columns]
    for row in case.rows:
        for target, cell in zip(targets, row.cells, strict=True):
            if cell and cell.css in FAILING:
                yield Failure(f"{target}, {row.label}" if case.stub else target, cell)


# --- evidence


def _evidence(
    book: Book, checks: list[tuple[Column, CheckLine]], css: dict[tuple[Kind, str], str]
) -> tuple[list[Evidence], dict[int, tuple[str, str]]]:
    """Evidence, shared by the checks that have the same; and of each check its place and its evidence. What fails is first."""
    shared: dict[str, list[tuple[Column, CheckLine]]] = {}
    for column, check in sorted(checks, key=lambda pair: (natural(pair[1].row), column_order(pair[0]))):
        judged = (check.outcome, check.expected, check.passed, check.observation, check.expectation, check.because, check.against)
        shared.setdefault(repr((*judged, check.evidence)), []).append((column, check))
    groups = sorted(shared.values(), key=lambda pairs: kind(pairs[0][1]) not in FAILING)
    made, found = [], {}
    for pairs in groups:
        identity = f"seen:{book.place(*pairs[0])}"
        made.append(_one_evidence(book, identity, pairs, css[kind(pairs[0][1]), pairs[0][1].outcome]))
        found.update({id(check): (book.place(column, check), identity) for column, check in pairs})
    return made, found


def _one_evidence(book: Book, identity: str, pairs: list[tuple[Column, CheckLine]], css: str) -> Evidence:
    check = pairs[0][1]
    return Evidence(
        identity=identity,
        css=css,
        outcome=safe(check.outcome),
        verdict=safe(_verdict(check)),
        where=_where(book, pairs),
        expected=expectation(check.expectation),
        seen=observation(check.observation, check.because),
        because=safe(check.because),
        against=[fact(name, why) for name, why in check.against.items()],
        reasons=_reasons(check),
        printed=fact("printed", check.evidence.get("printed", "")),
        seconds=_seconds([check.seconds for _, check in pairs]),
    )


def _reasons(check: CheckLine) -> list[Fact]:
    calls = check.evidence.get("reasons", [])
    return [fact(f"call {index}", "\n".join(reasons)) for index, reasons in enumerate(calls) if reasons]


def _verdict(check: CheckLine) -> str:
    what = kind(check)
    if what in (Kind.CONFORMS, Kind.NAMED):
        return "as expected"
    if what is Kind.COMPILES:
        return "nothing ran: whether its values are right is not known"
    if what is Kind.OPEN:
        return "nothing is expected of this target"
    if what is Kind.UNSUPPORTED:
        return "the framework has no such thing; checked"
    if what is Kind.NOT_RUN:
        return "nothing was seen"
    return f"instead of the expected {check.expected}" if check.expected else "not as expected"


def _where(book: Book, pairs: list[tuple[Column, CheckLine]]) -> list[Fact]:
    """Rows -> targets; rows with the same targets share a line. A row without a name has no label."""
    rows: dict[str, list[Column]] = {}
    for column, check in pairs:
        rows.setdefault(_row_label(check) if check.row else "", []).append(column)
    lines: dict[str, list[str]] = {}
    for label, columns in rows.items():
        lines.setdefault(book.targets(columns), []).append(label)
    return [Fact(safe(", ".join(filter(None, labels))), targets) for targets, labels in lines.items()]


def _seconds(taken: list[float]) -> str:
    """From the shortest to the longest; empty where no times were kept."""
    if not any(taken):
        return ""
    low, high = _duration(min(taken)), _duration(max(taken))
    return low if low == high else f"{low} to {high}"


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms" if seconds >= 0.0095 else f"{seconds * 1000:.1f} ms"
