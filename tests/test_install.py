"""The package as users get it: a wheel that carries its cases, and imports that stay cheap."""

import os
import subprocess
import sys
from pathlib import Path

from conformance.library import cases_path

ROOT = Path(__file__).parent.parent


def test_a_checkout_finds_the_cases_beside_the_package():
    assert cases_path() == ROOT / "cases"


def test_a_wheel_in_an_empty_environment_runs_its_own_cases(tmp_path):
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, ROOT], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    bin_ = tmp_path / "venv/bin"
    subprocess.run([bin_ / "python", "-m", "pip", "install", "-q", wheel], check=True)
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(
        [bin_ / "conformance", "run", "-k", "mask-to-lengths"], cwd=tmp_path, env=clean, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
    assert "failed" not in done.stdout
    for framework in ("torch", "jax", "tensorflow"):
        assert f"{framework} is not installed: pip install 'framework-conformance[{framework}]'" in done.stdout


def test_collecting_imports_no_framework(tmp_path):
    watch = "import sys; from conformance.cli import main; status = main(['list']); "
    watch += "sys.exit(status or ', '.join({'torch', 'jax', 'tensorflow'} & sys.modules.keys()) or None)"
    for cache in ("cold", "warm"):
        done = subprocess.run(
            [sys.executable, "-c", watch], env={**os.environ, "CONFORMANCE_CACHE": str(tmp_path)}, capture_output=True, text=True
        )
        assert done.returncode == 0, (cache, done.stderr)
        assert "matmul/broadcasting/rank-rules[" in done.stdout


def test_importing_the_package_imports_nothing_else():
    watch = "import sys; before = set(sys.modules); import conformance; print(sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", watch], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['conformance']"
