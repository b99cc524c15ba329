"""Capacities, paths and rates that hold exactly, from the floats of linear program (6).

All numbers are integers in units of one K-th of the network's unit of bandwidth. Data on switches' links is rounded
first, then decomposed into paths, then assigned to the two stages; the last, exact step computes which multiple of
the rates these capacities can carry. So rounding costs rate, never correctness.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np

from ...algorithms.graphs.maxflow import Unreachable, max_flow, worst_cut
from ...algorithms.graphs.network import INT64_SAFE, Network, exact_array
from ...core.solver import CompiledModel
from .formulations.lp6_allreduce import unit
from .problem import Pair, PairNetwork

Path = tuple[tuple[int, ...], int]  #: Links from one rank to another in their order, and the amount that they carry.
_CLOSE = 1e-8  #: Values that are this close to a multiple of 1/K are taken for it.

#: Largest denominators of single values and of all together, and how close to such fractions the values must be: small
#: denominators first, then large ones, as vertices of the program have. And the one that is taken if there is none.
_DENOMINATORS, _FINE = ((1000, 10**6, _CLOSE), (10**7, 10**8, 1e-12)), 10**8


def lengths(model: Any, compiled: CompiledModel, pairs: PairNetwork) -> dict[int, float]:
    """Return the duals of links or of their pair; equivalent directions matter by their sum."""
    net = pairs.network
    duals = {e: compiled.dual(model.link_capacity[e]) for e in model.H}
    for pair, links in pairs.direct.items():
        duals.update(dict.fromkeys(links, compiled.dual(model.pair_capacity[pair])))
    if not pairs.is_mirrored:
        return duals
    ends = list(zip(net.tail, net.head, strict=True))
    length = {ends[e]: value for e, value in duals.items()}
    return {e: value + length.get(ends[e][::-1], 0.0) for e, value in duals.items()}


@dataclass(frozen=True)
class AllReducePlan:
    """Capacities that an optimal all-reduce reserves for its two stages.

    In-trees rooted at rank v, of total weight ``root[v]``, exist within the capacities ``reduce``, and out-trees
    within ``broadcast``, together for all v: neither graph has switches, and both pass the exact maximum flows that
    Edmonds' theorem requires. All rates are multiples of ``unit_Bps``.
    """

    unit_Bps: Fraction
    root: tuple[int, ...]
    #: ``broadcast`` and ``reduce``: capacity from one rank to another for either stage; pairs without any are left out.
    broadcast: dict[Pair, int]
    reduce: dict[Pair, int]
    #: For every such pair the paths that carry both stages. They sum to the two capacities together, and no link has
    #: more than its bandwidth.
    paths: dict[Pair, list[Path]]

    @property
    def rate_Bps(self) -> Fraction:
        """Size of the all-reduce over its time, in bytes per second."""
        return sum(self.root) * self.unit_Bps


def common_denominator(values: Iterable[float]) -> int:
    """Return K such that all values are close to multiples of 1/K, small if possible."""
    values = list(values)
    for single, common, close in _DENOMINATORS:
        K = 1
        for value in values:
            if common >= K and abs(value * K - round(value * K)) > close * K:
                K = lcm(K, Fraction(value).limit_denominator(single).denominator)
        if common >= K and all(abs(value * K - round(value * K)) <= close * K for value in values):
            return K
    return _FINE


def make_plan(model: Any, pairs: PairNetwork, k: int | None = None) -> AllReducePlan:
    """Round a solved model's values to exact capacities, paths and rates."""
    net = pairs.network
    scaled = unit(pairs)  # from here on in the network's unit of bandwidth
    root = [scaled * model.root[v].value for v in model.C]
    relay = {(a, e): scaled * model.relay[a, e].value for a, e in model.R}
    flow = {(a, b): scaled * model.broadcast[a, b].value for a, b in model.A}
    most = max(1, INT64_SAFE // sum(net.bandwidths))  # trees are packed in integers of 64 bits
    K = k or min(common_denominator([*root, *relay.values(), *flow.values()]), most)
    paths: dict[Pair, list[Path]] = {
        pair: [((e,), K * net.bandwidths[e]) for e in links] for pair, links in pairs.direct.items()
    }
    room = [K * c for c in net.bandwidths]  # rounded link by link, so that no link is overloaded
    rounded: dict[int, dict[int, int]] = {a: {} for a in pairs.relays}
    for (a, e), value in relay.items():
        if amount := min(round_to_unit(value, K), room[e]):
            rounded[a][e] = amount
            room[e] -= amount
    for pair, routes in relay_paths(pairs, rounded).items():
        paths.setdefault(pair, []).extend(routes)
    total = {pair: sum(amount for _, amount in routes) for pair, routes in paths.items()}
    broadcast = {pair: min(round_to_unit(flow[pair], K), total[pair]) for pair in total}
    reduce = {pair: total[pair] - amount for pair, amount in broadcast.items()}
    weight = [*(round_to_unit(x, K) for x in root), *(0 for _ in pairs.hubs)]
    index = {node: place for place, node in enumerate(pairs.ends)}
    rate = min(
        largest_rate(weight, [(index[a], index[b], c) for (a, b), c in broadcast.items()]),
        largest_rate(weight, [(index[b], index[a], c) for (a, b), c in reduce.items()]),
    )
    return AllReducePlan(
        net.unit_Bps / K,
        tuple(int(amount * rate) for amount in weight),
        {(index[a], index[b]): c for (a, b), c in sorted(broadcast.items()) if c},
        {(index[a], index[b]): c for (a, b), c in sorted(reduce.items()) if c},
        {(index[a], index[b]): routes for (a, b), routes in sorted(paths.items())},
    )


def round_to_unit(value: float, K: int) -> int:
    """Round a value to units of 1/K: to the integer it is close to, else down."""
    nearest = round(value * K)
    return max(0, nearest if abs(value * K - nearest) <= _CLOSE * K else int(value * K))


def relay_paths(pairs: PairNetwork, relay: Mapping[int, Mapping[int, int]]) -> dict[Pair, list[Path]]:
    """Decompose every rank's arriving data on switch links into paths to other ranks."""
    net = pairs.network
    paths = defaultdict[Pair, list[Path]](list)
    for a, amounts in relay.items():
        links, arrivals = list(amounts), [e for e in amounts if pairs.is_end[net.head[e]]]
        arcs = [(net.tail[e], net.head[e], amounts[e]) for e in links]
        arcs += [(net.head[e], net.nodes, amounts[e]) for e in arrivals]
        flow = flow_on_arcs(net.nodes + 1, arcs, a, net.nodes)
        rest = {e: amount for e, amount in zip(links, flow[: len(links)], strict=True) if amount}
        while path := _path(pairs, rest, a):
            amount = min(rest[e] for e in path)
            for e in path:
                rest[e] -= amount
                if not rest[e]:
                    del rest[e]
            paths[a, net.head[path[-1]]].append((tuple(path), amount))
    return paths


def _path(pairs: PairNetwork, flow: Mapping[int, int], a: int) -> list[int]:
    """Follow data from a rank through switches to another one, without cycles."""
    net = pairs.network
    before: dict[int, int] = {}
    waiting = [a]
    for node in waiting:  # grows
        for e in flow:
            if net.tail[e] == node and net.head[e] not in before:
                before[net.head[e]] = e
                if pairs.is_end[net.head[e]]:
                    path = [e]
                    while net.tail[path[-1]] != a:
                        path.append(before[net.tail[path[-1]]])
                    return path[::-1]
                waiting.append(net.head[e])
    return []


def flow_on_arcs(nodes: int, arcs: Sequence[tuple[int, int, int]], source: int, sink: int) -> list[int]:
    """Compute a maximum flow on arcs (tail, head, capacity); parallel arcs are filled in order."""
    graph = graph_of(nodes, arcs)
    flow = max_flow(graph, source, sink).on_edge.tolist()
    rest = dict(zip(zip(graph.tail.tolist(), graph.head.tolist(), strict=True), flow, strict=True))
    amounts: list[int] = []
    for a, b, c in arcs:
        amounts.append(min(rest.get((a, b), 0), c))
        if amounts[-1]:
            rest[a, b] -= amounts[-1]
    return amounts


def largest_rate(weight: Sequence[int], arcs: Sequence[tuple[int, int, int]]) -> Fraction:
    """Return the largest multiple of the weights that each rank can receive over arcs (tail, head, capacity)."""
    if not any(weight):
        return Fraction(0)
    try:
        return 1 / worst_cut(graph_of(len(weight), arcs), np.array(weight), np.arange(len(weight))).ratio
    except Unreachable:
        return Fraction(0)


def graph_of(nodes: int, arcs: Sequence[tuple[int, int, int]]) -> Network:
    """Return the network of arcs (tail, head, capacity); parallel ones are joined."""
    tail, head = np.array([(a, b) for a, b, _ in arcs], dtype=np.int64).reshape(-1, 2).T
    return Network.from_parallel_edges(nodes, tail, head, exact_array(c for *_, c in arcs))
