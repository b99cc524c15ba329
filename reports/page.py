"""Frame of pages: one style, light and dark, one small script, no external resource.

The policy in the head lets a browser load nothing and run no script but this one, whatever a record holds.
"""

from __future__ import annotations

import base64
import hashlib

from ..core.text import markup

_STYLE = """
:root { color-scheme: light dark; --bg: #f4f5f7; --card: #fff; --text: #1c2128; --soft: #59636e; --faint: #6e7883;
  --line: #dfe3e8; --head: #f7f8fa; --hover: #eef4fb; --accent: #0063a3; --grid: #dddddd;
  --good: #00704f; --warn: #8f5a00; --bad: #b23a00; --shadow: 0 1px 2px rgb(20 30 45 / .07), 0 1px 8px rgb(20 30 45 / .04); }
@media (prefers-color-scheme: dark) { :root:not([data-theme=light]) { --bg: #0f1318; --card: #171c23; --text: #e4e8ed; --soft: #9aa5b1;
  --faint: #84909d; --line: #2b333d; --head: #1d232b; --hover: #1f2a37; --accent: #6cb6f0; --grid: #333b45;
  --good: #4cc39b; --warn: #e6ad4f; --bad: #f08a5d; --shadow: none; } }
:root[data-theme=dark] { color-scheme: dark; --bg: #0f1318; --card: #171c23; --text: #e4e8ed; --soft: #9aa5b1;
  --faint: #84909d; --line: #2b333d; --head: #1d232b; --hover: #1f2a37; --accent: #6cb6f0; --grid: #333b45;
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
.notes summary { cursor: pointer; }
.plots { display: flex; flex-wrap: wrap; gap: 1.2rem; }
.plot { flex: var(--panels) 1 calc(var(--panels) * 18rem + var(--legend) + 2.2rem); min-width: min(100%, 20rem); max-width: 100%;
  margin: 0; }
.plot.whole { flex: 1 1 100%; }
figure { margin: 0; padding: 0 1rem 1rem; display: flex; flex-wrap: wrap; gap: .6rem 1rem; }
.question, .reading { flex-basis: 100%; margin: 0; max-width: 75rem; }
.question { font-weight: 600; }
.reading { color: var(--soft); font-size: .84rem; overflow-wrap: anywhere; }
.panels { flex: var(--panels) 1 min(100%, var(--panels) * 18rem); max-width: calc(var(--panels) * 25rem); min-width: 0; display: grid; gap: .8rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 16rem), 1fr)); }
.panel { min-width: 0; overflow-x: auto; }
.panel h4 { margin: 0; font-size: .84rem; font-weight: 600; overflow-wrap: anywhere; }
.panel svg { width: 100%; height: auto; max-height: 30rem; display: block; }
.legend { list-style: none; margin: 0; padding: 0; flex: 1 1 var(--legend); font-size: .84rem; columns: var(--legend); column-gap: 1rem; }
.legend li { display: flex; gap: .5em; align-items: center; break-inside: avoid; overflow-wrap: anywhere; }
.legend svg { flex: none; width: 2.2em; height: auto; }
.series.off { opacity: .12; }
.heat-scroll { flex-basis: 100%; min-width: 0; overflow-x: auto; }
.heat { border-spacing: 2px; font-size: .84rem; min-width: 0; }
.heat thead, .heat thead th, .heat thead td { background: none; border: 0; position: static; vertical-align: bottom; }
.heat thead span { writing-mode: vertical-rl; transform: rotate(180deg); white-space: nowrap; }
.heat th { font-weight: 400; padding: .15rem .6rem .15rem 0; }
.heat thead th { padding: .3rem 0; text-align: center; }
.heat td { text-align: center; padding: .15rem .4rem; border: 0; border-radius: 4px; }
.heat td b { color: inherit; font-weight: 600; font-variant-numeric: tabular-nums; }
.heat td span { display: none; }
.heat td.none { background: var(--head); color: var(--soft); }
.heat td.off { visibility: hidden; }
.scale { list-style: none; margin: 0; padding: 0; flex-basis: 100%; display: flex; flex-wrap: wrap; font-size: .8rem; }
.scale li { padding: .1rem .5rem; }
.scale li:first-child { padding-left: 0; }
footer { max-width: 90rem; margin: 0 auto; padding: 0 1.5rem 2rem; color: var(--soft); font-size: .85em; }
code { font: .92em ui-monospace, "SF Mono", Consolas, monospace; }
.s { font-weight: 600; }
.filters { padding-top: 0 !important; flex-wrap: wrap; font-size: .86rem; color: var(--soft); }
.filters select { font: inherit; color: var(--text); background: var(--head); border: 1px solid var(--line);
  border-radius: 6px; padding: .15em .3em; max-width: 16rem; }
@media (max-width: 45rem) {
  main { padding: .8rem .7rem 2rem; } .top { position: static; } .top div { padding: .5rem .7rem; gap: .5rem .9rem; flex-wrap: wrap; }
  footer { padding: 0 .7rem 2rem; } h2 { margin-top: 1.6rem; } figure { padding: 0 .6rem .8rem; } .card > header { padding: .6rem; }
  .tiles { grid-template-columns: repeat(auto-fill, minmax(6.2rem, 1fr)); gap: .5rem; } .tile { padding: .45rem .6rem; }
  td, th { padding: .3rem .5rem; } td.long, td.reason { min-width: 13rem; } .filters select { max-width: 9rem; }
}
@media print { .top, .filter { display: none; } .scroll { max-height: none; overflow: visible; } body { background: #fff; }
  .card { break-inside: avoid; } }
"""

