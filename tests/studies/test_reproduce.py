"""Printed numbers are computed from runs, each run once, and every row gets a verdict."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from cwb.core.errors import InputError
from cwb.core.fields import run_validation
from cwb.core.paper_results import Agreement, PublishedFile, PublishedNetwork, PublishedRun
from cwb.harness import registry
from cwb.instances import load
from cwb.studies import reproduce as module
from cwb.studies.reproduce import cells_of, counts, findings_of, load_paper, papers, select_rows
from cwb.studies.topology_finder import assessment as networks

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


def paper_findings(*quantities: dict, **more: object) -> list:
    """Findings of such a paper."""
    published = paper(*quantities)
    return findings_of(published, published.row, **more)


def test_quantities_are_combined():
    """A ratio of a run to itself is one; differences, sums, extremes and units are what they say."""
    ring = {"run": "ring"}
    findings = paper_findings(
        {"ratio": [ring, ring]},
        {"difference": [ring, ring]},
        {"ratio": [{"total": [ring, ring]}, {"mean": [ring, ring]}]},
        {"ratio": [{"least": [ring, {"run": "direct"}]}, {"largest": [ring, {"run": "direct"}]}]},
        {"ratio": [{"run": "ring", "times": "1/4"}, ring]},
        {"ratio": [{"run": "seeds", "over": "largest"}, ring]},
        {"ratio": [{"run": "seeds", "over": "total"}, ring]},
        {"difference": [{"number": "1/2"}, {"number": "0.25"}]},
        {"run": "seeds", "value": "status", "over": "commonest"},
    )
    values = [finding.ours for finding in findings]
    assert values[:3] == [1, 0, 2]
    assert 0 < values[3] <= 1
    assert values[4:] == [0.25, 1, 2, 0.25, "feasible"]


def test_networks_are_counted():
    """Ranks, nodes with switches, and links of a network; a fabric of dimensions has none of them."""
    counted = paper_findings(*({"network": "star(3)", "value": what} for what in ("ranks", "nodes", "links")))
    assert [finding.ours for finding in counted] == [3, 4, 6]
    (none,) = paper_findings({"network": "RI(4)_SW(8)", "value": "links"})
    assert (none.agreement, "no nodes and links" in none.reason) == (Agreement.FAILED, True)


def test_words_and_values_of_a_record():
    """Status, metrics and sizes can be asked for."""
    status, metric, size = paper_findings(
        {"run": "ring", "value": "status"},
        {"run": "ring", "value": "metrics.completion_time_s"},
        {"run": "ring", "value": "size.variables"},
    )
    assert status.ours in ("optimal", "feasible")
    assert metric.ours > 0
    assert size.ours == 0


def test_a_run_stands_for_combinations_of_its_lists():
    """Names in braces are put into expressions, sizes, options and the paper's own instances; a list's entry can be
    asked for."""
    document = {"schema": "cwb-instance/1", "name": "own", "network": "torus({side},4)"}
    more = {"each": {"side": [4, 6], "size": ["1 MiB", "4 MiB"]}, "size": "{size}"}
    runs = {
        "expression": {"model": "ring", "instance": "torus({side},4)", **more},
        "own": {"model": "ring", "instance": "own", **more, "seeds": [0, 1]},
        "fabric": {"model": "blueconnect", "instance": "RI(4)_SW(2)", "options": {"bandwidth": ["{b} GB/s", "1 GB/s"]},
            "each": {"b": [1]}},
    }  # fmt: skip
    quantities = [
        {"ratio": [{"run": "expression"}, {"run": "own"}]},
        {"ratio": [{"run": "expression", "over": "geomean"}, {"geomean": [{"run": "own", "over": "geomean"}]}]},
        {"ratio": [{"run": "own", "over": "largest"}, {"run": "own", "over": "least"}]},
        {"ratio": [{"run": "fabric", "value": f"metrics.dimension_busy_s.{d}"} for d in (0, 1)]},
        {"run": "fabric", "value": "metrics.dimension_busy_s.9"},
    ]
    place = {"table": "Table 1", "row": "a", "section": "1", "printed": "1"}
    rows = [place | {"ours": quantity} for quantity in quantities]
    data = {"title": "t", "source": "s", "default": DEFAULT, "runs": runs, "instances": {"own": document}, "row": rows}
    published = PublishedFile.model_validate(data)
    same, mean, spread, entry, none = findings_of(published, published.row)
    assert (same.ours, mean.ours) == (1, 1)
    assert spread.ours > 1
    assert entry.ours == pytest.approx(6)
    assert none.agreement is Agreement.FAILED


def test_every_row_has_a_verdict():
    """Hardware, slow runs, missing values and failing runs are verdicts with reasons."""
    hardware, slow, missing, broken = paper_findings(
        {}, {"run": "slow"}, {"run": "ring", "value": "metrics.none"}, {"run": "broken"}, quick=True
    )
    assert (hardware.agreement, hardware.reason) == (Agreement.UNCHECKED, "needs GPUs")
    assert slow.agreement is Agreement.NOT_RUN
    assert missing.agreement is Agreement.FAILED
    assert "no metrics.none" in missing.reason
    assert broken.agreement is Agreement.FAILED
    assert "torus" in broken.reason
    assert counts([hardware, slow, missing, broken])["failed"] == 2


def test_ctrl_c_keeps_the_rows_that_were_computed(monkeypatch):
    """The run that is stopped is compared with nothing, and what needs later runs is not run."""
    original = module.run_cell

    def stop_at_the_second(cell, stop):
        record = original(cell, stop)
        if cell.request.model == "direct":
            signal.raise_signal(signal.SIGINT)
        return record

    monkeypatch.setattr(module, "run_cell", stop_at_the_second)
    before, during, after = paper_findings({"run": "ring"}, {"run": "direct"}, {"run": "seeds"})
    assert before.agreement is Agreement.DIFFERS
    assert [(row.agreement, row.reason) for row in (during, after)] == [(Agreement.NOT_RUN, "stopped")] * 2


def test_ctrl_c_breaks_off_what_asks_no_budget(monkeypatch):
    """The topology finder has no budget: a signal ends it at once, and a solver of it that takes the signal too."""
    from cwb.core.paper_results import PublishedNetwork
    from cwb.studies.topology_finder import assessment as networks

    def endless(wanted, nodes):
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        until = time.monotonic() + 30
        while time.monotonic() < until:
            time.sleep(0.01)
        raise AssertionError("nobody has stopped it")

    before = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        monkeypatch.setattr(module, "run_finder", endless)
        with module.stop_on_interrupt(threading.Event()), pytest.raises(KeyboardInterrupt):
            module._network("n", PublishedNetwork(nodes=8, degree=2), 8)
    finally:
        signal.signal(signal.SIGALRM, before)

    def stop_run(instance, solver, budget, classes):
        budget.stop.set()

    monkeypatch.setattr(networks, "bound", stop_run)
    monkeypatch.setattr(networks, "network_of", lambda *_: load("ring(3)").network)
    with pytest.raises(KeyboardInterrupt):
        networks._solved_rate(SimpleNamespace(nodes=3), None, 10)


def test_a_run_is_made_once(monkeypatch):
    """Two rows that need the same run share its record."""
    made = []
    original = module.run_cell
    monkeypatch.setattr(module, "run_cell", lambda cell, stop: made.append(cell) or original(cell, stop))
    paper_findings({"run": "ring"}, {"ratio": [{"run": "ring"}, {"run": "seeds"}]})
    assert len(made) == 3


@pytest.mark.parametrize("name", papers())
def test_the_shipped_papers_can_be_planned(name, tmp_path):
    """Every file is read; its runs name methods that exist and instances that load."""
    published = load_paper(name)
    for run in published.runs:
        for cell in cells_of(published, run, tmp_path):
            assert cell.request.model in registry.names()
            load(cell.instance)


def test_trees_are_simulated_in_a_number_of_pieces():
    """With as many pieces as MTree itself chooses at least, its trees take no longer than with one; what has no trees
    is a failure."""
    place = {"table": "Table 1", "row": "a", "section": "1", "printed": "1"}
    runs = {
        name: {"model": model, "instance": "figure", "pieces": pieces}
        for name, model, pieces in (("one", "gost", 1), ("many", "gost", 50), ("none", "plink", 1))
    }
    links = [{"source": a, "target": b, "bandwidth": "1 GB/s", "latency": "1 ms", "bidirectional": True} for a,
        b in ("ab", "bc")]  # fmt: skip
    figure = {
        "schema": "cwb-instance/1",
        "name": "f",
        "network": {"nodes": [{"name": n} for n in "abc"], "links": links},
    }
    simulated = [{"run": name, "value": "metrics.simulated_s"} for name in runs]
    whole = {"run": "one", "value": "metrics.unpipelined_time_s"}
    rows = [place | {"ours": quantity} for quantity in (*simulated, whole)]
    default = {"collective": "all_reduce", "size": "1 GB"}
    data = {"title": "t", "source": "s", "default": default, "runs": runs, "instances": {"figure": figure}, "row": rows}
    published = PublishedFile.model_validate(data)
    one, many, none, told = findings_of(published, published.row)
    assert one.ours == pytest.approx(told.ours)
    assert many.ours < one.ours
    assert none.agreement is Agreement.FAILED


def test_double_binary_trees_on_links_that_are_busy_for_the_latency():
    """With p <= 2 h pieces on 2^h ranks an all-reduce takes 2 h + p - 1 steps; numbers of chunks come from a list."""
    network = "double_binary_tree(16, bandwidth='25 Gb/s', latency='10 us')"
    runs = {"list": {"chunks": "{pieces}", "each": {"pieces": [2, 4]}}, "four": {"chunks": 4}}
    default = {"instance": network, "model": "dbt", "collective": "all_reduce", "size": "1 MB"}
    quantities = [{"run": "four", "value": "metrics.simulated_s", "times": "1000000"}]
    quantities += [{"run": "list", "value": "metrics.simulated_s", "over": "least", "times": "1000000"}]
    place = {"table": "Table 1", "row": "a", "section": "1", "printed": "1"}
    rows = [place | {"ours": quantity} for quantity in quantities]
    runs = {name: run | {"hold_latency": True} for name, run in runs.items()}
    published = PublishedFile.model_validate(
        {"title": "t", "source": "s", "default": default, "runs": runs, "row": rows}
    )
    four, least = findings_of(published, published.row)
    assert four.ours == least.ours == pytest.approx((2 * 4 + 4 - 1) * (10 + 1e6 / 8 / 3125))


def test_the_finder_is_asked_for_all_sizes_at_once():
    """The closure's frontiers are counted; several degrees are for this question alone."""
    wanted = PublishedNetwork(nodes=8, degree=[2, 4], network="all")
    record = networks.run_finder(wanted, 8)
    assert record.metrics["networks"] >= 7 + 4 - 1
    assert record.seconds["total"] > 0
    with pytest.raises(InputError, match="expected one"):
        run_validation(lambda: PublishedNetwork(nodes=8, degree=[2, 4]))


