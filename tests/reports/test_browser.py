"""The report in a real browser: no error on the console, tables that sort and filter, both themes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cwb.core.record import RunRecord
from cwb.reports.report import report

pytestmark = pytest.mark.slow  # a browser is run

Make = Callable[..., RunRecord]

#: Presses what a reader presses and writes what is then shown into the page's title.
PRESS = """
const card = document.getElementById("table-summary");
const heads = [...card.querySelectorAll("thead tr:last-child th")];
const column = heads.findIndex(head => head.textContent.startsWith("Objective"));
const shown = () => [...card.querySelectorAll("tbody tr")].filter(row => !row.hidden).map(row => row.cells[column].textContent).join(" ");
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


@pytest.fixture(scope="module")
def browse(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[str, list[str]]]:
    """Open a file in Chromium and give what became of the page, and what the console said."""
    program = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    if program is None:
        if os.environ.get("CI") == "true":
            pytest.fail("Chromium is not installed, but CI has to open the report")
        pytest.skip("Chromium is not installed")
    profile = tmp_path_factory.mktemp("profile")

    def opened(file: Path, *flags: str) -> tuple[str, list[str]]:
        command = [
            program,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
        ]
        command += [f"--user-data-dir={profile}", "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr"]
        command += ["--window-size=1400,1000", "--virtual-time-budget=4000", *flags, "--dump-dom", file.as_uri()]
        done = subprocess.run(command, capture_output=True, timeout=180, check=True)
        lines = done.stderr.decode(errors="replace").splitlines()
        return done.stdout.decode(errors="replace"), [line for line in lines if "CONSOLE" in line]

    return opened


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


def test_no_error_on_the_console(browse: Callable[..., Any], wide: list[RunRecord], tmp_path: Path) -> None:
    """The report of a ledger with everything opens in silence, in both themes, and its script runs to its end."""
    file = tmp_path / "report.html"
    file.write_text(report(wide))
    for flags in ((), ("--force-dark-mode",)):
        page, console = browse(file, *flags)
        assert console == []
        assert 'data-ready="yes"' in page
        assert page.count("<svg") >= 8


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
    page = report(records)
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)  # for the script of this test
    file = tmp_path / "report.html"
    file.write_text(page.replace("</body>", f"<script>{PRESS}</script></body>"))
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
