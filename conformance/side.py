"""One side of a comparison, as the user names it -> a run: a results file, a folder of them, or a release to be run now."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from conformance import library
from conformance.environment import pinned, python_of
from conformance.results import ResultsError, Run, read


class Side(NamedTuple):
    """A run, and how to look at it again: the interpreter that it came from, where that is here."""

    run: Run
    framework: str = ""
    python: Path | None = None


def side(text: str, cases: Sequence[Path], companions: Sequence[str], *, incomplete: bool = False) -> Side:
    """Read or make the run. Raises ResultsError, or CannotInstall. ``incomplete``: take also a run that did not end."""
    path = Path(text)
    if path.exists() or path.suffix in (".jsonl", ".partial"):
        return Side(_merged(path, incomplete))
    release = pinned(text, companions)
    python = python_of(release)
    results = library.cache_path() / "runs" / f"{release.requirement.replace('==', '-')}-{release.digest}-{_digest(cases)}.jsonl"
    if not results.exists():
        run_on(release.framework, python, cases, results)
    return Side(read(results), release.framework, python)


def run_on(framework: str, python: Path, cases: Sequence[Path], results: Path, *more: str) -> None:
    """Run cases of a framework with an interpreter. Raises ResultsError where the run did not come to its end."""
    command = [sys.executable, "-m", "conformance", "run", *map(str, cases), f"--framework={framework}", f"--results={results}"]
    command += [f"--host={framework}={python}", *more, "--", "-q", "--tb=no", "-rN"]
    print(f"running {framework} by {python}", file=sys.stderr)
    done = subprocess.run(command, stdout=sys.stderr, check=False)
    if done.returncode not in (0, 1):
        raise ResultsError(f"the run of {framework} by {python} ended with status {done.returncode}")


def _merged(path: Path, incomplete: bool) -> Run:
    """One file, or all files of a folder as one run."""
    files = sorted(file for file in path.glob("*.jsonl") if not file.name.endswith(".full.jsonl")) if path.is_dir() else [path]
    if not files:
        raise ResultsError(f"there is no results file in {path}")
    runs = [read(file) for file in files]
    for run in runs:
        if not run.complete and not incomplete:
            raise ResultsError(f"{run.path} is incomplete, for its run did not end: run it again, or say --incomplete")
    first, *others = runs
    devices = {str(run.header.environment.get("device")) for run in runs}
    if len(devices) > 1:
        raise ResultsError(f"the files of {path} ran on {' and '.join(sorted(devices))}: compare one device at a time")
    for run in others:
        first.cases.update(run.cases)
        first.sources.update(run.sources)
    packages = {name: of for run in runs for name, of in run.header.environment.get("packages", {}).items()}
    header = msgspec.structs.replace(first.header, environment={**first.header.environment, "packages": packages})
    checks = [check for run in runs for check in run.checks]
    return first._replace(path=path, header=header, checks=checks, complete=all(run.complete for run in runs))


def _digest(cases: Sequence[Path]) -> str:
    """Changes with the cases, and with this package."""
    digest = hashlib.sha256(library.machine_digest().encode())
    for file in library.case_files(list(cases)):
        digest.update(str(file.resolve()).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]
