"""Frame of pages: one style, light and dark, one small script, no external resource.

The policy in the head lets a browser load nothing and run no script but this one, whatever a record holds.
"""

from __future__ import annotations

import base64
import hashlib
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
    """Write a page.

    Parameters
    ----------
    body : str
        Markup in which everything foreign is escaped.
    wide : bool
        Whether tables have their full height, because the page has nothing else.
    """
    style, script = (files(__package__).joinpath(f"page.{kind}").read_text("utf-8") for kind in ("css", "js"))
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
