"""Servers with rails between them, the bytes of every pair of ranks, and rails of parts of messages."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise, product
from typing import Literal

from ...core.bounds import CutCertificate
from ...core.collective import Collective, conditions
from ...core.errors import Refusal
from ...core.grouping import group_by_key
from ...core.instance import Instance
from ...core.refusals import refuse_unfit
from ...core.topology import Topology

Pieces = dict[tuple[int, int, int], Fraction]  #: Bytes of a message on every rail that it takes.

Rails = Literal["balanced", "source", "target", "optimal"]


@dataclass(frozen=True)
class Servers:
    """Ranks in servers, and the links between them."""

    topology: Topology
    members: tuple[tuple[int, ...], ...]  #: Ranks of every server; those at the same place are joined by a rail.
    hubs: tuple[int, ...]  #: The node of the switch inside every server.

    @cached_property
    def place(self) -> dict[int, tuple[int, int]]:
        """Server and rail of every rank."""
        return {r: (i, g) for i, ranks in enumerate(self.members) for g, r in enumerate(ranks)}

    @cached_property
    def link(self) -> dict[tuple[int, int], int]:
        """The first link from node to node."""
        return {ends: index for index, ends in reversed([*enumerate(self.topology.link_ends)])}

    @cached_property
    def ways(self) -> dict[int, dict[int, tuple[int, ...]]]:
        """Nodes on the way from every rank to each of its switches."""
        return _ways(self.topology)

    def rail(self, a: int, b: int) -> int:
        """Return the first switch other than those of servers that two nodes share."""
        return min((self.ways[a].keys() & self.ways[b].keys()) - set(self.hubs))

    def path(self, source: int, target: int) -> tuple[int, ...]:
        """Return the links from rank to rank: over the switch of their server, or over that of their rail."""
        a, b = self.topology.rank_nodes[source], self.topology.rank_nodes[target]
        (i, _), (j, _) = self.place[source], self.place[target]
        hub = self.hubs[i] if i == j else self.rail(a, b)
        return tuple(map(self.link.__getitem__, pairwise((*self.ways[a][hub], *self.ways[b][hub][-2::-1]))))

    def rate(self, link: str, rank: int) -> Fraction:
        """Return the bandwidth of a link of :attr:`Exchange.passing`."""
        node, hub = self.topology.rank_nodes[rank], self.hubs[self.place[rank][0]]
        if link.startswith("rail"):
            other = self.members[self.place[rank][0] - 1][self.place[rank][1]]
            hub = self.rail(node, self.topology.rank_nodes[other])
        way = self.ways[node][hub] if link.endswith("out") else self.ways[node][hub][::-1]
        return min(self.topology.links[self.link[ends]].bandwidth_Bps for ends in pairwise(way))


def _ways(topology: Topology) -> dict[int, dict[int, tuple[int, ...]]]:
    """Find the nodes from every rank to the switches at it, or behind a NIC that serves no other rank."""
    ranks, ends = set(topology.rank_nodes), set(topology.link_ends)
    near: dict[int, set[int]] = defaultdict(set)
    for a, b in ends:
        if (b, a) in ends:
            near[a].add(b)
    ways: dict[int, dict[int, tuple[int, ...]]] = {a: {b: (a, b) for b in near[a] - ranks} for a in topology.rank_nodes}
    for a, direct in ways.items():
        for nic in [b for b in direct if len(near[b]) == 2 and near[b] & ranks == {a}]:
            (far,) = near[nic] - {a}
            direct.setdefault(far, (a, nic, far))
    return ways


def servers_of(topology: Topology) -> Servers | None:
    """Find the fastest switches that divide all ranks into equal servers joined by rails; else None."""
    ways, rates = _ways(topology), dict[tuple[int, int], Fraction]()
    for link, ends in zip(topology.links, topology.link_ends, strict=True):
        rates[ends] = max(link.bandwidth_Bps, rates.get(ends, link.bandwidth_Bps))
    at: dict[int, set[int]] = defaultdict(set)
    speed: dict[int, Fraction] = defaultdict(Fraction)
    for rank, node in enumerate(topology.rank_nodes):
        for hub, way in ways[node].items():
            at[hub].add(rank)
            speed[hub] = max(speed[hub], min(rates[ends] for ends in pairwise(way)))
    for rate in sorted(set(speed.values()), reverse=True):
        hubs = sorted((hub for hub in at if speed[hub] == rate), key=lambda hub: min(at[hub]))
        members = tuple(tuple(sorted(at[hub])) for hub in hubs)
        if len(hubs) < 2 or len({len(ranks) for ranks in members}) != 1:
            continue
        if sorted(rank for ranks in members for rank in ranks) != list(range(len(topology.ranks))):
            continue
        others = [ways[node].keys() - set(hubs) for node in topology.rank_nodes]
        if all(set.intersection(*(others[ranks[g]] for ranks in members)) for g in range(len(members[0]))):
            return Servers(topology, members, tuple(hubs))
    return None


@dataclass(frozen=True)
class Exchange:
    """Messages between the ranks of servers."""

    instance: Instance
    servers: Servers
    sizes: dict[tuple[int, int], Fraction]  #: Bytes from rank to rank.
    chunks: int  #: Chunks of every piece of a message.

    @property
    def between(self) -> list[tuple[int, int]]:
        """Pairs of ranks of different servers."""
        place = self.servers.place
        return [(s, t) for s, t in self.sizes if place[s][0] != place[t][0]]

    @property
    def inside(self) -> list[tuple[int, int]]:
        """Pairs of ranks of the same server."""
        place = self.servers.place
        return [(s, t) for s, t in self.sizes if place[s][0] == place[t][0]]

    @property
    def rails(self) -> range:
        """Numbers of the rails."""
        return range(len(self.servers.members[0]))

    def hops(self, s: int, t: int, g: int) -> list[tuple[str, int]]:
        """Return the rank links, named as in :attr:`passing`, of a message part on a rail."""
        place, members = self.servers.place, self.servers.members
        first, second = members[place[s][0]][g], members[place[t][0]][g]
        ways = ((s, first, "server"), (first, second, "rail"), (second, t, "server"))
        return [end for a, b, link in ways if a != b for end in ((f"{link}_out", a), (f"{link}_in", b))]

    @cached_property
    def passing(self) -> dict[tuple[str, int], list[tuple[int, int, int]]]:
        """Messages and rails on each rank's ``rail_out``, ``rail_in``, ``server_out`` and ``server_in`` links."""
        messages = product(self.between, self.rails)
        return group_by_key((end, (s, t, g)) for (s, t), g in messages for end in self.hops(s, t, g))

    @cached_property
    def staying(self) -> dict[tuple[str, int], Fraction]:
        """Bytes of messages that stay in a server, by the links of :attr:`passing`."""
        sizes: dict[tuple[str, int], Fraction] = defaultdict(Fraction)
        for s, t in self.inside:
            sizes["server_out", s] += self.sizes[s, t]
            sizes["server_in", t] += self.sizes[s, t]
        return sizes

    @cached_property
    def bound(self) -> tuple[Fraction, CutCertificate]:
        """Largest time of data that must leave or enter a server or a rank, with its cut."""
        topology, place = self.servers.topology, self.servers.place
        nodes = [topology.rank_nodes[rank] for rank in range(len(topology.ranks))]
        sets = [
            {hub, *(nodes[rank] for rank in ranks)}
            for ranks, hub in zip(self.servers.members, self.servers.hubs, strict=True)
        ]
        count = len(sets)
        parts_of_node: dict[int, set[int]] = defaultdict(set)
        for part, members in enumerate(sets := [*sets, *({node} for node in nodes)]):
            for node in members:
                parts_of_node[node].add(part)
        rate, size = (defaultdict[tuple[int, bool], Fraction](Fraction) for _ in range(2))
        for link, (a, b) in zip(topology.links, topology.link_ends, strict=True):
            for part in parts_of_node[a] ^ parts_of_node[b]:
                rate[part, part in parts_of_node[a]] += link.bandwidth_Bps
        for (s, t), each in self.sizes.items():
            if place[s][0] != place[t][0]:
                size[place[s][0], True] += each
                size[place[t][0], False] += each
            size[count + s, True] += each
            size[count + t, False] += each
        times = {
            (part, leaves): size[part, leaves] / rate[part, leaves] if size[part, leaves] else Fraction(0)
            for part in range(len(sets))
            for leaves in (True, False)
        }
        part, leaves = max(times, key=lambda cut: times[cut])
        inside = sets[part] if leaves else set(range(len(topology.nodes))) - sets[part]
        return times[part, leaves], CutCertificate(tuple(sorted(inside)))


