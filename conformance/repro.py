"""A check -> a script that shows what it saw. It needs the framework and NumPy, and nothing of this project."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from conformance.framework import Framework, frameworks
from conformance.host import seed_of
from conformance.judge import spec_text
from conformance.library import CaseCard, Compiled
from conformance.lower import native_name
from conformance.target import AHEAD


class NoScript(ValueError):
    """A check that no script can show yet; the text is for the user."""


def script(check: Compiled, card: CaseCard, expected: str | None) -> str:
    """The text of the script. Raises NoScript for a case with a mesh."""
    if check.job.mesh:
        raise NoScript("there is no script for layouts yet: what the report shows of them is all there is")
    framework = frameworks()[check.framework]
    job = check.job
    imports, definitions = framework.imports, job.source.removeprefix(framework.imports).strip()
    state = "\n".join(f"{name} = {_input(name, spec, framework)}" for name, spec in job.state.items())
    parts = [_heading(check, card, expected), imports, state, definitions]
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
    return "\n\n".join(part for part in parts if part) + "\n"


def _heading(check: Compiled, card: CaseCard, expected: str | None) -> str:
    row = f" [{check.row}]" if check.row else ""
    said = f"{expected} ({spec_text(check.outcomes[expected])})" if expected in check.outcomes else f"{expected}"
    lines = [f"{card.identity}{row} on {check.target}", "", f"Claim: {card.claim}", f"Expected: {said}"]
    lines += [f"Needs: {need['name']}{need['versions']}" for need in check.job.uses]
    lines += ["Counts are printed as totals so far; the case speaks of each call."] if check.job.count else []
    return "\n".join(f"# {line}".rstrip() for line in "\n".join(lines).splitlines())


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
    counts = framework.counting.read.replace("FUNCTION", check.job.trace) if check.job.count and framework.counting else ""
    return f"print({payload}{', ' + counts if counts else ''})"


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
    if dtype == "bfloat16":
        return framework.cast.replace("ARRAY", array).replace("DTYPE", native_name(framework, "bfloat16"))
    return framework.array.replace("ARRAY", array)


def _array(name: str, spec: dict[str, Any]) -> tuple[str, str]:
    """A NumPy expression for the input that `host.array_of` makes, and the name of its dtype."""
    shape = spec["shape"]
    if spec["value"] is not None and spec["value"] != "arange":
        value = spec["value"]
        dtype = spec["dtype"] or {"b": "bool", "i": "int32", "f": "float32"}[np.asarray(value).dtype.kind]
        text = f"np.array({_literal(value)}, dtype=np.{_stored(dtype)})"
        return (text if shape is None else f"np.full({shape}, {text})"), dtype
    dtype = spec["dtype"] or "float32"
    fill = (
        "arange"
        if spec["value"] == "arange"
        else spec["fill"] or ("normal" if "float" in dtype or "complex" in dtype else "integers")
    )
    random = f"np.random.RandomState({seed_of(name, shape)})"  # type: ignore[no-untyped-call]
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
