"""The maximum concurrent flow."""

from __future__ import annotations

from fractions import Fraction

from cwb.core.collective import CollectiveKind, Demand
from cwb.core.instance import Instance
from cwb.core.topology import Link, Node, NodeKind, Topology
from cwb.models.mcf.formulation import build


def small():
    """Two ranks of the group, one outside it, and a switch: 1 -> switch -> 0 beside 0 -> 1, 0 -> 2 -> 1 with half the
    bandwidth on 0 -> 2."""
    nodes = (Node("0"), Node("switch", NodeKind.SWITCH), Node("1"), Node("2"))
    ends = [("0", "1", 2), ("1", "switch", 2), ("switch", "0", 2), ("0", "2", 1), ("2", "1", 2)]
    topology = Topology(nodes, tuple(Link(a, b, Fraction(bandwidth)) for a, b, bandwidth in ends))
    return build(Instance("small", topology, Demand(CollectiveKind.ALL_TO_ALL, Fraction(8), ranks=(0, 1))))


MODELS = {"{}": (small, ["capacity", "delivery"])}
OBJECTIVES = {"objective": small}