def supports(instance: Instance) -> Refusal | None:
    """Refuse all but messages or an all-to-all of all ranks on servers with rails (``Method.supports``)."""
    if (reason := refuse_unfit(instance, such_as="switch2d(8,4)")) is not None:
        return reason
    if instance.timing is not None:
        return Refusal("timing", "it does not support a grid of epochs")
    kinds = {demand.collective for demand in instance.demands}
    whole = kinds == {Collective.ALL_TO_ALL} and not instance.also and instance.demands[0].ranks is None
    if kinds != {Collective.POINT_TO_POINT} and not whole:
        return Refusal(
            "collective", "it schedules messages, such as all_to_all_v(skew=1), or an all_to_all of all ranks"
        )
    if servers_of(instance.topology) is None:
        return Refusal(
            "network",
            "the network has no servers of equal size whose ranks are joined by rails, each over a NIC of its own "
            "or none; expected one such as switch2d(8,4)",
        )
    return None


def exchange_of(instance: Instance, options: object = None) -> Exchange:
    """Return a supported instance's messages, joined between the same ranks (``Formulation.index``)."""
    topology = instance.topology
    servers = servers_of(topology)
    assert servers is not None  # noqa: S101 (it is supported)
    of_demands = (conditions(demand, instance.npus).bytes_of.items() for demand in instance.demands)
    parts = group_by_key(((holders[0], to[0]), size) for one in of_demands for (holders, to, _), size in one)
    sizes = {pair: sum(some, Fraction(0)) for pair, some in parts.items()}
    return Exchange(instance, servers, sizes, instance.demands[0].chunks)


