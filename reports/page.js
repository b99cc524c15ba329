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
  const words = input ? input.value.toLowerCase().split(/\s+/) : [], rows = [...table.tBodies[0].rows];
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
