"""Plain data of a results file -> texts fit to be shown: not too long, and nothing in them that is unseen."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from conformance.drawing import layout_svg

LIMIT = 2000
"""Characters that are shown of any one text."""


class Fact(NamedTuple):
    """A part of an observation or of an expectation."""

    name: str
    text: str
    whole: str = ""
    """All of the text, where it was cut."""
    picture: str = ""
    """An SVG element."""


def fact(name: str, text: object, picture: str = "") -> Fact:
    """A fact fit to be shown."""
    whole = str(text)
    return Fact(safe(name), safe(whole), whole if len(whole) > LIMIT else "", picture)


# --- evidence


def expectation(spec: dict[str, Any]) -> list[Fact]:
    facts = []
    for name, value in spec.items():
        if isinstance(value, dict) and value.keys() == {"reference"}:
            facts.append(fact(f"{safe(name)} (reference)", tree(value["reference"])))
        else:
            facts.append(fact(name, lines(value), layout_svg({"slices": value}) if name == "slices" else ""))
    return facts


def observation(seen: dict[str, Any], because: str) -> list[Fact]:
    """What was seen, part by part. A text that is the reason already is not said twice."""
    facts = []
    for name, value in seen.items():
        if name == "text" and value == because:
            continue
        for part, text in _SHOWN.get(name, _plainly)(name, value):
            facts.append(fact(part, text, layout_svg(value) if (name, part) == ("layout", "slices") else ""))
    return facts


def _plainly(name: str, value: Any) -> Iterator[tuple[str, str]]:
    yield name, lines(value)


def _results(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(value, list):
        yield name, plain(value)
        return
    for index, result in enumerate(value):
        yield "result" if len(value) == 1 else f"call {index}", tree(result)


def _raised(name: str, value: Any) -> Iterator[tuple[str, str]]:
    error = mapping(value)
    classes = [str(each) for each in error.get("classes") or [] if each not in ("Exception", "BaseException")]
    yield name, " < ".join(classes) or plain(value)
    if error.get("step") is not None:
        yield "at step", plain(error["step"])
    if error.get("message"):
        yield "text", str(error["message"]).strip()


def _layout(name: str, value: Any) -> Iterator[tuple[str, str]]:
    for part, text in mapping(value).items():
        if part in ("slices", "shards"):
            text = "\n".join(f"device {device}: {plain(held)}" for device, held in mapping(text).items())
        yield part.replace("_", " "), plain(text)


def _derivation(name: str, value: Any) -> Iterator[tuple[str, str]]:
    for part, content in mapping(value).items():
        if part == "linear" and isinstance(content, list):
            yield part, "\n".join(map(_equation, content))
        elif content is not None:
            yield part, lines(content)


def _equation(step: Any) -> str:
    if isinstance(step, list) and len(step) == 3 and isinstance(step[2], list):
        return f"{step[0]} = {step[1]}({', '.join(map(plain, step[2]))})"
    return plain(step)


_SHOWN: dict[str, Callable[[str, Any], Iterator[tuple[str, str]]]] = {
    "results": _results,
    "raised": _raised,
    "layout": _layout,
    "derivation": _derivation,
}


# --- words


def tree(data: Any) -> str:
    """One result: an array, a Python value, or a list or dict of results."""
    if isinstance(data, list):
        return "\n".join(f"{index}: {tree(child)}" for index, child in enumerate(data)) or "[]"
    if not isinstance(data, dict):
        return plain(data)
    if "dict" in data:
        return "\n".join(f"{key}: {tree(child)}" for key, child in mapping(data["dict"]).items()) or "{}"
    if "python" in data:
        return f"{plain(data.get('value'))}  (Python {data['python']})"
    kind_of = f"{data.get('dtype', '')}{plain(data['shape']) if 'shape' in data else ''}"
    if "digest" in data:
        return f"{kind_of}  digest {data['digest']}\nfirst {plain(data.get('first'))}"
    value = plain(data.get("value"), deep=True)
    return f"{kind_of}\n{value}" if "\n" in value else f"{kind_of}  {value}"


def lines(value: Any) -> str:
    """A mapping takes a line for each of its entries."""
    if isinstance(value, dict):
        return "\n".join(f"{key}: {plain(item)}" for key, item in value.items()) or "none"
    return plain(value)


def plain(value: Any, *, deep: bool = False) -> str:
    """Plain data, as it stands in a case file. A list of lists that is long takes a line for each."""
    if isinstance(value, list):
        parts = [plain(child) for child in value]
        between = ",\n " if deep and sum(map(len, parts)) > 60 and isinstance(value[0], list) else ", "
        return f"[{between.join(parts)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {plain(item)}' for key, item in value.items())}}}"
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


def safe(text: object) -> str:
    """A text fit to be shown: not too long, and nothing in it that is unseen or that turns the text around it."""
    whole = str(text)
    if len(whole) <= LIMIT and whole.isprintable():  # most are
        return whole
    whole = whole.replace("\r\n", "\n")
    shown = whole if len(whole) <= LIMIT else f"{whole[:LIMIT]}… ({len(whole) - LIMIT:,} more characters)"
    return _UNSEEN.sub(_visible, shown)


_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
"""Controls, marks that change the direction of writing, and halves of characters, which no file can hold."""


def _visible(match: re.Match[str]) -> str:
    return f"⟨U+{ord(match[0]):04X}⟩"


def anchor(text: str) -> str:
    """A name as the target of a link: itself where that is safe, a digest where it is not."""
    if re.fullmatch(r"[\w.-]+(/[\w.-]+)*", text, re.ASCII):
        return text
    return f"x-{hashlib.sha256(text.encode(errors='replace')).hexdigest()[:16]}"


def is_web(text: str) -> bool:
    """Whether a reference may be a link. Anything else, such as javascript:, is shown as text."""
    if _UNSEEN.search(text) or len(text) > LIMIT or re.search(r"\s", text):
        return False
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc)


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(words: list[str]) -> str:
    return safe(" and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]])))


def mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