def seconds(index: Exchange, objective: float) -> float:
    """Convert the model's objective, a multiple of the bound, to seconds (``Formulation.value``)."""
    return objective * float(index.bound[0])


def own_rails(exchange: Exchange, *, of_target: bool) -> Pieces:
    """Put every message on its sender's or its receiver's rail: two levels, unbalanced."""
    place = exchange.servers.place
    return {(s, t, place[t if of_target else s][1]): exchange.sizes[s, t] for s, t in exchange.between}


def balance_rails(exchange: Exchange) -> Pieces:
    """Put equally many bytes of every two servers on every rail, those of its own ranks first."""
    place = exchange.servers.place
    pairs = group_by_key(((place[s][0], place[t][0]), (s, t)) for s, t in exchange.between)
    pieces: Pieces = {}
    for messages in pairs.values():
        rest = {pair: exchange.sizes[pair] for pair in messages}
        room = dict.fromkeys(exchange.rails, sum(rest.values(), Fraction(0)) / len(exchange.rails))
        for of_own in (0, 1):  # the rail of the sender costs nothing there, that of the receiver nothing at the end
            for pair in sorted(messages, key=lambda pair: place[pair[0]][1] != place[pair[1]][1]):
                _take(pieces, rest, room, pair, place[pair[of_own]][1])
        for pair in messages:
            for rail in exchange.rails if rest[pair] else ():
                _take(pieces, rest, room, pair, rail)
    return pieces


def _take(
    pieces: Pieces, rest: dict[tuple[int, int], Fraction], room: dict[int, Fraction], pair: tuple[int, int], rail: int
) -> None:
    size = min(rest[pair], room[rail])
    if size:
        rest[pair] -= size
        room[rail] -= size
        pieces[(*pair, rail)] = pieces.get((*pair, rail), Fraction(0)) + size


def round_to_bytes(exchange: Exchange, share: Mapping[tuple[int, int, int], float]) -> Pieces:
    """Round shares of messages to whole bytes per rail; the last rail has the remainder."""
    pieces: Pieces = {}
    for s, t in exchange.between:
        size = rest = exchange.sizes[s, t]
        parts = {g: max(0.0, share[s, t, g]) for g in exchange.rails}
        order = sorted(parts, key=lambda g: parts[g])
        for g in order:
            part = rest if g == order[-1] else min(rest, Fraction(round(float(size) * parts[g])))
            rest -= part
            if part:
                pieces[s, t, g] = part
    return pieces


def rail_matrices(exchange: Exchange, pieces: Pieces) -> list[list[list[Fraction]]]:
    """Return ``X_g``: bytes from server to server on every rail."""
    place, count = exchange.servers.place, len(exchange.servers.members)
    matrices = [[[Fraction(0)] * count for _ in range(count)] for _ in exchange.rails]
    for (s, t, g), size in pieces.items():
        matrices[g][place[s][0]][place[t][0]] += size
    return matrices


def busy_s(exchange: Exchange, pieces: Pieces) -> dict[str, Fraction]:
    """Return the time of the busiest link of every kind of :attr:`Exchange.passing`."""
    carried = defaultdict(Fraction, exchange.staying)
    for way, size in pieces.items():
        for end in exchange.hops(*way):
            carried[end] += size
    longest: dict[str, Fraction] = defaultdict(Fraction)
    for (link, rank), size in carried.items():
        longest[link] = max(longest[link], size / exchange.servers.rate(link, rank))
    return longest
