"""Names that hold control characters, in everything that is written: no sink passes one on."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import cwb
import pytest
from click.testing import CliRunner
from cwb.cli.main import cwb as cli
from cwb.core.text import escape_html, escape_unprintable

pytestmark = pytest.mark.slow  # plots are drawn

ANSI = Path(__file__).parents[1] / "reference" / "defects3" / "ansi.json"

#: What no name may bring into a file: controls but line feeds and tabs, and what turns text around.
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufffe\uffff]")

EVERY = ["".join(map(chr, range(33))), "\x7f\x9b\u202e", "\ud800\ufffe\uffff", "--><script>alert(1)</script>"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Every file that is made of two answers on the network whose names are hostile."""
    folder = tmp_path_factory.mktemp("controls")
    for method in ("ring", "forestcoll"):
        words = ["solve", "--model", method, str(ANSI), "--collective", "all_gather", "--size", "3MB", "--quiet"]
        _run(*words, "-o", str(folder / f"{method}.json"), "--append", str(folder / "records.jsonl"))
    for kind in ("heatmap", "gantt", "utilization"):
        _run("plot", str(folder / "ring.json"), "--kind", kind, "-o", str(folder / f"{kind}.svg"))
    for kind in ("trees", "network", "map"):
        _run("plot", str(folder / "forestcoll.json"), "--kind", kind, "-o", str(folder / f"{kind}.svg"))
    _run("plot", str(ANSI), "-o", str(folder / "topology.svg"))
    _run("plot", str(folder / "ring.json"), "-o", str(folder / "schedule.html"))
    _run("plot", "performance-profile", str(folder / "records.jsonl"), "-o", str(folder / "profile.svg"))
    _run("report", str(folder / "records.jsonl"), "-o", str(folder / "report.html"))
    for form in ("latex", "md", "csv", "text", "html"):
        text = _run("table", "exact-heuristic", str(folder / "records.jsonl"), "--format", form)
        (folder / f"table.{form}").write_text(text)
    for form in ("msccl", "mscclpp", "chakra", "goal", "astra"):
        _run("export", form, str(folder / "ring.json"), "-o", str(folder / f"as-{form}"))
    (folder / "notebook.html").write_text(cwb.load(ANSI)._repr_html_())
    return [path for path in folder.rglob("*") if path.is_file()]


def _run(*words: str) -> str:
    done = CliRunner().invoke(cli, list(words))
    assert done.exit_code == 0, (words, done.output)
    assert not CONTROL.search(done.output), words
    return done.output


def test_no_control_reaches_a_file(files):
    """All text that is written, pictures and pages and tables and formats of other programs, is free of controls."""
    binary = {".et"}  # Chakra's traces, where a length may be any byte
    for path in files:
        if path.suffix not in binary:
            found = CONTROL.search(path.read_text())
            assert found is None, (path.name, found)


def test_pictures_are_well_formed(files):
    """Every SVG file is XML."""
    pictures = [path for path in files if path.suffix == ".svg"]
    assert len(pictures) == 8
    for path in pictures:
        ElementTree.fromstring(path.read_bytes())  # noqa: S314 (written here)


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text += data


def test_pages_have_elements_of_their_own_alone(files):
    """No name is an element of a page, and titles show what it holds."""
    for path in files:
        if path.suffix == ".html":
            page = _Page()
            page.feed(path.read_text())
            assert page.tags.count("script") <= 2, path.name
            assert "img" not in page.tags, path.name
            assert path.name == "table.html" or r"\x1b" in page.text, path.name


@pytest.mark.parametrize("text", EVERY)
def test_markup_is_well_formed(text):
    """Whatever a text holds, it is text in an element and in an attribute, and is read as it is printed."""
    root = ElementTree.fromstring(f'<a b="{escape_html(text)}">{escape_html(text)}</a>')  # noqa: S314 (written here)
    assert root.text == escape_unprintable(text, lines=True)


def test_controls_in_names_stay_in_the_files_of_cwb(files):
    """A schedule file keeps a name as it is: JSON writes its controls as escapes."""
    (path,) = (path for path in files if path.name == "ring.json")
    assert json.loads(path.read_text())["instance"]["network"]["nodes"]["name"][0].startswith("\x1b[31m")
