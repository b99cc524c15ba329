"""Which single failure costs most: every link, rank and switch of a network taken away, and the optimum of what is left.

The optimum is that of trees in the flow model (ForestColl): no schedule of the collective on the changed network is
faster, and for all but an all-reduce trees attain it. Its certificate is recomputed for every failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..algorithms.graphs.link_orbits import link_orbits
from ..core.bounds import Certificate
from ..core.budget import Budget
from ..core.errors import InputError, Unsupported
from ..core.instance import Instance
from ..core.topology import NodeKind, Topology
from ..instances.edits import Edit, edited
from ..models.forestcoll.solve import bound_of, ways_of
from ..schedules.collective import exact_bound

#: What may fail.
KINDS = ("link", "rank", "switch")

#: Networks with more links are not looked at.
MAX_LINKS = 20_000


@dataclass(frozen=True)
class Optimum:
    """How fast a collective can be.

    Parameters
    ----------
    time_s : Fraction
        Flow time of the best trees; of an all-reduce that of a reduce-scatter and an all-gather in turn.
    bound_s : Fraction
        No schedule is faster; recomputed from the certificate.
    certificate : Certificate
        Of the bound.
    """

    time_s: Fraction
    bound_s: Fraction
    certificate: Certificate


@dataclass(frozen=True)
class Failure:
    """Something that fails, and what that costs.

    Parameters
    ----------
    kind : str
        One of :data:`KINDS`.
    names : tuple of str
        What was taken away, first; then what a symmetry of the network exchanges with it.
    optimum : Optimum or None
        Of what is left; None where ranks are cut off.
    reason : str
        Why there is none.
    """

    kind: str
    names: tuple[str, ...]
    optimum: Optimum | None
    reason: str = ""


def optimum_of(instance: Instance) -> Optimum:
    """Return the least flow time of trees, with a bound that has been recomputed.

    Raises
    ------
    InputError
        If data cannot reach some rank.
    Unsupported
        If trees do not serve the collective.
    """
    ways, mirrored = ways_of(instance)
    seconds = sum((way.seconds for way in ways), Fraction(0)) * (2 if mirrored else 1)
    bound, certificate = bound_of(instance, ways, both=mirrored or len(ways) == 2)
    if exact_bound(instance, certificate) != bound:
        raise AssertionError("the certificate proves another bound")
    return Optimum(seconds, bound, certificate)


def failures(instance: Instance, kinds: Sequence[str], slow: Fraction, budget: Budget) -> Iterator[Failure]:
    """Look at one failure after the other until the budget is exhausted.

    Parameters
    ----------
    instance : Instance
        A network of links, and a collective of all ranks.
    kinds : sequence of str
        What fails.
    slow : Fraction
        Part of the bandwidth that links keep, below 1; 0 where they are lost. Ranks and switches are always lost.
    budget : Budget
        Ends the search.

    Raises
    ------
    Unsupported
        If trees do not serve the collective, or the network is too large.
    """
    network = instance.network
    if not isinstance(network, Topology) or instance.demand is None or instance.demand.ranks is not None:
        raise Unsupported("expected a network of links, and one collective of all of its ranks")
    if len(network.links) > MAX_LINKS:
        raise Unsupported(f"{len(network.links):,} links; expected at most {MAX_LINKS:,}")
    cases = {"link": _links(network, slow, budget), "rank": _ranks(network), "switch": _switches(network)}
    for kind in kinds:
        for number, (names, edits) in enumerate(cases[kind]):
            if budget.exhausted:
                return
            budget.progress(f"{kind} {number + 1}: {names[0]}")
            yield _failure(instance, kind, names, edits)


def _failure(instance: Instance, kind: str, names: tuple[str, ...], edits: Sequence[Edit]) -> Failure:
    try:
        return Failure(kind, names, optimum_of(edited(instance, edits)))
    except InputError as error:
        return Failure(kind, names, None, error.problem)


def _links(network: Topology, slow: Fraction, budget: Budget) -> Iterator[tuple[tuple[str, ...], list[Edit]]]:
    """One pair of nodes of every class that symmetries exchange."""
    nodes: list[Any] = [(node.kind, node.multicast, node.reduces, node.buffer_bytes) for node in network.nodes]
    rates = [(link.bandwidth_Bps, link.latency_s) for link in network.links]
    at = {frozenset((link.source, link.target)): link.bandwidth_Bps for link in network.links}
    for pairs in link_orbits(nodes, network.link_ends, rates, lambda: budget.exhausted):
        names = [(network.nodes[a].name, network.nodes[b].name) for a, b in pairs]
        first = ":".join(names[0])
        rate = slow * at[frozenset(names[0])]
        edit = Edit("--link", f"{first}={rate} B/s") if slow else Edit("--without-link", first)
        yield tuple(" - ".join(pair) for pair in names), [edit]


def _ranks(network: Topology) -> Iterator[tuple[tuple[str, ...], list[Edit]]]:
    for rank, name in enumerate(network.ranks):
        others = [(0, rank - 1), (rank + 1, len(network.ranks) - 1)]
        text = ",".join(f"{low}-{high}" for low, high in others if low <= high)
        yield (name,), [Edit("--ranks", text)]


def _switches(network: Topology) -> Iterator[tuple[tuple[str, ...], list[Edit]]]:
    for node in network.nodes:
        if node.kind is NodeKind.SWITCH:
            yield (node.name,), [Edit("--without-node", node.name)]
