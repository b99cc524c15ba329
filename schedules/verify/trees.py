"""Verification of tree packings, tree by tree and without expansion into sends."""

from __future__ import annotations

from fractions import Fraction
from operator import add

import numpy as np

from ...core.conditions import Condition
from ...core.errors import InputError
from ...core.instance import Instance
from ...core.schedule import Bools, Ints
from ...core.trees import TreeKind, TreePacking
from ..trees import blocks, first_reached
from .answers import check_answer, heaviest_link
from .network import Network, broken_paths, network_of
from .report import Findings, Violation
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
    if (wanted := _demand_by_root(instance, packing, findings)) is not None:
        check_trees(network, packing, wanted, findings)


def check_trees(network: Network, packing: TreePacking, wanted: Wanted, findings: Findings) -> None:
    """Check trees in range against the ranks and data required of each root."""
    _check_paths(network, packing, findings)
    _check_switches(network, packing, findings)
    _check_shapes(network, packing, wanted, findings)
    _check_sizes(packing, wanted, findings)


def check_tree_sizes(instance: Instance, packing: TreePacking, findings: Findings) -> None:
    """Check only that the trees carry the demand exactly."""
    wanted = _demand_by_root(instance, packing, findings)
    if wanted is not None:
        _check_sizes(packing, wanted, findings)


def heaviest_load(instance: Instance, packing: TreePacking) -> Fraction:
    """Return the exact seconds of the most loaded link for the bytes of all trees.

    Raises
    ------
    InputError
        If the network has no links, or a path names one that does not exist.
    """
    return heaviest_link(packing, instance)[1]


@heaviest_link.register
def _(packing: TreePacking, instance: Instance) -> tuple[int, Fraction]:
    network = network_of(instance)
    load = link_units(network, packing)
    heaviest: dict[Fraction, tuple[int, int]] = {}  # by bandwidth: units, and the link's number from the end
    for index, (link, units) in enumerate(zip(network.topology.links, load, strict=True)):
        rate = link.bandwidth_Bps
        if rate not in heaviest or units > heaviest[rate][0]:
            heaviest[rate] = units, -index
    if not heaviest:
        raise InputError("expected a network with links", place="network")
    seconds, last = max((units * packing.unit_bytes / rate, place) for rate, (units, place) in heaviest.items())
    return -last, seconds


def link_units(network: Network, packing: TreePacking) -> list[int]:
    """Return the units on every link, counting both directions of reduce-then-broadcast trees."""
    total = [0] * network.links
    for part in packing.passes:
        links = part.path_links
        if len(links) and (links.min() < 0 or links.max() >= network.links):
            raise InputError("names a link that does not exist", place="trees.path_links")
        units = np.repeat(np.repeat(part.units, np.diff(part.edge_offset)), np.diff(part.path_offset))
        total = list(map(add, total, exact_sums(links, units, network.links)))
    return total


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
    """Name the half of in-out trees for a message."""
    return " of the reduction" if part is packing.reduction else ""


def _demand_by_root(instance: Instance, packing: TreePacking, findings: Findings) -> Wanted | None:
    """Return, for each root, the ranks that its trees must span and the bytes that they carry.

    The single key is None if the root is free.
    """
    found: Wanted = {}
    for condition, size in demanded_bytes(instance).items():
        root, span = _root_and_span(condition, packing.kind)
        if span is None or root in found:
            text = f"{packing.kind.value}-trees do not carry the data of ranks {condition[0][:3]} to {condition[1][:3]}"
            findings.add(Violation("demand", text))
            return None
        found[root] = (span, size)
    return found


def _root_and_span(condition: Condition, kind: TreeKind) -> tuple[int | None, tuple[int, ...] | None]:
    """Return root and ranks of the trees that carry data of this kind; no ranks if none do."""
    held, needed, reduced = condition
    if kind is TreeKind.OUT and not reduced and len(held) == 1:
        return held[0], needed
    if kind is TreeKind.IN and reduced and len(needed) == 1:
        return needed[0], held
    if kind is TreeKind.BOTH and reduced and held == needed:
        return None, held
    return None, None


def _check_paths(network: Network, packing: TreePacking, findings: Findings) -> None:
    """Check that every edge's path follows links in the direction of the data."""
    for part in packing.passes:
        source, target = network.tree_node[part.parent], network.tree_node[part.child]
        if part.kind is TreeKind.IN:
            source, target = target, source
        broken, where = broken_paths(network, source, target, part.path_offset, part.path_links)

        def off_path(
            edge: int, part: TreePacking = part, source: Ints = source, target: Ints = target, where: Ints = where
        ) -> Violation:
            ends = f"{network.name(int(source[edge]))} to {network.name(int(target[edge]))}"
            text = f"the path of edge {edge}{_of(part, packing)} does not lead from {ends}"
            tree = int(np.searchsorted(part.edge_offset, edge, side="right")) - 1
            return Violation("path", text, rank=_rank(network, part.parent[edge]), tree=tree, link=int(where[edge]))

        findings.add_each("path", broken, off_path)


