"""A tally -> a small picture that says it."""

from __future__ import annotations

from html import escape

from conformance.kinds import Tally

WIDE = 6.6
"""Pixels a character, about: the text is stretched to the width that it is given."""


def badge(label: str, tally: Tally) -> str:
    """SVG. Green only where something was as expected and nothing was not."""
    said = text(tally)
    colour = "#9d1328" if tally.failing else "#14622f" if tally.expected else "#57606a"
    left, right = (round(len(each) * WIDE) + 14 for each in (label, said))
    whole = escape(f"{label}: {said}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" aria-label="{whole}">'
        f"<title>{whole}</title>"
        f'<clipPath id="r"><rect width="{left + right}" height="20" rx="4"/></clipPath>'
        f'<g clip-path="url(#r)"><rect width="{left}" height="20" fill="#30363d"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{colour}"/></g>'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,Geneva,sans-serif" font-size="11">'
        f'<text x="7" y="14" textLength="{left - 14}" lengthAdjust="spacingAndGlyphs">{escape(label)}</text>'
        f'<text x="{left + 7}" y="14" textLength="{right - 14}" lengthAdjust="spacingAndGlyphs">{escape(said)}</text></g></svg>\n'
    )


def text(tally: Tally) -> str:
    if not tally.ran:
        return "nothing ran"
    return f"{tally.expected:,} as expected" + (f", {tally.failing:,} not" if tally.failing else "")
