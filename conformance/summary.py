"""What a run showed, in a few lines for a terminal."""

from __future__ import annotations

import collections
import io

from rich.console import Console
from rich.table import Table

from conformance.expand import CONFORMS, NOT_RUN, UNSUPPORTED
from conformance.results import CheckLine

WORDS = ("conform", "differ as declared", "unsupported", "not run", "NOT AS EXPECTED")


def word(line: CheckLine) -> str:
    """The column of the summary that a check belongs to."""
    if line.outcome == NOT_RUN:
        return "not run"
    if not line.passed:
        return "NOT AS EXPECTED"
    if line.outcome == UNSUPPORTED:
        return "unsupported"
    return "conform" if line.outcome == CONFORMS else "differ as declared"


def summary(lines: list[CheckLine]) -> str:
    """A table of areas and targets, and why checks were not run."""
    counts: dict[tuple[str, str], collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for line in lines:
        counts[line.case.split("/")[0], line.target][word(line)] += 1
    table = Table("area", "target", *WORDS, box=None, pad_edge=False)
    for (area, target), counter in sorted(counts.items()):
        table.add_row(area, target, *(str(counter[name] or "") for name in WORDS))
    text = io.StringIO()
    Console(file=text, width=110).print(table)
    reasons = collections.Counter(line.because for line in lines if line.outcome == NOT_RUN)
    said = [f"{count} checks not run: {reason}" for reason, count in reasons.most_common()]
    return "\n".join([*(row.rstrip() for row in text.getvalue().splitlines()), *said])
