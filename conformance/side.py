"""One side of a comparison, as the user names it -> a run: a results file, a folder of them, or a release to be run now."""

from __future__ import annotations

import contextlib
import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from packaging.version import Version

from conformance import library
from conformance.environment import Pinned, pinned, python_of
from conformance.framework import frameworks
from conformance.merge import merged
from conformance.pool import module_source
from conformance.results import Key, Outline, ResultsError, outline, results_files
from conformance.wording import count

WORKED = (0, 1, 5)
"""Exit statuses of a run that came to its end, be it that nothing could run."""
REFUSED = 4
"""That of a run whose framework did not start, so that nothing ran."""


class NotStarted(ResultsError):
    """A framework that does not start; the text says why."""


class Side(NamedTuple):
    """A run, and how to look at it again: the interpreter that it came from, where that is here."""

    run: Outline
    framework: str = ""
    python: Path | None = None


def side(
    text: str,
    cases: Sequence[Path],
    companions: Sequence[str],
    *,
    incomplete: bool = False,
    fresh: bool = False,
    beside: Outline | None = None,
) -> Side:
    """Read or make the run. Raises ResultsError, or CannotInstall.

    ``incomplete``: take also a run that did not end. ``fresh``: run a release though a run of it is kept. ``beside``: what it
    is to be compared with, which tells one of several releases in a folder from the others.
    """
    if is_file(text):
        return Side(_from_files(Path(text), incomplete, beside))
    return release_side(pinned(text, companions), cases, fresh=fresh)


def is_file(text: str) -> bool:
    """Whether a user means a file or a folder, and no release."""
    path = Path(text)
    return path.exists() or path.suffix in (".jsonl", ".partial")


def release_side(release: Pinned, cases: Sequence[Path], *, fresh: bool = False) -> Side:
    """Run cases on a release, or take the run that is kept. Raises ResultsError, or CannotInstall."""
    python = python_of(release)
    results = library.cache_path() / "runs" / f"{release.name}-{_digest(release.framework, cases)}.jsonl"
    if fresh or not results.exists():
        with _starting(release):
            run_on(release.framework, python, cases, results)
    return Side(outline(results), release.framework, python)


def release_run(release: Pinned, files: Sequence[Path], checks: Sequence[str]) -> Outline:
    """Run some checks, by name, on a release; or take what that came to before. Raises ResultsError, or CannotInstall."""
    python = python_of(release)
    asked = hashlib.sha256("\n".join([_digest(release.framework, files), *checks]).encode()).hexdigest()[:12]
    results = library.cache_path() / "runs" / f"{release.name}-{asked}.jsonl"
    if not results.exists():
        with _starting(release):
            _run_checks(release.framework, python, files, checks, results)
    return outline(results)


def run_again(side: Side, cases: Sequence[Path], keys: Sequence[Key]) -> Outline:
    """Run these checks again, in a fresh process; a side that is a file is what it is. Raises ResultsError."""
    if side.python is None:
        return side.run
    topics = {library.topic_of(key.case) for key in keys}
    files = [file for file in library.case_files(list(cases)) if library.topic(file) in topics]
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "again.jsonl"
        _run_checks(side.framework, side.python, files, [key.identity for key in keys], results)
        return outline(results)


def again_where_it_failed(side: Side, cases: Sequence[Path]) -> Outline:
    """The run of a release with another try at what crashed or did not end: a busy machine may have been why.

    Raises ResultsError.
    """
    failed = [entry.key for entry in side.run.entries if side.run.check(entry).outcome in ("crashed", "timed-out")]
    if not failed:
        return side.run
    print(f"running {count(len(failed), 'check')} again that crashed or did not end", file=sys.stderr, flush=True)
    again = {entry.key.identity: entry for entry in run_again(side, cases, failed).entries}
    return side.run._replace(entries=[again.get(entry.key.identity, entry) for entry in side.run.entries])


def _run_checks(framework: str, python: Path, files: Sequence[Path], checks: Sequence[str], results: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        names = Path(folder) / "checks"
        names.write_text("\n".join(checks), encoding="utf-8")
        run_on(framework, python, files, results, f"--only={names}")


def run_on(framework: str, python: Path, cases: Sequence[Path], results: Path, *more: str) -> None:
    """Run cases of a framework with an interpreter. Raises ResultsError where the run did not come to its end, or NotStarted."""
    command = [sys.executable, "-m", "conformance", "run", *map(str, cases), f"--framework={framework}", f"--results={results}"]
    command += [f"--host={framework}={python}", *more, "--", "-q", "--tb=no", "-rN"]
    print(f"running {framework} by {python}", file=sys.stderr, flush=True)
    done = subprocess.run(command, stdout=sys.stderr, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode == REFUSED:
        said = done.stderr.strip()
        raise NotStarted(said.partition("nothing was run:\n")[2] or said)
    sys.stderr.write(done.stderr)
    if done.returncode not in WORKED:
        raise ResultsError(f"the run of {framework} by {python} ended with status {done.returncode}")
    if not results.exists():
        raise ResultsError(f"there is no case for {framework} in {', '.join(map(str, cases))}")


@contextlib.contextmanager
def _starting(release: Pinned) -> Iterator[None]:
    """Says of which release it is that it does not start: nothing is known of its behaviour."""
    try:
        yield
    except NotStarted as failed:
        why = f"{release.requirement} cannot be run here: {failed}"
        raise ResultsError(f"{why}; say --with, where it needs something older beside it") from None


def _from_files(path: Path, incomplete: bool, beside: Outline | None) -> Outline:
    """One file, or those of a folder as one run."""
    files = results_files(path)
    if not files:
        raise ResultsError(f"there is no results file in {path}")
    runs = _one_release_each([outline(file) for file in files], beside)
    for run in runs:
        if not run.complete and not incomplete:
            raise ResultsError(f"{run.path} is incomplete, for its run did not end: run it again, or say --incomplete")
    if len(runs) > 1:
        return merged(runs, path)
    (run,) = runs
    if (shard := run.header.shard) and shard.of > 1 and not incomplete:
        raise ResultsError(f"{run.path} is shard {shard.index} of {shard.of}: merge them first, or say --incomplete")
    return run._replace(complete=run.complete and (shard is None or shard.of == 1))


def _one_release_each(runs: list[Outline], beside: Outline | None) -> list[Outline]:
    """Of baselines, which are called by their releases, one a framework: the release that is beside, or else the newest."""
    if any(run.path.stem not in [baseline_name(*each) for each in ran(run).items()] for run in runs):
        return runs
    wanted = ran(beside) if beside else {}
    best: dict[str, Version] = {}
    for run in runs:
        for name, version in ran(run).items():
            best[name] = max(version, best.get(name, version), key=lambda each: (each == wanted.get(name), each))
    return [run for run in runs if all(best[name] == version for name, version in ran(run).items())]


def baseline_name(framework: str, version: Version) -> str:
    """The name of the file that keeps the run of a release."""
    return f"{framework}-{version.public}"


def ran(run: Outline) -> dict[str, Version]:
    """Which release of each framework was run, as far as the file says it."""
    versions = {name: frameworks()[name].versions(of) for name, of in run.header.packages.items() if name in frameworks()}
    return {name: found[name] for name, found in versions.items() if name in found}


def _digest(framework: str, cases: Sequence[Path]) -> str:
    """Changes with the cases, and with what of this package has a part in running them."""
    digest = hashlib.sha256(library.machine_digest().encode())
    digest.update(module_source(frameworks()[framework].runtime).encode())
    for file in library.case_files(list(cases)):
        digest.update(str(file.resolve()).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]