def _rank(network: Network, node: int) -> int | None:
    return int(node) if node < len(network.rank_node) else None


def _check_switches(network: Network, packing: TreePacking, findings: Findings) -> None:
    """Check that switches that are nodes of trees can copy what they send and add what they receive."""
    nodes = network.topology.nodes
    for part in packing.passes:
        inward = part.kind is TreeKind.IN
        able = np.array([node.adds if inward else node.copies for node in nodes], dtype=np.bool_)
        kind, lacks = ("buffer", "neither reduces nor stores") if inward else ("multicast", "has no multicast")

        def unable(edge: int, part: TreePacking = part, kind: str = kind, lacks: str = lacks) -> Violation:
            switch = network.name(int(network.tree_node[part.child[edge]]))
            tree = int(np.searchsorted(part.edge_offset, edge, side="right")) - 1
            return Violation(kind, f"{switch} is a node of the tree{_of(part, packing)}, but {lacks}", tree=tree)

        def idle(edge: int, part: TreePacking = part) -> Violation:
            switch = network.name(int(network.tree_node[part.child[edge]]))
            tree = int(np.searchsorted(part.edge_offset, edge, side="right")) - 1
            return Violation("tree", f"{switch} is a switch and a leaf of the tree{_of(part, packing)}", tree=tree)

        findings.add_each(kind, ~able[network.tree_node[part.child]], unable)
        tree = np.repeat(np.arange(len(part)), np.diff(part.edge_offset)) * network.nodes
        leaf = ~np.isin(tree + part.child, tree + part.parent)
        findings.add_each("tree", leaf & (part.child >= len(network.rank_node)), idle)


def _check_shapes(network: Network, packing: TreePacking, wanted: Wanted, findings: Findings) -> None:
    """Check that every rank is reached once, by an edge whose parent was reached before.

    Together these make each a tree that spans its group.
    """
    nodes = network.nodes
    members: dict[int | None, Bools] = {}
    for root, (span, _) in wanted.items():
        members[root] = np.zeros(nodes, dtype=np.bool_)
        members[root][list(span)] = True
    for part in packing.passes:
        for begin, end in blocks(part, nodes):
            reached = first_reached(part, begin, end, nodes)
            _check_order(network, part, begin, end, reached, findings, _of(part, packing))
            _check_span(part, begin, reached < len(part.child), members, findings, _of(part, packing))


def _check_order(
    network: Network, packing: TreePacking, begin: int, end: int, reached: Ints, findings: Findings, of: str
) -> None:
    """Check that no edge reaches a rank again, or leaves one that no previous edge reached."""
    first, last = int(packing.edge_offset[begin]), int(packing.edge_offset[end])
    edges = np.arange(first, last)
    tree = np.repeat(np.arange(end - begin), np.diff(packing.edge_offset[begin : end + 1]))

    def at_edge(text: str, index: int) -> Violation:
        where = first + index
        text = f"edge {where}{of}: {text}"
        return Violation("tree", text, rank=_rank(network, packing.child[where]), tree=begin + int(tree[index]))

    again = reached[tree, packing.child[first:last]] != edges
    early = reached[tree, packing.parent[first:last]] >= edges
    findings.add_each("tree", again, lambda i: at_edge("reaches a rank that is in the tree already", i))
    findings.add_each("tree", early, lambda i: at_edge("leaves a rank that is not in the tree yet", i))


def _check_span(
    packing: TreePacking,
    begin: int,
    reached: Bools,
    members: dict[int | None, Bools],
    findings: Findings,
    of: str,
) -> None:
    """Check that every tree of a block has an allowed root and reaches its ranks."""
    for index, root in enumerate(packing.root[begin : begin + len(reached)].tolist()):
        member = members.get(root, members.get(None))
        if member is None:
            findings.add(Violation("tree", "its root has nothing to send or to collect", rank=root, tree=begin + index))
            continue
        lost = np.flatnonzero(member & ~reached[index])
        if None in members and not member[root]:
            findings.add(Violation("tree", "its root is not in the group", rank=root, tree=begin + index))
        elif len(lost):
            text = f"does not reach {len(lost)} of its ranks{' in the reduction' if of else ''}"
            findings.add(Violation("tree", text, rank=int(lost[0]), tree=begin + index))


def _check_sizes(packing: TreePacking, wanted: Wanted, findings: Findings) -> None:
    """Check that the trees of a root carry its data exactly."""
    roots, where = np.unique(packing.root, return_inverse=True)
    sums = exact_sums(where, packing.units, len(roots))
    given: dict[int | None, Fraction] = {
        root: units * packing.unit_bytes for root, units in zip(roots.tolist(), sums, strict=True)
    }
    if None in wanted:
        given = {None: sum(given.values(), Fraction(0))}
    for root, (_, size) in wanted.items():
        if (difference := given.get(root, Fraction(0)) - size) != 0:
            whose = "all trees" if root is None else f"the trees of rank {root}"
            findings.add(Violation("size", f"{whose} are off by {difference} bytes", rank=root))
