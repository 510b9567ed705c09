"""The command. Each subcommand is a thin door to a module that does the work."""

from __future__ import annotations

import argparse
import datetime
import difflib
import functools
import gc
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import msgspec
import pytest
from packaging.version import Version

from conformance import __version__, library
from conformance.announce import line
from conformance.contract import ContractError, own_contract, read_contract, verdict
from conformance.document import CaseError
from conformance.environment import CannotInstall, Pinned, pinned, releases, why_not
from conformance.expand import expected_outcome
from conformance.findings import Findings, findings
from conformance.framework import COMPANIONS, frameworks, installed
from conformance.library import CaseCard, Compiled, Unit
from conformance.merge import write_merged
from conformance.repro import script
from conformance.results import Outline, ResultsError, identity, outline, read, results_files, whole
from conformance.selection import Selection, SelectionError
from conformance.side import is_file, release_run, side
from conformance.target import DEVICES, TOPOLOGY
from conformance.wording import count

EXIT_STATUS = """\
exit status:
  0  everything is as expected
  1  something is not as expected
  2  a case file has mistakes, or the run was interrupted
  3  an error of this program
  4  an option or a path that can mean nothing
  5  nothing was selected, or nothing of it could run
"""


GATE_STATUS = """\
exit status:
  0  nothing has changed that counts
  1  behaviour has changed
  2  the two could not be compared
  4  an option, a contract or a path that can mean nothing
"""

BASELINE_STATUS = """\
exit status:
  0  written
  2  a release could not be run
  4  an option or a path that can mean nothing
"""

BISECT_STATUS = """\
exit status:
  0  found
  2  a release at one of the ends could not be tried, or the two show the same
  4  an option or a path that can mean nothing
"""

REPORT_STATUS = """\
exit status:
  0  written
  2  the results are not fit to be published: see --incomplete
  4  an option or a path that can mean nothing
"""

UNNEEDED = ("logging", "threadexception", "unraisableexception", "unittest", "doctest")
"""Parts of pytest that watch what a test does in its own process, where a check does nothing."""


