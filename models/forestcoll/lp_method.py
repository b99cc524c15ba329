"""``forestcoll-lp``: how fast a collective can be, by linear programs; no forest."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from ...core.answers import BoundOnly
from ...core.budget import Budget
from ...core.collective import CollectiveKind
from ...core.fields import Strict
from ...core.instance import Instance
from ...core.method import Kind, Method, Outcome, Status
from ...core.solver import Solver
from ...core.topology import Topology

if TYPE_CHECKING:
    from ..common.schedule_bounds import Bound
    from .lp import Found

COLLECTIVES = (CollectiveKind.ALL_GATHER, CollectiveKind.REDUCE_SCATTER, CollectiveKind.ALL_REDUCE)


class Options(Strict):
    """Options of ``forestcoll-lp``."""

    method: Literal["search", "concurrent"] = Field(
        "search",
        description="search solves a maximum flow to every rank again and again; concurrent solves all of them in one program.",
    )
    k: int | None = Field(
        None, ge=1, le=10**6, description="Also find how fast forests with this many equal trees a rank can be."
    )


def supports(instance: Instance) -> str | None:
    """Only explicit networks with a collective among all ranks, in which every rank needs something of every other."""
    if not isinstance(instance.network, Topology):
        return "it needs an explicit network of nodes and links, not building blocks"
    if instance.demand is None or instance.also:
        return "it bounds one collective at a time" if instance.also else "the instance has no collective"
    if instance.demand.collective not in COLLECTIVES:
        return f"it does not bound {instance.demand.collective.value}, but {', '.join(k.value for k in COLLECTIVES)}"
    if instance.demand.ranks is not None and set(instance.demand.ranks) != set(range(instance.npus)):
        return "it needs all ranks in the process group"
    if instance.npus < 2 or instance.demand.size_bytes <= 0:
        return "the collective has no data to move"
    return None if instance.network.links else "the network has no links"


def run(instance: Instance, solver: Solver, budget: Budget, options: Options) -> Outcome:
    """Find 1/x* and prove it by a cut (``Method.run``)."""
    from .lp import Trees, concurrent, search
    from .scaled import scale

    assert instance.demand is not None and isinstance(instance.network, Topology)  # noqa: S101 (see supports)
    kind, network = instance.demand.collective, scale(instance.network)
    # A reduce-scatter is an all-gather in which time and links run backwards.
    stages = [] if kind is CollectiveKind.ALL_GATHER else [network.transposed()]
    if kind is not CollectiveKind.REDUCE_SCATTER:
        stages.append(network)
    find = search if options.method == "search" else concurrent
    optima = [find(Trees(stage), solver, budget) for stage in stages]
    forests = [search(Trees(stage, options.k), solver, budget) for stage in stages] if options.k else []
    solved = [*optima, *forests]
    seconds, certificate = best_bound(instance, optima)
    attained = all(found.attained for found in solved)
    return Outcome(
        Status.OPTIMAL if attained and len(stages) == 1 else Status.FEASIBLE,
        BoundOnly(),
        objective=float(seconds),
        bound=float(seconds),
        certificate=certificate,
        message="" if attained else "the budget was too small: the network may be slower than this bound says",
        reports=tuple(report for found in solved for report in found.reports),
        size=max((found.size for found in solved), key=lambda size: size.nonzeros),
        iterations=sum(len(found.reports) for found in solved),
        metrics=measures(network.seconds_per_gigabyte, instance.npus, optima, forests, options.k),
    )


def best_bound(instance: Instance, optima: Sequence[Found]) -> Bound:
    """Give the bound of the cuts that limit the stages; for an all-reduce also of all ranks apart.

    Only for a single stage is it the time that the stages take: an all-reduce may be faster than its two stages in turn.
    """
    from ..common.schedule_bounds import cut_bound, network_of, partition_bound

    topology, group = network_of(instance), instance.demand
    everything = frozenset(range(len(topology.nodes)))
    kind = group.collective if group else None
    # What leaves a set where links are turned around enters it where they are not.
    backwards = [kind is not CollectiveKind.ALL_GATHER, False][: len(optima)]
    found: list[Bound] = [
        cut_bound(instance, everything - one.cut if back else one.cut)
        for one, back in zip(optima, backwards, strict=True)
    ]
    if kind is CollectiveKind.ALL_REDUCE:
        found.append(partition_bound(instance, [(node,) for node in topology.rank_nodes]))
    return max(found, key=lambda bound: bound[0])


def measures(
    scale: Fraction, ranks: int, optima: Sequence[Found], forests: Sequence[Found], k: int | None
) -> dict[str, Any]:
    """Give the metrics: exact fractions as text, bandwidths in 10^9 bytes/s.

    ``inv_x`` is 1/x*, in seconds per 10^9 bytes, of an all-reduce the sum of both stages. ``k`` and ``U`` are those of proposition 3,
    ``U = p / gcd(q, {b_e})`` and ``k = U x*``, or those that were asked for; ``forest_algbw_GBps`` is N k / U, what the forests
    reach, both stages in turn. What differs between
    the two stages of an all-reduce is a list, the reduce-scatter first.
    """
    inv_x = sum((found.U for found in optima), Fraction(0))
    if k is None:
        # The capacities have no common divisor, so that gcd(q, {b_e}) is 1.
        counts = [found.U.denominator for found in optima]
        scales = [Fraction(found.U.numerator) for found in optima]
    else:
        counts, scales = [k] * len(forests), [found.U for found in forests]
    per_rank = sum((U / count for U, count in zip(scales, counts, strict=True)), Fraction(0))
    texts = [str(U * scale) for U in scales]
    return {
        "inv_x": str(inv_x * scale),
        "k": counts[0] if len(set(counts)) == 1 else counts,
        "U": texts[0] if len(set(texts)) == 1 else texts,
        "forest_algbw_GBps": float(ranks / (per_rank * scale)),
    }


METHOD = Method(
    name="forestcoll-lp",
    kind=Kind.RELAXATION,
    summary="the optimum of ForestColl by linear programs: a bound, and no forest",
    paper="Zhao et al., ForestColl: Efficient Collective Communications on Heterogeneous Network Fabrics, arXiv 2402.06787",
    answer_type=BoundOnly,
    options=Options,
    run=run,
    supports=supports,
)
