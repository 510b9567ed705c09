"""What a check costs beyond its bare native call and its pytest item.

    python benchmarks/per_check.py [CHECKS]

Runs small NumPy matmul checks with a reference through a pool, judges and records them, and subtracts the median time
that the same calls take in a bare loop. To reach: under 0.5 ms in the median.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from conformance import library
from conformance.pool import REFERENCE, Pool
from conformance.record import record


def write_cases(folder: Path, checks: int) -> Path:
    file = folder / "bench/products.yaml"
    file.parent.mkdir()
    file.write_text(
        "title: Products\ncases:\n  - id: product\n    claim: a product is what NumPy in float64 says\n"
        f"    parametrize: {{n: {list(range(1, checks + 1))}}}\n    frameworks: [numpy]\n"
        "    inputs: {a: {shape: [3, 4]}, b: {shape: [4, 5]}}\n    program: matmul(a, b) + $n\n    expect: {value: reference}\n"
    )
    return file


def bare(checks: int) -> float:
    random = np.random.RandomState(0)
    a, b = random.standard_normal((3, 4)).astype("f"), random.standard_normal((4, 5)).astype("f")
    times = []
    for n in range(checks):
        started = time.perf_counter()
        np.matmul(a, b) + n
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def ours(checks: int) -> float:
    """Median seconds from one recorded check to the next, while the host runs ahead."""
    with tempfile.TemporaryDirectory() as name:
        unit = library.unit(write_cases(Path(name), checks))
    pool = Pool({})
    try:
        references = pool.submit(REFERENCE, [check.reference for check in unit.checks if check.reference])
        numbers = pool.submit("numpy", [check.job for check in unit.checks])
        times, last = [], None
        for check, number, reference in zip(unit.checks, numbers, references, strict=True):
            made = record(check, unit.card(check), pool.answer(number), pool.answer(reference), "2.0")
            assert made.line.passed
            now = time.perf_counter()
            times += [now - last] if last else []
            last = now
    finally:
        pool.close()
    return statistics.median(times)


def main(checks: int) -> None:
    native, whole = bare(checks), ours(checks)
    print(f"{checks} checks: {whole * 1e3:.3f} ms each in the median, bare call {native * 1e3:.3f} ms")
    print(f"beyond the call: {(whole - native) * 1e3:.3f} ms (to reach: 0.5 ms)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
