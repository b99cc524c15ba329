"""Printed numbers are computed from runs, each run once, and every row gets a verdict."""

from __future__ import annotations

import pytest
from cwb.bench import reproduce as module
from cwb.bench.reproduce import cells_of, chosen, counts, load_paper, papers, reproduce
from cwb.core.errors import InputError
from cwb.core.published import Agreement, PublishedFile
from cwb.instances import load
from cwb.models import registry

RUNS = {
    "ring": {"model": "ring"},
    "direct": {"model": "direct"},
    "seeds": {"model": "ring", "seeds": [0, 1]},
    "broken": {"model": "ring", "instance": "torus(0)"},
    "slow": {"model": "ring", "slow": True},
}
DEFAULT = {"instance": "torus(4,4)", "collective": "all_reduce", "size": "16 MiB"}


def paper(*quantities: dict) -> PublishedFile:
    """A paper that prints the number 1 for each quantity."""
    place = {"table": "Table 1", "row": "a", "section": "1", "printed": "1"}
    rows = [place | ({"ours": quantity} if quantity else {"needs": "GPUs"}) for quantity in quantities]
    return PublishedFile.model_validate({"title": "t", "source": "s", "default": DEFAULT, "runs": RUNS, "row": rows})


def found(*quantities: dict, **more: object) -> list:
    """Findings of such a paper."""
    published = paper(*quantities)
    return reproduce(published, published.row, **more)


def test_quantities_are_combined():
    """A ratio of a run to itself is one; differences, sums, extremes and units are what they say."""
    ring = {"run": "ring"}
    findings = found(
        {"ratio": [ring, ring]},
        {"difference": [ring, ring]},
        {"ratio": [{"total": [ring, ring]}, {"mean": [ring, ring]}]},
        {"ratio": [{"least": [ring, {"run": "direct"}]}, {"largest": [ring, {"run": "direct"}]}]},
        {"ratio": [{"run": "ring", "times": "1/4"}, ring]},
        {"ratio": [{"run": "seeds", "over": "largest"}, ring]},
    )
    values = [finding.ours for finding in findings]
    assert values[:3] == [1, 0, 2]
    assert 0 < values[3] <= 1
    assert values[4:] == [0.25, 1]


def test_words_and_values_of_a_record():
    """Status, metrics and sizes can be asked for."""
    status, metric, size = found(
        {"run": "ring", "value": "status"},
        {"run": "ring", "value": "metrics.completion_time_s"},
        {"run": "ring", "value": "size.variables"},
    )
    assert status.ours in ("optimal", "feasible")
    assert metric.ours > 0
    assert size.ours == 0


def test_every_row_has_a_verdict():
    """Hardware, slow runs, missing values and failing runs are verdicts with reasons."""
    hardware, slow, missing, broken = found(
        {}, {"run": "slow"}, {"run": "ring", "value": "metrics.none"}, {"run": "broken"}, quick=True
    )
    assert (hardware.agreement, hardware.reason) == (Agreement.UNCHECKED, "needs GPUs")
    assert slow.agreement is Agreement.NOT_RUN
    assert missing.agreement is Agreement.FAILED
    assert "no metrics.none" in missing.reason
    assert broken.agreement is Agreement.FAILED
    assert "torus" in broken.reason
    assert counts([hardware, slow, missing, broken])["failed"] == 2


def test_a_run_is_made_once(monkeypatch):
    """Two rows that need the same run share its record."""
    made = []
    original = module.run_cell
    monkeypatch.setattr(module, "run_cell", lambda cell: made.append(cell) or original(cell))
    found({"run": "ring"}, {"ratio": [{"run": "ring"}, {"run": "seeds"}]})
    assert len(made) == 3


@pytest.mark.parametrize("name", papers())
def test_the_shipped_papers_can_be_planned(name):
    """Every file is read; its runs name methods that exist and instances that load."""
    published = load_paper(name)
    for run in published.runs:
        for cell in cells_of(published, run):
            assert cell.request.model in registry.names()
            load(cell.instance)


def test_there_are_five_papers():
    """One file for each paper that cwb implements."""
    assert papers() == ("direct-connect", "dissertation", "forestcoll", "mtree", "te-ccl")


def test_unknown_papers_and_tables_are_told():
    """The message has what there is."""
    with pytest.raises(InputError, match="did you mean 'te-ccl'"):
        load_paper("teccl")
    with pytest.raises(InputError, match="expected one of Table 1"):
        chosen(paper({"run": "ring"}), "Table 9")
