"""The report in a real browser: no error on the console, tables that sort and filter, both themes."""

from __future__ import annotations

import html
import json
import re
import subprocess
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import cwb
import numpy as np
import pytest
from cwb.core.record import RunRecord
from cwb.core.schedule import sends_from_lists
from cwb.core.topology import Link, Node, Topology
from cwb.core.trace import SimulationMode, Trace
from cwb.reports.plots.html_page import page as schedule_page
from cwb.reports.plots.schedule_traffic import Traffic
from cwb.reports.report import report

pytestmark = pytest.mark.slow  # a browser is run

Make = Callable[..., RunRecord]

#: Presses what a reader presses and writes what is then shown into the page's title.
PRESS = """
const card = document.getElementById("table-summary");
const heads = [...card.querySelectorAll("thead tr:last-child th")];
const column = heads.findIndex(head => head.textContent.startsWith("Objective"));
const shown = () => [...card.querySelectorAll("tbody tr")].filter(row => !row.hidden)
  .map(row => row.cells[column].textContent).join(" ");
const said = [shown()];
heads[column].click(); said.push(shown());
heads[column].click(); said.push(shown());
heads[column].click(); said.push(shown());
const input = card.querySelector("input");
input.value = "RING  seed-7"; input.dispatchEvent(new Event("input")); said.push(shown());
input.value = ""; input.dispatchEvent(new Event("input")); said.push(shown());
const before = getComputedStyle(document.body).backgroundColor;
document.getElementById("theme").click();
said.push(String(before !== getComputedStyle(document.body).backgroundColor));
const head = card.querySelector("thead"), box = card.querySelector(".scroll");
box.scrollTop = 300;
said.push(String(Math.abs(head.getBoundingClientRect().top - box.getBoundingClientRect().top) < 3));
document.title = said.join("|");
"""


#: Measures the page, and tells the frame around it: by how much it is wider than the window, the least size of text in
#: plots and outside of them in pixels, and what is left free beside and below the cards of plots.
MEASURE = """
const box = document.querySelector(".plots").getBoundingClientRect(), rows = new Map();
for (const card of document.querySelectorAll(".plot")) {
  const at = card.getBoundingClientRect();
  rows.set(at.top, [...(rows.get(at.top) || []), at]);
}
let hole = 0;
for (const cards of rows.values()) {
  const ends = [box.left - 20, ...cards.map(card => card.right)];
  cards.forEach((card, index) => {
    hole = Math.max(hole, card.left - ends[index] - 20, Math.abs(card.bottom - cards[0].bottom));
  });
  hole = Math.max(hole, box.right - ends[ends.length - 1]);
}
const drawn = [...document.querySelectorAll("svg [id*='text_'] g[transform*='scale(']")].map(text => {
  const svg = text.closest("svg");
  const scale = Number(/scale\\(([0-9.]+)/.exec(text.getAttribute("transform"))[1]);
  return 100 * scale * svg.clientWidth / svg.viewBox.baseVal.width;
});
const written = [...document.body.querySelectorAll("*")].filter(element => element.checkVisibility()
  && [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim()))
  .map(element => parseFloat(getComputedStyle(element).fontSize));
parent.postMessage(JSON.stringify({ width: innerWidth, over: document.documentElement.scrollWidth - innerWidth, hole,
  plots: rows.size, texts: drawn.length, drawn: Math.min(...drawn), written: Math.min(...written) }), "*");
"""

#: A frame as wide as a screen, since Chromium's own window is never narrower than 500 pixels.
FRAME = """<!DOCTYPE html><title></title>
<script>addEventListener("message", told => document.title = told.data);</script>
<iframe src="report.html" style="border: 0; height: 900px; width: WIDTHpx"></iframe>
"""

#: Chooses in the filters and writes into the page's title what is then shown.
CHOOSE = """
const shown = selector => [...document.querySelectorAll(selector)].filter(element => element.checkVisibility());
const choose = (facet, text) => {
  const choice = document.querySelector(`select[data-facet="${facet}"]`);
  choice.value = [...choice.options].find(option => option.text === text).value;
  choice.dispatchEvent(new Event("input"));
};
const count = () => [shown("#table-summary tbody tr").length, shown(".heat td[data-f]").length,
  document.querySelectorAll("#plot-bandwidth g.series.off").length, shown("#table-forestcoll").length];
const said = [count()];
choose(0, "ring"); said.push(count(), [...new Set(shown(".heat td[data-f] span").map(name => name.textContent))]);
choose(1, "torus(3,3)"); said.push(count());
choose(2, "flow"); said.push(count());
choose(0, "all"); said.push(count());
choose(1, "all"); choose(2, "all"); said.push(count());
document.title = JSON.stringify(said);
"""


