"""A layout -> a picture of the array, cut into cells that say which devices hold them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from html import escape
from typing import Any, NamedTuple

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#b8a800", "#8c6bb1")
"""One for each device; pale fills of them stand on light and on dark. After Okabe and Ito, https://jfly.uni-koeln.de/color/"""

WIDTH, HEIGHT, MARGIN, LINE = 56, 30, 40, 16
LETTER = 7
MOST = 32
"""Pieces of a dimension, or slices in a list, beyond which there is no picture."""


class Slice(NamedTuple):
    """What one or more devices hold: start and stop in each dimension."""

    bounds: tuple[tuple[int, int], ...]
    devices: tuple[int, ...]

    @property
    def text(self) -> str:
        return f"[{', '.join(f'{start}:{stop}' for start, stop in self.bounds)}]"

    @property
    def owners(self) -> str:
        return f"device{'s' if len(self.devices) > 1 else ''} {' '.join(map(str, self.devices))}"


def layout_svg(layout: Any) -> str:
    """An SVG element for a layout's ``slices`` (device number -> start:stop in each dimension); empty where there are none.

    Two dimensions are rows and columns, one is a bar; the slices of more are listed. Each cell has the numbers of all devices
    that hold it, and a band in the colour of each. ``layout`` is plain data of a results file and may hold anything.
    """
    slices = _slices(layout)
    if not slices or len(slices) > MOST:
        return ""
    title = "; ".join(f"{part.owners}: {part.text}" for part in slices)
    rank = len(slices[0].bounds)
    if rank > 2 or any(start == stop for part in slices for start, stop in part.bounds):
        return _list(slices, title)
    across = [part.bounds[-1] if rank else (0, 1) for part in slices]
    down = [part.bounds[0] if rank == 2 else (0, 1) for part in slices]
    columns, rows = _pieces(across), _pieces(down)
    if max(len(columns), len(rows)) > MOST:
        return ""
    drawn, wide = [], max(WIDTH, LETTER * 2 * max(len(part.devices) for part in slices) + 8)
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            held = [
                d for n, part in enumerate(slices) if _holds(down[n], row) and _holds(across[n], column) for d in part.devices
            ]
            drawn.append(_cell(sorted(held), MARGIN + j * wide, LINE + i * HEIGHT, wide))
    labels = [_text(MARGIN + (j + 0.5) * wide, LINE - 4, f"{a}:{b}") for j, (a, b) in enumerate(columns) if rank]
    labels += [_text(MARGIN / 2, LINE + (i + 0.5) * HEIGHT + 4, f"{a}:{b}") for i, (a, b) in enumerate(rows) if rank == 2]
    return _svg(MARGIN + len(columns) * wide + 2, LINE + len(rows) * HEIGHT + 2, title, drawn + labels)


def _slices(layout: Any) -> list[Slice]:
    """The slices, each with all devices that hold it, in the order of the devices; nothing where the data is no layout."""
    found: dict[tuple[tuple[int, int], ...], list[int]] = {}
    given = layout.get("slices") if isinstance(layout, Mapping) else None
    for device, bounds in sorted(given.items(), key=lambda item: str(item[0]).zfill(4)) if isinstance(given, Mapping) else ():
        texts = bounds if isinstance(bounds, list) else [None]
        parts = [re.fullmatch(r"(\d{1,12}):(\d{1,12})", str(text), re.ASCII) for text in texts]
        if not re.fullmatch(r"\d{1,4}", str(device), re.ASCII) or None in parts:
            return []
        found.setdefault(tuple((int(part[1]), int(part[2])) for part in parts if part), []).append(int(device))
    if len({len(bounds) for bounds in found}) != 1:
        return []
    return [Slice(bounds, tuple(devices)) for bounds, devices in found.items()]


def _pieces(bounds: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The pieces into which the ends of all slices cut a dimension."""
    ends = sorted({end for pair in bounds for end in pair})
    return list(itertools.pairwise(ends))


def _holds(bounds: tuple[int, int], piece: tuple[int, int]) -> bool:
    return bounds[0] <= piece[0] and piece[1] <= bounds[1]


def _cell(devices: list[int], x: float, y: float, wide: float) -> str:
    band = wide / max(len(devices), 1)
    bands = [_band(device, x + i * band, y, band) for i, device in enumerate(devices)]
    numbers = [_text(x + (i + 0.5) * band, y + HEIGHT / 2 + 4, str(device)) for i, device in enumerate(devices)]
    frame = f'<rect x="{x:g}" y="{y:g}" width="{wide:g}" height="{HEIGHT}" fill="none" stroke="currentColor"/>'
    return "".join([*bands, frame, *numbers])


def _band(device: int, x: float, y: float, wide: float, high: float = HEIGHT) -> str:
    colour = COLOURS[device % len(COLOURS)]
    return f'<rect x="{x:g}" y="{y:g}" width="{wide:g}" height="{high:g}" fill="{colour}" fill-opacity="0.4"/>'


def _list(slices: list[Slice], title: str) -> str:
    drawn = []
    for number, part in enumerate(slices):
        top = number * LINE + 3
        drawn += [_band(device, 2 + i * 8, top, 8, LINE - 4) for i, device in enumerate(part.devices)]
        empty = "" if all(start < stop for start, stop in part.bounds) else " (nothing)"
        left = 10 + 8 * max(len(each.devices) for each in slices)
        drawn.append(_text(left, top + LINE - 6, f"{part.owners}: {part.text}{empty}", "start"))
    longest = max(len(part.owners) + len(part.text) + 12 for part in slices)
    return _svg(LETTER * longest + 8 * 9, len(slices) * LINE + 6, title, drawn)


def _text(x: float, y: float, said: str, anchor: str = "middle") -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="12" fill="currentColor">{escape(said)}</text>'


def _svg(width: float, height: float, title: str, drawn: list[str]) -> str:
    size = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    return f'<svg class="layout" role="img" {size}><title>{escape(title)}</title>{"".join(drawn)}</svg>'
