"""What compiling a program can tell of a case where nothing runs: its outcomes, as far as they show."""

from __future__ import annotations

from conformance.case import Spec

COMPILES = "compiles"
"""The outcome that stands for all those of a case that only values could tell apart."""

TOLD = frozenset(
    """
    shape dtype raises matching step entry memory
    split partial local_shape slices devices collectives
    """.split()
)
"""Parts of a spec that show without a run."""


def foretold(outcomes: dict[str, Spec], expected: list[tuple[str, str]]) -> tuple[dict[str, Spec], list[tuple[str, str]]]:
    """A check's outcomes and expectations, for a compiler.

    An outcome that shows without values keeps its name. The others become one, ``compiles``: of what they demand,
    it demands what shows and what all that are expected have in common. So a value is neither confirmed nor denied.
    """
    told = {name: spec for name, spec in outcomes.items() if all(part in TOLD for part, _ in spec.items())}
    if len(told) == len(outcomes):
        return outcomes, expected
    hidden = [dict(outcomes[name].items()) for _, name in expected if name not in told]
    common = {
        part: value for part, value in (hidden[0] if hidden else {}).items() if all(each.get(part) == value for each in hidden)
    }
    compiles = Spec(**{part: value for part, value in common.items() if part in TOLD})
    return {**told, COMPILES: compiles}, [(text, name if name in told else COMPILES) for text, name in expected]
