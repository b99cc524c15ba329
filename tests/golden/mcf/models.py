"""The maximum concurrent flow."""

from __future__ import annotations

from fractions import Fraction

from cwb.core.collective import Collective, Demand
from cwb.core.instance import Instance
from cwb.core.topology import Link, Node, NodeKind, Topology
from cwb.models.mcf.formulation import build, build_classes
from cwb.models.mcf.method import ClassOptions
from cwb.models.mcf.problem import class_index


def small():
    """Two ranks of the group, one outside it, and a switch: 1 -> switch -> 0 beside 0 -> 1, 0 -> 2 -> 1 with half the
    bandwidth on 0 -> 2."""
    nodes = (Node("0"), Node("switch", NodeKind.SWITCH), Node("1"), Node("2"))
    ends = [("0", "1", 2), ("1", "switch", 2), ("switch", "0", 2), ("0", "2", 1), ("2", "1", 2)]
    topology = Topology(nodes, tuple(Link(a, b, Fraction(bandwidth)) for a, b, bandwidth in ends))
    return build(Instance("small", topology, Demand(Collective.ALL_TO_ALL, Fraction(8), ranks=(0, 1))))


def by_classes():
    """A one-way ring of four whose links out of 0 and 2 are twice as fast, every rank to all others."""
    nodes = tuple(Node(str(n)) for n in range(4))
    links = tuple(Link(str(n), str((n + 1) % 4), Fraction(2 - n % 2)) for n in range(4))
    instance = Instance("ring", Topology(nodes, links), Demand(Collective.ALL_TO_ALL, Fraction(16)))
    return build_classes(class_index(instance, ClassOptions()))


def line_graph():
    """The line graph of a one-way ring of three, one of whose links is double, taken back to that ring."""
    ends = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("d", "a")]
    topology = Topology(tuple(Node(n) for n in "abcd"), tuple(Link(a, b, Fraction(1)) for a, b in ends))
    instance = Instance("line graph", topology, Demand(Collective.ALL_TO_ALL, Fraction(16)))
    return build_classes(class_index(instance, ClassOptions(line_graphs=1)))


MODELS = {
    "{}": (small, ["capacity", "delivery"]),
    "classes-{}": (by_classes, ["capacity", "delivery"]),
    "line-graph-{}": (line_graph, ["capacity", "delivery"]),
}
OBJECTIVES = {"objective": small, "classes-objective": by_classes}
