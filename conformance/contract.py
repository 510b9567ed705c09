"""What a project relies on, and which changes it tolerates: ``[tool.conformance]`` of its pyproject.toml, or a file of its own."""

from __future__ import annotations

import datetime
import fnmatch
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from conformance.compare import Change, Changed, Comparison
from conformance.results import CheckLine
from conformance.target import Selector, Target

UNCOUNTED = (Change.NEW, Change.GONE)
"""Said, but no change of behaviour."""


class ContractError(ValueError):
    """A contract that can mean nothing; the text is for the user."""


class Tolerated(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Changes that do not count, for a reason, and until a day if there is one."""

    case: str
    reason: str
    target: str = "any"
    until: datetime.date | None = None

    def covers(self, line: CheckLine) -> bool:
        return _matches(self.case, line.case) and _covers(self.target, line.target)


class Contract(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Without cases, all cases are relied on; without targets, all targets."""

    cases: list[str] = []
    targets: list[str] = []
    tolerated: list[Tolerated] = []

    def relies_on(self, line: CheckLine) -> bool:
        return (not self.cases or any(_matches(pattern, line.case) for pattern in self.cases)) and (
            not self.targets or any(_covers(selector, line.target) for selector in self.targets)
        )


class Verdict(NamedTuple):
    """The changes of a comparison, by what they mean for a project."""

    comparison: Comparison
    counting: list[Changed]
    tolerated: list[tuple[Changed, Tolerated]]
    aside: list[Changed]
    """Not relied on, or no change of behaviour."""


def read_contract(path: Path) -> Contract:
    """Read a contract: of pyproject.toml its table ``tool.conformance``. Raises ContractError."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ContractError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ContractError(f"{path} is not TOML: {error}") from None
    if path.name == "pyproject.toml":
        data = data.get("tool", {}).get("conformance", {})
    try:
        contract = msgspec.convert(data, Contract)
        for text in [*contract.targets, *(each.target for each in contract.tolerated)]:
            Selector.parse(text)
    except (msgspec.ValidationError, ValueError) as error:
        raise ContractError(f"{path}: {error}") from None
    return contract


def verdict(comparison: Comparison, contract: Contract, today: datetime.date) -> Verdict:
    """Which changes count. Raises ContractError for a pattern that matches no check of either run."""
    lines = [*comparison.before.checks, *comparison.after.checks]
    _all_match(contract, lines)
    found = Verdict(comparison, [], [], [])
    for changed in comparison.changed:
        line = changed.line
        allowed = next((t for t in contract.tolerated if t.covers(line) and (t.until is None or today <= t.until)), None)
        if changed.change in UNCOUNTED or not contract.relies_on(line):
            found.aside.append(changed)
        elif allowed:
            found.tolerated.append((changed, allowed))
        else:
            found.counting.append(changed)
    return found


def _all_match(contract: Contract, lines: list[CheckLine]) -> None:
    cases, targets = {line.case for line in lines}, {line.target for line in lines}
    patterns: Iterable[str] = [*contract.cases, *(each.case for each in contract.tolerated)]
    for pattern in patterns:
        if not any(_matches(pattern, case) for case in cases):
            raise ContractError(f"the contract's {pattern!r} matches no case of the two runs")
    for selector in [*contract.targets, *(each.target for each in contract.tolerated)]:
        if not any(_covers(selector, target) for target in targets):
            raise ContractError(f"the contract's {selector!r} matches no target of the two runs")


def _matches(pattern: str, case: str) -> bool:
    """Whether a case fits: ``area``, ``area/topic``, the whole path, or any of these with wildcards."""
    parts = case.split("/")
    return any(fnmatch.fnmatchcase("/".join(parts[:n]), pattern.rstrip("/")) for n in range(1, len(parts) + 1))


def _covers(selector: str, target: str) -> bool:
    return Selector.parse(selector).covers(Target.parse(target))
