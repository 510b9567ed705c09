"""Collecting and running 10,000 checks, against plain pytest with 10,000 parametrized functions that do nothing.

    python benchmarks/ten_thousand.py [CHECKS]

Prints the ratio of the medians of three interleaved runs; markers, hosts and the results file included. The checks
return one number from a NumPy host, so that what is timed is this project and not a framework.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PER_FILE = 500


def write_cases(folder: Path, checks: int) -> None:
    for number in range(checks // PER_FILE):
        file = folder / f"cases/bench/topic{number}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(
            "title: Nothing\ncases:\n  - id: nothing\n    claim: one is one\n"
            f"    parametrize: {{i: {list(range(PER_FILE))}}}\n"
            "    native: {numpy: return 1 + 0 * $i}\n    expect: {value: 1}\n"
        )


def write_plain(folder: Path, checks: int) -> None:
    for number in range(checks // PER_FILE):
        file = folder / f"plain/test_topic{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"import pytest\n\n\n@pytest.mark.parametrize('i', range({PER_FILE}))\ndef test_nothing(i):\n    pass\n")


def seconds(command: list[str], folder: Path) -> float:
    started = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
    return time.perf_counter() - started


def main(checks: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_cases(folder, checks)
        write_plain(folder, checks)
        plain = [sys.executable, "-m", "pytest", "-q", "plain"]
        ours = [sys.executable, "-m", "conformance", "run", "cases", "--", "-q"]
        first = seconds(ours, folder)
        times = [(seconds(ours, folder), seconds(plain, folder)) for _ in range(3)]
        collect = seconds([*ours, "--collect-only"], folder), seconds([*plain, "--collect-only"], folder)
    mine, theirs = (statistics.median(column) for column in zip(*times, strict=True))
    print(f"{checks} checks: {mine:.2f} s, plain pytest {theirs:.2f} s, ratio {mine / theirs:.2f} (to reach: 1.0)")
    print(f"collecting only: {collect[0]:.2f} s, plain pytest {collect[1]:.2f} s; the first run, which compiles: {first:.2f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
