"""Verification of tree packings, tree by tree and without expansion into sends."""

from fractions import Fraction
from functools import partial
from operator import add

import numpy as np

from ...core.errors import InputError
from ...core.instance import Instance
from ...core.schedule import Bools, Ints
from ...core.trees import Forest, TreeKind, TreePacking
from ..trees import blocks, first_reached
from .answers import Findings, LinkUnits, Violation, check_answer, link_units
from .network import Network, broken_paths, network_of
from .sizes import demanded_bytes, exact_sums

#: By root, or None for any: the ranks that its trees span, and the bytes that they carry.
Wanted = dict[int | None, tuple[tuple[int, ...], Fraction]]


@check_answer.register
def verify_trees(packing: TreePacking, instance: Instance, network: Network, findings: Findings) -> None:
    """Check that every tree spans its group along existing paths, and all carry the demand.

    An edge is a send of its own: paths of a tree that share a link, or enter the same switch, load it once each. A
    switch copies, or adds, only where it is a node of the tree, and only if it can.
    """
    if not in_range(network, packing, findings):
        return
    if (demand := _demand_by_root(instance, packing, findings)) is not None:
        check_trees(network, packing, demand, findings)


def check_trees(network: Network, packing: TreePacking, demand: Wanted, findings: Findings) -> None:
    """Check trees in range against the ranks and data required of each root."""
    _check_paths(network, packing, findings)
    _check_switches(network, packing, findings)
    _check_shapes(network, packing, demand, findings)
    _check_sizes(packing, demand, findings)


def check_tree_sizes(instance: Instance, packing: TreePacking, findings: Findings) -> None:
    """Check only that the trees carry the demand exactly."""
    if (demand := _demand_by_root(instance, packing, findings)) is not None:
        _check_sizes(packing, demand, findings)


def heaviest_load(instance: Instance, forest: Forest) -> Fraction:
    """Return the exact seconds of the most loaded link for the bytes of all trees."""
    return heaviest_link(instance, forest, link_units(forest, network_of(instance)))[1]


def heaviest_link(instance: Instance, forest: Forest, loads: LinkUnits) -> tuple[int, Fraction]:
    """Return the first most loaded link and its exact seconds for the bytes of all trees."""
    topology, (units_of, class_of) = instance.topology, loads
    first = np.empty(len(units_of), dtype=np.int64)
    first[class_of[::-1]] = np.arange(len(class_of))[::-1]
    heaviest: dict[int, tuple[int, int]] = {}  # by kind of link: units, and the link's number from the end
    for link, units in zip(first.tolist(), units_of, strict=True):
        kind = topology.link_kinds[link]
        heaviest[kind] = max(heaviest.get(kind, (-1, 0)), (units, -link))
    if not heaviest:
        raise InputError("expected a network with links", place="network")
    rates = [link.bandwidth_Bps for link in topology.kind_links]
    seconds, last = max((units * forest.trees.unit_bytes / rates[kind], at) for kind, (units, at) in heaviest.items())
    return -last, seconds


@link_units.register
def _(packing: TreePacking, network: Network) -> LinkUnits:
    total = [0] * network.links
    for part in packing.passes:
        links = part.path_links
        if len(links) and (links.min() < 0 or links.max() >= network.links):
            raise InputError("names a link that does not exist", place="trees.path_links")
        total = list(map(add, total, exact_sums(links, part.path_units, network.links)))
    return total, np.arange(network.links)


def in_range(network: Network, packing: TreePacking, findings: Findings) -> bool:
    """Return whether all ranks and links exist and the offsets are valid."""
    ranks = len(network.rank_node)
    for part in packing.passes:
        columns = {
            "root": (part.root, ranks),
            "parent": (part.parent, network.nodes),
            "child": (part.child, network.nodes),
            "link": (part.path_links, network.links),
        }
        if part.edge_offset[0] or part.path_offset[0]:
            findings.add(Violation("range", f"offsets{_of(part, packing)} do not begin at 0"))
        for name, (column, limit) in columns.items():
            wrong = np.flatnonzero((column < 0) | (column >= limit))
            if len(wrong):
                text = f"entry {wrong[0]}{_of(part, packing)} names {name} {column[wrong[0]]}, but there are {limit}"
                findings.add(Violation("range", text))
    return not findings.violations


def _of(part: TreePacking, packing: TreePacking) -> str:
    return " of the reduction" if part is packing.reduction else ""


def _demand_by_root(instance: Instance, packing: TreePacking, findings: Findings) -> Wanted | None:
    """Return, by root (None if free), the ranks that its trees must span and the bytes that they carry."""
    by_root: Wanted = {}
    for (holders, receivers, reduced), size in demanded_bytes(instance).items():
        root, span = None, None
        if packing.kind is TreeKind.OUT and not reduced and len(holders) == 1:
            root, span = holders[0], receivers
        if packing.kind is TreeKind.IN and reduced and len(receivers) == 1:
            root, span = receivers[0], holders
        if packing.kind is TreeKind.BOTH and reduced and holders == receivers:
            span = holders
        if span is None or root in by_root:
            text = f"{packing.kind.value}-trees do not carry the data of ranks {holders[:3]} to {receivers[:3]}"
            findings.add(Violation("demand", text))
            return None
        by_root[root] = (span, size)
    return by_root


