"""Pages: tables as HTML, plots inside a page, the report; nothing foreign is markup."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest
from cwb.core.record import RunRecord
from cwb.core.text import escape_html
from cwb.reports import cards as cards_module
from cwb.reports.page import fragment, inline
from cwb.reports.plots import get as get_plot
from cwb.reports.report import reason, report
from cwb.reports.table import build
from cwb.reports.tables import TABLES, get
from draws import NIGHTLY, draws
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.slow  # whole reports are made

Make = Callable[..., RunRecord]

HOSTILE = (
    "</td></script><script>alert(1)</script><img src=x onerror=alert(1)> "
    "\"'&amp; \u202e \x00 \ud800 <!-- ]]> javascript:"
)

_VOID = {"meta", "br", "input", "img", "hr", "link"}


class Reader(HTMLParser):
    """Reads a page: which elements there are, whether each is closed, and their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[str] = []
        self.names: list[str] = []
        self.links: list[str] = []
        self.handlers: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        if tag not in _VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.names.append(value or "")
            if name in ("href", "src", "xlink:href", "action", "srcset", "data"):
                self.links.append(value or "")
            if name.startswith("on"):
                self.handlers.append(name)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open
        assert self.open[-1] == tag
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def read(page: str) -> Reader:
    """Read a page and check that it is sound and needs nothing else."""
    page.encode()
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    assert len(reader.names) == len(set(reader.names))
    assert all(link.startswith("#") for link in reader.links), reader.links
    assert reader.handlers == []
    assert reader.elements.count("script") <= 1
    assert not {"iframe", "object", "embed", "link", "img", "image", "base", "form"} & set(reader.elements)
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)
    return reader


def only_tables(records: list[RunRecord], monkeypatch: pytest.MonkeyPatch) -> str:
    """Make a report without plots, which take seconds."""
    monkeypatch.setattr(cards_module, "CARDS", {})
    return report(records)


@pytest.fixture(scope="module")
def page(wide: list[RunRecord]) -> str:
    return report(wide, "A report & more")


def test_the_report_is_whole(page: str, wide: list[RunRecord]) -> None:
    """The page is sound, needs nothing else, and has every table, plot, failure and machine."""
    reader = read(page)
    assert {f"table-{name}" for name in TABLES} <= set(reader.names)
    assert {f"plot-{name}" for name in cards_module.CARDS} <= set(reader.names)
    text = " ".join(reader.texts)
    for record in wide:
        if record.status not in ("optimal", "feasible") and record.message:
            assert record.message in text
    assert "rank 3 lacks chunk 2" in text
    assert "reported before it was stopped: objective 1.0, of solver (not verified)" in text
    assert "a CPU" in text
    assert "3.11.7" in text


def test_the_same_records_make_the_same_report(page: str, wide: list[RunRecord]) -> None:
    """The same records in another order make the same bytes."""
    assert report(wide[::-1], "A report & more") == page


def test_the_policy_allows_our_script_alone(page: str) -> None:
    """The policy names the digest of the one script, and allows nothing to be loaded."""
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert f"script-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe-eval" not in policy


