"""What a run showed, in a few lines for a terminal."""

from __future__ import annotations

import collections
import io

from rich.console import Console
from rich.table import Table

from conformance.expand import NOT_RUN
from conformance.kinds import Kind, Tally, kind
from conformance.results import CheckLine

COLUMNS = ("conform", "differ as declared", "unsupported", "not run", "NOT AS EXPECTED")


def summary(lines: list[CheckLine]) -> str:
    """A table of areas and targets, and why checks were not run."""
    groups: dict[tuple[str, str], list[CheckLine]] = collections.defaultdict(list)
    for line in lines:
        groups[line.case.split("/")[0], line.target].append(line)
    ahead = any(kind(line) == Kind.COMPILES for line in lines)
    columns = ("conform", "compile", *COLUMNS[1:]) if ahead else COLUMNS
    table = Table("area", "target", *columns, box=None, pad_edge=False)
    for (area, target), group in sorted(groups.items()):
        tally = Tally.of(group)
        compiles = (tally.compiles,) if ahead else ()
        counts = (tally.conforms, *compiles, tally.named + tally.open, tally.unsupported, tally.not_run, tally.failing)
        table.add_row(area, target, *(str(count or "") for count in counts))
    text = io.StringIO()
    Console(file=text, width=110).print(table)
    reasons = collections.Counter(line.because for line in lines if line.outcome == NOT_RUN)
    said = [f"{count} checks not run: {reason}" for reason, count in reasons.most_common()]
    said += ["nothing ran: programs were compiled ahead of time, and no value was looked at"] if ahead else []
    return "\n".join([*(row.rstrip() for row in text.getvalue().splitlines()), *said])
