"""What each fault changes: every case whose outcome or observation is not that of the healthy framework.

Some faults are frameworks of their own, beside a healthy twin, and run by the command. Those in patches.py are in torch, jax and
tensorflow themselves: their cases run in one host for each, once as it is and once after each fault.

``python tests/faulty/changes.py`` runs them all and prints, for each fault, the cases that it changes and how, marked with ``+``
and ``-`` where changes.yaml, the reviewed list, says otherwise. ``--write`` brings the list up to date: read the difference. An
entry that makes no sense for its fault means that the suite is wrong, or the fault.
"""

import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import msgspec
import yaml

from conformance.library import Compiled, Unit, unit
from conformance.pool import REFERENCE, Pool
from conformance.record import record
from conformance.results import CheckLine, Run, read

HERE = Path(__file__).parent
sys.path.append(str(HERE))
import patches  # noqa: E402 (it imports no framework until it spoils one)

sys.path.remove(str(HERE))  # or the frameworks of this folder would be found by whoever comes after
ROOT = HERE.parent.parent
REVIEWED = HERE / "changes.yaml"
CASES = {
    "twin": ("cases/matmul", "cases/masks", "cases/retrace", "cases/capture"),
    "grad_twin": (
        *(
            "cases/grad/connection.yaml",
            "cases/grad/custom-rules.yaml",
            "cases/grad/elementwise.yaml",
            "cases/grad/indexing.yaml",
        ),
        *("cases/grad/kinks.yaml", "cases/grad/laws.yaml", "cases/grad/linear-algebra.yaml", "cases/grad/singularities.yaml"),
        *(
            "cases/grad/relu-forms.yaml",
            "cases/grad/ties.yaml",
            "cases/grad/where.yaml",
            "cases/vmap/axes.yaml",
            "cases/vmap/transforms.yaml",
        ),
    ),
}
"""Each healthy one, and the cases that it and its faults run; these follow it in the list of entry points."""


class Change(NamedTuple):
    """A check of the healthy twin, and the same check of a faulty one that came out differently."""

    healthy: CheckLine
    faulty: CheckLine

    @property
    def visible(self) -> bool:
        """Whether the outcome has another name; else only what was observed differs."""
        return self.healthy.outcome != self.faulty.outcome


