"""SCCL's model of steps and rounds."""

from __future__ import annotations

from fractions import Fraction

from cwb.algorithms.schedules.problem import commodities_of, edges_of
from cwb.core.collective import Collective, Demand
from cwb.instances import load
from cwb.models.sccl.formulation import SynchronousSteps, build


def steps():
    """A broadcast on a line of three, in two steps and three rounds."""
    instance = load("line(3)").with_changes(demand=Demand(Collective.BROADCAST, Fraction(200_000)))
    return build(SynchronousSteps(commodities_of(instance), edges_of(instance.network), [1, 1, 2, 2], 2, 3, instance))


MODELS = {"{}": (steps, ["start", "receive", "has_first", "bandwidth", "rounds", "post"])}
