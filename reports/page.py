"""The frame of pages: one style, light and dark, one small script, and nothing from anywhere else.

The policy in the head lets a browser load nothing and run no script but this one, whatever a record holds.
"""

from __future__ import annotations

import base64
import hashlib
import html

_STYLE = """
:root { color-scheme: light dark; --bg: #f4f5f7; --card: #fff; --text: #1c2128; --soft: #59636e; --faint: #a0a9b3;
  --line: #dfe3e8; --head: #f7f8fa; --hover: #eef4fb; --accent: #0063a3; --grid: #dddddd;
  --good: #00704f; --warn: #8f5a00; --bad: #b23a00; --shadow: 0 1px 2px rgb(20 30 45 / .07), 0 1px 8px rgb(20 30 45 / .04); }
@media (prefers-color-scheme: dark) { :root:not([data-theme=light]) { --bg: #0f1318; --card: #171c23; --text: #e4e8ed; --soft: #9aa5b1;
  --faint: #66717e; --line: #2b333d; --head: #1d232b; --hover: #1f2a37; --accent: #6cb6f0; --grid: #333b45;
  --good: #4cc39b; --warn: #e6ad4f; --bad: #f08a5d; --shadow: none; } }
:root[data-theme=dark] { color-scheme: dark; --bg: #0f1318; --card: #171c23; --text: #e4e8ed; --soft: #9aa5b1;
  --faint: #66717e; --line: #2b333d; --head: #1d232b; --hover: #1f2a37; --accent: #6cb6f0; --grid: #333b45;
  --good: #4cc39b; --warn: #e6ad4f; --bad: #f08a5d; --shadow: none; }
:root[data-theme=light] { color-scheme: light; }
* { box-sizing: border-box; }
html { scroll-padding-top: 4rem; }
body { margin: 0; background: var(--bg); color: var(--text); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
.top { position: sticky; top: 0; z-index: 5; background: var(--card); border-bottom: 1px solid var(--line); }
.top div { max-width: 90rem; margin: 0 auto; padding: .6rem 1.5rem; display: flex; gap: 1.4rem; align-items: center; overflow-x: auto; }
.top strong { white-space: nowrap; }
.top a { color: var(--soft); text-decoration: none; white-space: nowrap; font-size: .92em; }
.top a:hover { color: var(--accent); }
.top button { margin-left: auto; }
button, input { font: inherit; font-size: .88em; color: inherit; background: var(--head); border: 1px solid var(--line);
  border-radius: 6px; padding: .2em .7em; }
button:hover { border-color: var(--accent); cursor: pointer; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
main { max-width: 90rem; margin: 0 auto; padding: 1.5rem 1.5rem 3rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: .3rem 0; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.4rem 0 .8rem; }
h3 { font-size: 1rem; margin: 0; }
.lead { color: var(--soft); margin: 0 0 1.2rem; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; box-shadow: var(--shadow);
  margin: 0 0 1.2rem; overflow: hidden; }
.card > header { display: flex; gap: .8rem; align-items: baseline; padding: .75rem 1rem; flex-wrap: wrap; }
.count { color: var(--soft); font-size: .85em; }
.filter { margin-left: auto; font-size: .85em; color: var(--soft); display: flex; gap: .5em; align-items: baseline; }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(9rem, 1fr)); gap: .8rem; margin: 0 0 1.2rem; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 10px; box-shadow: var(--shadow); padding: .7rem 1rem; }
.tile b { display: block; font-size: 1.5rem; line-height: 1.3; font-variant-numeric: tabular-nums; }
.tile span { color: var(--soft); font-size: .88em; }
.good b { color: var(--good); } .warn b { color: var(--warn); } .bad b { color: var(--bad); }
.scroll { overflow: auto; max-height: 36rem; border-top: 1px solid var(--line); }
table { border-collapse: separate; border-spacing: 0; font-size: .87rem; min-width: 100%; }
td, th { padding: .32rem .75rem; text-align: left; white-space: nowrap; unicode-bidi: isolate; }
td.long { white-space: normal; min-width: 20rem; overflow-wrap: anywhere; }
td.reason { white-space: normal; min-width: 24rem; overflow-wrap: anywhere; }
td { border-top: 1px solid transparent; }
thead { position: sticky; top: 0; z-index: 2; background: var(--head); }
thead th, thead td { background: var(--head); font-weight: 600; }
thead tr:last-child th { border-bottom: 1px solid var(--line); }
th.group { text-align: center; border-bottom: 1px solid var(--line); }
.sortable thead tr:last-child th { cursor: pointer; user-select: none; }
.sortable thead tr:last-child th:hover { color: var(--accent); }
th[aria-sort]::after { content: " \\2191"; color: var(--accent); }
th[aria-sort=descending]::after { content: " \\2193"; }
.unit { color: var(--soft); font-weight: 400; }
.n { text-align: right; font-variant-numeric: tabular-nums; }
.mark { color: var(--warn); }
.none { color: var(--faint); }
tbody tr:hover td { background: var(--hover); }
tr.new td { border-top-color: var(--line); }
table:not(.sorted) td.same { color: var(--faint); }
tfoot td, tfoot th { border-top: 1px solid var(--line); font-weight: 600; }
td b { color: var(--good); }
.notes { padding: .6rem 1rem; border-top: 1px solid var(--line); color: var(--soft); font-size: .84rem; }
.notes p { margin: .15rem 0; max-width: 75rem; overflow-wrap: anywhere; }
.notes:empty { display: none; }
.pictures { columns: 3 25rem; column-gap: 1.2rem; }
.pictures .card { break-inside: avoid; }
.pictures .wide { column-span: all; margin-top: 1.2rem; }
.pictures .wide svg { width: auto; max-width: 100%; max-height: none; margin: 0 auto; }
figure { margin: 0; padding: .2rem 1rem 1rem; }
figure svg { width: 100%; height: auto; max-height: 46rem; display: block; }
footer { max-width: 90rem; margin: 0 auto; padding: 0 1.5rem 2rem; color: var(--soft); font-size: .85em; }
code { font: .92em ui-monospace, "SF Mono", Consolas, monospace; }
.s { font-weight: 600; }
@media print { .top, .filter { display: none; } .scroll { max-height: none; overflow: visible; } body { background: #fff; }
  .card { break-inside: avoid; } }
"""

