"""The integer program over the time-expanded network."""

from __future__ import annotations

from fractions import Fraction

from cwb.core.collective import Collective, Demand
from cwb.instances import load
from cwb.models.ten.formulation import build
from cwb.models.ten.method import TenOptions, pose
from cwb.models.ten.problem import HorizonModel, expand_time


def small():
    """Two chunks from the first to the last of three ranks in a ring, within three ticks."""
    demand = Demand(Collective.POINT_TO_POINT, Fraction(2), 2, (0, 2))
    instance = pose(load("ring(3)").with_changes(demand=demand), TenOptions())
    return build(HorizonModel(expand_time(instance), 3, 1, instance))


MODELS = {"{}": (small, ["post", "once", "has_first", "link", "makespan"])}