class UserError(Exception):
    """A mistake in how the command was called; the text is for the user."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    words = sys.argv[1:] if arguments is None else arguments
    cut = words.index("--") if words[:1] == ["run"] and "--" in words else len(words)
    given = _parser().parse_args(words[:cut])
    given.for_pytest = words[cut + 1 :]
    try:
        return int(given.door(given))
    except (UserError, SelectionError, ResultsError, ContractError, CannotInstall) as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 4
    except CaseError as error:
        print(error, file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 2


class _Parser(argparse.ArgumentParser):
    """An option that can mean nothing has the exit status 4 here; argparse's own is 2."""

    def error(self, message: str) -> NoReturn:
        self.exit(4, f"{self.prog}: {message}; see {self.prog} --help\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="conformance", description=__doc__, epilog=EXIT_STATUS, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.description = "Conformance cases for machine-learning frameworks: run them, read them, reproduce what they show."
    parser.add_argument("--version", action="version", version=f"conformance {__version__}")
    doors = parser.add_subparsers(required=True, metavar="COMMAND")

    door = _door(doors, "run", run, "run cases and say what is not as expected; options after -- go to pytest")
    door.add_argument("paths", nargs="*", metavar="PATH", help="case files or folders (default: the cases that come along)")
    _selection_options(door)
    door.add_argument("--host", action="append", default=[], metavar="F=SPEC", help="run framework F with another interpreter")
    door.add_argument("-k", metavar="EXPR", help="only checks whose name matches, as in pytest")
    door.add_argument("-m", metavar="EXPR", help="only checks with these markers: areas, frameworks, modes, devices")
    door.add_argument("-n", metavar="N", help="spread over N pytest workers (hosts use all cores without it)")
    door.add_argument("--only", metavar="FILE", help="only the checks that FILE names, one a line, as a results file names them")
    door.add_argument("--shard", metavar="I/N", help="only the I-th of N parts; `conformance merge` makes one file of them")
    door.add_argument("--repeat", type=int, metavar="N", help="N times in different orders; name what is not the same each time")
    door.add_argument("--results", default="reports/results.jsonl", metavar="FILE", help="default: %(default)s")
    door.add_argument("--report", metavar="DIR", help="write the HTML report to DIR")

    door = _door(doors, "list", list_checks, "say what would run")
    door.add_argument("paths", nargs="*", metavar="PATH")
    _selection_options(door)
    door.add_argument("--json", action="store_true", help="one JSON object per check")

    door = _door(doors, "show", show, "a case's claim, and its native source in each framework")
    door.add_argument("case", metavar="CASE", help="area/topic/case")
    _selection_options(door)
    _paths_option(door)

    door = _door(doors, "repro", repro, "a script that shows one check without this project")
    door.add_argument("case", metavar="CASE", help="area/topic/case")
    door.add_argument("--target", required=True, help="such as jax:compiled@cpu")
    door.add_argument("--row", help="the row of parameters, as it stands in the check's name")
    _paths_option(door)

    door = _door(doors, "validate", validate, "report every mistake in case files")
    door.add_argument("paths", nargs="*", metavar="PATH")

    door = _door(doors, "gate", gate, "what changed between two runs, or two releases", GATE_STATUS)
    door.add_argument("before", metavar="BASELINE", help="a results file, a folder of them, or a release such as jax==0.9.2")
    door.add_argument("after", metavar="CANDIDATE", help="the same")
    door.add_argument("--path", dest="paths", action="append", default=[], metavar="PATH", help="cases to run on releases")
    door.add_argument(
        "--with", dest="companions", action="append", default=[], metavar="REQ", help="install along, as flax==0.12.8"
    )
    door.add_argument("--contract", metavar="FILE", help="what counts (default: pyproject.toml, where it has [tool.conformance])")
    door.add_argument("--incomplete", action="store_true", help="compare also runs that did not end; never passes")
    door.add_argument("--fresh", action="store_true", help="run releases anew, though a run of the same cases is kept")
    door.add_argument("--markdown", metavar="FILE", help="write Markdown, short enough for a GitHub comment")
    door.add_argument("--junit", metavar="FILE", help="write JUnit XML")
    door.add_argument("--html", metavar="FILE", help="write a page to read")
    door.add_argument("--json", metavar="FILE", help="write JSON; docs/gate.schema.json is its schema")
    door.add_argument("--report", metavar="DIR", help="write the HTML report of both runs to DIR")
    door.add_argument("--annotations", action="store_true", help="print GitHub's annotations, at most 50")

    door = _door(doors, "baseline", baseline, "keep runs of releases in a folder, to compare with later", BASELINE_STATUS)
    door.add_argument(
        "runs", nargs="*", metavar="RUN",
        help="a release, a results file, or a folder of them (default: the releases that the folder has a list of)",
    )  # fmt: skip
    door.add_argument("-o", dest="directory", required=True, metavar="DIR")
    door.add_argument("--with", dest="companions", action="append", default=[], metavar="REQ", help="install along with releases")
    door.add_argument("--fresh", action="store_true", help="run releases anew, though a run of the same cases is kept")
    door.add_argument("--edited", action="store_true", help="run only case files that have changed since a release was kept")
    _paths_option(door)

    door = _door(doors, "bisect", bisect, "which release brought a change", BISECT_STATUS)
    door.add_argument("case", metavar="CASE", help="area/topic/case")
    door.add_argument("--package", required=True, metavar="P", help="of which releases are tried, such as jax")
    door.add_argument("--good", required=True, metavar="VERSION", help="a release from before the change")
    door.add_argument("--bad", required=True, metavar="VERSION", help="a release that has it")
    door.add_argument(
        "--target", action="append", default=[], metavar="SELECTOR", help="only targets that fit, such as jax:eager"
    )
    door.add_argument("--row", help="the row of parameters, as it stands in the check's name")
    door.add_argument("--with", dest="companions", action="append", default=[], metavar="REQ", help="install along")
    _paths_option(door)

    door = _door(doors, "merge", merge, "shards of a run, or runs of several frameworks, as one results file")
    door.add_argument("files", nargs="+", metavar="FILE", help="results files, or folders of them")
    door.add_argument("-o", dest="output", required=True, metavar="FILE")

    door = _door(doors, "report", report, "turn results files into a site, or into one page", REPORT_STATUS)
    door.add_argument("results", nargs="+", metavar="RESULTS", help="results files, or folders of them")
    door.add_argument("-o", dest="directory", required=True, metavar="DIR")
    door.add_argument("--single-file", action="store_true", help="one page that needs no other file, as an artifact of CI")
    door.add_argument("--base-url", default="", metavar="URL", help="where the site will be, for canonical links and a sitemap")
    door.add_argument("--incomplete", action="store_true", help="publish also runs that did not end; every page says so")
    _paths_option(door)
    return parser


def _door(
    doors: argparse._SubParsersAction[_Parser], name: str, function: object, text: str, status: str = EXIT_STATUS
) -> argparse.ArgumentParser:
    door = doors.add_parser(
        name, help=text, description=text, epilog=status, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    door.set_defaults(door=function)
    return door


def _selection_options(door: argparse.ArgumentParser) -> None:
    door.add_argument("--framework", action="append", default=[], metavar="F", help="only this framework (may be repeated)")
    door.add_argument(
        "--target", action="append", default=[], metavar="SELECTOR", help="only targets that fit, such as jax:compiled"
    )
    door.add_argument("--mode", action="append", default=[], metavar="M", help="only this mode; inductor runs on request")
    door.add_argument("--device", default="cpu", metavar="D", help=f"{', '.join(DEVICES)} or a topology, as {TOPOLOGY}")


def _paths_option(door: argparse.ArgumentParser) -> None:
    door.add_argument("--path", dest="paths", action="append", default=[], metavar="PATH", help="where the cases are")


def _selection(given: argparse.Namespace) -> Selection:
    return Selection(framework=given.framework, mode=given.mode, target=given.target, device=given.device)


def run(given: argparse.Namespace) -> int:
    """A door to pytest, with nothing of the folder that it is called in."""
    if given.repeat is not None:
        return _repeat(given)
    return int(pytest.main(_pytest_words(given, given.results, given.report)))


def _pytest_words(given: argparse.Namespace, results: str, report: str | None) -> list[str]:
    paths = [str(path.absolute()) for path in _files_exist(given.paths)]
    words = ["-p", "conformance.plugin", "-c", os.devnull, f"--rootdir={Path.cwd()}", "--capture=no", *paths]
    words += [f"-pno:{name}" for name in UNNEEDED]
    for name in ("framework", "target", "mode", "host"):
        words += [f"--{name}={value}" for value in getattr(given, name)]
    words += [f"--device={given.device}", f"--results={results}"]
    words += [f"--report={report}"] if report else []
    for name in ("only", "shard"):
        words += [f"--{name}={getattr(given, name)}"] if getattr(given, name) else []
    for flag in ("k", "m", "n"):
        words += [f"-{flag}", getattr(given, flag)] if getattr(given, flag) else []
    return [*words, *given.for_pytest]


def _repeat(given: argparse.Namespace) -> int:
    """Run everything several times, each time in a fresh process and another order; the results are those of the first."""
    from conformance.repeat import unstable

    if given.repeat < 2:
        raise UserError("--repeat: once is no repetition; say 2 or more")
    with tempfile.TemporaryDirectory() as folder:
        files = [given.results, *(f"{folder}/{number}.jsonl" for number in range(2, given.repeat + 1))]
        statuses: list[int] = []
        for number, file in enumerate(files):
            words = _pytest_words(given, file, given.report if number == 0 else None)
            command = [sys.executable, "-m", "pytest", *words, *([f"--shuffle={number}"] if number else [])]
            print(f"run {number + 1} of {given.repeat}", file=sys.stderr, flush=True)
            statuses.append(subprocess.run(command, check=False).returncode)
            if statuses[-1] not in (0, 1):
                return statuses[-1]
        found = unstable([outline(Path(file)) for file in files])
    print(f"{given.repeat} runs: {count(len(found), 'check')} not the same each time")
    for each in found:
        print(line(each.name), *(f"  run {number}: {line(text)}" for number, text in enumerate(each.seen, 1)), sep="\n")
    return 1 if found else statuses[0]


def list_checks(given: argparse.Namespace) -> int:
    """Print the checks that would run."""
    selection = _selection(given)
    count = 0
    for unit in _units(given.paths, selection.device):
        for check in filter(selection.admits, unit.checks):
            print(
                _listed(check, unit.card(check)) if given.json else f"{unit.card(check).identity}[{check.name.split('[', 1)[1]}"
            )
            count += 1
    if not count:
        print("conformance: no check fits", file=sys.stderr)
        return 5
    return 0


def _listed(check: Compiled, card: CaseCard) -> str:
    return json.dumps(
        {
            "case": card.identity,
            "area": card.area,
            "claim": card.claim,
            "parameters": check.parameters,
            "target": check.target,
            "expected": _expected(check),
        }
    )


def _expected(check: Compiled) -> str | None:
    framework = frameworks()[check.framework]
    here = {name: installed(name) for name in (*framework.distributions, *COMPANIONS)}
    return expected_outcome(check.expected, framework.versions(here))


def show(given: argparse.Namespace) -> int:
    """Print a case: what it says, and each distinct native source."""
    selection = _selection(given)
    unit, card = _case(given, selection.device)
    print(f"{card.identity}\n{card.claim}\n{card.why}".strip())
    print(*card.reference, sep="\n")
    shown: set[str] = set()
    for check in unit.checks:
        if unit.card(check) is card and selection.admits(check) and check.job.source not in shown:
            shown.add(check.job.source)
            print(
                f"\n--- {check.framework}{f' [{check.row}]' if check.row else ''}: {_expected(check)}\n{check.job.source.strip()}"
            )
    return 0


def repro(given: argparse.Namespace) -> int:
    """Print the script of one check."""
    unit, card = _case(given, given.target.partition("@")[2] or "cpu")
    mine = [check for check in unit.checks if unit.card(check) is card]
    fitting = [check for check in mine if check.target == given.target or check.target.startswith(f"{given.target}@")]
    if not fitting:
        raise UserError(
            f"{card.identity} has no target {given.target!r}; it has {', '.join(dict.fromkeys(c.target for c in mine))}"
        )
    rows = fitting if len(fitting) == 1 else [check for check in fitting if check.row == (given.row or "")]
    if not rows or given.row not in (None, rows[0].row):
        raise UserError(f"choose one with --row: {', '.join(check.row for check in fitting if check.row)}")
    print(script(rows[0], card, _expected(rows[0])), end="")
    return 0


def validate(given: argparse.Namespace) -> int:
    """Report every mistake in every file, not only the first file's."""
    mistakes = []
    cases = 0
    for path in _files_exist(given.paths):
        for file in library.case_files([path]):
            try:
                cases += len(library.unit(file, "cpu", str(file)).cases)
            except CaseError as error:
                mistakes += error.mistakes
    if mistakes:
        raise CaseError(mistakes)
    if not cases:
        raise UserError("there are no case files: YAML with a top-level `cases:`")
    print(f"{cases} {'case' if cases == 1 else 'cases'}, no mistakes")
    return 0


def report(given: argparse.Namespace) -> int:
    """Write the site, or the page."""
    files = _results(given.results)
    if given.single_file:
        return _single_file(files, Path(given.directory))
    from conformance.history import shortcomings, timelines
    from conformance.publish import publish
    from conformance.site import Site

    if given.base_url and not given.base_url.startswith(("https://", "http://")):
        raise UserError(f"--base-url {given.base_url!r} is no address: it begins with https://")
    gc.disable()  # hundreds of thousands of records are made, all are kept, and none has a cycle
    runs = [outline(file) for file in files]
    gc.freeze()
    gc.enable()
    said = shortcomings(runs)
    if said and not given.incomplete:
        print(f"conformance: {'; '.join(said)}: run it again, or say --incomplete", file=sys.stderr)
        return 2
    print(publish(Site(timelines(runs), said), Path(given.directory), _files_exist(given.paths), given.base_url))
    return 0


def _single_file(files: list[Path], directory: Path) -> int:
    from conformance.render import write_report

    runs = [read(file) for file in files]
    for run in runs:
        if not run.complete:
            print(f"conformance: {run.path} is incomplete: its run did not end", file=sys.stderr)
    print(write_report(runs, directory))
    return 0


def gate(given: argparse.Namespace) -> int:
    """Compare two runs and say what changed."""
    from conformance import announce
    from conformance.compare import compare
    from conformance.recheck import unsteady

    contract = read_contract(Path(given.contract)) if given.contract else own_contract()
    cases = _files_exist(given.paths)
    names = given.before, given.after
    try:
        take = functools.partial(side, cases=cases, companions=given.companions, incomplete=given.incomplete, fresh=given.fresh)
        before = take(given.before)
        after = take(given.after)
        if Path(given.before).is_dir():
            before = take(given.before, beside=after.run)
        judged = verdict(compare(before.run, after.run), contract, datetime.date.today())
        judged = judged.without(unsteady(judged.counting, (before, after), cases))
    except (ResultsError, CannotInstall) as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 2
    found = findings(judged, (before, after), names, given.paths)
    print(announce.terminal(found))
    if found.status == 1 and Path(given.before).is_dir() and is_file(given.after):
        print(f"\nIf it is to be so: conformance baseline {shlex.quote(given.after)} -o {shlex.quote(given.before)}")
    if given.annotations and found.counting:
        print(announce.github(found))
    for path, text in _written(given, found):
        _write(path, text)
    if given.report:
        from conformance.render import write_report

        print(write_report([whole(each.run) for each in (before, after)], Path(given.report)))
    return found.status


def _written(given: argparse.Namespace, found: Findings) -> Iterator[tuple[Path, str]]:
    """The files that were asked for."""
    from conformance import announce

    if given.markdown:
        yield Path(given.markdown), announce.markdown(found)
    if given.junit:
        yield Path(given.junit), announce.junit(found)
    if given.html:
        from conformance.render import render_findings

        yield Path(given.html), render_findings(found)
    if given.json:
        yield Path(given.json), msgspec.json.format(msgspec.json.encode(found)).decode() + "\n"


def baseline(given: argparse.Namespace) -> int:
    """Keep runs in a folder."""
    from conformance.baseline import changed, locks, runs_of, write

    folder, cases = Path(given.directory), _files_exist(given.paths)
    texts = given.runs or locks(folder)
    if not texts:
        raise UserError(f"{folder} lists no release to run again: name one, such as jax==0.9.2")
    try:
        runs = runs_of(folder, texts, given.companions, cases, fresh=given.fresh, edited=given.edited)
    except (ResultsError, CannotInstall) as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 2
    for each in write(folder, runs):
        print(line(f"{each.path}: {changed(each)}"))
    return 0


def bisect(given: argparse.Namespace) -> int:
    """Find the release that brought a change."""
    from conformance.bisection import Skipped, search

    good, bad = (pinned(f"{given.package}=={version}", given.companions) for version in (given.good, given.bad))
    files, checks = _checks_of(given, good.framework)

    def look(version: Version) -> Outline:
        ends = {good.version: good, bad.version: bad}
        release = ends.get(version) or pinned(f"{given.package}=={version}", given.companions)
        print(f"looking at {release.requirement}", file=sys.stderr, flush=True)
        if version in ends:
            return release_run(release, files, checks)
        try:
            if why := why_not(release.requirement):
                raise Skipped(why)
            return release_run(release, files, checks)
        except (CannotInstall, ResultsError) as error:
            raise Skipped(" ".join(str(error).split())[:200]) from None

    try:
        found = search(_between(good, bad, releases(given.package)), look)
    except (ResultsError, CannotInstall) as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 2
    width = max(len(str(version)) for version in found.tried)
    for version, shown in found.tried.items():
        mark = "  <- the first that differs" if version == found.bad else ""
        print(f"{version!s:{width}}  {'skipped: ' if shown.differs is None else ''}{line(shown.text)}{mark}")
    print(f"{given.package} {found.bad} shows something else than {given.good}; {found.good} does not.")
    if found.between:
        print(f"It may also have been {', '.join(map(str, found.between))}, which could not be looked at.")
    print("The releases were halved: a change that was undone again before the one found here is not seen.")
    return 0


def _between(good: Pinned, bad: Pinned, listed: list[Version]) -> list[Version]:
    for release in (good, bad):
        if release.version not in listed:
            raise UserError(f"{release.requirement} is not among the releases that are listed for this Python")
    if good.version >= bad.version:
        raise UserError("--good has to be a release before --bad")
    return [version for version in listed if good.version <= version <= bad.version]


def _checks_of(given: argparse.Namespace, framework: str) -> tuple[list[Path], list[str]]:
    """The file of a case, and the names of those of its checks that are asked for."""
    selection = Selection(framework=[framework], target=given.target)
    for file in library.case_files(_files_exist(given.paths)):
        unit = library.unit(file, "cpu", str(file))
        mine = [check for check in unit.checks if unit.card(check).identity == given.case]
        names = [
            identity(given.case, check.row, check.target)
            for check in mine
            if selection.admits(check) and given.row in (None, check.row)
        ]
        if mine and not names:
            raise UserError(f"{given.case} has no such check of {framework}; see `conformance list`")
        if mine:
            return [file], names
    _case(given)  # says what is close
    raise UserError(f"{given.case} runs nowhere")


def merge(given: argparse.Namespace) -> int:
    """Write several results files as one."""
    run = write_merged([outline(file) for file in _results(given.files)], Path(given.output))
    print(f"{run.path}: {count(len(run.entries), 'check')}")
    return 0


def _results(names: list[str]) -> list[Path]:
    """Results files. A shell's *.jsonl also fits what lies beside them."""
    files = [file for name in names for file in results_files(Path(name)) if not file.name.endswith(".full.jsonl")]
    if not files:
        raise UserError("there is no results file among these")
    return files


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None


def _files_exist(paths: list[str]) -> list[Path]:
    for path in map(Path, paths):
        if not path.exists():
            raise UserError(f"there is no {path}")
        if path.is_file() and not library.is_case_file(path):
            raise UserError(f"{path} is not a case file: YAML with a top-level `cases:`")
    return [Path(path) for path in paths] or [library.cases_path()]


def _units(paths: list[str], device: str = "cpu") -> Iterator[Unit]:
    for file in library.case_files(_files_exist(paths)):
        yield library.unit(file, device, str(file))


def _case(given: argparse.Namespace, device: str = "cpu") -> tuple[Unit, CaseCard]:
    known = []
    for unit in _units(given.paths, device):
        for card in unit.cases:
            if card.identity == given.case:
                return unit, card
            known.append(card.identity)
    close = difflib.get_close_matches(given.case, known, 3)
    raise UserError(f"there is no case {given.case!r}{'; did you mean ' + ' or '.join(close) + '?' if close else ''}")


if __name__ == "__main__":
    sys.exit(main())