def test_limits_in_steps_and_a_question_to_the_finder():
    """A run's gap reaches the cell, and no run has a limit in time; a question to the finder is no cell, and a network
    it lacks is a failure."""
    limited = PublishedFile.model_validate(
        {
            "title": "t",
            "source": "s",
            "default": DEFAULT | {"model": "ring"},
            "runs": {
                "ring": {"gap": 0.3},
                "bound": {"find": {"nodes": 8, "degree": 2, "network": "bound"}},
                "none": {"find": {"nodes": 8, "degree": 2, "network": "none"}},
            },
            "row": [
                {
                    "table": "t",
                    "row": name,
                    "section": "1",
                    "printed": "3",
                    "ours": {"run": name, "value": "metrics.T_L"},
                }
                for name in ("bound", "none")
            ],
        }
    )
    (cell,) = cells_of(limited, "ring", Path())
    assert (cell.request.gap, cell.request.time_limit_s) == (0.3, None)
    with pytest.raises(InputError, match="time_limit: unknown field"):
        run_validation(lambda: PublishedRun.model_validate({"time_limit": "60 s"}))
    assert not cells_of(limited, "bound", Path())
    bound, none = findings_of(limited, limited.row)
    assert (bound.agreement, bound.ours) == (Agreement.REPRODUCED, 3)
    assert none.agreement is Agreement.FAILED
    assert "stores no 'none'" in none.reason


