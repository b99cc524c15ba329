"""The models of LP (1), program (13) and LP (14) of the paper of bfb."""

from __future__ import annotations

from fractions import Fraction

from cwb.core.topology import Link, Node, Topology
from cwb.models.bfb.formulation import build_chunked, build_heterogeneous, build_lp
from cwb.models.bfb.problem import choices_of

#: Four nodes, one-way links 0 -> 1 -> 3 and 0 -> 2 -> 3 -> 0, and 1 -> 2: node 3 has a choice for the shard of 0.
NODES = tuple(Node(str(i)) for i in range(4))
LINKS = tuple(Link(a, b, Fraction(10**9)) for a, b in ("01", "02", "13", "23", "30", "12"))
#: The link 1 -> 3 half as fast and late.
SLOW = Topology(NODES, (*LINKS[:2], Link("1", "3", Fraction(10**9, 2), Fraction(1, 4)), *LINKS[3:]))
PLAIN = Topology(NODES, LINKS)

#: Shards of 1 GB, in three pieces where they have any.
MODELS = {
    "bfb-{}": (lambda: build_lp(choices_of(PLAIN)), ["link_load", "whole_shard"]),
    "bfb-chunked-{}": (lambda: build_chunked(choices_of(PLAIN, pieces=3)), ["piece_load", "all_pieces"]),
    "bfb-heterogeneous-{}": (
        lambda: build_heterogeneous(choices_of(SLOW, shard_bytes=Fraction(10**9))),
        ["link_time", "whole_shard"],
    ),
}
