"""What is known of a framework without importing it: its dialect, its modes, and where its runtime is."""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Mapping
from importlib import metadata
from typing import Any, NamedTuple

from packaging.version import InvalidVersion, Version

from conformance.target import AHEAD

GROUP = "conformance.frameworks"
BUILTIN = ("numpy", "torch", "jax", "tensorflow")
COMPANIONS = (
    *("numpy", "ml_dtypes", "jaxlib", "libtpu", "flax", "optax", "keras"),
    *("datasets", "orbax-checkpoint", "safetensors", "tensorflow-datasets", "tensorflow-text"),
)
"""Distributions whose versions are recorded beside the framework's own, so that an expectation can depend on them."""


class Counting(NamedTuple):
    """How a script counts what a tracing function does."""

    before: str
    """Statements that come before FUNCTION is wrapped."""
    function: str
    """What is wrapped in its place."""
    swap: tuple[str, str]
    """A part of the wrapping expression, and what it becomes."""
    read: str
    """An expression that reads the counts."""


class Meshes(NamedTuple):
    """How programs on several devices are written down."""

    modes: tuple[str, ...]
    """The modes in which they run."""
    imports: str
    """What their source imports besides."""
    before: str
    """Statements of a script before it imports the framework, and after."""
    after: str
    mesh: str
    """Statement that makes ``mesh`` of SIZES, NAMES and the ORDER of devices."""
    place: str
    """Expression that places ARRAY; SPLIT is the axes of each dimension, PARTIAL those of a sum."""
    shown: str
    """Expression that tells what each device holds of RESULT."""
    communication: str = ""
    """Statements that show the collectives of CALL; empty where the runtime does not observe them."""


class Framework(NamedTuple):
    """A dialect (how the vocabulary is said) and the name of the runtime that a host loads.

    ``rows`` maps a function of the vocabulary to a native expression over that function's parameters;
    a parameter that a call leaves out drops out of the expression. Functions in ``same`` are called by
    the same name, and with the same parameter names, in ``module``.
    """

    name: str
    distributions: tuple[str, ...]
    """Distributions that provide it, the first one to be advised."""
    runtime: str
    """Import name of the runtime module. Outside a host it is found and read; only packages around it are imported."""
    module: str
    """What ``same`` functions and dtypes are attributes of."""
    imports: str
    same: frozenset[str]
    rows: dict[str, str]
    names: dict[str, str]
    """dtypes and constants that are not attributes of ``module``."""
    preludes: dict[str, str]
    """Functions that rows call and the framework lacks: name -> source."""
    modes: dict[str, str]
    """mode -> expression that wraps FUNCTION with OPTIONS; the first is the untraced mode."""
    array: str
    """Expression that copies the NumPy array ARRAY, and one that gives it a DTYPE that NumPy lacks."""
    cast: str
    counting: Counting | None = None
    derivation: str = ""
    """Statements that show how FUNCTION is differentiated at ARGUMENTS; empty where the runtime has no derive()."""
    meshes: Meshes | None = None
    """None where the runtime has no devices(), mesh(), place(), layout() and collectives()."""
    options: dict[str, str] = {}
    """Options of a tracing function whose VALUE a case file cannot write down natively."""
    wide: str = ""
    """Statement that turns on 64-bit types, where they are off."""
    lacks: dict[str, str] = {}
    """dtypes and transforms that the framework has not, each with an expression that fails while that is so."""
    ways: dict[str, dict[str, str]] = {}
    """Second ways to say the same thing: name -> rows that take the place of others."""
    devices: tuple[str, ...] = ("cpu",)

    @property
    def running_modes(self) -> list[str]:
        """Its modes but the one in which nothing runs."""
        return [mode for mode in self.modes if mode != AHEAD]

    @property
    def traced_modes(self) -> list[str]:
        return [mode for mode in self.running_modes if self.modes[mode]]

    def by_way(self, way: str) -> Framework:
        """The framework as it speaks in one of its ways; the first one has no name."""
        return self._replace(rows=self.rows | self.ways[way]) if way else self

    def version(self) -> str | None:
        """The version installed beside this package, or None. Nothing is imported."""
        return installed(*self.distributions)

    def versions(self, packages: Mapping[str, str | None]) -> dict[str, Version]:
        """Which versions there are, of the framework and its companions, among those of all distributions."""
        own = next((packages[name] for name in self.distributions if packages.get(name)), None)
        found = {name: packages.get(name) for name in COMPANIONS} | {self.name: own}
        return {name: version for name, text in found.items() if text and (version := _version(text))}


def installed(*distributions: str) -> str | None:
    """The version of the first of these distributions that is installed here, or None."""
    for distribution in distributions:
        try:
            return metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
    return None


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


@functools.cache
def frameworks() -> dict[str, Framework]:
    """All frameworks by name: the built-in ones, then those found by entry point."""
    found: dict[str, Any] = {name: importlib.import_module(f"conformance.dialects.{name}").FRAMEWORK for name in BUILTIN}
    for entry in metadata.entry_points(group=GROUP):
        try:
            found.setdefault(entry.name, entry.load())
        except Exception as error:  # whatever is wrong with it is theirs, and must not keep the others from running
            warnings.warn(f"the framework {entry.name!r} ({entry.value}) cannot be loaded: {error}", stacklevel=2)
    return found