@pytest.fixture(scope="module")
def browse(
    tmp_path_factory: pytest.TempPathFactory, require_program: Callable[..., str]
) -> Callable[..., tuple[str, list[str]]]:
    """Open a file in Chromium and give what became of the page, and what the console said."""
    program = require_program("chromium", "chromium-browser", "google-chrome")
    profile = tmp_path_factory.mktemp("profile")

    def open_page(file: Path, *flags: str) -> tuple[str, list[str]]:
        command = [
            program,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
        ]
        command += [f"--user-data-dir={profile}", "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr"]
        command += ["--window-size=1300,1000", "--virtual-time-budget=4000", *flags, "--dump-dom", file.as_uri()]
        done = subprocess.run(command, capture_output=True, timeout=180, check=True)
        lines = done.stderr.decode(errors="replace").splitlines()
        return done.stdout.decode(errors="replace"), [line for line in lines if "CONSOLE" in line]

    return open_page


@pytest.fixture(scope="module")
def whole(wide: list[RunRecord]) -> str:
    """Make the report of a ledger with everything."""
    return report(wide)


def test_the_console_is_heard(browse: Callable[..., Any], tmp_path: Path) -> None:
    """An error of a script and a thing that a policy forbids are both heard, so that silence means something."""
    file = tmp_path / "wrong.html"
    policy = "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; script-src 'unsafe-inline'\">"
    file.write_text(
        f"<!DOCTYPE html><head>{policy}</head><body><img src='data:image/png;base64,AA'><script>nothing.here()</script>"
    )
    _, console = browse(file)
    assert any("nothing is not defined" in line for line in console)
    assert any("Content Security Policy" in line for line in console)


def test_no_error_on_the_console(browse: Callable[..., Any], whole: str, tmp_path: Path) -> None:
    """The report of a ledger with everything opens in silence, in both themes, and its script runs to its end."""
    file = tmp_path / "report.html"
    file.write_text(whole)
    for flags in ((), ("--force-dark-mode",)):
        page, console = browse(file, *flags)
        assert console == []
        assert 'data-ready="yes"' in page
        assert page.count("<svg") >= 8


def with_script(page: str, script: str) -> str:
    """Add a script of a test to a page, whose policy would not run it."""
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    return page.replace("</body>", f"<script>{script}</script></body>")


def title_of(page: str) -> Any:
    """Read what a script of a test wrote into the title of a page."""
    found = re.search(r"<title>(.*?)</title>", page)
    assert found
    return json.loads(html.unescape(found[1]))


def test_the_page_of_a_schedule_draws(browse: Callable[..., Any], tmp_path: Path) -> None:
    """The page of a schedule opens in silence, and its script comes to its last line."""
    topology = Topology((Node("a"), Node("b")), (Link("a", "b", Fraction(10**9)),))
    traffic = Traffic("one", topology, sends_from_lists([0], [0], [1], False, [[0]]), np.array([4096.0]))
    at, end = np.array([0.0]), np.array([4e-6])
    file = tmp_path / "schedule.html"
    file.write_bytes(
        schedule_page(traffic, Trace(SimulationMode.CONGESTION_AWARE, at, end, at, end, np.array([4e-6]), 4e-6))
    )
    page, console = browse(file)
    assert console == []
    assert "completed after 4 us" in page


