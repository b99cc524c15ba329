"""A method's answer for one group of a level, as sends of shares of the group's parts.

The method gets a network of the group alone, whose nodes have numbers for names. Groups with equal networks share one
answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from ...core.collective import Collective, Demand
from ...core.instance import Instance
from ...core.ragged import offsets
from ...core.schedule import Chunks, Ints, Sends, StepSchedule
from ...core.topology import Link, Topology
from ...core.trees import TreeKind, TreePacking

#: Collectives whose parts are known by who needs them; those of others by who holds them, if there are several.
_BY_RECEIVER = (Collective.REDUCE_SCATTER, Collective.SCATTER)
_WHOLE = (Collective.ALL_REDUCE, Collective.BROADCAST, Collective.REDUCE)


@dataclass(frozen=True, eq=False)
class Site:
    """The network of one group.

    Parameters
    ----------
    instance : Instance
        The group's network and collective. Its first ranks are the positions in the group, the first is the root.
    nodes, links : array of int
        Which nodes and links of the whole network they are.
    """

    instance: Instance
    nodes: Ints
    links: Ints


def site(topology: Topology, ranks: Sequence[int], links: Sequence[int], demand: Demand) -> Site:
    """Extract the network of a group.

    Parameters
    ----------
    topology : Topology
        The whole network with all ranks.
    ranks : sequence of int
        The nodes of the group's ranks.
    links : sequence of int
        Links that its data may use.
    demand : Demand
        The collective of the group, whose ranks come first.
    """
    ends = topology.link_ends
    nodes = list(dict.fromkeys([*ranks, *sorted({node for link in links for node in ends[link]})]))
    number = {node: index for index, node in enumerate(nodes)}
    names = [str(index) for index in range(len(nodes))]
    network = Topology(
        tuple(replace(topology.nodes[node], name=name) for node, name in zip(nodes, names, strict=True)),
        tuple(
            Link(
                names[number[ends[link][0]]],
                names[number[ends[link][1]]],
                topology.links[link].bandwidth_Bps,
                topology.links[link].latency_s,
            )
            for link in links
        ),
    )
    instance = Instance("group", network, demand)
    return Site(instance, np.array(nodes, dtype=np.int64), np.array(links, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Shares:
    """Sends of shares of the parts of a group, on its own network.

    Parameters
    ----------
    begin, end : list of Fraction
        Interval of every chunk within its part, from 0 to 1.
    part : array of int, shape (chunks,)
        Part of the group's data of every chunk: the position of the one rank that holds or needs it, 0 if all have the
        same data, or ``i * n + j`` from i to j.
    step : array of int
        Step of every send, from 0.
    """

    begin: list[Fraction]
    end: list[Fraction]
    part: Ints
    sends: Sends
    step: Ints

    @property
    def steps(self) -> int:
        """Number of steps."""
        return int(self.step.max()) + 1


def shares_of(instance: Instance, answer: StepSchedule | TreePacking) -> Shares:
    """Read what chunks are of the group's parts."""
    assert instance.demand is not None  # noqa: S101 (a group's instance has one)
    kind, n = instance.demand.collective, len(instance.demand.ranks or range(instance.npus))
    if isinstance(answer, TreePacking):
        sends, step = _of_trees(instance, answer)
        part = np.zeros_like(answer.root) if kind in _WHOLE else answer.root
        units = answer.units
    else:
        chunks, sends, step, units = answer.chunks, answer.sends, answer.step, answer.chunks.units
        part = _part(chunks, kind, n)
    begin, end = [], []
    done: dict[int, int] = defaultdict(int)
    total = np.bincount(part, units)
    for of, count in zip(part.tolist(), units.tolist(), strict=True):
        whole = int(total[of])
        begin.append(Fraction(done[of], whole))
        done[of] += count
        end.append(Fraction(done[of], whole))
    return Shares(begin, end, part, sends, step)


def _part(chunks: Chunks, kind: Collective, n: int) -> Ints:
    """Return the part of the data of every chunk."""
    if kind in _WHOLE:
        return np.zeros(len(chunks), dtype=np.int64)
    first = np.array([group[0] for group in chunks.groups], dtype=np.int64)
    held, needed = first[chunks.held_by], first[chunks.needed_by]
    if kind is Collective.ALL_TO_ALL:
        return held * n + needed
    return needed if kind in _BY_RECEIVER else held


def _of_trees(instance: Instance, packing: TreePacking) -> tuple[Sends, Ints]:
    """Edges as sends, and a step for each: its depth, in in-trees counted from the deepest edge."""
    topology = instance.topology
    node = np.array(topology.tree_nodes, dtype=np.int64)
    columns: list[tuple[Ints, Ints, Ints, Ints, Ints, Ints, Ints]] = []
    before = 0
    for part in packing.passes:
        tree = part.edge_tree
        depth: dict[tuple[int, int], int] = defaultdict(int)
        for of, parent, child in zip(tree.tolist(), part.parent.tolist(), part.child.tolist(), strict=True):
            depth[of, child] = depth[of, parent] + 1
        level = np.array([depth[key] for key in zip(tree.tolist(), part.child.tolist(), strict=True)], dtype=np.int64)
        height = int(level.max())
        inward = part.kind is TreeKind.IN
        source, target = (part.child, part.parent) if inward else (part.parent, part.child)
        step = before + (height - level if inward else level - 1)
        flag = np.full(len(tree), inward)
        columns.append((tree, node[source], node[target], flag, np.diff(part.path_offset), part.path_links, step))
        before += height
    chunk, one, other, reduce, hops, links, step = (np.concatenate(each) for each in zip(*columns, strict=True))
    offset = offsets(hops)
    return Sends(chunk, one, other, reduce.astype(np.bool_), offset, links), step
