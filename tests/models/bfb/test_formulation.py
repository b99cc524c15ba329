"""The Pyomo models of LP (1), program (13) and LP (14), constraint by constraint."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pyomo.environ as pyo
import pytest
from cwb.models.bfb.choices import choices_of
from cwb.models.bfb.formulation import build, build_chunked, build_heterogeneous, build_lp

#: Four nodes, one-way links 0 -> 1 -> 3 and 0 -> 2 -> 3 -> 0, and 1 -> 2: node 3 has a choice for the shard of 0.
PAIRS = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 0), (1, 2)]

CONSTRAINTS = {
    "bfb": ["link_load", "whole_shard"],
    "bfb-chunked": ["piece_load", "all_pieces"],
    "bfb-heterogeneous": ["link_time", "whole_shard"],
}


@pytest.fixture
def models(graph):
    """The three models of the small network, shards of 1 GB in three pieces, the link 1 -> 3 half as fast and late."""
    topology = graph(4, PAIRS)
    slow = topology.links[2].__class__("1", "3", Fraction(10**9, 2), Fraction(1, 4))
    mixed = topology.__class__(topology.nodes, (*topology.links[:2], slow, *topology.links[3:]))
    choices = choices_of(topology)
    return {
        "bfb": lambda: build_lp(choices),
        "bfb-chunked": lambda: build_chunked(choices, 3),
        "bfb-heterogeneous": lambda: build_heterogeneous(choices, mixed, Fraction(10**9), Fraction(1)),
    }


def lp_text(model, folder: Path) -> str:
    path = folder / "model.lp"
    model.write(str(path), io_options={"symbolic_solver_labels": True})
    return path.read_text()


@pytest.mark.parametrize(("model", "name"), [(model, name) for model, names in CONSTRAINTS.items() for name in names])
def test_each_constraint_is_written_as_its_golden_file(model, name, models, golden, tmp_path):
    """Every constraint, alone in the model, gives the LP file that was checked against the paper by hand."""
    built = models[model]()
    for constraint in built.component_objects(pyo.Constraint):
        if constraint.name != name:
            constraint.deactivate()
    golden(f"bfb/{model}-{name}.lp", lp_text(built, tmp_path))


@pytest.mark.parametrize("model", CONSTRAINTS)
def test_no_constraint_is_without_golden_file(model, models):
    """The models have no constraint that the golden files leave out."""
    assert [c.name for c in models[model]().component_objects(pyo.Constraint)] == CONSTRAINTS[model]


def test_an_instance_gives_the_linear_program_of_its_network(pose):
    """A model is built of an instance: on a ring of four, three shards for every node, the farthest over either link."""
    model = build(pose("ring(4)"))
    assert (len(model.VU), len(model.UT), len(model.VE), len(model.ET)) == (12, 8, 16, 16)
