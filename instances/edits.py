"""Changes of a network that are written on the command line: some ranks alone, links taken away, slower or added."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ..core.collective import CollectiveKind, Demand
from ..core.errors import InputError, located, shown
from ..core.instance import Instance
from ..core.network_views import links_of
from ..core.topology import Link, NodeKind, Topology
from ..core.units import UnitKind, parse

#: Links are changed first, then nodes are lost, then ranks left out.
ORDER = {"--without-node": 1, "--without-rank": 1, "--ranks": 2}

#: Collectives of which each rank has a part of its own, whose size others keep when a rank is lost.
IN_PARTS = (
    CollectiveKind.ALL_GATHER,
    CollectiveKind.REDUCE_SCATTER,
    CollectiveKind.ALL_TO_ALL,
    CollectiveKind.GATHER,
    CollectiveKind.SCATTER,
)

#: Collectives that a rank cannot be taken out of, since its data, or what it has summed, is nowhere else.
WHOLE = (CollectiveKind.LATE_ALL_REDUCE, CollectiveKind.POINT_TO_POINT)

#: Collectives that all but their first rank can be taken out of.
ROOTED = (CollectiveKind.BROADCAST, CollectiveKind.REDUCE, CollectiveKind.GATHER, CollectiveKind.SCATTER)


@dataclass(frozen=True)
class Edit:
    """One change.

    Parameters
    ----------
    option : str
        ``--ranks`` keeps the ranks of a text such as ``0-3,8``; ``--without-link`` takes all links between two nodes away,
        ``a:b``; ``--link`` gives them a bandwidth, and a latency if there is one, ``a:b=25GB/s,1us``, or adds a link in
        each direction where there is none; ``--without-node``, or ``--without-rank``, takes a node away with its
        links, a rank out of the collective too.
    text : str
        What is given for it. Nodes are named, or told by their rank.
    """

    option: str
    text: str

    def __str__(self) -> str:
        return f"{self.option} {self.text}"


def edited(instance: Instance, edits: Iterable[Edit]) -> Instance:
    """Change the network of an instance; a fabric is expanded into links first.

    Links are changed before ranks are left out, whatever the order. What is left of the ranks is numbered again, and
    switches without links are left out, too. Ranks that are kept share the whole size of the collective; those that are
    left when a rank is lost with its node keep the sizes of their parts.

    Parameters
    ----------
    instance : Instance
        What is changed.
    edits : iterable of Edit
        The changes.

    Returns
    -------
    Instance
        Named after the changes.

    Raises
    ------
    InputError
        If a change names nothing of the network, or the instance belongs to a fabric.
    """
    edits = sorted(edits, key=lambda edit: ORDER.get(edit.option, 0))
    if not edits:
        return instance
    if instance.asks_more:
        raise InputError(
            "an instance with workloads, prices, a design or experts; expected one of links", source=edits[0].option
        )
    network = whole = instance.network if isinstance(instance.network, Topology) else links_of(instance.network)
    demands = () if instance.demand is None else (instance.demand, *instance.also)
    for edit in edits:
        with located(source=edit.option):
            if edit.option == "--ranks":
                names = {whole.ranks[rank] for rank in _ranks(edit.text, len(whole.ranks))}
                network, demands = _restricted(network, demands, names)
            elif edit.option in ("--without-node", "--without-rank"):
                node = _known(whole, edit.text)
                demands = _without_rank(network, demands, node)
                network, demands = _restricted(_without_node(network, node), demands, {*network.ranks} - {node})
            elif edit.option == "--without-link":
                network = _without(network, edit.text)
            else:
                network = _with(network, edit.text)
    name = " ".join([instance.name, *map(str, edits)])
    return replace(instance, name=name, network=network, demand=demands[0] if demands else None, also=demands[1:])


def _ranks(text: str, count: int) -> list[int]:
    """Ranks of a text, in ascending order."""
    found: set[int] = set()
    for part in text.split(","):
        low, dash, high = part.strip().partition("-")
        if not (low.isdecimal() and (high.isdecimal() or not dash)) or len(part) > 20:
            raise InputError(f"{shown(part)} is no range of ranks; expected such as 0-3,8")
        first, last = int(low), int(high or low)
        if not first <= last < count:
            raise InputError(
                f"{shown(part)} is out of range; expected ranks from 0 to {count - 1:,}, in ascending order"
            )
        found.update(range(first, last + 1))
    if len(found) < 2:
        raise InputError(f"{shown(text)} is a single rank; expected at least 2")
    return sorted(found)


def _of_ranks(demand: Demand, kept: Sequence[int]) -> Demand:
    """The demand with its ranks numbered again."""
    if demand.ranks is None:
        return demand
    number = {rank: place for place, rank in enumerate(kept)}
    for rank in demand.ranks:
        if rank not in number:
            raise InputError(f"leaves out rank {rank} of the collective; expected all of its ranks")
    return replace(demand, ranks=tuple(number[rank] for rank in demand.ranks))


def _restricted(
    network: Topology, demands: tuple[Demand, ...], names: Collection[str]
) -> tuple[Topology, tuple[Demand, ...]]:
    """Keep these ranks, and the switches that still have links; number the ranks of demands again."""
    kept = [rank for rank, name in enumerate(network.ranks) if name in names]
    if len(kept) < 2:
        raise InputError("leaves fewer than two ranks; expected at least 2")
    away = {*network.ranks} - {*names}
    links = tuple(link for link in network.links if link.source not in away and link.target not in away)
    used = {end for link in links for end in (link.source, link.target)}
    nodes = (n for n in network.nodes if n.name not in away and (n.kind is NodeKind.COMPUTE or n.name in used))
    return Topology(tuple(nodes), links), tuple(_of_ranks(each, kept) for each in demands)


def _without_node(network: Topology, name: str) -> Topology:
    """All links of a node taken away."""
    return Topology(network.nodes, tuple(link for link in network.links if name not in (link.source, link.target)))


def _without_rank(network: Topology, demands: tuple[Demand, ...], name: str) -> tuple[Demand, ...]:
    """What the other ranks exchange when one is lost; each keeps the size of its part."""
    if name not in network.ranks:
        return demands
    lost = network.ranks.index(name)
    return tuple(_left_over(each, lost, len(network.ranks)) for each in demands)


def _left_over(demand: Demand, lost: int, count: int) -> Demand:
    """A demand without one of its ranks."""
    group = tuple(range(count)) if demand.ranks is None else demand.ranks
    if lost not in group:
        return demand
    kind = demand.collective
    if kind in WHOLE or (kind in ROOTED and lost == group[0]):
        raise InputError(f"rank {lost} has data of the {kind.value} that are nowhere else; expected another rank")
    left = tuple(rank for rank in group if rank != lost)
    size = demand.size_bytes * Fraction(len(left), len(group)) if kind in IN_PARTS else demand.size_bytes
    return replace(demand, size_bytes=size, ranks=None if demand.ranks is None else left)


def _without(network: Topology, text: str) -> Topology:
    ends = _ends(network, text)
    links = tuple(link for link in network.links if {link.source, link.target} != ends)
    if len(links) == len(network.links):
        raise InputError(f"{shown(text)}: there is no link between them; expected two nodes that are linked")
    return Topology(network.nodes, links)


def _with(network: Topology, text: str) -> Topology:
    pair, equals, given = text.rpartition("=")
    if not equals:
        raise InputError(f"{shown(text)} has no bandwidth; expected such as a:b=25GB/s or a:b=25GB/s,1us")
    rate, comma, delay = given.partition(",")
    ends = _ends(network, pair)
    bandwidth_Bps = parse(rate, UnitKind.RATE, allow_zero=False)
    latency_s = parse(delay, UnitKind.TIME) if comma else None
    links = tuple(
        _like(link, bandwidth_Bps, latency_s) if {link.source, link.target} == ends else link for link in network.links
    )
    if not any({link.source, link.target} == ends for link in links):
        one, other = sorted(ends, key=network.node_index.__getitem__)
        new = (Link(a, b, bandwidth_Bps, latency_s or Fraction(0)) for a, b in ((one, other), (other, one)))
        links = (*links, *new)
    return Topology(network.nodes, links)


def _like(link: Link, bandwidth_Bps: Fraction, latency_s: Fraction | None) -> Link:
    return replace(link, bandwidth_Bps=bandwidth_Bps, latency_s=link.latency_s if latency_s is None else latency_s)


def _ends(network: Topology, text: str) -> set[str]:
    """The two nodes of a text, which a colon separates; there may be others in their names."""
    for place in (k for k, letter in enumerate(text) if letter == ":"):
        one, other = _node(network, text[:place]), _node(network, text[place + 1 :])
        if one is not None and other is not None and one != other:
            return {one, other}
    raise InputError(f"{shown(text)} does not name two nodes; expected such as {_example(network)}")


def _known(network: Topology, text: str) -> str:
    """A node by its name, or by its rank."""
    node = _node(network, text)
    if node is None:
        expected = shown(network.nodes[-1].name)
        raise InputError(f"{shown(text)} names no node; expected a rank or a name such as {expected}")
    return node


def _node(network: Topology, text: str) -> str | None:
    """A node by its name, or by its rank."""
    text = text.strip()
    if text in network.node_index:
        return text
    known = text.isdecimal() and len(text) < 10 and int(text) < len(network.ranks)
    return network.ranks[int(text)] if known else None


def _example(network: Topology) -> str:
    link = network.links[0] if network.links else None
    return "a:b" if link is None else shown(f"{link.source}:{link.target}")
