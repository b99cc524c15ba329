"""The model of rails between servers."""

from __future__ import annotations

from fractions import Fraction

from cwb.core.collective import Collective, Demand
from cwb.instances import load
from cwb.models.fast.formulation import build
from cwb.models.fast.problem import exchange_of

#: Bytes of a message.
MESSAGES = {(0, 2): 300, (1, 3): 100, (3, 0): 200, (1, 0): 50, (2, 3): 25}


def rails():
    """Two servers of two ranks, with five messages, at 4 B/s inside and 1 B/s between."""
    first, *others = (Demand(Collective.POINT_TO_POINT, Fraction(size), ranks=pair) for pair, size in MESSAGES.items())
    network = "switch2d(2, 2, inner_bandwidth='4 B/s', outer_bandwidth='1 B/s')"
    return build(exchange_of(load(network).with_changes(demand=first, also=tuple(others))))


MODELS = {"{}": (rails, ["delivery", "rail_out", "rail_in", "server_out", "server_in"])}
