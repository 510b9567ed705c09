"""Where a case runs (a target), and patterns that pick such places (selectors)."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

MODES = ("eager", "compiled", "xla", "inductor", "aot")
AHEAD = "aot"
"""The mode in which a program is compiled for a device that is not there, and nothing runs."""
DEVICES = ("cpu", "cuda", "tpu")
TOPOLOGY = "tpu-v5e-2x4"
"""Eight chips that a program can be compiled for, as an example."""

_SELECTOR = re.compile(
    r"(?P<framework>[a-z][a-z0-9_-]*)(?:/(?P<way>[a-z]+))?(?P<versions>[<>=!~][^:@+]*)?"
    r"(?:\+(?P<companion>[a-z][a-z0-9_-]*)(?P<companion_versions>[<>=!~][^:@+]*))?(?::(?P<mode>[a-z]+))?(?:@(?P<device>[a-z0-9-]+))?"
)


class Target(NamedTuple):
    """One framework, in one mode, on one device; written ``jax:compiled@cpu``.

    Where a framework has a second way to say the same thing, that has a name: ``torch/tape:eager@cpu``.
    """

    framework: str
    mode: str
    device: str
    way: str = ""

    def __str__(self) -> str:
        return f"{self.framework}{self.way and '/'}{self.way}:{self.mode}@{self.device}"

    @classmethod
    def parse(cls, text: str) -> Target:
        """Read ``framework:mode@device``. Raises ValueError where a part is missing."""
        selector = Selector.parse(text)
        if selector.framework is None or selector.mode is None or selector.device is None or selector.versioned:
            raise ValueError(f"{text!r} is not a target; write framework:mode@device, such as 'jax:compiled@cpu'")
        return cls(selector.framework, selector.mode, selector.device, selector.way or "")


class Selector(NamedTuple):
    """A pattern over targets; None stands for any. Written ``jax>=0.5:compiled``, ``any@tpu``, ``torch/tape``, ``jax+flax<0.12``."""

    framework: str | None
    way: str | None
    versions: str
    companion: str
    """A library beside the framework, of which only some versions fit; empty where that makes no difference."""
    companion_versions: str
    mode: str | None
    device: str | None

    @classmethod
    @functools.cache
    def parse(cls, text: str) -> Selector:
        """Read a selector. Raises ValueError where it isn't one, and says what is wrong with it."""
        match = _SELECTOR.fullmatch(text.strip())
        if match is None:
            raise ValueError(
                f"{text!r} is not a target selector; write framework[/way][versions][+library versions][:mode][@device], such as 'jax>=0.5:compiled'"
            )
        framework, way, versions, companion, companion_versions, mode, device = match.groups()
        if mode is not None and mode not in MODES:
            raise ValueError(f"{text!r}: unknown mode {mode!r}; the modes are {', '.join(MODES)}")
        for said in (versions, companion_versions):
            try:
                _bounds(said or "")
            except (InvalidSpecifier, InvalidVersion):
                raise ValueError(f"{text!r}: {said!r} is not a version specifier, such as '>=0.5,<0.9'") from None
        if framework == "any":
            if versions or companion or way:
                raise ValueError(f"{text!r}: {'ways' if way else 'versions'} need a framework")
            framework = None
        return cls(framework, way, versions or "", companion or "", companion_versions or "", mode, device)

    @property
    def versioned(self) -> bool:
        """Whether versions decide on it."""
        return bool(self.versions or self.companion)

    def covers(self, target: Target) -> bool:
        """Whether the target fits, versions aside. What is compiled ahead of time is compiled; a TPU's topology is a TPU."""
        return (
            self.framework in (None, target.framework)
            and self.way in (None, target.way)
            and self.mode in (None, target.mode, "compiled" if target.mode == AHEAD else None)
            and self.device in (None, target.device, family(target.device))
        )

    def admits(self, versions: Mapping[str, Version]) -> bool:
        """Whether the versions fit, of the framework and of libraries. One that is unknown counts as the newest there could be."""
        own = _contains(self.versions, versions.get(self.framework or ""))
        return own and _contains(self.companion_versions, versions.get(self.companion))

    def parts(self) -> frozenset[str]:
        """What the selector pins down: the more, the more specific."""
        finer = [name for name, fine in (("ahead", self.mode == AHEAD), ("topology", is_topology(self.device or ""))) if fine]
        return frozenset([*(name for name, value in zip(self._fields, self, strict=True) if value), *finer])

    def overlaps(self, other: Selector) -> bool:
        """Whether some versions satisfy both."""
        apart = self.companion == other.companion and not _meet(self.companion_versions, other.companion_versions)
        return not apart and _meet(self.versions, other.versions)


def is_topology(device: str) -> bool:
    """Whether a device is the name of a topology, such as ``tpu-v5e-2x4``: chips that a compiler knows and nobody need have."""
    return "-" in device


def family(device: str) -> str:
    """``tpu`` of ``tpu-v5e-2x4``."""
    return device.partition("-")[0]


_NEWEST = Version("99999")


@functools.cache
def _specifiers(versions: str) -> SpecifierSet:
    return SpecifierSet(versions)


def _contains(versions: str, version: Version | None) -> bool:
    return not versions or _specifiers(versions).contains(version or _NEWEST, prereleases=True)


def _meet(one: str, other: str) -> bool:
    """Whether some version satisfies both; decided at and just above every bound that either names."""
    candidates = [_NEWEST, Version("0"), *_bounds(one), *_bounds(other)]
    return any(_contains(one, version) and _contains(other, version) for version in candidates)


def _bounds(versions: str) -> list[Version]:
    """Each version that is named, its release, the next one, and the first one past those that start with it."""
    found = []
    for specifier in _specifiers(versions):
        bound = Version(specifier.version.removesuffix(".*"))
        *start, last = bound.release
        releases = [bound.release, [*bound.release, 0, 0, 1], [*start, last + 1]]
        found += [bound, *(_release(bound.epoch, numbers) for numbers in releases)]
    return found


def _release(epoch: int, numbers: Sequence[int]) -> Version:
    return Version(f"{epoch}!{'.'.join(map(str, numbers))}")


def most_specific(selectors: list[Selector]) -> list[Selector]:
    """Those that no other one of them refines; more than one is a tie."""
    return [s for s in selectors if not any(s.parts() < other.parts() for other in selectors)]