#: Steps, chooses a rank, a link and the end, and writes into the page's title what is then shown.
PLAY = """
const drawn_of = kind => drawn.find(d => d[kind] !== undefined);
const said = [], net = document.getElementById("net"), text = () => document.getElementById("about").textContent;
const key = name => net.dispatchEvent(new KeyboardEvent("keydown", { key: name }));
const press = (x, y) => { const box = net.getBoundingClientRect();
  net.dispatchEvent(new MouseEvent("click", { clientX: box.left + x, clientY: box.top + y })); };
key("Home"); const begin = moment; key("ArrowRight"); said.push(begin, moment > 0);
const rank = drawn_of("unit"); press(rank.x, rank.y); said.push(text().split("\\n")[0]);
key("End"); said.push(moment === T, text().includes("still to come: none"));
key("Home"); key("ArrowRight"); const dot = drawn_of("bar");
press(dot.x, dot.y); said.push(text().startsWith("chunk "));
const at = drawn.find(d => d.link !== undefined && Math.hypot(d.at[4] - (d.at[0] + d.at[2]) / 2,
  d.at[5] - (d.at[1] + d.at[3]) / 2) > 20).at;  // a link that bends around others
const curve = k => 0.01 * at[k] + 0.18 * at[4 + k] + 0.81 * at[2 + k]; press(curve(0), curve(1));
said.push(marked >= 0 || text().startsWith("chunk "));
document.getElementById("play").click(); said.push(document.getElementById("play").textContent);
key(" "); said.push(document.getElementById("play").textContent);
said.push(document.documentElement.scrollWidth <= innerWidth, D.bound !== null, D.what);
document.title = JSON.stringify(said);
"""


def test_the_page_plays_a_schedule(browse: Callable[..., Any], tmp_path: Path) -> None:
    """Keys step and play, and clicks on ranks, links and chunks say what they are, without an error; nothing is wider
    than the window."""
    instance = cwb.load("torus(3,3)", collective="all_gather", size="1 MiB")
    run = cwb.solve(instance, "forestcoll", output=tmp_path / "s.json")
    assert run.certificate is not None
    page_file = cwb.view(tmp_path / "s.json", output=tmp_path / "view.html")
    page_file.write_text(with_script(page_file.read_text(), PLAY))
    page, console = browse(page_file)
    assert console == []
    begin, stepped, name, ended, complete, chunk, link, playing, paused, fits, bounded, colours = title_of(page)
    assert begin == 0
    assert stepped and ended and complete and chunk and link and fits and bounded
    assert name in {f"{rank}" for rank in instance.topology.ranks}
    assert (playing, paused) == ("pause", "play")
    assert colours == ["chunk", "root"]


def test_a_report_plays_in_a_frame(browse: Callable[..., Any], tmp_path: Path) -> None:
    """The policy of a report lets the script of a framed player run, and the console stays silent."""
    grid = {"models": "ring", "instances": "ring(3)", "collectives": "all_gather", "sizes": "1 MiB"}
    cwb.compare(output=tmp_path, schedules=True, **grid)
    file = cwb.report(tmp_path, output=tmp_path / "report.html")
    text = file.read_text().replace("<details class", "<details open class")
    file.write_text(text)
    assert browse(file)[1] == []
    reads = "onload = () => document.title = JSON.stringify(frames[0].document.getElementById('summary').textContent);"
    file.write_text(with_script(text.replace('sandbox="allow-scripts"', ""), reads))
    page, console = browse(file)
    assert console == []
    assert "completed after" in title_of(page)


#: Plays and steps by keys, and tells the frame around what became of it.
MOVE = """
const key = name => document.getElementById("net").dispatchEvent(new KeyboardEvent("keydown", { key: name }));
key(" "); const button = document.getElementById("play").textContent; key("ArrowRight");
parent.postMessage(JSON.stringify({ width: innerWidth, moment: moment / T, units: V.names.length, button,
  over: document.documentElement.scrollWidth - innerWidth, names: V.names.slice(0, 2) }), "*");
"""


