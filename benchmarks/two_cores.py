"""The whole suite on two cores, against one core; imports included.

    python benchmarks/two_cores.py [PATH...]

Uses taskset (util-linux). To reach: at most 0.6.
"""

import subprocess
import sys
import tempfile
import time


def seconds(cores: str, paths: list[str]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "conformance", "run", *paths, f"--results={folder}/r.jsonl", "--", "-q"]
        started = time.perf_counter()
        done = subprocess.run(["taskset", "-c", cores, *command], capture_output=True, text=True)
        took = time.perf_counter() - started
    if done.returncode not in (0, 1):
        raise SystemExit(done.stdout[-2000:] + done.stderr)
    return took


def main(paths: list[str]) -> None:
    seconds("0,1", paths)  # so that both find the same warm caches
    two, one = seconds("0,1", paths), seconds("0", paths)
    print(f"two cores {two:.1f} s, one core {one:.1f} s, ratio {two / one:.2f} (to reach: 0.6)")


if __name__ == "__main__":
    main(sys.argv[1:])
