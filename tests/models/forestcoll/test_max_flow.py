"""The Pyomo models of the auxiliary network, constraint by constraint."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from cwb.algorithms.graphs.maxflow import max_flow
from cwb.algorithms.graphs.network import Network, exact_array
from cwb.core.errors import InputError
from cwb.harness import Request, registry, run_one
from cwb.instances import load
from cwb.instances.demand import with_demand
from cwb.models.forestcoll.formulations.max_flow import SinkFlow, build_max_flow
from cwb.models.forestcoll.problem import from_all_ranks
from small_networks import network


def test_what_a_switch_alone_cannot_do_is_no_row():
    """A switch without links has no balance."""
    model = build_max_flow(SinkFlow(from_all_ranks(network(2, 1, [(0, 1, 1), (1, 0, 1)])), 0))
    assert list(model.balance) == [(0, 0), (0, 1)]


@pytest.mark.parametrize("sink", [0, 3])
def test_the_declared_flow_bounds_what_forests_do(sink):
    """The declared flow to a rank is an exact maximum flow, no slower than the best forest."""
    instance = with_demand(load("mi250(boxes=1)"), "all_gather", None, None)
    declared = registry.formulation("forestcoll/max-flow")
    flow = declared.index(instance, declared.options(sink=sink))
    net, x = flow.network, flow.rate
    ranks = np.array(net.rank_nodes)
    tail, head = (
        np.append(ends, more) for ends, more in zip(net.ends, (np.full(len(ranks), net.nodes), ranks), strict=True)
    )
    capacity = exact_array([*(c * x.denominator for c in net.bandwidths), *[x.numerator] * len(ranks)])
    arrived = Fraction(
        max_flow(Network.from_parallel_edges(net.nodes + 1, tail, head, capacity), net.nodes, flow.sink).value,
        x.numerator,
    )
    record = run_one(instance, Request("forestcoll/max-flow", "highs", {"sink": sink}))
    assert record.bound == pytest.approx(declared.value(flow, float(arrived)), rel=1e-9)
    assert record.bound <= run_one(instance, Request("forestcoll")).bound * (1 + 1e-9)


def test_a_sink_that_is_no_rank_is_refused():
    """The message says which ranks there are."""
    instance = with_demand(load("ring(4)"), "all_gather", None, None)
    with pytest.raises(InputError, match="expected one of 0 to 3"):
        registry.formulation("forestcoll/max-flow").build(instance, sink=4)