@pytest.mark.parametrize("width", [1300, 400])
def test_many_ranks_play_by_boxes(width: int, browse: Callable[..., Any], tmp_path: Path) -> None:
    """More than 256 ranks are drawn as boxes, which play on the space bar; on a desk and on a phone nothing is wider
    than the window."""
    boxes = 33
    nodes = [Node(f"box{b}.gpu{g}") for b in range(boxes) for g in range(8)]
    ends = [(8 * b + g, 8 * ((b + 1) % boxes) + g) for b in range(boxes) for g in range(8)]
    topology = Topology((*nodes,), tuple(Link(nodes[a].name, nodes[b].name, Fraction(10**9)) for a, b in ends))
    source, target = (np.array(each).tolist() for each in zip(*ends, strict=True))
    chunk = np.arange(len(ends))
    sends = sends_from_lists(chunk.tolist(), source, target, False, [[link] for link in range(len(ends))])
    traffic = Traffic("boxes", topology, sends, np.full(len(ends), 4096.0))
    at = np.zeros(len(ends))
    end = at + 4e-6
    trace = Trace(SimulationMode.CONGESTION_AWARE, at, end, at, end, end, 4e-6)
    (tmp_path / "report.html").write_text(with_script(schedule_page(traffic, trace).decode(), MOVE))
    file = tmp_path / "frame.html"
    file.write_text(FRAME.replace("WIDTH", str(width)))
    page, console = browse(file)
    assert console == []
    found = title_of(page)
    assert found["width"] == width
    assert found["over"] <= 0
    assert found["units"] == boxes
    assert found["names"] == ["box0", "box1"]
    assert (found["button"], found["moment"]) == ("pause", 1)


@pytest.mark.parametrize("width", [1300, 400])
def test_the_page_is_legible_at_every_width(width: int, browse: Callable[..., Any], whole: str, tmp_path: Path) -> None:
    """On a desk and on a phone nothing is wider than the window, plots leave no holes, and no text is tiny."""
    (tmp_path / "report.html").write_text(with_script(whole, MEASURE))
    file = tmp_path / "frame.html"
    file.write_text(FRAME.replace("WIDTH", str(width)))
    page, console = browse(file)
    assert console == []
    found = title_of(page)
    assert found["width"] == width
    assert found["over"] <= 0
    assert found["hole"] <= 2
    assert found["plots"] >= 4
    assert found["texts"] > 100
    assert found["drawn"] >= 8
    assert found["written"] >= 11


def test_filters(browse: Callable[..., Any], whole: str, tmp_path: Path) -> None:
    """Method, instance and clock together choose rows, cells of gaps and lines of plots; empty tables disappear."""
    file = tmp_path / "report.html"
    file.write_text(with_script(whole, CHOOSE))
    page, console = browse(file)
    assert console == []
    everything, ring, names, torus, none, flow, again = title_of(page)
    assert names == ["ring"]
    assert ring[0] == ring[1] == 9
    assert torus[0] == torus[1] == 3
    assert none[0] == none[1] == none[3] == 0
    assert flow[0] == flow[1] == 3
    assert ring[2] > 0 == flow[2]
    assert again == everything


def test_foreign_text_runs_nothing(browse: Callable[..., Any], make_run: Make, tmp_path: Path) -> None:
    """Names that are scripts stay names: nothing runs, nothing is loaded, nothing is complained about."""
    hostile = (
        "</script></td><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\"> \u202e"
    )
    records = [
        make_run(model, t, status=status, message=hostile, instance=hostile, options={hostile: hostile}, host=hostile)
        for model, t, status in ((hostile, 1e-5, "feasible"), ("ring", 2e-5, "feasible"), ("x", None, "error"))
    ]
    file = tmp_path / "report.html"
    file.write_text(report(records, hostile))
    page, console = browse(file)
    assert console == []
    assert "<title>taken" not in page
    assert 'data-ready="yes"' in page
    assert "<img" not in page


def test_tables_sort_and_filter(browse: Callable[..., Any], make_run: Make, tmp_path: Path) -> None:
    """A heading sorts up, down and not at all, marks last; the field filters by words; headings stay in view; the theme
    turns."""
    records = [
        make_run("ring", 1e-5 * (1 + seed * 7 % 40), options={"name": f"seed-{seed}"}, seed=seed) for seed in range(40)
    ]
    records.append(make_run("bfb", None))
    file = tmp_path / "report.html"
    file.write_text(with_script(report(records), PRESS))
    shown, console = browse(file)
    assert console == []
    found = re.search(r"<title>(.*?)</title>", shown)
    assert found
    start, up, down, off, few, everything, themed, sticky = found[1].split("|")
    numbers = [float(text) for text in up.split()[:-1]]
    assert numbers == sorted(numbers)
    assert len(numbers) == 40
    assert up.split()[-1] == down.split()[-1] == "t.o."
    assert down.split()[:-1] == up.split()[:-1][::-1]
    assert off == start == everything
    assert few.split() == ["0.0001"]
    assert themed == "true"
    assert sticky == "true"