def test_foreign_text_is_text(make_run: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever stands in names, messages, options, versions and metrics, the page has the elements that it has
    without."""
    fields: dict[str, Any] = {
        "model": HOSTILE,
        "instance": HOSTILE,
        "message": HOSTILE,
        "solver": HOSTILE,
        "solver_version": HOSTILE,
        "host": HOSTILE,
        "cwb_version": HOSTILE,
        "collective": HOSTILE,
        "options": {HOSTILE: HOSTILE},
        "objective_unit": HOSTILE,
        "started_at": HOSTILE,
        "violations": (HOSTILE,),
        "environment": {"cpu": HOSTILE, "packages": {HOSTILE: HOSTILE}},
        "incumbent": {HOSTILE: HOSTILE},
        "stopped": HOSTILE,
    }
    reader = read(
        only_tables([make_run(status=status, **fields) for status in ("error", "feasible", HOSTILE)], monkeypatch)
    )
    assert "alert(1)" in " ".join(reader.texts)
    assert reader.elements.count("script") == 1


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=3,
)
_names = st.sampled_from(["ring", "teccl", "mtree", "libra", "themis", "blink"]) | st.text(max_size=6)
_metrics = st.dictionaries(
    st.sampled_from(["algbw_GBps", "busbw_GBps", "timing", "pieces", "T_B", "alpha_beta_time_s", "epoch_duration_s"]),
    _json,
    max_size=4,
)
_fields = st.fixed_dictionaries(
    {},
    optional={
        "model": _names,
        "instance": st.text(max_size=6),
        "kind": st.sampled_from(["exact", "heuristic", "relaxation", "x"]),
        "status": st.sampled_from(["optimal", "feasible", "limit", "error", "x"]),
        "verified": st.sampled_from([True, False, None]),
        "objective": _json,
        "bound": _json,
        "sense": st.sampled_from(["minimize", "maximize"]),
        "metrics": _metrics,
        "seconds": st.dictionaries(st.sampled_from(["build", "total", "verify"]), _json, max_size=3),
        "options": st.dictionaries(st.text(max_size=4), _json, max_size=2),
        "limits": st.dictionaries(st.just("time_limit_s"), _json, max_size=1),
        "size": st.dictionaries(st.just("variables"), _json, max_size=1),
        "solver": st.sampled_from([None, "highs", "scip"]),
        "environment": st.dictionaries(st.sampled_from(["cpu", "packages"]), _json, max_size=2),
        "history": st.lists(
            st.dictionaries(st.sampled_from(["objective", "of", "seconds"]), _json) | _json, max_size=3
        ),
    },
)


@settings(max_examples=draws(40), suppress_health_check=list(HealthCheck))
@given(data=st.lists(_fields, min_size=1, max_size=5))
def test_any_record_makes_a_report(data: list[dict[str, Any]], make_run: Make) -> None:
    """Whatever is in the fields of records, all tables, failures and machines are told on a sound page.

    ``read`` asserts it.
    """
    records = [make_run(**fields) for fields in data]
    with pytest.MonkeyPatch.context() as patch:
        read(only_tables(records, patch))


@settings(
    max_examples=10 if NIGHTLY else 2, suppress_health_check=list(HealthCheck), phases=(Phase.explicit, Phase.generate)
)
@given(data=st.lists(_fields, min_size=2, max_size=4))
def test_any_record_can_be_drawn(data: list[dict[str, Any]], make_run: Make) -> None:
    """Whatever is in the fields of records, a plot is drawn or refused with what is expected.

    ``read`` asserts it.
    """
    from cwb.core.errors import InputError

    records = [make_run("ring"), make_run("bfb", 3e-5), *(make_run(**fields) for fields in data)]
    for name in cards_module.CARDS:
        try:
            svg = get_plot(name)(records, "svg")
        except InputError:
            continue
        read(inline(svg, name, "a plot"))


def test_pictures_do_not_clash(wide: list[RunRecord]) -> None:
    """Two plots in one page share no identifier, keep their references, and bring no style of their own."""
    svg = get_plot("bandwidth")(wide, "svg")
    page = f"<div>{inline(svg, 'one', 'a')}{inline(svg, 'two', 'b')}</div>"
    reader = read(page)
    assert {link[1:] for link in reader.links} <= set(reader.names)
    assert set(re.findall(r"url\(#([^)]+)\)", page)) <= set(reader.names)
    assert "<style" not in page
    assert "<metadata" not in page
    assert "#000000" not in page


def test_a_long_table_is_cut_and_says_so(make_run: Make) -> None:
    """Of more rows than a page holds the first are written, and how many there are."""
    table = build(get("summary"), [make_run(seed=seed) for seed in range(50)])
    text = fragment(table, "x", most=10)
    assert text.count("<tr") == 11
    assert "The first 10 of 50 rows" in text
    assert "filter" not in text
    assert "filter" in fragment(table, "x")


def test_failures_have_reasons(make_run: Make) -> None:
    """The reason of a failure is its message and what the verifier found; without any that is said."""
    assert reason(make_run(message="a", violations=("b", "c"))) == "a; b; c"
    assert reason(make_run()) == "no reason was recorded"


def test_without_failures_that_is_said(make_run: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger without failures says so."""
    assert "every run gave an answer" in only_tables([make_run()], monkeypatch)


def test_escape() -> None:
    """Characters that HTML forbids are written as escapes, its markup characters as entities."""
    assert escape_html("<&\"'>\x00\ud800\ufffe") == r"&lt;&amp;&quot;&#x27;&gt;\x00\ud800\ufffe"
