"""Verification of tree packings, tree by tree and without expanding them into sends."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ...core.conditions import Condition
from ...core.errors import InputError
from ...core.instance import Instance
from ...core.schedule import Bools, Ints
from ...core.trees import TreeKind, TreePacking
from .network import Network, network_of
from .paths import broken_paths
from .report import Findings, Violation
from .sizes import demanded, exact_sums

#: Trees times ranks that are looked at together.
AT_ONCE = 2**22


def verify_trees(instance: Instance, network: Network, packing: TreePacking, findings: Findings) -> None:
    """Check that every tree spans its group in order along existing paths, and that together they carry the demand.

    An edge is a send of its own: paths of a tree that share a link, or enter the same switch, load it once each, so that no switch copies or stores.
    """
    if not _in_range(network, packing, findings):
        return
    wanted = _demand_by_root(instance, packing, findings)
    if wanted is None:
        return
    _check_paths(network, packing, findings)
    _check_shapes(network, packing, wanted, findings)
    _check_sizes(packing, wanted, findings)


def check_tree_sizes(instance: Instance, packing: TreePacking, findings: Findings) -> None:
    """Check only that the trees carry the demand exactly."""
    wanted = _demand_by_root(instance, packing, findings)
    if wanted is not None:
        _check_sizes(packing, wanted, findings)


def heaviest_load(instance: Instance, packing: TreePacking) -> Fraction:
    """Seconds that the most loaded link needs for the bytes of all trees, exactly.

    Raises
    ------
    InputError
        If the network has no links, or a path names one that does not exist.
    """
    network = network_of(instance)
    load = link_units(network, packing)
    heaviest: dict[Fraction, int] = {}
    for link, units in zip(network.topology.links, load, strict=True):
        heaviest[link.bandwidth_Bps] = max(heaviest.get(link.bandwidth_Bps, 0), units)
    return max((units * packing.unit_bytes / rate for rate, units in heaviest.items()), default=Fraction(0))


def link_units(network: Network, packing: TreePacking) -> list[int]:
    """Units that cross every link, both ways of a reduce-then-broadcast tree counted."""
    edge_units = np.repeat(packing.units, np.diff(packing.edge_offset))
    columns = [(packing.path_offset, packing.path_links)]
    if packing.back_offset is not None and packing.back_links is not None:
        columns.append((packing.back_offset, packing.back_links))
    links = np.concatenate([column for _, column in columns])
    if len(links) and (links.min() < 0 or links.max() >= network.links):
        raise InputError("names a link that does not exist", place="trees.path_links")
    units = np.concatenate([np.repeat(edge_units, np.diff(offset)) for offset, _ in columns])
    return exact_sums(links, units, network.links)


def _in_range(network: Network, packing: TreePacking, findings: Findings) -> bool:
    """Whether every rank and link exists and the offsets are offsets."""
    ranks = len(network.rank_node)
    columns = {
        "root": (packing.root, ranks),
        "parent": (packing.parent, ranks),
        "child": (packing.child, ranks),
        "link": (packing.path_links, network.links),
    }
    starts = [packing.edge_offset[0], packing.path_offset[0]]
    if packing.back_offset is not None and packing.back_links is not None:
        columns["link back"] = (packing.back_links, network.links)
        back = packing.back_offset
        starts.append(back[0])
        if len(back) != len(packing.child) + 1 or back[-1] != len(packing.back_links) or (np.diff(back) < 1).any():
            findings.add(Violation("range", "every edge needs a path back of at least one link"))
    if any(starts):
        findings.add(Violation("range", "offsets do not begin at 0"))
    for name, (column, limit) in columns.items():
        wrong = np.flatnonzero((column < 0) | (column >= limit))
        if len(wrong):
            text = f"entry {wrong[0]} names {name} {column[wrong[0]]}, but there are {limit}"
            findings.add(Violation("range", text))
    return not findings.violations


def _demand_by_root(
    instance: Instance, packing: TreePacking, findings: Findings
) -> dict[int | None, tuple[tuple[int, ...], Fraction]] | None:
    """For each root, the ranks that its trees must span and the bytes that they carry; one entry None where the root is free."""
    found: dict[int | None, tuple[tuple[int, ...], Fraction]] = {}
    for condition, size in demanded(instance).items():
        root, span = _root_and_span(condition, packing.kind)
        if span is None or root in found:
            text = f"{packing.kind.value}-trees do not carry the data of ranks {condition[0][:3]} to {condition[1][:3]}"
            findings.add(Violation("demand", text))
            return None
        found[root] = (span, size)
    return found


def _root_and_span(condition: Condition, kind: TreeKind) -> tuple[int | None, tuple[int, ...] | None]:
    """Give the root and the ranks of the trees that carry data of this kind; no ranks if none do."""
    held, needed, reduced = condition
    if kind is TreeKind.OUT and not reduced and len(held) == 1:
        return held[0], needed
    if kind is TreeKind.IN and reduced and len(needed) == 1:
        return needed[0], held
    if kind is TreeKind.BOTH and reduced and held == needed:
        return None, held
    return None, None


def _check_paths(network: Network, packing: TreePacking, findings: Findings) -> None:
    """Every edge's path leads along links, in the direction of the data."""
    down, up = network.rank_node[packing.parent], network.rank_node[packing.child]
    if packing.kind is TreeKind.IN:
        down, up = up, down
    ways = [(down, up, packing.path_offset, packing.path_links)]
    if packing.back_offset is not None and packing.back_links is not None:
        ways.append((up, down, packing.back_offset, packing.back_links))
    for source, target, offset, links in ways:
        broken, where = broken_paths(network, source, target, offset, links)

        def off_path(edge: int, source: Ints = source, target: Ints = target, where: Ints = where) -> Violation:
            ends = f"{network.name(int(source[edge]))} to {network.name(int(target[edge]))}"
            text = f"the path of edge {edge} does not lead from {ends}"
            return Violation(
                "path", text, rank=int(packing.parent[edge]), tree=_tree(packing, edge), link=int(where[edge])
            )

        findings.add_each("path", broken, off_path)


