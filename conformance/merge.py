"""Several results files -> one run: complete, or refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from conformance.results import (
    CaseLine,
    Entry,
    Outline,
    ResultsError,
    Shard,
    cases_digest,
    content,
    full_texts,
    read_times,
    replace_file,
)


def merged(runs: Sequence[Outline], path: Path) -> Outline:
    """The runs as one. Raises ResultsError where they are not parts of one whole."""
    cases: dict[str, CaseLine] = {}
    sources: dict[str, str] = {}
    entries: dict[str, Entry] = {}
    origins: dict[str, Path] = {}
    for run in runs:
        for case in run.cases.values():
            if cases.setdefault(case.case, case) != case:
                raise ResultsError(f"{run.path} and another file have the case {case.case}, and it was edited between them")
        sources.update(run.sources)
        for entry in run.entries:
            name = entry.key.identity
            if entries.setdefault(name, entry).raw != entry.raw:
                raise ResultsError(f"{origins[name]} and {run.path} both have {name}, and do not agree on it")
            origins.setdefault(name, run.path)
    shard = _whole_of(runs)
    if shard and len(entries) != shard.checks:
        raise ResultsError(f"the shards have {len(entries)} checks, and the run that they are of has {shard.checks}")
    header = msgspec.structs.replace(
        runs[0].header, environment=_environment(runs), cases=cases_digest(cases.values()), shard=None
    )
    ordered = [entries[name] for name in sorted(entries)]
    return Outline(path, header, cases, sources, ordered, all(run.complete for run in runs))


def write_merged(runs: Sequence[Outline], path: Path) -> Outline:
    """Write the runs as one, as if they had been run at once. Raises ResultsError."""
    for run in runs:
        if not run.complete:
            raise ResultsError(f"{run.path} is incomplete, for its run did not end: run it again")
    run = merged(runs, path)
    full = {digest: text for each in runs for digest, text in full_texts(each.path).items()}
    times = [read_times(each.path) for each in runs]
    seconds = {name: value for each in times for name, value in each.get("seconds", {}).items()}
    started = min((each["started"] for each in times if "started" in each), default="")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content(run.lines(), len(run.entries)))
        rows = (msgspec.json.encode({"digest": digest, "full": full[digest]}) + b"\n" for digest in sorted(full))
        replace_file(path.with_name(path.name + ".full.jsonl"), b"".join(rows))
        text = msgspec.json.encode({"started": started, "seconds": dict(sorted(seconds.items()))})
        replace_file(path.with_name(path.name + ".times.json"), msgspec.json.format(text, indent=0))
    except OSError as error:
        raise ResultsError(f"{path} cannot be written: {error.strerror}") from None
    return run


def _whole_of(runs: Sequence[Outline]) -> Shard | None:
    """What the runs are shards of, where they are, and all of them are there."""
    shards = {run.path: run.header.shard for run in runs}
    first = next(iter(shards.values()))
    if not any(shards.values()):
        return None
    for path, shard in shards.items():
        if first is None or shard is None:
            raise ResultsError(f"{path} is {_said(shard)}, and {next(iter(shards))} is {_said(first)}: merge one or the other")
        if (shard.of, shard.checks, shard.whole) != (first.of, first.checks, first.whole):
            raise ResultsError(f"{path} and {next(iter(shards))} are shards of two runs, which did not select the same checks")
    assert first is not None
    found = [shard.index for shard in shards.values() if shard]
    missing = [str(index) for index in range(1, first.of + 1) if index not in found]
    if missing:
        raise ResultsError(f"of {first.of} shards, {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing")
    return first


def _said(shard: Shard | None) -> str:
    return f"shard {shard.index} of {shard.of}" if shard else "a whole run"


def _environment(runs: Sequence[Outline]) -> dict[str, Any]:
    """What the runs say of where they ran, which must not be two things."""
    found: dict[str, Any] = {}
    by_name: dict[str, dict[str, Any]] = {"python": {}, "packages": {}}
    for run in runs:
        for name, value in run.header.environment.items():
            if name in by_name and isinstance(value, dict):
                for framework, said in value.items():
                    _same(by_name[name], framework, said, run.path, f"the {name} of {framework}")
            else:
                _same(found, name, value, run.path, f"the {name}")
    return found | {name: dict(sorted(of.items())) for name, of in by_name.items() if of}


def _same(found: dict[str, Any], name: str, value: Any, path: Path, what: str) -> None:
    if found.setdefault(name, value) != value:
        raise ResultsError(
            f"{path} does not fit the other files: {what} is {_brief(value)} here, and {_brief(found[name])} there"
        )


def _brief(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {version}" for name, version in value.items())
    return str(value)
