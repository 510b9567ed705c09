"""A clean environment with one release of a framework, kept and used again."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import Version

from conformance.framework import frameworks
from conformance.library import cache_path

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
NEEDED = ("numpy", "packaging")
"""What a host needs beside the framework."""
INSTALLED = "installed.txt"
"""Lists what an environment holds; written last, so that one that was not finished has none."""


class CannotInstall(Exception):
    """An environment that cannot be made; the text is for the user."""


class Pinned(NamedTuple):
    """One release of a framework, with what is to come along."""

    framework: str
    requirement: str
    companions: tuple[str, ...]

    @property
    def version(self) -> Version:
        return Version(self.requirement.partition("==")[2])

    @property
    def name(self) -> str:
        """A name for files, which no other release has, nor this one with other companions."""
        digest = hashlib.sha256("\n".join([self.requirement, *sorted(self.companions)]).encode()).hexdigest()[:12]
        return f"{self.requirement.replace('==', '-')}-{digest}"


def pinned(text: str, companions: Sequence[str] = ()) -> Pinned:
    """Read ``jax==0.9.2``, or ``jax==0.9.2 flax==0.12.8`` with what comes along. Raises CannotInstall for anything else."""
    first, *others = re.split(r"\s+(?=[A-Za-z])", text.strip())
    try:
        requirement = Requirement(first)
        for other in others:
            Requirement(other)
    except InvalidRequirement:
        raise CannotInstall(f"{text!r} is neither a file that there is, nor a release such as jax==0.9.2") from None
    owners = [framework.name for framework in frameworks().values() if requirement.name in framework.distributions]
    if not owners:
        raise CannotInstall(f"{text!r} is neither a file that there is, nor a release of {', '.join(frameworks())}")
    specifiers = list(requirement.specifier)
    if len(specifiers) != 1 or specifiers[0].operator != "==" or "*" in specifiers[0].version:
        raise CannotInstall(f"{text!r}: name one release, such as {requirement.name}==1.2.3")
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    return Pinned(owners[0], f"{requirement.name}{extras}=={specifiers[0].version}", (*others, *companions))


def locked(file: Path) -> Pinned:
    """Read what lock() wrote: a release, and all that was installed along with it. Raises CannotInstall."""
    try:
        return pinned(" ".join(file.read_text(encoding="utf-8").split()))
    except (OSError, UnicodeDecodeError) as error:
        raise CannotInstall(f"{file} cannot be read: {error}") from None


def lock(release: Pinned) -> str:
    """All that the environment of this release holds, a requirement a line, the release first."""
    listed = (_folder(release) / INSTALLED).read_text(encoding="utf-8").splitlines()
    others = sorted(line for line in listed if line.partition("==")[0] != release.requirement.partition("==")[0])
    return "\n".join([release.requirement, *others]) + "\n"


def python_of(release: Pinned) -> Path:
    """The interpreter of an environment with this release, which is made where there is none. Raises CannotInstall."""
    folder = _folder(release)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    done = folder / INSTALLED
    if done.exists() and python.exists():
        return python
    print(f"making an environment with {' '.join([release.requirement, *release.companions])}", file=sys.stderr, flush=True)
    failures = []
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        for interpreter in _interpreters():
            shutil.rmtree(folder, ignore_errors=True)
            failure = _make(folder, python, interpreter, [release.requirement, *release.companions, *NEEDED])
            if not failure:
                done.write_text(_listed(python), encoding="utf-8")
                return python
            failures.append(f"  {interpreter}: {failure}")
    except OSError as error:
        raise CannotInstall(f"{folder} cannot be made: {error.strerror}") from None
    shutil.rmtree(folder, ignore_errors=True)
    raise CannotInstall(
        "\n".join([f"no Python here can install {' '.join([release.requirement, *release.companions])}:", *failures])
    )


def _folder(release: Pinned) -> Path:
    return cache_path() / "environments" / release.name


def releases(package: str) -> list[Version]:
    """The releases that the registry in use lists for this Python, the oldest first. Raises CannotInstall."""
    done = _pip("index", "versions", package)
    found = re.search(r"^Available versions: (.*)$", done.stdout, re.M)
    if done.returncode or not found:
        raise CannotInstall(f"no releases of {package} are to be had: {_last_words(done)}")
    return sorted(map(Version, found[1].split(", ")))


def why_not(requirement: str) -> str:
    """Why a release is no good before it is tried: withdrawn, or without a wheel for this Python; else nothing."""
    wheel = "--only-binary=:all:"
    done = _pip("install", "--dry-run", "--no-deps", "--ignore-installed", wheel, "--quiet", "--report", "-", requirement)
    try:
        (item,) = json.loads(done.stdout)["install"]
    except (ValueError, KeyError, TypeError):
        return "has no wheel for this Python"
    return "was yanked" if item.get("is_yanked") else ""


def _pip(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pip, which knows the registry in use: this Python's own, or one that uv brings."""
    command = [sys.executable, "-m", "pip"]
    uv = _uv()
    if importlib.util.find_spec("pip") is None:
        if uv is None:
            raise CannotInstall("listing releases needs pip or uv, and neither is here")
        command = [uv, "run", "--quiet", "--no-project", "--python", sys.executable, "--with", "pip", "python", "-m", "pip"]
    return subprocess.run([*command, "--disable-pip-version-check", *arguments], capture_output=True, text=True, check=False)


def _last_words(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    return " ".join(lines[-3:])[:400] or f"exit status {done.returncode}"


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
            return _last_words(done)
    return ""


def _listed(python: Path) -> str:
    """What an environment holds, as requirements, a line each."""
    uv = _uv()
    command = [uv, "pip", "freeze", "--quiet", "--python", str(python)] if uv else [str(python), "-m", "pip", "freeze"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotInstall(f"what {python} holds cannot be listed: {_last_words(done)}")
    return done.stdout


def _interpreters() -> list[str]:
    """This Python, then any other that is found."""
    others = (shutil.which(f"python{version}") for version in PYTHONS)
    return list(dict.fromkeys([sys.executable, *(path for path in others if path)]))


def _uv() -> str | None:
    """uv where it is found, be it beside this Python only."""
    return shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