#: A heat table as lines: every problem with the cells of its methods, which say their names.
_LINES = """TABLE, TABLE tbody { display: block; } TABLE thead, TABLE td.empty, TABLE td.off { display: none; }
TABLE tr { display: flex; flex-wrap: wrap; gap: 3px; padding: .35rem 0; border-top: 1px solid var(--line); }
TABLE tbody { columns: 26rem; column-gap: 1.5rem; } TABLE tr { break-inside: avoid; } TABLE tr[hidden] { display: none; }
TABLE th { flex-basis: 100%; white-space: normal; overflow-wrap: anywhere; }
TABLE td { white-space: normal; overflow-wrap: anywhere; text-align: left; } TABLE td span { display: inline; }
"""

#: Backgrounds of gaps from small to large: even samples of matplotlib's cividis, which colour-blind readers can tell
#: apart; the first four with dark text, the others with light text, so that the contrast is 4.9 or more.
_TONES = ("#fee838", "#d9c55c", "#b1a570", "#8e8978", "#6c6e72", "#4c556c", "#213b6e", "#00224e")

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
const choices = [...document.querySelectorAll("select[data-facet]")];
const wanted = () => choices.map(choice => [Number(choice.dataset.facet), choice.value]).filter(([, value]) => value !== "");
const fits = (element, facets) => element.dataset.f === undefined || element.dataset.f.split(" ").some(run => {
  const parts = run.split(",");
  return facets.every(([facet, value]) => parts[facet] === value);
});
function filterTable(table, facets) {
  const card = table.closest(".card"), input = card.querySelector(".filter input"), count = card.querySelector(".count");
  const words = input ? input.value.toLowerCase().split(/\\s+/) : [], rows = [...table.tBodies[0].rows];
  let left = 0;
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !(fits(row, facets) && words.every(word => text.includes(word)));
    left += !row.hidden;
  }
  if (count) {
    count.dataset.all ??= count.textContent;
    count.textContent = left < rows.length ? left + " of " + count.dataset.all : count.dataset.all;
  }
  card.hidden = facets.length > 0 && left === 0;
}
function filterHeat(table, facets) {
  const used = new Set();
  for (const row of table.tBodies[0].rows) {
    let left = 0;
    for (const cell of row.cells) if (cell.dataset.f !== undefined) {
      const off = !fits(cell, facets);
      cell.classList.toggle("off", off);
      if (!off) { left++; used.add(cell.cellIndex); }
    }
    row.hidden = left === 0;
  }
  for (const row of table.rows) for (const cell of row.cells) if (cell.cellIndex) cell.hidden = !used.has(cell.cellIndex);
}
function filterPlot(card, facets) {
  const method = facets.find(([facet]) => facet === 0), off = new Map();
  for (const entry of card.querySelectorAll("li.series")) off.set(entry.dataset.s,
    method !== undefined && entry.dataset.m !== undefined && entry.dataset.m !== method[1]);
  for (const element of card.querySelectorAll(".series")) element.classList.toggle("off", off.get(element.dataset.s) === true);
}
function filterAll() {
  const facets = wanted();
  for (const table of document.querySelectorAll("table.sortable")) filterTable(table, facets);
  for (const table of document.querySelectorAll("table.heat")) filterHeat(table, facets);
  for (const card of document.querySelectorAll(".plot")) filterPlot(card, facets);
  const said = document.getElementById("filtered");
  if (said) said.textContent = facets.length ? "Tables and gaps show these runs; plots show all, other methods faded." : "";
}
for (const input of document.querySelectorAll(".filter input, select[data-facet]")) input.addEventListener("input", filterAll);
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
    body : str
        Markup in which everything foreign is escaped.
    wide : bool
        Whether tables have their full height, because the page has nothing else.
    """
    digest = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    )
    tones = "".join(
        f".h{k} {{ background: {tone}; color: {'#111' if k < 4 else '#fff'}; }}\n" for k, tone in enumerate(_TONES)
    )
    lines = _LINES.replace("TABLE", ".heat.lines"), _LINES.replace("TABLE", ".heat")
    style = f"{_STYLE}{tones}{lines[0]}@media (max-width: 45rem) {{\n{lines[1]}}}\n"
    style += ".scroll { max-height: none; }\n" if wide else ""
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="referrer" content="no-referrer">\n<title>{markup(title)}</title>\n'
        f"<style>{style}</style>\n</head>\n<body>\n{body}\n<script>{_SCRIPT}</script>\n</body>\n</html>\n"
    )
