"""The masks and matmul programs of one framework, against a hand-written pytest file of the same native calls.

    python benchmarks/by_hand.py [FRAMEWORK]

The file is generated: for each check, the same native source, inputs and mode, and numpy.testing.assert_allclose against
the same expected value. To reach: at most 1.15 of its time.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from conformance import library
from conformance.framework import frameworks
from conformance.repro import script
from conformance.results import read

SKIP = ("raises", "values", "traces")


def write_by_hand(path: Path, results: Path, framework: str) -> int:
    """One test per check that has a single plain value; its expected value is the one that the run compared with."""
    expected = {check.identity: check.expectation for check in read(results).checks}
    lines = [frameworks()[framework].imports, "import pytest", ""]
    count = 0
    for file in library.case_files([library.cases_path() / "matmul", library.cases_path() / "masks"]):
        unit = library.unit(file)
        for check in unit.checks:
            card = unit.card(check)
            name = f"{card.identity}[{'-'.join(filter(None, [check.row, check.target]))}]"
            spec = expected.get(name, {})
            value = spec.get("value")
            plain = value.get("reference") if isinstance(value, dict) else value
            plain = plain.get("value") if isinstance(plain, dict) else plain
            if (
                check.framework != framework
                or plain is None
                or "dict" in repr(plain)
                or set(SKIP) & spec.keys()
                or check.job.absent
            ):
                continue
            body = script(check, card, None).split("\n\n", 1)[1].strip().splitlines()
            body[-1] = f"result = {body[-1].removeprefix('print(')[:-1]}"
            body = [line for line in body if not line.startswith("import ")]
            lines.append(f"def test_{count}():")
            lines += [f"    {line}" for line in body]
            lines += [f"    compare(result, {plain!r})", ""]
            count += 1
    lines.insert(2, _COMPARE)
    path.write_text("\n".join(lines))
    return count


_COMPARE = """
nan, inf = float("nan"), float("inf")


def compare(seen, expected):
    if isinstance(seen, (tuple, list)):
        for one, other in zip(seen, expected):
            compare(one, other)
        return
    seen = seen.detach() if hasattr(seen, "detach") else seen
    wide = seen.float() if hasattr(seen, "float") else tf.cast(seen, "float32") if "tf" in globals() else seen
    seen = np.asarray(wide if "bfloat16" in str(getattr(seen, "dtype", "")) else seen)
    expected = np.asarray(expected)
    expected = expected.astype(complex if "j" in str(expected) else float) if expected.dtype.kind in "US" else expected
    np.testing.assert_allclose(seen.astype(expected.dtype), expected, rtol=2e-2, atol=1e-5)

"""


def seconds(command: list[str], folder: Path) -> float:
    started = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stdout[-2000:] + done.stderr)
    print(done.stdout.strip().splitlines()[-1])
    return time.perf_counter() - started


def main(framework: str) -> None:
    paths = [str(library.cases_path() / area) for area in ("matmul", "masks")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours = [
            sys.executable,
            "-m",
            "conformance",
            "run",
            *paths,
            f"--framework={framework}",
            f"--results={folder}/r.jsonl",
            "--",
            "-q",
        ]
        seconds(ours, folder)
        count = write_by_hand(folder / "test_by_hand.py", folder / "r.jsonl", framework)
        total = len(read(folder / "r.jsonl").checks)
        theirs = [sys.executable, "-m", "pytest", "-q", "test_by_hand.py"]
        pairs = [(seconds(ours, folder), seconds(theirs, folder)) for _ in range(3)]
    mine, hand = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(
        f"{framework}: {total} checks in {mine:.2f} s; {count} of them by hand in {hand:.2f} s, ratio {mine / hand:.2f} (to reach: 1.15)"
    )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "torch")