def test_every_paper_has_a_file():
    """Papers are told by the names of their files, and each can be read."""
    assert papers() == ("bine", "direct-connect", "dissertation", "eplb", "forestcoll", "mtree", "stragglar", "te-ccl")
    assert all(load_paper(name).row for name in papers())


def test_fewer_rounds_than_published_after_a_late_rank():
    """Of the rounds of StragglAR's program the ones for 6 and 24 ranks are the fewest; 15 for 12 ranks are one too
    many."""
    stragglar = load_paper("stragglar")
    first = findings_of(stragglar, select_rows(stragglar, "Program")[:3])
    assert [finding.ours for finding in first] == [7, 14, 27]
    assert [finding.agreement for finding in first] == [Agreement.REPRODUCED, Agreement.DIFFERS, Agreement.REPRODUCED]


def test_less_load_than_the_printed_placement():
    """The rule of EPLB has the loads of its printed placement; the search has less in the first layer, and the same in
    the second."""
    eplb = load_paper("eplb")
    found = findings_of(eplb, eplb.row)
    assert [finding.ours for finding in found] == [156, 179.5, 151, 179.5]
    assert [finding.agreement is Agreement.REPRODUCED for finding in found] == [True, True, False, True]


def test_unknown_papers_and_tables_are_told():
    """The message has what there is."""
    with pytest.raises(InputError, match="did you mean 'te-ccl'"):
        load_paper("teccl")
    with pytest.raises(InputError, match="expected one of Table 1"):
        select_rows(paper({"run": "ring"}), "Table 9")