def _check_paths(network: Network, packing: TreePacking, findings: Findings) -> None:
    for part in packing.passes:
        source, target = network.tree_node[part.parent], network.tree_node[part.child]
        if part.kind is TreeKind.IN:
            source, target = target, source
        is_wrong, where = broken_paths(network, source, target, part.path_offset, part.path_links)

        def off_path(
            edge: int, part: TreePacking = part, source: Ints = source, target: Ints = target, where: Ints = where
        ) -> Violation:
            ends = f"{network.name(int(source[edge]))} to {network.name(int(target[edge]))}"
            text = f"the path of edge {edge}{_of(part, packing)} does not lead from {ends}"
            tree = int(np.searchsorted(part.edge_offset, edge, side="right")) - 1
            return Violation("path", text, rank=_rank(network, part.parent[edge]), tree=tree, link=int(where[edge]))

        findings.add_each("path", is_wrong, off_path)


def _rank(network: Network, node: int) -> int | None:
    return int(node) if node < len(network.rank_node) else None


def _check_switches(network: Network, packing: TreePacking, findings: Findings) -> None:
    nodes = network.topology.nodes
    for part in packing.passes:
        inward = part.kind is TreeKind.IN
        able = np.array([node.adds if inward else node.copies for node in nodes], dtype=np.bool_)
        kind, lacks = ("buffer", "neither reduces nor stores") if inward else ("multicast", "has no multicast")

        def at_node(kind: str, text: str, edge: int, part: TreePacking = part) -> Violation:
            switch = network.name(int(network.tree_node[part.child[edge]]))
            tree = int(np.searchsorted(part.edge_offset, edge, side="right")) - 1
            return Violation(kind, f"{switch} is {text.format(_of(part, packing))}", tree=tree)

        unable = partial(at_node, kind, f"a node of the tree{{}}, but {lacks}")
        findings.add_each(kind, ~able[network.tree_node[part.child]], unable)
        tree = part.edge_tree * network.nodes
        leaf = ~np.isin(tree + part.child, tree + part.parent)
        idle = partial(at_node, "tree", "a switch and a leaf of the tree{}")
        findings.add_each("tree", leaf & (part.child >= len(network.rank_node)), idle)


def _check_shapes(network: Network, packing: TreePacking, demand: Wanted, findings: Findings) -> None:
    """Check that a tree spans its group: each rank reached once, by an edge whose parent was reached before."""
    nodes = network.nodes
    members: dict[int | None, Bools] = {}
    for root, (span, _) in demand.items():
        members[root] = np.zeros(nodes, dtype=np.bool_)
        members[root][list(span)] = True
    for part in packing.passes:
        of, owner = _of(part, packing), part.edge_tree

        def at_edge(text: str, edge: int, part: TreePacking = part, of: str = of, owner: Ints = owner) -> Violation:
            rank = _rank(network, part.child[edge])
            return Violation("tree", f"edge {edge}{of}: {text}", rank=rank, tree=int(owner[edge]))

        for begin, end in blocks(part, nodes):
            reached = first_reached(part, begin, end, nodes)
            first, last = int(part.edge_offset[begin]), int(part.edge_offset[end])
            edges, tree = np.arange(first, last), owner[first:last] - begin
            again = edges[reached[tree, part.child[first:last]] != edges]
            early = edges[reached[tree, part.parent[first:last]] >= edges]
            findings.add_each("tree", again, partial(at_edge, "reaches a rank that is in the tree already"))
            findings.add_each("tree", early, partial(at_edge, "leaves a rank that is not in the tree yet"))
            _check_span(part, begin, reached < len(part.child), members, findings, of)


def _check_span(
    packing: TreePacking, begin: int, reached: Bools, members: dict[int | None, Bools], findings: Findings, of: str
) -> None:
    """Check that every tree of a block has an allowed root and reaches its ranks."""
    for index, root in enumerate(packing.root[begin : begin + len(reached)].tolist()):
        member = members.get(root, members.get(None))
        if member is None:
            findings.add(Violation("tree", "its root has nothing to send or to collect", rank=root, tree=begin + index))
            continue
        missing = np.flatnonzero(member & ~reached[index])
        if None in members and not member[root]:
            findings.add(Violation("tree", "its root is not in the group", rank=root, tree=begin + index))
        elif len(missing):
            text = f"does not reach {len(missing)} of its ranks{' in the reduction' if of else ''}"
            findings.add(Violation("tree", text, rank=int(missing[0]), tree=begin + index))


def _check_sizes(packing: TreePacking, demand: Wanted, findings: Findings) -> None:
    roots, where = np.unique(packing.root, return_inverse=True)
    sums = exact_sums(where, packing.units, len(roots))
    rows = zip(roots.tolist(), sums, strict=True)
    offer: dict[int | None, Fraction] = {root: units * packing.unit_bytes for root, units in rows}
    if None in demand:
        offer = {None: sum(offer.values(), Fraction(0))}
    for root, (_, size) in demand.items():
        if (difference := offer.get(root, Fraction(0)) - size) != 0:
            whose = "all trees" if root is None else f"the trees of rank {root}"
            findings.add(Violation("size", f"{whose} are off by {difference} bytes", rank=root))