def environment() -> dict[str, str]:
    """The environment in which the faulty frameworks are found, by the command and by the hosts that it starts."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))}


def names() -> list[str]:
    """Each twin, followed by its faults, by their entry points."""
    (distribution,) = metadata.distributions(path=[str(HERE)])
    return [entry.name for entry in distribution.entry_points]


def twins() -> dict[str, str]:
    """fault -> its healthy twin."""
    found, twin = {}, ""
    for name in names():
        if name in CASES:
            twin = name
        else:
            found[name] = twin
    return found


def run(twin: str, results: Path, **variables: str) -> Run:
    """Run a twin's cases on it and on its faults. Raises AssertionError with what the command said."""
    # A fault in tracing is not looked for where nothing is traced: there it is the twin.
    mine = [twin, *(name for name, healthy in twins().items() if healthy == twin)]
    targets = [f"{name}:compiled" if name.startswith("trace_") else name for name in mine]
    command = [sys.executable, "-m", "conformance", "run", *CASES[twin], *(f"--target={target}" for target in targets)]
    command += [f"--results={results}", "--", "-q", "--tb=no", "-rN", "-s", "-p", "no:logging", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=ROOT, env={**environment(), **variables}, capture_output=True, text=True, check=False)
    if done.returncode != 1 or not results.exists():  # some checks fail, as they must
        raise AssertionError(f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    return read(results)


def run_patched(names: Iterable[str] = patches.FAULTS) -> dict[str, dict[str, list[Change]]]:
    """fault -> case -> what it changed there, for faults of patches.py.

    Raises AssertionError where a case is not as expected before anything is replaced.
    """
    faults = {name: patches.FAULTS[name] for name in names}
    frameworks = dict.fromkeys(fault.framework for fault in faults.values())
    pool = Pool(dict.fromkeys(frameworks, f"popen//python={sys.executable}//chdir={HERE}"))
    try:
        asked = {name: _submitted(pool, name, fault.framework, fault.cases) for name, fault in faults.items()}
        for framework in frameworks:
            cases = {case for fault in faults.values() if fault.framework == framework for case in fault.cases}
            asked[framework] = _submitted(pool, "", framework, cases)
        lines = {name: {(line.case, line.row): line for line in map(_Asked.line, each)} for name, each in asked.items()}
    finally:
        pool.close()
    amiss = [line.identity for framework in frameworks for line in lines[framework].values() if line.passed is False]
    assert not amiss, amiss
    found: dict[str, dict[str, list[Change]]] = {name: {} for name in faults}
    for name, fault in faults.items():
        for key, line in lines[name].items():
            _compare(lines[fault.framework][key], line, found[name])
    return found


class _Asked(NamedTuple):
    """A check that was handed to a host."""

    pool: Pool
    unit: Unit
    check: Compiled
    number: int
    reference: int | None

    def line(self) -> CheckLine:
        answer = self.pool.answer(self.number)
        reference = None if self.reference is None else self.pool.answer(self.reference)
        return record(self.check, self.unit.card(self.check), answer, reference, {}).line


def _checks(cases: Iterable[str], framework: str) -> list[tuple[Unit, Compiled]]:
    """The checks of topics and of single cases that run on this framework, untraced and in its first way."""
    found = []
    for topic in sorted({"/".join(case.split("/")[:2]) for case in cases}):
        made = unit(ROOT / "cases" / f"{topic}.yaml")
        for check in made.checks:
            here = (check.framework, check.way, check.mode) == (framework, "", "eager") and not check.job.absent
            if here and {topic, made.card(check).identity} & {*cases}:
                found.append((made, check))
    return found


def _submitted(pool: Pool, fault: str, framework: str, cases: Iterable[str]) -> list[_Asked]:
    """Hand the checks of these cases to the framework's host, to be run with this fault; "" is none."""
    checks = _checks(cases, framework)
    before = f"import patches\n\npatches.spoil({fault!r})\n"
    numbers = pool.submit(
        framework, [msgspec.structs.replace(check.job, source=before + check.job.source) for _, check in checks]
    )
    references = [pool.submit(REFERENCE, [check.reference])[0] if check.reference else None for _, check in checks]
    return [
        _Asked(pool, made, check, number, reference)
        for (made, check), number, reference in zip(checks, numbers, references, strict=True)
    ]


def _compare(healthy: CheckLine, faulty: CheckLine, found: dict[str, list[Change]]) -> None:
    change = Change(healthy, faulty)
    if change.visible or healthy.observation != faulty.observation:
        found.setdefault(faulty.case, []).append(change)


def changes(run: Run) -> dict[str, dict[str, list[Change]]]:
    """fault -> case -> what it changed there, for the faults of one twin."""
    checks: dict[str, dict[tuple[str, str, str], CheckLine]] = {}
    for check in run.checks:
        name, place = check.target.split(":", 1)
        checks.setdefault(name, {})[check.case, check.row, place] = check
    (healthy,) = (checks.pop(twin) for twin in CASES if twin in checks)
    found: dict[str, dict[str, list[Change]]] = {name: {} for name in checks}
    for name, mine in found.items():
        for key, check in checks[name].items():
            _compare(healthy[key], check, mine)
    return found


def reviewed() -> dict[str, dict]:
    """changes.yaml."""
    return yaml.safe_load(REVIEWED.read_text(encoding="utf-8"))


def listed(entry: dict) -> set[str]:
    """The cases that an entry of changes.yaml names."""
    return {f"{topic}/{case}" for topic, cases in entry["changes"].items() for case in cases}


def write(found: dict[str, dict[str, list[Change]]]) -> None:
    """Rewrite the cases of changes.yaml. What a person wrote, the sentences and the comments at the top, stays."""
    before = reviewed()
    lines = [line for line in REVIEWED.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    for name in [*twins(), *patches.FAULTS]:
        entry = before.get(name, {})
        if name not in found:
            found[name] = dict.fromkeys(listed(entry) if entry else ())
        said = patches.FAULTS[name].patch.__doc__ if name in patches.FAULTS else entry.get("fault", "TODO")
        lines += [f"{name}:", f"  fault: {said}"]
        topics: dict[str, list[str]] = {}
        for case in sorted(found[name]):
            topic, _, identity = case.rpartition("/")
            topics.setdefault(topic, []).append(identity)
        lines += ["  changes:" if topics else "  changes: {}"]
        for topic, identities in topics.items():
            line = f"{topic}: [{', '.join(identities)}]"
            lines += textwrap.wrap(line, 130, initial_indent="    ", subsequent_indent="      ", break_on_hyphens=False)
    REVIEWED.write_text("\n".join(lines) + "\n", encoding="utf-8")


def shown(name: str, entry: dict, cases: dict[str, list[Change]]) -> str:
    """One fault, for a reviewer."""
    known = listed(entry) if entry else set()
    lines = [f"\n{name}: {entry.get('fault', 'not in changes.yaml')}"]
    for case in sorted({*cases, *known}):
        mark = " " if case in cases and case in known else "+" if case in cases else "-"
        lines.append(f"{mark} {case}")
        lines += [f"      {_difference(change)}" for change in cases.get(case, [])[:3]]
        lines += [f"      and {len(cases[case]) - 3} more"] if len(cases.get(case, [])) > 3 else []
    return "\n".join(lines)


def _difference(change: Change) -> str:
    place = change.faulty.identity.rpartition("/")[2].partition("[")[2].rstrip("]")
    if change.visible:
        why = change.faulty.against.get(change.healthy.outcome, "")
        return f"{place}: {change.healthy.outcome} -> {change.faulty.outcome}: {why}"
    return f"{place}: still {change.faulty.outcome}: {str(change.healthy.observation)[:150]} -> {str(change.faulty.observation)[:150]}"


def main() -> None:
    """Run those faults of patches.py that are named, or all of both kinds."""
    wanted = [name for name in sys.argv[1:] if name != "--write"]
    found: dict[str, dict[str, list[Change]]] = {}
    for twin in CASES if not wanted else ():
        with tempfile.TemporaryDirectory() as folder:
            found |= changes(run(twin, Path(folder) / "results.jsonl"))
    found |= run_patched(wanted or patches.FAULTS)
    for name in sorted(found, key=[*names(), *patches.FAULTS].index):
        print(shown(name, reviewed().get(name, {}), found[name]))
    if "--write" in sys.argv:
        write(found)


if __name__ == "__main__":
    main()
