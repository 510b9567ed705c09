"""Case files as pytest tests: one check is one item. Registered by the root conftest.py, or by the command."""

from __future__ import annotations

import hashlib
import os
import random
import re
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from conformance import library
from conformance.document import CaseError
from conformance.expand import NOT_RUN
from conformance.framework import frameworks
from conformance.library import Compiled, Unit
from conformance.pool import REFERENCE, Environment, HostFailed, Pool
from conformance.record import Record, failure_text, record
from conformance.results import CaseLine, CheckLine, ResultsError, Shard, Writer, host_environment, identity, read
from conformance.selection import Selection, SelectionError, names_of, shard_of
from conformance.summary import summary
from conformance.target import DEVICES, MODES


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("conformance", "conformance cases")
    group.addoption("--framework", action="append", default=[], metavar="F", help="only this framework (may be repeated)")
    group.addoption(
        "--target",
        action="append",
        default=[],
        metavar="SELECTOR",
        help="only targets that fit, such as jax:compiled (may be repeated)",
    )
    group.addoption(
        "--mode", action="append", default=[], metavar="M", help="only this mode (may be repeated); inductor runs on request"
    )
    group.addoption(
        "--device",
        default="cpu",
        metavar="D",
        help="where the frameworks compute: cpu, cuda or tpu (default: cpu), or a topology to compile for",
    )
    group.addoption(
        "--host",
        action="append",
        default=[],
        metavar="F=SPEC",
        help="run framework F with another interpreter: a path or an execnet spec",
    )
    group.addoption("--only", metavar="FILE", help="only the checks that are named in FILE, one a line, as in a results file")
    group.addoption("--shard", metavar="I/N", help="only the I-th of N parts, all about as large; see `conformance merge`")
    group.addoption("--shuffle", type=int, metavar="SEED", help="run the checks in another order")
    group.addoption("--results", metavar="FILE", help="write the results to FILE (JSON lines)")
    group.addoption("--report", metavar="DIR", help="write the HTML report to DIR; needs --results")


def pytest_configure(config: pytest.Config) -> None:
    for name in dict.fromkeys([*frameworks(), *MODES, *DEVICES, str(config.getoption("--device"))]):
        config.addinivalue_line("markers", f"{_word(name)}: conformance checks on this framework, mode or device")
    config.stash[_RUN] = _Run(config, _selection(config))


def _selection(config: pytest.Config) -> Selection:
    option = config.getoption
    try:
        selection = Selection(**{name: option(f"--{name}") for name in ("framework", "mode", "target", "device", "host")})
        selection.require_installed()
    except SelectionError as error:
        raise pytest.UsageError(str(error)) from None
    return selection


class _Run:
    """One session: the hosts, and what has been recorded."""

    def __init__(self, config: pytest.Config, selection: Selection) -> None:
        self.selection = selection
        self.is_worker = hasattr(config, "workerinput")
        self.distributed = bool(getattr(config.option, "numprocesses", None)) and not self.is_worker
        self.pool: Pool | None = None
        self.environments: dict[str, Environment] = {}
        self.records: list[CheckLine] = []
        self.references: dict[tuple[str, str], int] = {}
        self.items = 0
        self.shard: Shard | None = None
        self.closing: list[str] = []
        """What is said of the results file once it is closed."""
        option = config.getoption
        try:
            self.part = shard_of(option("--shard")) if option("--shard") else None
            self.only = names_of(Path(option("--only"))) if option("--only") else None
        except SelectionError as error:
            raise pytest.UsageError(str(error)) from None
        self.seed: int | None = option("--shuffle")
        self.workers = int(getattr(config, "workerinput", {}).get("workercount", 1))
        self.writer: Writer | None = None
        results, report = config.getoption("--results"), config.getoption("--report")
        if report and not results:
            raise pytest.UsageError("--report needs --results: the report is made from the results file")
        if report and Path(report).exists() and not Path(report).is_dir():
            raise pytest.UsageError(f"the report cannot be written to {report}: it is a file, and the report a folder")
        if results and not self.is_worker and not config.getoption("collectonly"):
            try:
                self.writer = Writer(Path(results))
            except ResultsError as error:
                raise pytest.UsageError(str(error)) from None

    def require(self, pool: Pool, names: Iterable[str]) -> None:
        """See that these frameworks start where the user has chosen the device or the interpreter. Raises UsageError."""
        try:
            pool.require([name for name in names if self.selection.device != "cpu" or name in self.selection.hosts])
        except HostFailed as failed:
            pool.close()
            if self.writer:
                self.writer.discard()
                self.writer = None
            more = "; --framework chooses others" if not self.selection.frameworks else ""
            raise pytest.UsageError(f"nothing was run{more}:\n{failed}") from None

    def new_pool(self) -> Pool:
        cores = max(1, len(os.sched_getaffinity(0)) // self.workers) if hasattr(os, "sched_getaffinity") else None
        return Pool(self.selection.hosts, self.selection.device, cores)

    def submit(self, items: list[CheckItem]) -> None:
        """Hand checks to the hosts, which run ahead of pytest from now on."""
        self.pool = self.pool or self.new_pool()
        needed = {
            i.reference_key: i.check.reference for i in items if i.check.reference and i.reference_key not in self.references
        }
        numbers = self.pool.submit(REFERENCE, [job for job in needed.values() if job])
        self.references.update(zip(needed, numbers, strict=True))
        for name in dict.fromkeys(item.check.framework for item in items):
            mine = [item for item in items if item.check.framework == name]
            for item, number in zip(mine, self.pool.submit(name, [item.check.job for item in mine]), strict=True):
                item.number = number

    def conclude(self, item: CheckItem) -> Record:
        """Wait for the answer of a check, and judge it."""
        if item.number is None:
            self.submit([other for other in item.session.items if _unsent(other, item.check.framework)])  # type: ignore[misc]  # our items alone are unsent
        assert self.pool is not None
        assert item.number is not None
        reference = self.pool.peek(self.references[item.reference_key]) if item.check.reference else None
        answer = self.pool.answer(item.number)
        environment = self.pool.environments.get(item.check.framework)
        return record(item.check, item.unit.card(item.check), answer, reference, environment.packages if environment else {})


def _unsent(item: pytest.Item, framework: str) -> bool:
    return isinstance(item, CheckItem) and item.number is None and item.check.framework == framework


_RUN = pytest.StashKey[_Run]()


# --- collection


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if library.is_case_file(file_path):
        return CaseFile.from_parent(parent, path=file_path)
    return None


class CaseFile(pytest.File):
    """A file of cases."""

    def collect(self) -> Iterator[CheckItem]:
        selection = self.config.stash[_RUN].selection
        unit = library.unit(self.path, selection.device, self.nodeid)
        self.config.addinivalue_line("markers", f"{_word(unit.cases[0].area)}: conformance checks of this area")
        self.add_marker(_mark(unit.cases[0].area))
        for check in unit.checks:
            if selection.admits(check):
                # The id is given, for pytest tells parameters from names only where it parses an id; --lf compares the parts.
                yield CheckItem.from_parent(self, name=check.name, nodeid=f"{self.nodeid}::{check.name}", check=check, unit=unit)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, (CaseError, OSError)):
            return str(excinfo.value)
        return super().repr_failure(excinfo)


