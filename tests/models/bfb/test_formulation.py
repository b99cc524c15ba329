"""The Pyomo models of LP (1), program (13) and LP (14), constraint by constraint."""

from __future__ import annotations

from cwb.models.bfb.formulation import build_lp
from cwb.models.bfb.problem import choices_of


def test_an_instance_gives_the_linear_program_of_its_network(pose):
    """A model is built of an instance: on a ring of four, three shards for every node, the farthest over either
    link."""
    model = build_lp(choices_of(pose("ring(4)").topology))
    assert (len(model.VU), len(model.UT), len(model.VE), len(model.ET)) == (12, 8, 16, 16)
