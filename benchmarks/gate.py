"""Comparing two files of 100,000 checks, against parsing both with msgspec.json.

    python benchmarks/gate.py [CHECKS]

Prints the ratio of the medians of three interleaved runs in fresh processes, and the peak memory (on Linux). The second file differs from
the first in the versions, in the rounding of one check in ten, and in the behaviour of one in a thousand. Start and imports are not
part of either time. A second line is of two files in which every observation differs by rounding.
"""

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from conformance.results import CaseLine, CheckLine, Writer

PER_CASE = 200
PARSE = """
import sys, time, msgspec
started = time.perf_counter()
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        rows = [msgspec.json.decode(row) for row in file.read().splitlines()]
print(time.perf_counter() - started)
"""
GATE = r"""
import datetime, re, sys, time
from conformance import announce
from conformance.compare import compare
from conformance.contract import Contract, verdict
from conformance.findings import findings
from conformance.side import side
started = time.perf_counter()
sides = [side(path, [], []) for path in sys.argv[1:]]
found = verdict(compare(*(side.run for side in sides)), Contract(), datetime.date.today())
text = announce.terminal(findings(found, sides, sys.argv[1:], []))
assert len(found.counting) == {changed}, len(found.counting)
took = time.perf_counter() - started
print(took, re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1])
"""


def write(path: Path, checks: int, version: str, *, changed: int = 0, rounded: int = 0) -> Path:
    """A file with as many checks; one in ``changed`` and one in ``rounded`` are not as in others."""
    writer = Writer(path)
    for number in range(checks):
        case = f"area/topic/case-{number // PER_CASE}"
        value = 1.5 + (1e-7 if rounded and number % rounded == 0 else 0.0) + (1.0 if changed and number % changed == 0 else 0.0)
        array = {"dtype": "float32", "shape": [4, 3], "value": [[value, 0.25, -1.0625]] * 4}
        observation = {"results": [array], "traces": [1], "compiles": [1]}
        expectation = {"value": {"reference": array}, "shape": [4, 3], "dtype": "float32"}
        parameters = {"dtype": "float32", "shape": "{a: [4, 3]}"}
        line = CheckLine(
            case, f"row-{number % PER_CASE}", parameters, "jax:compiled@cpu", "conforms", "conforms", True, observation,
            expectation, "", {}, "0123456789abcdef", "f",
        )  # fmt: skip
        writer.check(line, CaseLine(case, "A topic", "a claim that is not short", "", [], "return x", "d"), "return x", {})
    environment = {"platform": "p", "device": "cpu", "python": {"jax": "3"}, "packages": {"jax": {"jax": version}}}
    return writer.close(environment, complete=True)


def run(code: str, before: Path, after: Path) -> list[float]:
    done = subprocess.run([sys.executable, "-c", code, before, after], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return [float(word) for word in done.stdout.split()]


def main(checks: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        before = write(folder / "before.jsonl", checks, "1")
        pairs = {
            "as an upgrade is": write(folder / "after.jsonl", checks, "2", changed=1000, rounded=10),
            "all rounded otherwise": write(folder / "rounded.jsonl", checks, "2", rounded=1),
        }
        size = before.stat().st_size / 1e6
        for what, after in pairs.items():
            gate = GATE.replace("{changed}", str(-(-checks // 1000) if "upgrade" in what else 0))
            rows = [(run(PARSE, before, after)[0], *run(gate, before, after)) for _ in range(3)]
            parse, ours, memory = (statistics.median(column) for column in zip(*rows, strict=True))
            print(
                f"{checks:,} checks ({size:.0f} MB a file), {what}: gate {ours:.2f} s, parsing {parse:.2f} s, "
                f"ratio {ours / parse:.2f} (to reach: 1.5); {memory / 1024:.0f} MB (to reach: 500)"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
