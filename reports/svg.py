"""SVG plots inside an HTML page.

Identifiers clash with those of no other plot; black and white follow the page's colours.
"""

from __future__ import annotations

import re

_PROLOG = re.compile(r"\A.*?(?=<svg\b)", re.DOTALL)
_METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
#: matplotlib's one style sheet, which would hold for the whole page.
_SHEET = re.compile(r"<style[^>]*>.*?</style>", re.DOTALL)
_NAME = re.compile(r"""(\bid=")([^"]+)(")|(href="#)([^"]+)(")|(url\(#)([^)]+)(\))""")

#: What belongs to an entry of the legend (:mod:`cwb.reports.plots.parts`): a class, since lines share it.
_SERIES = re.compile(r"""<g id="series-([0-9]+)">""")

#: Ink, paper and grid of the look, as the page calls them.
_COLOURS = (("#000000", "currentColor"), ("#ffffff", "var(--card)"), ("#dddddd", "var(--grid)"))


def inline(svg: bytes, name: str, label: str) -> str:
    """Convert an SVG file that matplotlib wrote into a part of a page.

    Parameters
    ----------
    name : str
        Prefix of every identifier: letters, digits and hyphens.
    label : str
        Escaped text for screen readers; empty for a plot that repeats the text beside it.
    """
    text = _PROLOG.sub("", svg.decode(), count=1)
    text = _SHEET.sub("", _METADATA.sub("", text))
    text = _SERIES.sub(r'<g class="series" data-s="\1">', text)
    text = _NAME.sub(lambda m: "".join(_prefix_identifier(m.groups(), name)), text)
    for colour, page in _COLOURS:
        text = re.sub(rf"((?:fill|stroke): ?){colour}\b", rf"\g<1>{page}", text)
    told = f'role="img" aria-label="{label}"' if label else 'aria-hidden="true"'
    start = f'<svg {told} fill="currentColor" stroke-linejoin="round" stroke-linecap="butt"'
    return text.replace("<svg", start, 1)


def _prefix_identifier(groups: tuple[str | None, ...], name: str) -> list[str]:
    before, identifier, after = (group for group in groups if group is not None)
    return [before, f"{name}-", identifier, after]
