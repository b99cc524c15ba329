"""Frame of pages: one style, light and dark, one small script, no external resource.

The policy in the head lets a browser load nothing and run no script but this one, whatever a record holds.
"""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files

from ..core.text import markup

#: A heat table as lines: every problem with the cells of its methods, which say their names.
_LINES = """TABLE, TABLE tbody { display: block; } TABLE thead, TABLE td.empty, TABLE td.off { display: none; }
TABLE tr { display: flex; flex-wrap: wrap; gap: 3px; padding: .35rem 0; border-top: 1px solid var(--line); }
TABLE tbody { columns: 26rem; column-gap: 1.5rem; } TABLE tr { break-inside: avoid; }
TABLE tr[hidden] { display: none; }
TABLE th { flex-basis: 100%; white-space: normal; overflow-wrap: anywhere; }
TABLE td { white-space: normal; overflow-wrap: anywhere; text-align: left; } TABLE td span { display: inline; }
"""

#: Backgrounds of gaps from small to large: even samples of matplotlib's cividis, which colour-blind readers can tell
#: apart; the first four with dark text, the others with light text, so that the contrast is 4.9 or more.
_TONES = ("#fee838", "#d9c55c", "#b1a570", "#8e8978", "#6c6e72", "#4c556c", "#213b6e", "#00224e")


def page(title: str, body: str, *, wide: bool = False) -> str:
    """Write a page of markup in which everything foreign is escaped; ``wide`` if tables have their full height."""
    style, script = (files("cwb.reports").joinpath(f"page.{kind}").read_text("utf-8") for kind in ("css", "js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    )
    tones = "".join(
        f".h{k} {{ background: {tone}; color: {'#111' if k < 4 else '#fff'}; }}\n" for k, tone in enumerate(_TONES)
    )
    lines = _LINES.replace("TABLE", ".heat.lines"), _LINES.replace("TABLE", ".heat")
    style += f"{tones}{lines[0]}@media (max-width: 45rem) {{\n{lines[1]}}}\n"
    style += ".scroll { max-height: none; }\n" if wide else ""
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="referrer" content="no-referrer">\n<title>{markup(title)}</title>\n'
        f"<style>{style}</style>\n</head>\n<body>\n{body}\n<script>{script}</script>\n</body>\n</html>\n"
    )


_PROLOG = re.compile(r"\A.*?(?=<svg\b)", re.DOTALL)
_METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
#: matplotlib's one style sheet, which would hold for the whole page.
_SHEET = re.compile(r"<style[^>]*>.*?</style>", re.DOTALL)
_NAME = re.compile(r"""(\bid="|href="#|url\(#)""")

#: What belongs to an entry of the legend (:mod:`cwb.reports.plots.parts`): a class, since lines share it.
_SERIES = re.compile(r"""<g id="series-([0-9]+)">""")

#: Ink, paper and grid of the look, as the page calls them.
_COLOURS = (("#000000", "currentColor"), ("#ffffff", "var(--card)"), ("#dddddd", "var(--grid)"))


def inline(svg: bytes, name: str, label: str) -> str:
    """Convert an SVG file that matplotlib wrote into a part of a page; black and white follow the page's colours.

    Parameters
    ----------
    name : str
        Prefix of every identifier, so that plots do not clash: letters, digits and hyphens.
    label : str
        Escaped text for screen readers; empty for a plot that repeats the text beside it.
    """
    text = _PROLOG.sub("", svg.decode(), count=1)
    text = _SHEET.sub("", _METADATA.sub("", text))
    text = _SERIES.sub(r'<g class="series" data-s="\1">', text)
    text = _NAME.sub(rf"\g<1>{name}-", text)
    for colour, page in _COLOURS:
        text = re.sub(rf"((?:fill|stroke): ?){colour}\b", rf"\g<1>{page}", text)
    told = f'role="img" aria-label="{label}"' if label else 'aria-hidden="true"'
    start = f'<svg {told} fill="currentColor" stroke-linejoin="round" stroke-linecap="butt"'
    return text.replace("<svg", start, 1)