def _tree(packing: TreePacking, edge: int) -> int:
    """Tree of an edge."""
    return int(np.searchsorted(packing.edge_offset, edge, side="right")) - 1


def _check_shapes(
    network: Network,
    packing: TreePacking,
    wanted: dict[int | None, tuple[tuple[int, ...], Fraction]],
    findings: Findings,
) -> None:
    """Every rank is reached once, by an edge whose parent was reached before; together that makes each a tree that spans its group."""
    ranks = len(network.rank_node)
    members: dict[int | None, Bools] = {}
    for root, (span, _) in wanted.items():
        members[root] = np.zeros(ranks, dtype=np.bool_)
        members[root][list(span)] = True
    size = max(AT_ONCE // ranks, 1)
    for begin in range(0, len(packing), size):
        _check_shapes_of(packing, begin, min(begin + size, len(packing)), ranks, members, findings)


def _check_shapes_of(
    packing: TreePacking, begin: int, end: int, ranks: int, members: dict[int | None, Bools], findings: Findings
) -> None:
    first, last = int(packing.edge_offset[begin]), int(packing.edge_offset[end])
    edges = np.arange(first, last)
    tree = np.repeat(np.arange(end - begin), np.diff(packing.edge_offset[begin : end + 1]))
    parent, child = tree * ranks + packing.parent[first:last], tree * ranks + packing.child[first:last]
    reached = np.full((end - begin) * ranks, last, dtype=np.int64)  # the edge that first reaches each rank; none yet
    reached[child[::-1]] = edges[::-1]
    again = reached[child] != edges
    reached[np.arange(end - begin) * ranks + packing.root[begin:end]] = -1
    again |= reached[child] == -1

    def at_edge(text: str, index: int) -> Violation:
        where = first + index
        return Violation("tree", f"edge {where}: {text}", rank=int(packing.child[where]), tree=begin + int(tree[index]))

    findings.add_each("tree", again, lambda i: at_edge("reaches a rank that is in the tree already", i))
    findings.add_each(
        "tree", reached[parent] >= edges, lambda i: at_edge("leaves a rank that is not in the tree yet", i)
    )
    table = (reached < last).reshape(end - begin, ranks)
    for index in range(end - begin):
        root = int(packing.root[begin + index])
        member = members.get(root, members.get(None))
        if member is None:
            findings.add(Violation("tree", "its root has nothing to send or to collect", rank=root, tree=begin + index))
            continue
        lost = np.flatnonzero(member & ~table[index])
        if None in members and not member[root]:
            findings.add(Violation("tree", "its root is not in the group", rank=root, tree=begin + index))
        elif len(lost):
            text = f"does not reach {len(lost)} of its ranks"
            findings.add(Violation("tree", text, rank=int(lost[0]), tree=begin + index))


def _check_sizes(
    packing: TreePacking, wanted: dict[int | None, tuple[tuple[int, ...], Fraction]], findings: Findings
) -> None:
    """The trees of a root carry its data exactly."""
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
