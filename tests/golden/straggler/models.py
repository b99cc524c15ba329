"""The model of rounds after a late rank has come."""

from __future__ import annotations

from fractions import Fraction

from cwb.algorithms.schedules.problem import group_problems
from cwb.core.collective import Collective, Demand
from cwb.instances import load
from cwb.models.straggler.formulation import build
from cwb.models.straggler.problem import LateRounds


def rounds():
    """Three ranks at a switch, with two rounds."""
    demand = Demand(Collective.LATE_ALL_REDUCE, Fraction(200_000))
    (problem,) = group_problems(load("switch(3)").with_changes(demand=demand))
    return build(LateRounds(problem, 2))


CONSTRAINTS = ["start", "gain", "has_first", "one_send", "one_receipt", "in_turn", "post"]

MODELS = {"{}": (rounds, CONSTRAINTS)}