_marks: dict[str, pytest.MarkDecorator] = {}


def _word(name: str) -> str:
    """A name that `-m` can read."""
    return re.sub(r"\W", "_", name)


def _mark(name: str) -> pytest.MarkDecorator:
    name = _word(name)
    if name not in _marks:
        _marks[name] = getattr(pytest.mark, name)
    return _marks[name]


class CheckFailed(Exception):
    """A check that did not show what is expected of its target."""


class CheckItem(pytest.Item):
    """One check."""

    def __init__(self, *, check: Compiled, unit: Unit, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.check = check
        self.unit = unit
        self.number: int | None = None
        self.made: Record | None = None
        for name in (check.framework, check.mode, check.device):
            self.add_marker(_mark(name))

    @property
    def identity(self) -> str:
        return identity(self.unit.card(self.check).identity, self.check.row, self.check.target)

    @property
    def reference_key(self) -> tuple[str, str]:
        return self.unit.card(self.check).identity, self.check.row

    def runtest(self) -> None:
        self.made = self.config.stash[_RUN].conclude(self)
        if self.made.line.outcome == NOT_RUN:
            pytest.skip(self.made.line.because)
        if not self.made.line.passed:
            raise CheckFailed

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, CheckFailed) and self.made:
            own = library.cases_path() not in self.path.parents
            return failure_text(self.made, self.check, self.parent.nodeid if self.parent else "", own=own)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        return self.path, None, self.name


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """After ``-k`` and ``-m``: a shard is a part of what they leave."""
    _one_file_each(items)
    run = config.stash[_RUN]
    if run.only is None and run.part is None and run.seed is None:
        return
    checks = {item.identity: item for item in items if isinstance(item, CheckItem)}
    kept = _named(checks, run.only) if run.only is not None else checks
    if run.part:
        kept, run.shard = _part(kept, *run.part)
    config.hook.pytest_deselected(items=[item for item in items if not isinstance(item, CheckItem) or item.identity not in kept])
    items[:] = kept.values()
    if run.seed is not None:
        random.Random(run.seed).shuffle(items)


def _named(checks: dict[str, CheckItem], names: list[str]) -> dict[str, CheckItem]:
    missing = [name for name in names if name not in checks]
    if missing:
        raise pytest.UsageError(
            f"--only: there is no check {missing[0]!r}{f', nor {len(missing) - 1} others' * (len(missing) > 1)}"
        )
    return {name: item for name, item in checks.items() if name in set(names)}


def _part(checks: dict[str, CheckItem], index: int, of: int) -> tuple[dict[str, CheckItem], Shard]:
    """A shard, in the order of collection: every N-th check by name, so that it depends on nothing but what was selected."""
    names = sorted(checks)
    whole = hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]
    mine = set(names[index - 1 :: of])
    return {name: item for name, item in checks.items() if name in mine}, Shard(index, of, len(names), whole)


