"""A host's answer -> the record of a check: its outcome, whether that was expected, and the evidence."""

from __future__ import annotations

import hashlib
import math
import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np

from conformance.case import Spec
from conformance.expand import NOT_RUN, UNSUPPORTED, expected_outcome
from conformance.framework import frameworks
from conformance.judge import UNEXPECTED, Abstract, Array, Observation, Tree, decode, judge, seen_text, spec_text
from conformance.library import CaseCard, Compiled
from conformance.pool import Answer
from conformance.results import CaseLine, CheckLine, case_line, source_digest
from conformance.wording import safe

MANY = 64
"""Arrays with more elements than this are kept as a digest and their first values; all of them go to the sidecar."""
LONG = 2000
"""Characters beyond which a text goes to the sidecar."""
EVIDENCE = 6000
"""The same for a text that is kept for readers alone."""


class Record(NamedTuple):
    """A check's line, and what the results file keeps beside it."""

    line: CheckLine
    case: CaseLine
    source: str
    full: dict[str, Any]
    seen: Observation | None
    """What was seen, where anything was."""


def record(check: Compiled, card: CaseCard, answer: Answer, reference: Answer | None, packages: Mapping[str, str]) -> Record:
    """Judge an answer. ``reference`` is the answer of the check's reference job, if it has one."""
    expected = expected_outcome(check.expected, frameworks()[check.framework].versions(packages))
    norm = decode(reference.observation) if reference is not None and reference.kind == "seen" else None
    full: dict[str, Any] = {}
    seen: Observation | None = None
    against: dict[str, str] = {}
    if answer.kind != "seen":
        outcome, data = answer.kind, {"text": answer.text} if answer.text else {}
    elif check.job.absent:
        outcome, against = (UNSUPPORTED, {}) if answer.observation["absent"] else (UNEXPECTED, {UNSUPPORTED: _exists(check)})
        data = {"absent": answer.observation["absent"]}
    else:
        seen = decode(answer.observation)
        outcome, against = judge(seen, check.outcomes, norm, card.tolerance)
        data = _observation_data(seen, full)
        if reference is not None and norm is None:
            outcome, against = UNEXPECTED, {"reference": f"the reference {reference.kind}: {reference.text}"}
    line = CheckLine(
        case=card.identity,
        row=check.row,
        parameters=check.parameters,
        target=check.target,
        outcome=outcome,
        expected=expected,
        passed=_passed(outcome, expected),
        observation=data,
        expectation=_expectation(check.outcomes.get(expected or ""), norm),
        because=answer.text if outcome == NOT_RUN else check.because.get(outcome, ""),
        against=against,
        source=source_digest(check.job.source),
        trace=check.job.trace,
        evidence=_evidence_data(answer.observation.get("printed", ""), answer.observation.get("reasons", []), full),
        seconds=answer.seconds,
    )
    return Record(line, case_line(card), check.job.source, full, seen)


def failure_text(made: Record, check: Compiled, file: str, *, own: bool) -> str:
    """What a person needs to see of a failed check. ``own``: the file is not one of those that come along."""
    line = made.line
    expected = (
        f"{line.expected} ({spec_text(check.outcomes[line.expected])})" if line.expected in check.outcomes else line.expected
    )
    said = [f"outcome   {line.outcome}", f"expected  {expected}", f"seen      {_seen(made)}", f"claim     {made.case.claim}"]
    said += [f"not {name}: {why}" for name, why in line.against.items()]
    if line.outcome in check.outcomes:
        said.append(f"{_advice(line)}; if that is right, say so in {file}")
    row = f" --row {line.row}" if line.row else ""
    path = f" --path {shlex.quote(file)}" if own else ""
    return "\n".join(
        [
            *map(safe, said),
            "",
            made.source.strip(),
            "",
            f"reproduce: conformance repro {line.case}{row} --target {line.target}{path}",
        ]
    )


def _seen(made: Record) -> str:
    return seen_text(made.seen) if made.seen else str(made.line.observation.get("text", ""))


