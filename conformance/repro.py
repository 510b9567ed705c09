"""A check -> a script that shows what it saw. It needs the framework and NumPy, and nothing of this project."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from conformance.case import Spec
from conformance.framework import Framework, Meshes, frameworks
from conformance.host import numbers, seed_of
from conformance.judge import spec_text
from conformance.library import CaseCard, Compiled
from conformance.lower import Job, native_name
from conformance.target import AHEAD


def script(check: Compiled, card: CaseCard, expected: str | None) -> str:
    """The text of the script."""
    framework = frameworks()[check.framework]
    job = check.job
    meshes = framework.meshes if job.devices and not job.absent else None
    imports = f"{framework.imports}\n{meshes.imports}" if meshes else framework.imports
    definitions = job.source.removeprefix(imports).strip()
    state = "\n".join(f"{name} = {_input(name, spec, framework)}" for name, spec in job.state.items())
    parts = [_heading(check, card, expected), imports, state, definitions]
    if meshes:
        parts[1:2] = [meshes.before, imports, meshes.after, _mesh(job, meshes), *_helpers(job, framework, meshes)]
    if job.absent:
        return (
            "\n\n".join([*filter(None, parts), f"print({job.absent})  # fails as long as {check.framework} has no such thing"])
            + "\n"
        )
    if job.x64 and framework.wide:
        parts.insert(2, framework.wide)
    for name, spec in job.inputs.items():
        parts.append(f"{name} = {_input(name, spec, framework)}")
    if job.trace and not job.observe:
        parts += [framework.preludes["compiled_ahead"]] if check.mode == AHEAD else []
        parts.append(_wrapped(check, framework))
    if job.observe:
        parts.append(_derivation(check, framework))
    parts.append("\n".join(_step(kind, payload, check, framework) for kind, payload in job.steps))
    if meshes and job.collectives:
        parts.append(meshes.communication.replace("CALL", job.steps[-1][1]))
    return "\n\n".join(part for part in parts if part) + "\n"


def _heading(check: Compiled, card: CaseCard, expected: str | None) -> str:
    row = f" [{check.row}]" if check.row else ""
    said = f"{expected} ({spec_text(check.outcomes[expected])})" if expected in check.outcomes else f"{expected}"
    lines = [f"{card.identity}{row} on {check.target}", "", f"Claim: {card.claim}", f"Expected: {said}"]
    lines += [f"Needs: {need['name']}{need['versions']}" for need in check.job.uses]
    lines += ["Counts are printed as totals so far; the case speaks of each call."] if check.job.count else []
    return "\n".join(f"# {line}".rstrip() for line in "\n".join(lines).splitlines())


def _mesh(job: Job, meshes: Meshes) -> str:
    names, sizes = tuple(job.mesh), tuple(job.mesh.values())
    text = meshes.mesh.replace("SIZES", str(sizes)).replace("NAMES", str(names)).replace("ORDER", str(job.order))
    return text if job.mesh else ""


def _helpers(job: Job, framework: Framework, meshes: Meshes) -> list[str]:
    """What placing the inputs calls, where the program does not define it already."""
    called = [name for name in framework.preludes if f"{name}(" in meshes.place and f"def {name}(" not in job.source]
    return [framework.preludes[name] for name in called if any(spec.get("split") is not None for spec in job.inputs.values())]


def _wrapped(check: Compiled, framework: Framework) -> str:
    wrap = _with_options(framework.modes[check.mode], check.job.options, framework).replace("DEVICE", check.device)
    name, counting = check.job.trace, framework.counting
    if not check.job.count or counting is None:
        return f"{name} = {wrap.replace('FUNCTION', name)}"
    wrapped = wrap.replace("FUNCTION", counting.function).replace(*counting.swap)
    return f"{counting.before}\n\nFUNCTION = {wrapped}".replace("FUNCTION", name).strip()


def _with_options(wrap: str, options: dict[str, Any], framework: Framework) -> str:
    said = [f"{name}={framework.options.get(name, 'VALUE').replace('VALUE', repr(value))}" for name, value in options.items()]
    return wrap.replace("OPTIONS", ", ".join(said)).replace(", )", ")")


def _step(kind: str, payload: Any, check: Compiled, framework: Framework) -> str:
    if kind == "rebind":
        return "\n".join(f"{name} = {_input(name, spec, framework)}" for name, spec in payload.items())
    if kind == "do":
        return str(payload)
    if check.job.devices and framework.meshes and any(_is_about_layout(spec) for spec in check.outcomes.values()):
        return f"result = {payload}\nprint(result)\nprint({framework.meshes.shown.replace('RESULT', 'result')})"
    counts = framework.counting.read.replace("FUNCTION", check.job.trace) if check.job.count and framework.counting else ""
    return f"print({payload}{', ' + counts if counts else ''})"


def _is_about_layout(spec: Spec) -> bool:
    return any(name in ("split", "partial", "local_shape", "slices", "shards", "devices") for name, _ in spec.items())


def _derivation(check: Compiled, framework: Framework) -> str:
    return framework.derivation.replace("FUNCTION", check.job.trace).replace("ARGUMENTS", ", ".join(check.job.inputs))


def _input(name: str, spec: dict[str, Any], framework: Framework) -> str:
    if "python" in spec:
        return repr(spec["python"])
    if "list" in spec or "tuple" in spec:
        contents = spec["list"] if "list" in spec else spec["tuple"]
        children = [_input(f"{name}.{i}", child, framework) for i, child in enumerate(contents)]
        return f"[{', '.join(children)}]" if "list" in spec else f"({', '.join(children)},)"
    if "dict" in spec:
        return (
            "{" + ", ".join(f"{key!r}: {_input(f'{name}.{key}', child, framework)}" for key, child in spec["dict"].items()) + "}"
        )
    array, dtype = _array(name, spec)
    text = framework.array.replace("ARRAY", array)
    if dtype == "bfloat16":
        text = framework.cast.replace("ARRAY", array).replace("DTYPE", native_name(framework, "bfloat16"))
    if spec["split"] is None or framework.meshes is None:
        return text
    split = ", ".join(repr(tuple(axis) if isinstance(axis, list) else axis) for axis in spec["split"])
    partial = ", ".join(f"{axis!r}: {how!r}" for axis, how in (spec["partial"] or {}).items())
    return framework.meshes.place.replace("SPLIT", split).replace("PARTIAL", partial).replace("ARRAY", text)


def _array(name: str, spec: dict[str, Any]) -> tuple[str, str]:
    """A NumPy expression for the input that `host.array_of` makes, and the name of its dtype."""
    shape = spec["shape"]
    if spec["value"] is not None and spec["value"] != "arange":
        value = numbers(spec["value"])  # type: ignore[no-untyped-call]  # a host has no types
        dtype = spec["dtype"] or {"b": "bool", "i": "int32", "f": "float32", "c": "complex64"}[np.asarray(value).dtype.kind]
        text = f"np.array({_literal(value)}, dtype=np.{_stored(dtype)})"
        return (text if shape is None else f"np.full({shape}, {text})"), dtype
    dtype = spec["dtype"] or "float32"
    fill = (
        "arange"
        if spec["value"] == "arange"
        else spec["fill"] or ("normal" if "float" in dtype or "complex" in dtype else "integers")
    )
    random = f"np.random.RandomState({seed_of(name, shape)})"  # type: ignore[no-untyped-call]  # the same
    low, high = (0, 2) if dtype == "bool" else (0 if dtype[0] == "u" else -4, 5)
    size = int(np.prod(shape, dtype=np.int64))
    normal = f"{random}.standard_normal({shape})"
    if dtype.startswith("complex") and fill == "normal":
        normal = f"(lambda r: r.standard_normal({size}) + 1j * r.standard_normal({size}))({random}).reshape({shape})"
    text = {
        "arange": f"np.arange({size}).reshape({shape})",
        "zeros": f"np.zeros({shape})",
        "ones": f"np.ones({shape})",
        "integers": f"{random}.randint({low}, {high}, {shape})",
        "normal": normal,
        "uniform": f"{random}.random_sample({shape})",
    }[fill]
    return f"{text}.astype(np.{_stored(dtype)})" if "standard_normal([])" not in text else f"np.float32({text})", dtype


def _stored(dtype: str) -> str:
    return {"bool": "bool_", "bfloat16": "float32"}.get(dtype, dtype)


def _literal(value: Any) -> str:
    """Python text; NaN and infinities have no literal of their own."""
    return re.sub(r"\b(nan|inf)\b", r"np.\1", repr(value))