def _one_file_each(items: list[pytest.Item]) -> None:
    files: dict[str, Path] = {}
    for item in items:
        if isinstance(item, CheckItem):
            case = item.unit.card(item.check).identity
            if files.setdefault(case, item.path) != item.path:
                raise pytest.UsageError(f"{files[case]} and {item.path} both have a case {case}; rename a file or a folder")


def pytest_collection_finish(session: pytest.Session) -> None:
    run = session.config.stash[_RUN]
    mine = [item for item in session.items if isinstance(item, CheckItem)]
    run.items = len(mine)
    if mine and not run.is_worker and not run.distributed and not session.config.getoption("collectonly"):
        run.pool = run.new_pool()
        run.require(run.pool, dict.fromkeys(item.check.framework for item in mine))
        run.submit(mine)


# --- running


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    report = yield
    if call.when == "call" and isinstance(item, CheckItem) and item.made:
        report.conformance = _packed(item.made) if item.config.stash[_RUN].is_worker else item.made
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    made = getattr(report, "conformance", None)
    run = _current.get("run")
    if made is None or run is None or run.is_worker:
        return
    made = _unpacked(made) if isinstance(made, str) else made
    run.records.append(made.line)
    if run.writer:
        try:
            run.writer.check(made.line, made.case, made.source, made.full)
        except ResultsError as error:
            run.writer = None
            pytest.exit(str(error), returncode=pytest.ExitCode.INTERRUPTED)


_current: dict[str, _Run] = {}
"""The session's run: a report says nothing of the configuration it belongs to."""


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    run = _current["run"] = session.config.stash[_RUN]
    if run.distributed and not session.config.getoption("collectonly"):
        pool = run.new_pool()  # each worker has one of its own, and it is too late to complain then
        run.require(pool, run.selection.frameworks or frameworks())
        pool.close()


def _packed(made: Record) -> str:
    return msgspec.json.encode([msgspec.structs.asdict(made.line), made.case, made.source, made.full]).decode()


def _unpacked(text: str) -> Record:
    line, case, source, full = msgspec.json.decode(text)
    return Record(CheckLine(**line), msgspec.convert(case, CaseLine), source, full, None)


# --- with pytest-xdist


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    class ByFramework(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
        """A framework's checks stay on one worker, so that each framework is imported once."""

        def _split_scope(self, nodeid: str) -> str:
            target = nodeid.rsplit("-", 1)[-1].rsplit("[", 1)[-1]
            return target.split(":", 1)[0] if "@" in target else nodeid

    return ByFramework(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: Any) -> None:
    told = getattr(node, "workeroutput", {}).get("conformance")
    run = _current.get("run")
    if told and run:
        run.environments.update({name: Environment(*environment) for name, environment in told["environments"].items()})
        run.items = told["items"]
        run.shard = msgspec.convert(told["shard"], Shard | None)


# --- the end


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    run = session.config.stash[_RUN]
    if run.pool:
        run.environments.update({name: e for name, e in run.pool.environments.items() if name != REFERENCE})
        run.pool.close()
    if run.is_worker:
        told = {name: [environment.python, environment.packages] for name, environment in run.environments.items()}
        output = {"environments": told, "items": run.items, "shard": msgspec.to_builtins(run.shard)}
        session.config.workeroutput["conformance"] = output  # type: ignore[attr-defined]  # a worker of xdist has it
    if run.records and exitstatus == pytest.ExitCode.OK and all(line.passed is None for line in run.records):
        session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED  # everything was skipped, which is no coverage
    empty = run.shard is not None and run.shard.checks > 0 and run.items == 0 and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED
    if empty:
        session.exitstatus = pytest.ExitCode.OK  # more shards than checks: this one has nothing to do, and has done it
    if run.writer and not run.records and not empty:
        run.writer.discard()
    elif run.writer:
        try:
            run.writer.shard = run.shard
            _close(run, run.writer, session.config.getoption("--report"), ended=exitstatus in (0, 1, 5))
        except ResultsError as error:
            run.closing.append(f"ERROR: {error}")
            session.exitstatus = pytest.ExitCode.INTERRUPTED


def _close(run: _Run, writer: Writer, report: str | None, *, ended: bool) -> None:
    """Close the results file and write the report. Raises ResultsError."""
    complete = ended and len(run.records) == run.items
    path = writer.close(host_environment(run.selection.device, run.environments), complete=complete)
    run.closing.append(f"results  {path}{'' if complete else f' (incomplete: {len(run.records)} of {run.items} checks)'}")
    if report:
        from conformance.render import write_report  # a run without a report needs no templates

        run.closing.append(f"report   {write_report([read(path)], Path(report))}")


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int, config: pytest.Config) -> None:
    run = config.stash[_RUN]
    if run.records:
        terminalreporter.section("conformance")
        terminalreporter.write_line(summary(run.records))
    elif not run.items and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and not config.getoption("collectonly"):
        terminalreporter.write_line("no check was selected: see `conformance list` for what there is")
    for line in run.closing:
        terminalreporter.write_line(line, red=line.startswith("ERROR"))
