"""What a project relies on, and which changes it tolerates: ``[tool.conformance]`` of its pyproject.toml, or a file of its own."""

from __future__ import annotations

import datetime
import fnmatch
import tomllib
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from conformance.compare import Change, Changed, Comparison
from conformance.target import Selector, Target

UNCOUNTED = (Change.SEEN, Change.NEW, Change.GONE)
"""Said, but no change of behaviour."""


class ContractError(ValueError):
    """A contract that can mean nothing; the text is for the user."""


class Tolerated(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Changes that do not count, for a reason, and until a day if there is one."""

    case: str
    reason: Annotated[str, Meta(min_length=1)]
    target: str = "any"
    until: datetime.date | None = None

    def covers(self, case: str, target: str) -> bool:
        return _matches(self.case, case) and _covers(self.target, target)


class Contract(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Without cases, all cases are relied on; without targets, all targets."""

    cases: list[str] = []
    targets: list[str] = []
    tolerated: list[Tolerated] = []

    def relies_on(self, case: str, target: str) -> bool:
        return (not self.cases or any(_matches(pattern, case) for pattern in self.cases)) and (
            not self.targets or any(_covers(selector, target) for selector in self.targets)
        )


class _Tools(msgspec.Struct, frozen=True):
    conformance: Contract | None = None


class _Project(msgspec.Struct, frozen=True):
    tool: _Tools = _Tools()


class Verdict(NamedTuple):
    """The changes of a comparison, by what they mean for a project."""

    comparison: Comparison
    counting: list[Changed]
    tolerated: list[tuple[Changed, Tolerated]]
    aside: list[Changed]
    """Not relied on, or no change of behaviour."""
    expired: dict[str, Tolerated]
    """Of the changes that count, by identity: what tolerated them until its day came."""
    unsteady: list[Changed]
    """Not to be seen when it was looked for again."""

    def without(self, names: Collection[str]) -> Verdict:
        """The verdict where the changes of these checks did not hold."""
        return self._replace(
            counting=[found for found in self.counting if found.line.identity not in names],
            unsteady=[found for found in self.counting if found.line.identity in names],
        )


def read_contract(path: Path) -> Contract:
    """Read a contract: of pyproject.toml its table ``tool.conformance``. Raises ContractError."""
    contract = _contract(path)
    if contract is None:
        raise ContractError(f"{path} has no table [tool.conformance]")
    return contract


def own_contract(path: Path = Path("pyproject.toml")) -> Contract:
    """The contract of the project in this folder, if it has one. Raises ContractError."""
    return (_contract(path) if path.exists() else None) or Contract()


def _contract(path: Path) -> Contract | None:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ContractError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ContractError(f"{path} is not TOML: {error}") from None
    try:
        in_project = path.name == "pyproject.toml"
        contract = msgspec.convert(data, _Project).tool.conformance if in_project else msgspec.convert(data, Contract)
        targets = [*contract.targets, *(each.target for each in contract.tolerated)] if contract else []
        versioned = [text for text in targets if Selector.parse(text).versioned]
    except ValueError as error:  # of msgspec, or of the selector
        raise ContractError(f"{path}: {error}") from None
    if versioned:
        raise ContractError(f"{path}: {versioned[0]!r}: the versions are those of the two runs; leave them out")
    return contract


def verdict(comparison: Comparison, contract: Contract, today: datetime.date) -> Verdict:
    """Which changes count. Raises ContractError for a pattern that matches no check of either run."""
    _all_match(contract, comparison)
    found = Verdict(comparison, [], [], [], {}, [])
    for changed in comparison.changed:
        case, target = changed.line.case, changed.line.target
        covering = [each for each in contract.tolerated if each.covers(case, target)]
        allowed = next((each for each in covering if each.until is None or today <= each.until), None)
        if changed.change in UNCOUNTED or not contract.relies_on(case, target):
            found.aside.append(changed)
        elif allowed:
            found.tolerated.append((changed, allowed))
        else:
            found.counting.append(changed)
            if covering:
                found.expired[changed.line.identity] = covering[0]
    return found


def _all_match(contract: Contract, comparison: Comparison) -> None:
    if not (contract.cases or contract.targets or contract.tolerated):
        return
    entries = [*comparison.before.entries, *comparison.after.entries]
    pairs = {(entry.key.case, entry.key.target) for entry in entries}
    _each_matches(contract.cases, {case for case, _ in pairs}, _matches, "case")
    _each_matches(contract.targets, {target for _, target in pairs}, _covers, "target")
    _each_matches((each.case for each in contract.tolerated), {case for case, _ in pairs}, _matches, "case")
    for each in contract.tolerated:
        if not any(each.covers(case, target) for case, target in pairs):
            raise ContractError(f"the contract tolerates {each.case!r} on {each.target!r}, and neither run has that")
    relied = sum(contract.relies_on(key.case, key.target) for key in comparison.compared)
    if not relied:
        raise ContractError("the contract relies on checks that could not be compared, every one")


def _each_matches(patterns: Iterable[str], names: set[str], fits: Callable[[str, str], bool], kind: str) -> None:
    for pattern in patterns:
        if not any(fits(pattern, name) for name in names):
            raise ContractError(f"the contract's {pattern!r} matches no {kind} of the two runs")


def _matches(pattern: str, case: str) -> bool:
    """Whether a case fits: ``area``, ``area/topic``, the whole path, or any of these with wildcards."""
    parts = case.split("/")
    return any(fnmatch.fnmatchcase("/".join(parts[:n]), pattern.rstrip("/")) for n in range(1, len(parts) + 1))


def _covers(selector: str, target: str) -> bool:
    try:
        return Selector.parse(selector).covers(Target.parse(target))
    except ValueError:  # a results file may name a target of which this version knows nothing
        return False
