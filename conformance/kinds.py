"""What a check comes to, for people: a handful of kinds, and how many checks are of each."""

from __future__ import annotations

import collections
import enum
from collections.abc import Iterable
from typing import NamedTuple

from conformance.ahead import COMPILES
from conformance.expand import CONFORMS, NOT_RUN, UNSUPPORTED
from conformance.judge import UNEXPECTED
from conformance.results import CheckLine


class Kind(enum.StrEnum):
    """What a check comes to, for a reader who looks at colours first. The first four may be good news, no other is."""

    CONFORMS = "conforms"
    NAMED = "named"
    COMPILES = "compiles"
    OPEN = "open"
    FAILED = "failed"
    CRASHED = "crashed"
    UNSUPPORTED = "unsupported"
    NOT_RUN = "not-run"


FAILING = (Kind.FAILED, Kind.CRASHED)

LEGEND = {
    Kind.CONFORMS: "as expected: does what the norm says",
    Kind.NAMED: "as expected: another outcome, known and named",
    Kind.COMPILES: "compiles, and nothing ran: whether its values are right is not known",
    Kind.OPEN: "named, but nothing is expected of this target",
    Kind.FAILED: "not as expected",
    Kind.CRASHED: "crashed, or did not end in time",
    Kind.UNSUPPORTED: "the framework has no such thing",
    Kind.NOT_RUN: "not run here, so nothing is known",
}


def kind(check: CheckLine) -> Kind:
    """What a check comes to. Only a check that passed, and saw just what was expected, can come to something good."""
    if check.outcome in ("crashed", "timed-out"):
        return Kind.CRASHED
    if check.outcome == NOT_RUN:
        return Kind.NOT_RUN
    if check.passed is False or check.outcome == UNEXPECTED:
        return Kind.FAILED
    if check.outcome == UNSUPPORTED:
        return Kind.UNSUPPORTED
    if check.passed is None:
        return Kind.NOT_RUN
    if check.outcome == COMPILES and check.expected in (COMPILES, None):
        return Kind.COMPILES
    if check.expected is None:
        return Kind.OPEN
    if check.outcome != check.expected:
        return Kind.FAILED
    return Kind.CONFORMS if check.outcome == CONFORMS else Kind.NAMED


class Part(NamedTuple):
    """One line of a tally."""

    css: str
    number: int
    words: str


class Tally(NamedTuple):
    """Checks, counted by what they come to."""

    conforms: int = 0
    named: int = 0
    compiles: int = 0
    open: int = 0
    failed: int = 0
    crashed: int = 0
    unsupported: int = 0
    not_run: int = 0

    @classmethod
    def of(cls, checks: Iterable[CheckLine]) -> Tally:
        counts = collections.Counter(kind(check) for check in checks)
        return cls(*(counts[each] for each in Kind))

    @classmethod
    def sum(cls, tallies: Iterable[Tally]) -> Tally:
        return cls(*map(sum, zip(cls(), *tallies, strict=True)))

    @property
    def total(self) -> int:
        return sum(self)

    @property
    def expected(self) -> int:
        return self.conforms + self.named

    @property
    def failing(self) -> int:
        return self.failed + self.crashed

    @property
    def ran(self) -> bool:
        """Whether anything was learnt at all."""
        return self.total > self.not_run

    def bar(self) -> list[Part]:
        """Shares of a bar: every kind on its own."""
        return [Part(name, number, "") for name, number in zip(Kind, self, strict=True) if number]

    def lines(self) -> list[Part]:
        """In words; what is zero is left out."""
        parts = [
            Part("conforms" if self.conforms else "named", self.expected, "as expected"),
            Part("named", self.named if self.conforms else 0, "named"),
            Part("compiles", self.compiles, "compile, and did not run"),
            Part("open", self.open, "not pinned down"),
            Part("failed" if self.failed else "crashed", self.failing, "not as expected"),
            Part("unsupported", self.unsupported, "unsupported"),
            Part("not-run", self.not_run, "not run"),
        ]
        return [part for part in parts if part.number]
