"""A site -> a folder of pages, which opens from disk and under any address, and asks for nothing that is not in it."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, urlencode

import jinja2
import msgspec
from markupsafe import escape

from conformance import library
from conformance.badge import badge
from conformance.badge import text as badge_text
from conformance.dataset import case_data, index_script, schema, target_file, target_script
from conformance.document import CaseError
from conformance.expand import expected_outcome
from conformance.framework import frameworks
from conformance.kinds import Tally
from conformance.library import CaseCard, Compiled
from conformance.page import Evidence, Source
from conformance.render import TEMPLATES, environment
from conformance.repro import script
from conformance.results import ResultsError, full_texts, identity
from conformance.site import LATELY, CasePage, Site, VersionPage, part
from conformance.wording import Fact, anchor, count, listed

LIST = "files/pages.txt"
"""Everything that is in a site: what an earlier build has left, and this one has not, is taken away."""
MOST = 600_000
"""Characters of evidence, and of rows, that the page of a case shows; all of it is in the data."""
NAV = [("index.html", "Matrix"), ("find.html", "Filter"), ("compare.html", "Compare"), ("versions/index.html", "Releases")]


def publish(site: Site, directory: Path, cases: Sequence[Path] = (), base_url: str = "") -> Path:
    """Write the site and return the path of its first page. Raises ResultsError where that cannot be done.

    ``cases``: case files, of which scripts are made that show a check without this project.
    """
    old = _earlier(directory)
    written: set[str] = set()
    try:
        try:
            for address, content in _Pages(site, _Scripts(site, cases), base_url).all():
                _write(directory / address, content)
                written.add(address)
            for address in old - written - {LIST}:
                (directory / address).unlink(missing_ok=True)
            old = set()
        finally:  # also what a build that was cut short has left is known to the next
            _write(directory / LIST, "".join(f"{address}\n" for address in sorted({*old, *written, LIST})))
    except OSError as error:
        raise ResultsError(f"the site cannot be written to {directory}: {error.strerror or error}") from None
    return directory / "index.html"


def _earlier(directory: Path) -> set[str]:
    """What an earlier site has left there. Raises ResultsError where the folder holds something else."""
    try:
        listed = (directory / LIST).read_text(encoding="utf-8").splitlines()
        return {name for name in listed if not name.startswith("/") and ".." not in PurePosixPath(name).parts}
    except OSError:
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            raise ResultsError(f"{directory} is there, and is no site of an earlier build: say another folder") from None
        return set()


def _write(path: Path, content: str | bytes) -> None:
    data = content.encode() if isinstance(content, str) else content
    try:
        path.write_bytes(data)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


class _Pages:
    """Yields (address, content) of every file of a site."""

    def __init__(self, site: Site, scripts: _Scripts, base_url: str) -> None:
        self.site = site
        self.scripts = scripts
        self.base = base_url.rstrip("/")
        self.home = site.home()
        self.name = "conformance"
        self.environment = _environment()
        self.addresses: list[str] = []
        self.more: dict[str, bytes] = {}
        """Files that a page has asked for."""

    def all(self) -> Iterator[tuple[str, str | bytes]]:
        yield from self._assets()
        do = "does" if len(self.site.names) == 1 else "do"
        title = f"What {listed(self.site.names)} really {do}" if self.site.names else "Nothing was run"
        yield self._page("index.html", "home", title, self.home.sentence, home=self.home, first_shifts=_first_shifts)
        yield from self._areas()
        for page in self.site.frameworks:
            said = f"What {page.name} {page.version} does: {badge_text(page.tally)}"
            yield self._page(
                page.address, "framework", page.name, said, page=page, releases=page.versions, badge=_badge_file(page.name)
            )
        yield from self._releases()
        yield self._page(
            "compare.html", "compare", "Compare", "Two targets or releases, side by side", versions=self.site.versions
        )
        yield self._page("find.html", "find", "Filter", "Every check, by what it is and what it came to", areas=self.site.areas)
        yield from self._badges()
        yield "files/index.js", index_script(self.site)
        yield from self._targets()
        yield "files/schema.json", schema()
        if self.base:
            yield "sitemap.xml", self._sitemap()
        yield ".nojekyll", ""

    # --- pages

    def _page(self, address: str, template: str, title: str, description: str, **said: Any) -> tuple[str, str]:
        self.addresses.append(address)
        root = "../" * address.count("/")
        text = self._template(template).render(
            address=address,
            root=root,
            title=title,
            description=" ".join(description.split())[:300],
            canonical=f"{self.base}/{quote(address)}" if self.base else "",
            site_name=self.name,
            nav=NAV,
            shortcomings=self.site.shortcomings,
            when=self.home.when,
            datetime=self.home.datetime,
            undated=self.home.undated,
            find=_find,
            framework_address=lambda name: f"frameworks/{part(name)}.html",
            **said,
        )
        return address, text

    @functools.cache  # noqa: B019  (lives as long as the site is written)
    def _template(self, name: str) -> jinja2.Template:
        return self.environment.get_template(f"site/{name}.html")

    def _areas(self) -> Iterator[tuple[str, str | bytes]]:
        sizes = []
        for number, (name, identities) in enumerate(self.site.book.areas.items()):
            area = self.site.areas[number]
            briefs = [self.site.brief(identity) for identity in identities]
            page = self.site.area_page(number, briefs)
            yield self._page(area.address, "area", area.name, f"{count(area.cases, 'case')} of {area.name}", page=page)
            data = []
            for index, each in enumerate(identities):
                before = briefs[index - 1] if index else None
                after = briefs[index + 1] if index + 1 < len(briefs) else None
                taken = case_data(self.site, each, self._full)
                data.append(taken)
                yield from self._case(self.site.case_page(number, each, before, after), each, taken)
            whole = b"".join(line + b"\n" for line in data)
            file = f"files/{part(name)}.jsonl"
            yield file, whole
            sizes.append((area.name, file.partition("/")[2], _size(len(whole))))
        badges = [(file, text) for file, text, _ in self._badge_list()]
        yield self._page("files/index.html", "files", "Data", "All data of this site as JSON", files=sizes, badges=badges)

    def _case(self, page: CasePage, name: str, data: bytes) -> Iterator[tuple[str, str | bytes]]:
        stem = page.address.removesuffix(".html")
        base = stem.rpartition("/")[2]
        self.more.clear()
        shown, more_rows, more_evidence = _within(page)
        view = shown.view
        said = view.why or view.claim or view.identity
        yield self._page(
            page.address,
            "case",
            view.claim or view.identity,
            said,
            page=shown,
            view=view,
            topic_anchor=anchor(name.rpartition("/")[0].rpartition("/")[2]),
            more_rows=more_rows,
            more_evidence=more_evidence,
            data=f"{base}.json",
            whole=self._whole(page.address),
            whole_source=self._whole_source(page.address),
            script=self._script(stem, base),
            brief_where=_brief_where,
        )
        yield f"{stem}.json", data + b"\n"
        yield from self.more.items()

    def _whole(self, address: str) -> Callable[[Fact], str]:
        """The address of all of a text that was cut, by this page or by the results file before it."""
        root = "../" * address.count("/")

        def whole(fact: Fact) -> str:
            found = _CUT.search(fact.whole or fact.text)
            full = self._full.get(found[1] or found[2]) if found else None
            if full is None and not fact.whole:
                return ""
            text = full if isinstance(full, str) else fact.whole if full is None else msgspec.json.encode(full).decode()
            return root + self._text(text)

        return whole

    def _whole_source(self, address: str) -> Callable[[Source], str]:
        root = "../" * address.count("/")
        return lambda source: root + self._text(self.site.book.sources[source.digest])

    def _text(self, text: str) -> str:
        data = text.encode(errors="replace")
        address = f"files/texts/{hashlib.sha256(data).hexdigest()[:16]}.txt"
        self.more[address] = data
        return address

    def _script(self, stem: str, base: str) -> Callable[[Source], str]:
        def found(source: Source) -> str:
            text = self.scripts.of(source.check)
            if not text:
                return ""
            inside = re.sub(r"[^\w.-]+", ".", source.check.partition("[")[2].removesuffix("]"), flags=re.ASCII)
            self.more[f"{stem}.{inside[:100]}.py"] = text.encode()
            return f"{base}.{inside[:100]}.py"

        return found

    @functools.cached_property
    def _full(self) -> dict[str, Any]:
        paths = dict.fromkeys(run.path for run in self.site.runs)
        return {digest: text for path in paths for digest, text in full_texts(path).items()}

    def _releases(self) -> Iterator[tuple[str, str]]:
        groups = [(page.name, page.versions) for page in self.site.frameworks]
        yield self._page(
            "versions/index.html",
            "versions",
            "Releases",
            "What each release changed from the one before it",
            groups=groups,
        )
        for page in self.site.versions:
            title = f"{page.framework} {page.version}"
            said = ", ".join(f"{each.number} {each.change}" for each in page.shifts) or "no change"
            yield self._page(page.address, "version", title, f"{title} after {page.before}: {said}", page=page)

    # --- files

    def _assets(self) -> Iterator[tuple[str, str]]:
        yield "assets/site.js", _asset("copy.js") + _asset("site/site.js")
        for name in ("theme.js", "find.js", "compare.js", "icon.svg"):
            yield f"assets/{name}", _asset(f"site/{name}")
        yield "assets/site.css", _asset("parts.css") + _asset("site/site.css")

    def _badge_list(self) -> Iterator[tuple[str, str, str]]:
        """(file, what it says, the picture)"""
        tallies: list[tuple[str, Tally]] = []
        for page in self.site.frameworks:
            tallies.append((page.name, page.tally))
            tallies += [(f"{page.name} {area.name}", tally) for area, tally in page.areas]
        tallies += [(area.name, Tally.sum(area.tallies)) for area in self.site.areas]
        for label, tally in tallies:
            yield _badge_file(label), f"{label}: {badge_text(tally)}", badge(label, tally)

    def _badges(self) -> Iterator[tuple[str, str]]:
        for file, _, picture in self._badge_list():
            yield f"badges/{file}", picture

    def _targets(self) -> Iterator[tuple[str, str]]:
        numbers = {case: number for number, case in enumerate(self.site.book.by_case)}
        for line in self.site.lines:
            by_target: dict[str, list[tuple[str, str, Any]]] = {}
            for key, spans in line.spans.items():
                if key.case in numbers:
                    by_target.setdefault(key.target, []).append((key.case, key.row, spans))
            for target, checks in by_target.items():
                yield target_file(line, target), target_script(line, target, numbers, sorted(checks))

    def _sitemap(self) -> str:
        urls = "".join(f"<url><loc>{escape(self.base)}/{quote(address)}</loc></url>\n" for address in self.addresses)
        return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{urls}</urlset>\n'


class _Scripts:
    """Scripts that show a check without this project, for cases that are still those that were run."""

    def __init__(self, site: Site, cases: Sequence[Path]) -> None:
        self.site = site
        self.files = {library.topic(file): file for file in library.case_files(list(cases))}
        self.devices = list(dict.fromkeys(column.device for column in site.book.columns))
        self.packages = {line.framework: line.newest.run.header.packages.get(line.framework, {}) for line in site.lines}
        self._topic = functools.lru_cache(maxsize=4)(self._read)

    def of(self, name: str) -> str:
        """Empty where there is none."""
        case = name.partition("[")[0]
        found = self._topic(library.topic_of(case)).get(name)
        if found is None:
            return ""
        check, card = found
        versions = frameworks()[check.framework].versions(self.packages.get(check.framework, {}))
        return script(check, card, expected_outcome(check.expected, versions))

    def _read(self, topic: str) -> dict[str, tuple[Compiled, CaseCard]]:
        found: dict[str, tuple[Compiled, CaseCard]] = {}
        if topic not in self.files:
            return found
        for device in self.devices:
            try:
                unit = library.unit(self.files[topic], device, str(self.files[topic]))
            except CaseError:
                continue
            for check in unit.checks:
                card = unit.card(check)
                run = self.site.cases.get(card.identity)
                if run and run.digest == card.digest:
                    found.setdefault(identity(card.identity, check.row, check.target), (check, card))
        return found


# --- parts


_CUT = re.compile(r"\(all of it: ([0-9a-f]{16})\)|\bdigest ([0-9a-f]{16})\b")


def _environment() -> jinja2.Environment:
    made = environment()
    made.filters |= {
        "count_of": count,
        "slug": lambda text: re.sub(r"\W+", "-", str(text)),
        "number_of": lambda areas, area: next((number for each, number in areas if each is area), 0),
    }
    return made


def _asset(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _find(**said: str) -> str:
    """The address of a filter; what is too long to be a part of one is left out."""
    return f"find.html#{urlencode({name: value for name, value in said.items() if value and len(value) <= 200})}"


def _first_shifts(page: VersionPage) -> list[Any]:
    return [shift for shifts in page.shifts for shift in shifts.shown][:LATELY]


def _brief_where(item: Evidence) -> str:
    """What some evidence is of, in a line."""
    first = item.where[0]
    said = f"{first.name}: {first.text}" if first.name else first.text
    said = said if len(said) <= 80 else f"{said[:79]}…"
    return said + (f" and {len(item.where) - 1} more" if len(item.where) > 1 else "")


def _badge_file(label: str) -> str:
    return f"{part(label.replace(' ', '-'))}.svg"


def _size(number: int) -> str:
    return f"{number / 1e6:.1f} MB" if number >= 1e6 else f"{max(1, round(number / 1000))} kB"


def _within(page: CasePage) -> tuple[CasePage, int, dict[str, int]]:
    """As much of a case as a page can hold: (the page, rows left out, framework -> evidence left out)."""
    left = MOST
    rows = []
    for row in page.view.rows:
        left -= 200 + sum(150 + 2 * len(cell.outcome) + len(cell.expected) for cell in row.cells if cell)
        if left < MOST // 2:
            break
        rows.append(row)
    more: dict[str, int] = {}
    sides = []
    each = left // max(1, len(page.sides))
    for side in page.sides:
        room, sources, evidence = each, [], []
        for source in side.sources:
            room -= 300 + len(source.text)
            sources += [source] if room > each // 2 else []
        for item in side.evidence:
            room -= _length(item)
            evidence += [item] if room > 0 else []
        more |= {side.framework: len(side.evidence) - len(evidence)} if len(evidence) < len(side.evidence) else {}
        sides.append(side._replace(sources=sources, evidence=evidence))
    return page._replace(view=page.view._replace(rows=rows), sides=sides), len(page.view.rows) - len(rows), more


def _length(item: Evidence) -> int:
    facts = [*item.expected, *item.seen, *item.against, *item.reasons, *item.where, item.printed]
    return 700 + len(item.because) + sum(60 + len(fact.name) + len(fact.text) + len(fact.picture) for fact in facts)
