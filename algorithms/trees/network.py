"""Network model of the tree methods: links with exact integer capacities, and limits on tree heights."""

from bisect import bisect_right, insort
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import product
from typing import Any

import numpy as np

from ...core.collective import Collective
from ...core.errors import InputError, Refusal, Unsupported
from ...core.grouping import group_by_key
from ...core.instance import Instance
from ...core.refusals import refuse_unfit
from ...core.schedule import Ints
from ...core.topology import Topology
from ...core.units import common_unit
from ..graphs.network import components

MAX_NODES, MAX_LINKS = 2000, 20_000  #: networks beyond this are rejected before memory is taken
_EXACT = 2**53  #: sums of capacities stay below this, so that 64-bit integers and floats hold them exactly
_NS = 10**9  #: unit of latency: heights are compared in whole nanoseconds, a link's rounded up


def supports(instance: Instance, *, helpers: bool = False) -> Refusal | None:
    """Return why trees for wide-area all-reduce do not support an instance, None if they do (``Method.supports``).

    With ``helpers`` the all-reduce may be that of a process group (:mod:`.helpers`).
    """
    unfit = refuse_unfit(instance, (Collective.ALL_REDUCE,), such_as="gscale()", single=True, of_all=not helpers)
    if unfit is not None:
        return unfit
    topology = instance.topology
    if topology.switches:
        return Refusal("network", f"{topology.switches[0]!r} is a switch; expected sites alone")
    if len(topology.nodes) > MAX_NODES or len(topology.links) > 2 * MAX_LINKS:
        return Refusal("size", f"expected at most {MAX_NODES:,} sites and {MAX_LINKS:,} links")
    return None


supports_group = partial(supports, helpers=True)  #: As :func:`supports`, for methods that helpers relay for.


@dataclass(frozen=True, eq=False)
class Wan:
    """Network of sites whose links are pairs of directed links, one in each direction.

    A tree of rate r that reduces and broadcasts simultaneously loads both directions of each of its links by r,
    whatever its root. Any of parallel links forth makes a pair with any link back. Capacities belong to carriers: a
    carrier is a directed link that several pairs share, or a pair that shares none of its directed links.
    """

    topology: Topology
    tail: Ints  #: (links,) the two sites of every link
    head: Ints
    latency_ns: Ints  #: (links,) the larger latency of the two directions, rounded up to nanoseconds
    forth: Ints  #: (links,) the directed link from tail to head, and the one from head to tail
    back: Ints
    first: Ints  #: (links,) carriers of every link: forth, and back; equal if the pair itself is the carrier
    second: Ints
    #: (carriers,) capacity of every carrier in multiples of ``unit_Bps``; a pair has that of its slower direction
    room: Ints
    unit_Bps: Fraction  #: greatest common divisor of all capacities, in B/s
    #: True if every link has an equally fast one back, in no other pair, so that trees see the whole network
    balanced: bool

    def __len__(self) -> int:
        return len(self.tail)

    @property
    def nodes(self) -> int:
        """Number of sites n."""
        return len(self.topology.nodes)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the sites."""
        return tuple(node.name for node in self.topology.nodes)

    @cached_property
    def capacity(self) -> Ints:
        """Capacity b_e of every link, the smaller one of its directions."""
        return np.minimum(self.room[self.first], self.room[self.second])

    @cached_property
    def has_shared_links(self) -> bool:
        """True if some links share a directed link."""
        return bool((self.first != self.second).any())

    def carriers(self, links: Iterable[int]) -> list[int]:
        """List the carriers of links, link by link."""
        return [c for e in links for c in dict.fromkeys((int(self.first[e]), int(self.second[e])))]

    def per_link(self, carrier: Any) -> Any:
        """Sum, for every link, an array's values at its carriers."""
        return np.where(self.first == self.second, carrier[self.first], carrier[self.first] + carrier[self.second])

    def bundles(self) -> tuple[list[int], list[int], list[int]]:
        """Merge links that share carriers; return tails, heads and capacities of the merged links."""
        groups: dict[tuple[int, int, int], tuple[set[int], set[int]]] = {}
        columns = (column.tolist() for column in (self.tail, self.head, self.first, self.second))
        for e, (a, b, c, d) in enumerate(zip(*columns, strict=True)):
            there, back = groups.setdefault((a, b, e if c == d else -1), (set(), set()))
            there.add(c)
            back.add(d)
        capacity = [min(int(self.room[list(side)].sum()) for side in sides) for sides in groups.values()]
        return [a for a, _, _ in groups], [b for _, b, _ in groups], capacity

    @cached_property
    def normaliser(self) -> Fraction:
        """``N = sum b_e / (n - 1)``, the rate at which trees would fill every link (paper, section IV-A.3)."""
        return Fraction(sum(self.bundles()[2]), self.nodes - 1)

    def hops(self, most: int | None) -> "HeightLimit":
        """Measure heights in hops."""
        longest = self.nodes if most is None else min(most, self.nodes)
        return HeightLimit(np.ones(len(self), dtype=np.int64), longest, "hops")

    def latencies(self, most_s: Fraction) -> "HeightLimit":
        """Measure heights in nanoseconds of latency."""
        return HeightLimit(self.latency_ns, min(int(most_s * _NS), int(self.latency_ns.sum())), "ns")


