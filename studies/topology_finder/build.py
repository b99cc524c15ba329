"""From a candidate to its network and all-gather: bases are built, and every expansion is applied to both.

Reductions reverse an all-gather of the transposed network (theorem 1). Expansions and transposition commute, so the
transposed all-gather is made from those of the transposed bases. Links are sorted by their ends, so that a link of
the one is the same link of the other, reversed.
"""

import json
from dataclasses import replace
from functools import cache
from importlib.resources import files
from math import lcm
from typing import Any

import numpy as np

from ...algorithms.breadth_first.broadcast import Broadcast, graph_of
from ...algorithms.schedules.compose import concatenate, reverse
from ...core.collective import Collective
from ...core.errors import Unsupported
from ...core.instance import Instance
from ...core.schedule import Ints, StepSchedule
from ...instances.expression import parse_expression
from ...instances.generators import generate
from . import gather as gathers
from .candidates import Candidate, Construction


def all_gather(candidate: Candidate, *, transposed: bool = False) -> gathers.Gather:
    """Build the network of a candidate, and its all-gather."""
    if candidate.breadth_first:
        return breadth_first(candidate.nodes, candidate.degree, links_of(candidate, transposed=transposed))
    return _build_candidate(candidate, transposed=transposed, bare=False)


def links_of(candidate: Candidate, *, transposed: bool = False) -> Ints:
    """Return the sorted links of a candidate's network; if transposed, links are reversed but keep this order."""
    return _build_candidate(candidate, transposed=transposed, bare=True).links


def schedule(candidate: Candidate, instance: Instance, *, back: Candidate | None = None) -> StepSchedule:
    """Build the schedule of an all_gather, reduce_scatter or all_reduce on a candidate's network.

    The links of the instance are those of :func:`links_of`, in their order. A reduction reverses an all-gather on the
    transposed network, that of ``back`` or of the candidate itself.
    """
    kind = None if instance.demand is None else instance.demand.collective
    if kind not in (Collective.ALL_GATHER, Collective.REDUCE_SCATTER, Collective.ALL_REDUCE):
        raise Unsupported("the topology finder schedules all_gather, reduce_scatter and all_reduce")
    gathers.check_size(candidate.nodes * (candidate.nodes - 1) * kind.passes)
    if kind is Collective.ALL_GATHER:
        return gathers.schedule_of(all_gather(candidate), instance)
    home = all_gather(back or candidate, transposed=True)
    if kind is Collective.REDUCE_SCATTER:
        return reverse(gathers.schedule_of(home, instance))
    onward = all_gather(candidate)
    pieces = lcm(onward.pieces, home.pieces)
    of_onward, of_home = ((g.owner, g.start * (pieces // g.pieces)) for g in (onward, home))
    onward, home = gathers.recut(onward, pieces, *of_home), gathers.recut(home, pieces, *of_onward)
    return concatenate(reverse(gathers.schedule_of(home, instance)), gathers.schedule_of(onward, instance))


def _build_candidate(one: Candidate, *, transposed: bool, bare: bool) -> gathers.Gather:
    """Build the parts of a candidate, then apply its own expansion."""

    def part(way: bool = transposed) -> gathers.Gather:
        return _build_candidate(one.of[0], transposed=way, bare=bare)

    match one.form:
        case Construction.BASE:
            gather = _base(one, transposed=transposed, bare=bare)
        case Construction.LINE_GRAPH:
            gather = part()
            for _ in range(one.count):
                gather = sort_links(gathers.line_graph(gather), transposed=transposed)
                gather = gathers.without_sends(gather.nodes, gather.degree, gather.links) if bare else gather
        case Construction.DEGREE_EXPANSION:
            gather = gathers.degree_expansion(part(), one.count)
        case Construction.POWER:
            gather = gathers.cartesian_power(part(), one.count)
        case Construction.PRODUCT:
            gather = _product(one, transposed=transposed, bare=bare)
        case Construction.BOTH_DIRECTIONS:
            gather = gathers.both_directions(part(), part(not transposed))
        case Construction.PARALLEL:
            gather = gathers.parallel_links(part(), one.count)
    return sort_links(gather, transposed=transposed)


def sort_links(gather: gathers.Gather, *, transposed: bool) -> gathers.Gather:
    """Sort the links by their ends, before a transposition if there is one."""
    first, second = gather.links.T[::-1] if transposed else gather.links.T
    order = np.lexsort((second, first))
    return replace(gather, links=gather.links[order], link=np.argsort(order)[gather.link])


def _base(one: Candidate, *, transposed: bool, bare: bool) -> gathers.Gather:
    entry = _special().get(one.expression)
    ends = entry["links"] if entry is not None else generate(parse_expression(one.expression)).link_ends
    links = np.array(ends, dtype=np.int64)[:, :: -1 if transposed else 1]
    if bare:
        return gathers.without_sends(one.nodes, one.degree, links)
    if entry is None:
        return breadth_first(one.nodes, one.degree, links)
    step, source, piece, link = np.array(entry["transposed" if transposed else "gather"], dtype=np.int64).T
    pieces = entry["pieces"]
    owner, start = np.divmod(np.arange(one.nodes * pieces), pieces)
    return gathers.Gather(
        one.nodes, one.degree, links, pieces, owner, start, np.ones_like(owner), source * pieces + piece, link, step
    )


def breadth_first(nodes: int, degree: int, links: Ints) -> gathers.Gather:
    """Build the best breadth-first all-gather of a network."""
    return gathers.from_shares(degree, links, Broadcast(graph_of(range(nodes), links)).split().everywhere())


def _product(one: Candidate, *, transposed: bool, bare: bool) -> gathers.Gather:
    """Combine the links of all factors with the breadth-first all-gather on them, which is optimal (theorem 13)."""
    stride, parts = 1, []
    for factor in one.of:
        links = _build_candidate(factor, transposed=transposed, bare=True).links
        low = np.arange(one.nodes).reshape(-1, factor.nodes, stride)[:, 0, :].ravel()
        parts.append((links[:, None, :] * stride + low[:, None]).reshape(-1, 2))
        stride *= factor.nodes
    links = np.concatenate(parts)
    return gathers.without_sends(one.nodes, one.degree, links) if bare else breadth_first(one.nodes, one.degree, links)


@cache
def _special() -> dict[str, dict[str, Any]]:
    """Read all-gathers that are not breadth-first: rows of step, source, piece and link, both directions."""
    text = files(__name__.rpartition(".")[0]).joinpath("special.json").read_text(encoding="utf-8")
    special: dict[str, dict[str, Any]] = json.loads(text)
    return special
