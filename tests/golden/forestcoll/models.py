"""ForestColl's models of the auxiliary network, and of the optimal all-reduce."""

from __future__ import annotations

from cwb.models.forestcoll.formulations import lp6_allreduce
from cwb.models.forestcoll.formulations.max_flow import SinkFlow, build_concurrent, build_max_flow
from cwb.models.forestcoll.problem import PairNetwork, from_all_ranks
from small_networks import network

#: Two ranks: 0 -> switch -> 1 with bandwidth 6, a direct link of 2 beside it, and 4 back.
PAIR = network(2, 1, [(0, 2, 6), (2, 1, 6), (0, 1, 2), (1, 0, 4)])
#: Three ranks: 0 and 1 on a switch with links of 6, 1 and 2 on links of 3 and 1.
THERE = [(0, 3, 6), (3, 1, 6), (1, 2, 3), (1, 2, 1)]
BACK = [(b, a, c) for a, b, c in THERE]
BOTH = ["link_capacity", "switch_balance", "pair_capacity", "broadcast_capacity", "broadcast_balance"]


def allreduce(back, hubs=()):
    """The optimal all-reduce on three ranks, with some links back; trees may pass a switch that adds and copies."""
    return lp6_allreduce.build(PairNetwork(from_all_ranks(network(3, 1, THERE + back)), hubs))


MODELS = {
    "max_flow_{}": (lambda: build_max_flow(SinkFlow(from_all_ranks(PAIR), 0)), ["balance"]),
    "concurrent_{}": (lambda: build_concurrent(from_all_ranks(PAIR)), ["balance", "source_capacity", "arrival"]),
    "allreduce_mirrored_{}": (lambda: allreduce(BACK), BOTH),
    "allreduce_hub_{}": (lambda: allreduce(BACK, [3]), ["pair_capacity", "broadcast_capacity", "broadcast_balance"]),
    "allreduce_one_way_{}": (lambda: allreduce([(2, 0, 4)]), [*BOTH, "reduce_capacity", "reduce_balance"]),
}