@dataclass(frozen=True, eq=False)
class HeightLimit:
    """Limit on the height of trees."""

    length: Ints  #: (links,) length L_e of every link
    most: int  #: largest sum of lengths from the root to a leaf
    unit: str  #: unit of lengths, ``hops`` or ``ns``

    def format_height(self, height: int) -> str:
        """Format a height with its unit."""
        if self.unit == "hops":
            return f"{height} hop{'s' if height != 1 else ''}"
        return f"{height // 10**6}.{height % 10**6:06d}".rstrip("0").rstrip(".") + " ms"


def to_wan(instance: Instance, mandatory: Collection[tuple[int, int]] = ()) -> Wan:
    """Convert an instance to its network of sites.

    ``mandatory`` are pairs of directed links, in either order, that must be links of the result. Raise Unsupported if
    :func:`supports` rejects the instance or capacities have no common unit of a sensible size, and InputError if the
    network is not connected by links in both directions.
    """
    if (reason := supports(instance)) is not None:
        raise Unsupported(reason)
    topology = instance.topology
    links = topology.links
    alone, crossed = _pairs(topology, {tuple(sorted(pair)) for pair in mandatory})
    pairs = sorted(alone | crossed, key=sorted)
    owners = sorted({(pair if pair in alone else (one,)) for pair in pairs for one in pair}, key=min)
    carrier = {one: index for index, owner in enumerate(owners) for one in owner}
    rates = [min(links[one].bandwidth_Bps for one in owner) for owner in owners]
    unit = common_unit(rates) or Fraction(1)
    room = [int(rate / unit) for rate in rates]
    latency = [-int(-max(links[a].latency_s, links[b].latency_s) * _NS // 1) for a, b in pairs]
    if sum(room) >= _EXACT or sum(latency) >= _EXACT:
        raise Unsupported("bandwidths have no common unit, or latencies are so long, that sums are exact in 64 bits")
    if len(pairs) > MAX_LINKS:
        raise Unsupported(f"{len(pairs):,} pairs of opposite links; expected at most {MAX_LINKS:,}")
    rows = [
        (*topology.link_ends[a], ns, a, b, carrier[a], carrier[b]) for (a, b), ns in zip(pairs, latency, strict=True)
    ]
    tail, head, ns, forth, back, first, second = np.array(rows, dtype=np.int64).reshape(-1, 7).T.copy()
    balanced = 2 * len(alone) == len(links) and all(links[a].bandwidth_Bps == links[b].bandwidth_Bps for a, b in alone)
    wan = Wan(topology, tail, head, ns, forth, back, first, second, np.array(room, dtype=np.int64), unit, balanced)
    if (label := components(wan.nodes, wan.tail, wan.head)).any():
        other = wan.names[int(np.flatnonzero(label)[0])]
        problem = f"no path of links in both directions leads from {wan.names[0]!r} to {other!r}"
        raise InputError(f"{problem}; expected a connected network", place="network.links")
    return wan


def _pairs(topology: Topology, keep: Collection[tuple[int, ...]]) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """Pair links with reverse links: pairs that share no directed link, and all pairs of the other links."""
    between = group_by_key((ends, index) for index, ends in enumerate(topology.link_ends))
    alone: set[tuple[int, int]] = set()
    crossed: set[tuple[int, int]] = set()
    for (one, other), forth in between.items():
        back = between.get((other, one), [])
        if one > other or not back:
            continue
        best = _partners(topology, forth, back) or {(a, b) for b, a in _partners(topology, back, forth)}
        needs = {pair for pair in keep if topology.link_ends[pair[0]] in ((one, other), (other, one))}
        if len(forth) == len(back) == 1:
            alone.add((forth[0], back[0]))
        elif best and needs <= {tuple(sorted(pair)) for pair in best}:
            alone |= best
        elif len(forth) * len(back) > MAX_LINKS:
            raise Unsupported(f"two sites have more than {MAX_LINKS:,} pairs of opposite links")
        else:
            crossed |= set(product(forth, back))
    return alone, crossed


def _partners(topology: Topology, some: Sequence[int], others: Sequence[int]) -> set[tuple[int, int]]:
    """Match each link with a reverse one, no slower and of no larger latency; empty if impossible."""
    links = topology.links

    def order(e: int) -> tuple[Fraction, Fraction]:
        return -links[e].bandwidth_Bps, links[e].latency_s

    waiting = sorted(others, key=order, reverse=True)
    near: list[tuple[Fraction, int]] = []  # (latency, -number) of links back at least as fast, the longest last
    pairs: set[tuple[int, int]] = set()
    for one in sorted(some, key=order):
        while waiting and links[waiting[-1]].bandwidth_Bps >= links[one].bandwidth_Bps:
            insort(near, (links[waiting[-1]].latency_s, -waiting.pop()))
        at = bisect_right(near, (links[one].latency_s, 1)) - 1
        if at < 0:
            return set()
        pairs.add((one, -near.pop(at)[1]))  # of those short enough the longest: shorter ones remain for the next links
    return pairs