def test_training_is_simulated():
    """A run that trains has the metrics of the simulation, for each combination, with times that are verified; what
    cannot be simulated is a failure, and no cell is made of either."""
    train = {"workload": "resnet-50-layers", "method": {"all": "{time}"}, "bucket": ["1 MB", "1 GB"]}
    runs = {
        "lines": {"train": train, "each": {"time": ["0 s + 1 GB/s", "0 s + 2 GB/s"]}},
        "ring": {"train": {"workload": "resnet-50", "method": {"all": "ring"}}, "instance": "ring(4)", "chunks": 2},
        "none": {"train": {"workload": "none"}},
    }
    place = {"table": "t", "section": "1", "printed": "2"}
    value = "metrics.communication_s.dp all_reduce"
    asked = [
        {"run": "lines", "value": value, "over": "total"},
        {"run": "ring", "value": "metrics.collectives.0.verified"},
        {"run": "ring", "value": "metrics.collectives.0.method"},
        {"run": "none"},
    ]
    rows = [place | {"row": str(index), "ours": quantity} for index, quantity in enumerate(asked)]
    trained = PublishedFile.model_validate({"title": "t", "source": "s", "default": DEFAULT, "runs": runs, "row": rows})
    assert not cells_of(trained, "lines", Path())
    lines, word, method, none = findings_of(trained, trained.row)
    parameters = 25502912  # of all layers, without biases and normalizations
    assert lines.ours == pytest.approx(1.5 * 4 * parameters / 1e9)
    assert word.agreement is Agreement.FAILED  # a truth value is no number
    assert method.ours == "ring"
    assert (none.agreement, "unknown workload" in none.reason) == (Agreement.FAILED, True)