def _advice(line: CheckLine) -> str:
    if line.outcome == "conforms":
        return f"the deviation {line.expected!r} is gone: {line.target} conforms now"
    return f"{line.target} shows {line.outcome!r} where {line.expected!r} is expected"


def _passed(outcome: str, expected: str | None) -> bool | None:
    if outcome == NOT_RUN:
        return None
    if expected is None:  # a framework that the case does not speak of: any outcome that has a name
        return outcome not in (UNEXPECTED, "crashed", "timed-out")
    return outcome == expected


def _exists(check: Compiled) -> str:
    return f"{check.job.absent} exists now, so the case's reason no longer holds: {check.because[UNSUPPORTED]}"


def _expectation(spec: Spec | None, norm: Observation | None) -> dict[str, Any]:
    if spec is None:
        return {}
    data = {name: _plain(value) for name, value in spec.items()}
    if data.get("value") == "reference" and norm is not None:
        data["value"] = {"reference": _data(norm.results[-1], {}) if norm.results else None}
    return data


def _plain(value: Any) -> Any:
    """JSON has no NaN and no infinities: they are written as text."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    if isinstance(value, list):
        return [_plain(child) for child in value]
    return msgspec.to_builtins(value)


# --- observations, written so that people can read and compare them


def _observation_data(seen: Observation, full: dict[str, Any]) -> dict[str, Any]:
    """The observation as plain data. What is long goes to ``full`` under its digest."""
    data: dict[str, Any] = {"results": [_data(result, full) for result in seen.results]} if seen.results else {}
    data.update(seen.counts)
    if seen.layout:
        data["layout"] = seen.layout
    if seen.collectives is not None:
        data["collectives"] = seen.collectives
    if seen.derivation:
        data["derivation"] = seen.derivation
    if seen.compiled:
        data["compiled"] = seen.compiled
    if seen.unobservable:
        data["unobservable"] = seen.unobservable
    if seen.raised:
        data["raised"] = {**seen.raised, "message": _text(seen.raised["message"], full)}
    return data


def _evidence_data(printed: str, reasons: list[list[str]], full: dict[str, Any]) -> dict[str, Any]:
    """What is kept for readers; only what there is."""
    data: dict[str, Any] = {"printed": _text(printed, full, EVIDENCE)} if printed else {}
    return {**data, "reasons": reasons} if any(reasons) else data


def _data(tree: Tree, full: dict[str, Any]) -> Any:
    if isinstance(tree, Abstract):
        return tree._asdict()
    if isinstance(tree, Array):
        said: dict[str, Any] = {"dtype": tree.dtype, "shape": list(tree.values.shape)}
        if tree.values.size <= MANY:
            return {**said, "value": _plain_values(tree.values)}
        digest = hashlib.sha256(tree.values.tobytes()).hexdigest()[:16]
        full[digest] = {**said, "value": _plain_values(tree.values)}
        return {**said, "digest": digest, "first": _plain_values(tree.values.ravel()[:8])}
    if isinstance(tree, list):
        return [_data(child, full) for child in tree]
    if isinstance(tree, dict):
        return {"dict": {key: _data(child, full) for key, child in tree.items()}}
    kind, value = tree
    if isinstance(value, str):
        value = _text(value, full)
    return {"python": kind, "value": _plain_values(np.asarray(value)) if isinstance(value, float) else value}


def _text(text: str, full: dict[str, Any], long: int = LONG) -> str:
    if len(text) <= long:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    full[digest] = text
    return f"{text[:long]}... (all of it: {digest})"


def _plain_values(values: np.ndarray) -> Any:
    """Nested lists; floats as short as their dtype allows; NaN and infinities as text, for JSON has none."""
    if values.dtype.kind == "f":
        return _map_nested(values.astype(str).tolist(), _float)
    if values.dtype.kind == "c":
        return _map_nested(values.tolist(), str)
    return values.tolist()


def _float(text: str) -> float | str:
    value = float(text)
    return value if math.isfinite(value) else text


def _map_nested(value: Any, of: Any) -> Any:
    return [_map_nested(child, of) for child in value] if isinstance(value, list) else of(value)
