"""The Pyomo model of the optimal all-reduce, constraint by constraint."""

from __future__ import annotations

import pytest
from cwb import solvers
from cwb.core.budget import Budget
from cwb.models.forestcoll.formulations.lp6_allreduce import build, unit
from cwb.models.forestcoll.problem import PairNetwork, from_all_ranks
from draws import draws
from hypothesis import given, settings
from small_networks import graphs, network


@settings(max_examples=draws(40), deadline=None)
@given(graphs(two_way=True))
def test_mirror_images_need_no_flows_of_their_own(topology):
    """If links have the same bandwidth in both directions, the small model has the optimum of the full one."""
    small, full = PairNetwork(from_all_ranks(topology)), PairNetwork(from_all_ranks(topology))
    assert small.is_mirrored
    vars(full)["is_mirrored"] = False
    optima = [solvers.get("highs").solve(build(pairs), Budget()).objective for pairs in (small, full)]
    assert optima[0] == pytest.approx(optima[1], rel=1e-7)


def test_pairs_go_through_switches_only():
    """A rank reaches others over its links and over switches, not through ranks, and never itself."""
    pairs = PairNetwork(
        from_all_ranks(network(4, 2, [(0, 4, 1), (4, 5, 1), (5, 1, 1), (4, 0, 1), (1, 2, 1), (2, 3, 1), (3, 0, 1)]))
    )
    assert pairs.pairs == ((0, 1), (1, 2), (2, 3), (3, 0))
    assert pairs.relays == {0: (0, 1, 2)}
    assert not pairs.is_mirrored
    assert unit(pairs) == 1
