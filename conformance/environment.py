"""A clean environment with one release of a framework, kept and used again."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement

from conformance.framework import frameworks
from conformance.library import cache_path

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
NEEDED = ("numpy", "packaging")
"""What a host needs beside the framework."""


class CannotInstall(Exception):
    """An environment that cannot be made; the text is for the user."""


class Pinned(NamedTuple):
    """One release of a framework, with what is to come along."""

    framework: str
    requirement: str
    companions: tuple[str, ...]

    @property
    def name(self) -> str:
        """A name for files, which no other release has, nor this one with other companions."""
        digest = hashlib.sha256("\n".join([self.requirement, *sorted(self.companions)]).encode()).hexdigest()[:12]
        return f"{self.requirement.replace('==', '-')}-{digest}"


def pinned(text: str, companions: Sequence[str] = ()) -> Pinned:
    """Read ``jax==0.9.2``. Raises CannotInstall for what is no framework's release."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        raise CannotInstall(f"{text!r} is neither a file that there is, nor a release such as jax==0.9.2") from None
    owners = [framework.name for framework in frameworks().values() if requirement.name in framework.distributions]
    if not owners:
        raise CannotInstall(f"{text!r} is neither a file that there is, nor a release of {', '.join(frameworks())}")
    specifiers = list(requirement.specifier)
    if len(specifiers) != 1 or specifiers[0].operator != "==" or "*" in specifiers[0].version:
        raise CannotInstall(f"{text!r}: name one release, such as {requirement.name}==1.2.3")
    return Pinned(owners[0], text.replace(" ", ""), tuple(companions))


def python_of(release: Pinned) -> Path:
    """The interpreter of an environment with this release, which is made where there is none. Raises CannotInstall."""
    folder = cache_path() / "environments" / release.name
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    done = folder / "complete"
    if done.exists():
        return python
    failures = []
    for interpreter in _interpreters():
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        failure = _make(folder, python, interpreter, [release.requirement, *release.companions, *NEEDED])
        if not failure:
            done.touch()
            return python
        failures.append(f"  {interpreter}: {failure}")
    shutil.rmtree(folder, ignore_errors=True)
    raise CannotInstall("\n".join([f"no Python here can install {release.requirement}:", *failures]))


def _make(folder: Path, python: Path, interpreter: str, requirements: list[str]) -> str:
    """Make the environment; why that failed, or nothing."""
    uv = _uv()
    if uv:
        commands = [
            [uv, "venv", "--quiet", "--python", interpreter, str(folder)],
            [uv, "pip", "install", "--quiet", "--python", str(python), *requirements],
        ]
    else:
        commands = [
            [interpreter, "-m", "venv", str(folder)],
            [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements],
        ]
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
            return " ".join(lines[-3:])[:400] or f"exit status {done.returncode}"
    return ""


def _interpreters() -> list[str]:
    """This Python, then any other that is found."""
    others = (shutil.which(f"python{version}") for version in PYTHONS)
    return list(dict.fromkeys([sys.executable, *(path for path in others if path)]))


def _uv() -> str | None:
    """uv where it is found, be it beside this Python only."""
    return shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
