"""Reasons against an instance that many methods share."""

from __future__ import annotations

from fractions import Fraction

import pytest
from cwb.core.collective import Collective, Demand
from cwb.core.errors import NO_COLLECTIVE
from cwb.core.refusals import refuse_unfit
from cwb.core.topology import Topology
from cwb.instances import load

LINE = load("line(3)")
DEMAND = Demand(Collective.ALL_REDUCE, Fraction(2**20))


def test_what_fits_is_not_refused():
    """A collective of all ranks fits, whatever their order; without names every collective does, and so do groups."""
    whole = LINE.with_changes(demand=Demand(Collective.ALL_REDUCE, Fraction(1), ranks=(2, 0, 1)))
    assert refuse_unfit(whole, (Collective.ALL_REDUCE,), single=True, of_all=True) is None
    some = Demand(Collective.BROADCAST, Fraction(1), ranks=(0, 1))
    assert refuse_unfit(LINE.with_changes(demand=DEMAND, also=(some,))) is None


@pytest.mark.parametrize(
    ("changes", "code", "reason"),
    [
        ({"network": load("RI(4)_SW(2)").network}, "network", "no links; expected an explicit network such as x()"),
        ({"network": Topology(LINE.topology.nodes, ())}, "network", "the network has no links"),
        ({"demand": None}, "collective", NO_COLLECTIVE.text),
        ({"also": (DEMAND,)}, "collective", "several collectives at once"),
        ({"demand": Demand(Collective.GATHER, Fraction(1))}, "collective", "not define gather, but all_reduce"),
        ({"demand": Demand(Collective.ALL_REDUCE, Fraction(1), ranks=(1,))}, "ranks", "at least two ranks"),
        ({"demand": Demand(Collective.ALL_REDUCE, Fraction(1), ranks=(0, 1))}, "ranks", "not for a process group"),
        ({"demand": Demand(Collective.ALL_REDUCE, Fraction(0))}, "data", "no data to move"),
    ],
)
def test_what_does_not_fit_has_a_reason(changes, code, reason):
    """A fabric, no links, no collective, several or another one, one rank, a group and no data are told apart."""
    instance = LINE.with_changes(**{"demand": DEMAND, **changes})
    refusal = refuse_unfit(instance, (Collective.ALL_REDUCE,), such_as="x()", single=True, of_all=True)
    assert refusal is not None
    assert (refusal.code, reason in refusal.text) == (code, True)
