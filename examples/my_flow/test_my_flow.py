"""The model is the one that was checked by hand, and has the optimum that is known otherwise."""

import os
from dataclasses import replace
from pathlib import Path

import cwb
import pytest

from my_flow import FORMULATION, METHOD

HERE = Path(__file__).parent
SITES = cwb.load(HERE / "sites.json")


def test_the_model_is_that_of_the_golden_file(tmp_path):
    """Every row is as README.md says; after a deliberate change, CWB_UPDATE_GOLDEN=1 writes the file again."""
    path, golden = tmp_path / "model.lp", HERE / "my_flow.lp"
    FORMULATION.build(SITES).write(str(path), io_options={"symbolic_solver_labels": True})
    if os.environ.get("CWB_UPDATE_GOLDEN") == "1":
        golden.write_text(path.read_text())
    assert path.read_text() == golden.read_text()


def test_the_optimum_on_three_sites():
    """Site C receives two shards of 50 GB over two links of 50 GB/s, which takes a second."""
    record = cwb.solve(SITES, METHOD)
    assert (record.status, record.proof) == ("optimal", "attested")
    assert record.objective == pytest.approx(1.0)


@pytest.mark.parametrize("network", ["ring(5)", "torus(2,3)"])
def test_the_best_trees_take_the_same_time(network):
    """On networks whose nodes receive as much as they send, trees do what flows that are copied do."""
    trees = cwb.solve(network, "forestcoll", collective="all_gather")
    assert cwb.solve(network, METHOD, collective="all_gather").objective == pytest.approx(trees.bound)


def test_a_network_in_two_parts_has_no_solution():
    """A rank that cannot be reached makes the model infeasible."""
    links = tuple(link for link in SITES.network.links if "C" not in (link.source, link.target) or link.target == "C")
    one_way = SITES.with_changes(network=replace(SITES.network, links=links))
    assert cwb.solve(one_way, METHOD).status == "infeasible"


@pytest.mark.parametrize("collective", ["all_reduce", "broadcast"])
def test_other_instances_get_a_reason(collective):
    """An instance that the model does not support is refused in one line."""
    record = cwb.solve("ring(4)", METHOD, collective=collective)
    assert record.status == "unsupported"
    assert "expected" in record.message
