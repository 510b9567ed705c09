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

from conformance import library
from conformance.environment import Pinned, pinned, python_of
from conformance.framework import frameworks
from conformance.merge import merged
from conformance.pool import module_source
from conformance.results import Key, Outline, ResultsError, outline, results_files

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


def side(text: str, cases: Sequence[Path], companions: Sequence[str], *, incomplete: bool = False, fresh: bool = False) -> Side:
    """Read or make the run. Raises ResultsError, or CannotInstall.

    ``incomplete``: take also a run that did not end. ``fresh``: run a release though a run of it is kept.
    """
    path = Path(text)
    if path.exists() or path.suffix in (".jsonl", ".partial"):
        return Side(_from_files(path, incomplete))
    release = pinned(text, companions)
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
    topics = {key.case.rpartition("/")[0] for key in keys}
    files = [file for file in library.case_files(list(cases)) if f"{file.resolve().parent.name}/{file.stem}" in topics]
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "again.jsonl"
        _run_checks(side.framework, side.python, files, [key.identity for key in keys], results)
        return outline(results)


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


def _from_files(path: Path, incomplete: bool) -> Outline:
    """One file, or all files of a folder as one run."""
    files = results_files(path)
    if not files:
        raise ResultsError(f"there is no results file in {path}")
    runs = [outline(file) for file in files]
    for run in runs:
        if not run.complete and not incomplete:
            raise ResultsError(f"{run.path} is incomplete, for its run did not end: run it again, or say --incomplete")
    if len(runs) > 1:
        return merged(runs, path)
    (run,) = runs
    if (shard := run.header.shard) and shard.of > 1 and not incomplete:
        raise ResultsError(f"{run.path} is shard {shard.index} of {shard.of}: merge them first, or say --incomplete")
    return run._replace(complete=run.complete and (shard is None or shard.of == 1))


def _digest(framework: str, cases: Sequence[Path]) -> str:
    """Changes with the cases, and with what of this package has a part in running them."""
    digest = hashlib.sha256(library.machine_digest().encode())
    digest.update(module_source(frameworks()[framework].runtime).encode())
    for file in library.case_files(list(cases)):
        digest.update(str(file.resolve()).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]
