"""Changes of a network written on the command line: nodes removed, ranks left out, links removed, changed or added."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ..core.collective import Collective, Demand
from ..core.errors import InputError, locate_errors, show_value
from ..core.instance import Instance
from ..core.network_views import links_of
from ..core.topology import Link, NodeKind, Topology
from ..core.units import UnitKind, exact_number, parse
from .expression import is_expression, parse_expression
from .generators import generate

#: The machine is made at its rates, then links are changed, then nodes are lost, then ranks left out.
ORDER = {"--rates": -1, "--without-node": 1, "--without-rank": 1, "--ranks": 2}

LARGEST_PART = Fraction(10**12)  #: The largest part of its bandwidth that a link is given; the smallest is its inverse.

#: Collectives that a rank cannot be taken out of, since its data, or what it has summed, is nowhere else.
WHOLE = (Collective.LATE_ALL_REDUCE, Collective.POINT_TO_POINT)


@dataclass(frozen=True)
class Edit:
    """One change of a network."""

    #: ``--ranks`` keeps the ranks of a text such as ``0-3,8``; ``--without-link`` removes all links between two nodes,
    #: ``a:b``; ``--link`` sets their bandwidth and optionally latency, ``a:b=25GB/s,1us``, or a part of each one's own
    #: bandwidth, ``a:b=50%``, or adds a link in each direction if there is none; ``--without-node``, or
    #: ``--without-rank``, removes a node with its links, a rank from the collective too. ``--rates`` makes the machine
    #: of a generator again, at ``nominal`` or ``effective`` rates.
    option: str
    text: str  #: Value of the option. Nodes are given by name or rank.

    def __str__(self) -> str:
        return f"{self.option} {self.text}"


def edit_instance(instance: Instance, edits: Iterable[Edit]) -> Instance:
    """Change the network of an instance; a fabric is expanded into links first.

    Links are changed before ranks are removed, whatever the order. The remaining ranks are renumbered, and switches
    without links are removed, too. With ``--ranks`` the collective keeps its whole size; when a rank is lost with its
    node, the parts of the others keep theirs. Return the changed instance, named after the changes.
    """
    edits = sorted(edits, key=lambda edit: ORDER.get(edit.option, 0))
    if not edits:
        return instance
    if instance.is_beyond_collectives:
        raise InputError(
            "an instance with workloads, prices, a design or experts; expected one of links", source=edits[0].option
        )
    network = original = links_of(instance.network)
    demands = instance.demands
    for edit in edits:
        with locate_errors(source=edit.option):
            if edit.option == "--rates":
                network = original = machine_at(instance, edit.text)
            elif edit.option == "--ranks":
                names = {original.ranks[rank] for rank in _ranks(edit.text, len(original.ranks))}
                network, demands = _restrict_to_ranks(network, demands, names)
            elif edit.option in ("--without-node", "--without-rank"):
                node = _require_node(original, edit.text)
                demands = _without_rank(network, demands, node)
                links = (link for link in network.links if node not in (link.source, link.target))
                others = {*network.ranks} - {node}
                network, demands = _restrict_to_ranks(Topology(network.nodes, tuple(links)), demands, others)
            elif edit.option == "--without-link":
                ends = _ends(network, edit.text)
                remaining = tuple(link for link in network.links if {link.source, link.target} != ends)
                if len(remaining) == len(network.links):
                    raise _no_link(edit.text)
                network = Topology(network.nodes, remaining)
            else:
                network = _set_bandwidth(network, edit.text)
    name = " ".join([instance.name, *map(str, edits)])
    return replace(instance, name=name, network=network, demand=demands[0] if demands else None, also=demands[1:])


def machine_at(instance: Instance, rates: str) -> Topology:
    """Make the machine of a generator at ``nominal`` or ``effective`` rates; InputError for other networks."""
    if isinstance(instance.network, Topology) and is_expression(instance.name):
        expression = parse_expression(instance.name)
        if generate(expression) == instance.network:
            return generate(replace(expression, keywords={**expression.keywords, "rates": rates}))
    raise InputError(f"{show_value(instance.name)} is no machine of a generator; expected one such as dgx_h100(2)")


def _ranks(text: str, count: int) -> list[int]:
    ranks: set[int] = set()
    for part in text.split(","):
        low, dash, high = part.strip().partition("-")
        if not (low.isdecimal() and (high.isdecimal() or not dash)) or len(part) > 20:
            raise InputError(f"{show_value(part)} is no range of ranks; expected such as 0-3,8")
        first, last = int(low), int(high or low)
        if not first <= last < count:
            raise InputError(
                f"{show_value(part)} is out of range; expected ranks from 0 to {count - 1:,}, in ascending order"
            )
        ranks.update(range(first, last + 1))
    if len(ranks) < 2:
        raise InputError(f"{show_value(text)} is a single rank; expected at least 2")
    return sorted(ranks)


def _renumber_ranks(demand: Demand, ranks: Sequence[int]) -> Demand:
    if demand.ranks is None:
        return demand
    number = {rank: place for place, rank in enumerate(ranks)}
    for rank in demand.ranks:
        if rank not in number:
            raise InputError(f"leaves out rank {rank} of the collective; expected all of its ranks")
    return replace(demand, ranks=tuple(number[rank] for rank in demand.ranks))


def _restrict_to_ranks(
    network: Topology, demands: tuple[Demand, ...], names: Collection[str]
) -> tuple[Topology, tuple[Demand, ...]]:
    """Keep these ranks, and the switches that still have links; number the ranks of demands again."""
    ranks = [rank for rank, name in enumerate(network.ranks) if name in names]
    if len(ranks) < 2:
        raise InputError("leaves fewer than two ranks; expected at least 2")
    away = {*network.ranks} - {*names}
    links = tuple(link for link in network.links if link.source not in away and link.target not in away)
    ends = {end for link in links for end in (link.source, link.target)}
    nodes = (n for n in network.nodes if n.name not in away and (n.kind is NodeKind.COMPUTE or n.name in ends))
    return Topology(tuple(nodes), links), tuple(_renumber_ranks(each, ranks) for each in demands)


def _without_rank(network: Topology, demands: tuple[Demand, ...], name: str) -> tuple[Demand, ...]:
    """Return the demands of the other ranks when one is lost; each keeps the size of its part."""
    if name not in network.ranks:
        return demands
    rank = network.ranks.index(name)
    # A message without its source or its only receiver is left out.
    rest = tuple(d for d in demands if d.part_of is None or (rank,) not in ((d.ranks or ())[:1], (d.ranks or ())[1:]))
    if demands and not rest:
        raise InputError(f"all data of the collective is of rank {rank}; expected another rank")
    return tuple(_demand_without_rank(each, rank, len(network.ranks)) for each in rest)


def _demand_without_rank(demand: Demand, missing: int, count: int) -> Demand:
    group = demand.group(count)
    if missing not in group:
        return demand
    kind = demand.collective
    if kind in WHOLE or (kind.rooted and missing == group[0]):
        raise InputError(f"rank {missing} has the only copy of data of the {kind.name}; expected another rank")
    others = tuple(rank for rank in group if rank != missing)
    size = demand.size_bytes * Fraction(kind.parts_of(len(others)), kind.parts_of(len(group)))
    return replace(demand, size_bytes=size, ranks=None if demand.ranks is None else others)


def _set_bandwidth(network: Topology, text: str) -> Topology:
    pair, equals, value = text.rpartition("=")
    if not equals:
        raise InputError(f"{show_value(text)} has no bandwidth; expected such as a:b=25GB/s or a:b=25GB/s,1us")
    rate, comma, delay = value.partition(",")
    ends = _ends(network, pair)
    latency_s = parse(delay, UnitKind.TIME) if comma else None
    is_linked = any({link.source, link.target} == ends for link in network.links)
    if (part := _part(rate)) is not None and not is_linked:
        raise _no_link(pair)
    given_Bps = Fraction(0) if part is not None else parse(rate, UnitKind.RATE, allow_zero=False)

    def change_link(link: Link) -> Link:
        bandwidth_Bps = part * link.bandwidth_Bps if part is not None else given_Bps
        return replace(link, bandwidth_Bps=bandwidth_Bps, latency_s=link.latency_s if latency_s is None else latency_s)

    links = tuple(change_link(link) if {link.source, link.target} == ends else link for link in network.links)
    if not is_linked:
        one, other = sorted(ends, key=network.node_index.__getitem__)
        new = (Link(a, b, given_Bps, latency_s or Fraction(0)) for a, b in ((one, other), (other, one)))
        links = (*links, *new)
    return Topology(network.nodes, links)


def _no_link(text: str) -> InputError:
    return InputError(f"{show_value(text)}: there is no link between them; expected two nodes that are linked")


def _part(text: str) -> Fraction | None:
    """Read a part of a bandwidth, such as 50% or 100/3%; None if the text is a bandwidth."""
    number, percent, rest = text.strip().partition("%")
    if not percent or rest:
        return None
    percentage = exact_number(number)
    if not percentage or not 1 / LARGEST_PART <= percentage / 100 <= LARGEST_PART:
        raise InputError(f"{show_value(text)} is no part of a bandwidth; expected such as 50%")
    return percentage / 100


def _ends(network: Topology, text: str) -> set[str]:
    """Return the two nodes of a text separated by a colon; names may contain colons."""
    for place in (k for k, letter in enumerate(text) if letter == ":"):
        one, other = _node(network, text[:place]), _node(network, text[place + 1 :])
        if one is not None and other is not None and one != other:
            return {one, other}
    link = network.links[0] if network.links else None
    example = "a:b" if link is None else show_value(f"{link.source}:{link.target}")
    raise InputError(f"{show_value(text)} does not name two nodes; expected such as {example}")


def _require_node(network: Topology, text: str) -> str:
    node = _node(network, text)
    if node is None:
        expected = show_value(network.nodes[-1].name)
        raise InputError(f"{show_value(text)} names no node; expected a rank or a name such as {expected}")
    return node


def _node(network: Topology, text: str) -> str | None:
    text = text.strip()
    if text in network.node_index:
        return text
    is_rank = text.isdecimal() and len(text) < 10 and int(text) < len(network.ranks)
    return network.ranks[int(text)] if is_rank else None