_SCRIPT = """
"use strict";
const key = cell => cell.dataset.v === undefined ? cell.textContent.trim() : Number(cell.dataset.v);
const isMark = cell => cell.matches(".mark, .none") || cell.textContent.trim() === "";
function compare(a, b, way) {
  if (isMark(a) || isMark(b)) return isMark(a) - isMark(b);
  const x = key(a), y = key(b);
  if (typeof x === "number" && typeof y === "number") return way * (x - y);
  return way * String(x).localeCompare(String(y), "en", { numeric: true });
}
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], rows = [...body.rows];
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  heads.forEach((head, column) => {
    const sort = () => {
      const now = head.getAttribute("aria-sort");
      heads.forEach(other => other.removeAttribute("aria-sort"));
      const next = now === "ascending" ? "descending" : now === "descending" ? null : "ascending";
      if (next) head.setAttribute("aria-sort", next);
      table.classList.toggle("sorted", next !== null);
      const way = next === "descending" ? -1 : 1;
      const order = next ? rows.slice().sort((a, b) => compare(a.cells[column], b.cells[column], way)) : rows;
      body.append(...order);
    };
    head.tabIndex = 0;
    head.title = "sort";
    head.addEventListener("click", sort);
    head.addEventListener("keydown", event => { if (event.key === "Enter") sort(); });
  });
}
for (const input of document.querySelectorAll(".filter input")) {
  const body = input.closest(".card").querySelector("tbody");
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\\s+/);
    for (const row of body.rows) row.hidden = !words.every(word => row.textContent.toLowerCase().includes(word));
  });
}
const theme = document.getElementById("theme");
if (theme) theme.addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
document.documentElement.dataset.ready = "yes";
"""


def page(title: str, body: str, *, wide: bool = False) -> str:
    """Write a page.

    Parameters
    ----------
    title : str
        Text.
    body : str
        Markup in which everything foreign is escaped.
    wide : bool
        Whether tables are as high as they are, because the page has nothing else.
    """
    digest = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    )
    style = _STYLE + (".scroll { max-height: none; }\n" if wide else "")
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="referrer" content="no-referrer">\n<title>{html.escape(title)}</title>\n'
        f"<style>{style}</style>\n</head>\n<body>\n{body}\n<script>{_SCRIPT}</script>\n</body>\n</html>\n"
    )
