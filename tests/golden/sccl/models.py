"""SCCL's model of steps and rounds."""

from __future__ import annotations

from fractions import Fraction

from cwb.algorithms.schedules.problem import commodities_of, edges_of
from cwb.algorithms.schedules.stages import stages_of
from cwb.core.collective import Collective, Demand
from cwb.instances import load
from cwb.models.sccl.formulation import SynchronousSteps, build


def steps():
    """A broadcast among three ranks on a switch, whose first port is twice as fast, in two steps and three rounds."""
    instance = load("star(3)").with_changes(demand=Demand(Collective.BROADCAST, Fraction(200_000)))
    chunks, edges = commodities_of(instance), edges_of(instance.network)
    return build(SynchronousSteps(chunks, edges, [2, 2, 1, 1, 1, 1], 2, 3, stages_of(instance)[0]))


MODELS = {"{}": (steps, ["start", "receive", "has_first", "bandwidth", "rounds", "post"])}
