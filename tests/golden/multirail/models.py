"""The linear program of Themis."""

from __future__ import annotations

from fractions import Fraction

from cwb.core.collective import Collective, Demand
from cwb.core.fabric import WiredFabric, parse_fabric
from cwb.core.instance import Instance
from cwb.models.multirail.problem import pose_problem
from cwb.models.multirail.solve import build


def small():
    """An all-reduce of 8 GiB in two chunks on RI(4)_SW(2) of 3 and 1 GiB/s."""
    fabric = WiredFabric(
        parse_fabric("RI(4)_SW(2)").dimensions,
        (Fraction(3 * 2**30), Fraction(2**30)),
        (Fraction(0), Fraction(1, 8)),
    )
    return build(pose_problem(Instance("multirail", fabric, Demand(Collective.ALL_REDUCE, Fraction(8 * 2**30), 2))))


MODELS = {"themis-lp": (small, ["all_data", "busiest"])}
