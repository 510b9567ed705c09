"""Which checks a user asks for."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from pathlib import Path

from conformance.framework import frameworks
from conformance.library import Compiled
from conformance.target import DEVICES, MODES, Selector, Target, is_topology

_TOPOLOGY = re.compile(r"tpu-v?[0-9]+[a-z]?(-[0-9]+(x[0-9]+){1,2})")


class SelectionError(ValueError):
    """An option that can mean nothing; the text is for the user."""


class Selection:
    """Frameworks, modes, targets, a device, and the interpreters to run them with. Raises SelectionError."""

    def __init__(
        self,
        *,
        framework: Iterable[str] = (),
        mode: Iterable[str] = (),
        target: Iterable[str] = (),
        device: str = "cpu",
        host: Iterable[str] = (),
    ) -> None:
        self.frameworks = [_one_of(name, frameworks(), "framework") for name in framework]
        self.modes = [_one_of(name, MODES, "mode") for name in mode]
        self.device = _device(device)
        self.targets = [_selector(text) for text in target]
        self.hosts = dict(map(_host, host))

    def require_installed(self) -> None:
        """Raise SelectionError for a framework that is asked for by name and is not there."""
        for name in self.frameworks:
            if name not in self.hosts and frameworks()[name].version() is None:
                raise SelectionError(not_installed(name))

    def admits(self, check: Compiled) -> bool:
        """Whether the check is asked for. A slow mode has to be named, by the case or here."""
        target = Target.parse(check.target)
        fitting = [selector for selector in self.targets if selector.covers(target)]
        named = check.mode in self.modes or any(selector.mode for selector in fitting)
        return (
            (not self.frameworks or check.framework in self.frameworks)
            and (not self.modes or check.mode in self.modes)
            and (not self.targets or bool(fitting))
            and (named or not check.on_request)
        )


def shard_of(text: str) -> tuple[int, int]:
    """Read ``2/5``. Raises SelectionError."""
    index, slash, of = text.partition("/")
    if not slash or not index.isdecimal() or not of.isdecimal() or not 1 <= int(index) <= int(of):
        raise SelectionError(f"--shard {text!r}: write I/N, such as 2/5 for the second of five")
    return int(index), int(of)


def names_of(path: Path) -> list[str]:
    """The names of checks in a file, one a line. Raises SelectionError."""
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise SelectionError(f"--only {path} cannot be read: {error}") from None


def not_installed(framework: str) -> str:
    """What to tell someone who lacks a framework."""
    return f"{framework} is not installed: pip install 'framework-conformance[{framework}]'"


def _device(name: str) -> str:
    if is_topology(name) and not _TOPOLOGY.fullmatch(name):
        raise SelectionError(f"unknown topology {name!r}; write tpu-GENERATION-CHIPS, such as tpu-v5e-2x4 or tpu-v5p-2x2x1")
    return name if is_topology(name) else _one_of(name, DEVICES, "device")


def _one_of(name: str, known: Iterable[str], kind: str) -> str:
    known = list(known)
    if name not in known:
        close = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
        raise SelectionError(f"unknown {kind} {name!r}; {hint}")
    return name


def _selector(text: str) -> Selector:
    try:
        selector = Selector.parse(text)
    except ValueError as error:
        raise SelectionError(f"--target {error}") from None
    if selector.framework:
        framework = frameworks()[_one_of(selector.framework, frameworks(), "framework")]
        for kind, name, known in (("modes", selector.mode, framework.modes), ("ways", selector.way, framework.ways)):
            if name and name not in known:
                raise SelectionError(
                    f"--target {text!r}: {framework.name} has the {kind} {', '.join(known) or 'of no other name'}"
                )
    if selector.versioned:
        raise SelectionError(f"--target {text!r}: the version is that of the environment; choose it with --host")
    return selector


def _host(text: str) -> tuple[str, str]:
    name, equals, spec = text.partition("=")
    if not equals or not spec:
        raise SelectionError(f"--host {text!r}: write FRAMEWORK=SPEC, such as jax=/path/to/python")
    return _one_of(name, frameworks(), "framework"), spec
