"""Cost of single failures: the optimum after the loss of each pair's links, each rank and each switch.

The optimum is that of trees in the flow model, or of an all-to-all's flow (docs/failures.md). Its certificate is
recomputed for every failure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..algorithms.graphs.translations import link_orbits
from ..core.bounds import Certificate
from ..core.budget import Budget, Progress, ignore
from ..core.collective import Collective
from ..core.errors import InputError, Unsupported
from ..core.instance import Instance
from ..core.network_views import other_view
from ..core.option_names import FAILURES, FLOW_COLLECTIVES, check_name, verb
from ..core.topology import NodeKind, Topology
from ..core.units import exact_number
from ..harness.clock import WallClock
from ..harness.interrupt import command_limits
from ..harness.request import Request
from ..harness.run import run
from ..instances.demand import with_demand
from ..instances.edits import LARGEST_PART, Edit, edit_instance
from ..models.forestcoll.problem import check_balance
from ..models.forestcoll.solve import bound_of, ways_of
from ..schedules.collective import exact_bound
from .inputs import Spec, load, seconds_or_none

MAX_LINKS = 20_000  #: Networks with more links are not looked at.


@dataclass(frozen=True)
class Optimum:
    """Optimal time of a collective."""

    time_s: Fraction  #: Flow time of the best trees; for an all-reduce, of a reduce-scatter followed by an all-gather.
    bound_s: Fraction  #: Lower bound on every schedule, recomputed from the certificate.
    certificate: Certificate

    def to_json(self) -> dict[str, Any]:
        """Return times in seconds and the certificate as plain data."""
        return {
            "flow_time_s": float(self.time_s),
            "bound_s": float(self.bound_s),
            "certificate": self.certificate.to_json(),
        }


@dataclass(frozen=True)
class Failure:
    """A failure and its cost."""

    kind: str
    names: tuple[str, ...]  #: The failed part first, then the parts that symmetries of the network exchange with it.
    optimum: Optimum | None  #: Optimum of the remaining network; None if ranks are cut off, or if it is not known.
    reason: str = ""
    is_cut_off: bool = False  #: True if some rank is unreachable.


@dataclass(frozen=True)
class Resilience:
    """All single failures of a network."""

    instance: Instance
    optimum: Optimum
    failures: tuple[Failure, ...]
    complete: bool  #: True if all were examined within the time limit.

    def loss(self, failure: Failure) -> float | None:
        """Return the lost part of the throughput; None if unknown."""
        if failure.optimum is None:
            return 1.0 if failure.is_cut_off else None
        return float(1 - self.optimum.time_s / failure.optimum.time_s)

    def to_json(self) -> dict[str, Any]:
        """Return the output of ``cwb resilience --json``."""
        return {
            "instance": self.instance.name,
            "optimum": self.optimum.to_json(),
            "complete": self.complete,
            "failures": [
                {
                    "kind": failure.kind,
                    "names": list(failure.names),
                    "loss": self.loss(failure),
                    "cut_off": failure.is_cut_off,
                    "reason": failure.reason,
                    **({} if failure.optimum is None else failure.optimum.to_json()),
                }
                for failure in self.failures
            ],
        }


def optimum_of(instance: Instance) -> Optimum:
    """Return the least flow time with a recomputed bound; raise Unsupported for collectives without trees or flows."""
    if _is_all_to_all(instance):
        return _all_to_all_optimum(instance)
    ways, mirrored = ways_of(instance)
    seconds = sum((way.seconds for way in ways), Fraction(0)) * (2 if mirrored else 1)
    bound, certificate = bound_of(instance, ways, both=mirrored or len(ways) == 2)
    if exact_bound(instance, certificate) != bound:
        raise AssertionError("the certificate proves another bound")
    return Optimum(seconds, bound, certificate)


def _is_all_to_all(instance: Instance) -> bool:
    return instance.demand is not None and instance.demand.collective is Collective.ALL_TO_ALL


def _all_to_all_optimum(instance: Instance) -> Optimum:
    """Return the time of the maximum concurrent flow, proved by lengths of links."""
    result = run(instance, Request("all-to-all-mcf"))
    bound = None if result.certificate is None else exact_bound(instance, result.certificate)
    if result.certificate is None or bound is None or not result.record.verified:
        raise InputError(result.record.message or "the maximum concurrent flow has no proved bound")
    return Optimum(bound, bound, result.certificate)


def failures(instance: Instance, kinds: Sequence[str], slow: Fraction, budget: Budget) -> Iterator[Failure]:
    """Yield failures of the given kinds one by one until the budget is exhausted.

    The instance is a network of links with a collective of all ranks. ``slow`` is the part of its bandwidth that a link
    keeps, from 0 (it is lost) to below 1; ranks and switches are always lost.
    """
    network = instance.network
    if not isinstance(network, Topology) or instance.demand is None or instance.demand.ranks is not None:
        raise Unsupported("expected a network of links, and one collective of all of its ranks")
    if len(network.links) > MAX_LINKS:
        raise Unsupported(f"{len(network.links):,} links; expected at most {MAX_LINKS:,}")
    root = network.ranks[0] if instance.demand.collective.rooted else None
    ranks, switches = network.ranks, [node.name for node in network.nodes if node.kind is NodeKind.SWITCH]
    cases: dict[str, Iterable[tuple[tuple[str, ...], list[Edit]]]] = {
        "link": _link_failures(network, root, slow, budget),
        "rank": (((name,), [_without_rank(rank, len(ranks))]) for rank, name in enumerate(ranks)),
        "switch": (((name,), [Edit("--without-node", name)]) for name in switches),
    }
    for kind in kinds:
        for number, (names, edits) in enumerate(cases[kind]):
            if budget.is_exhausted:
                return
            budget.progress(f"{kind} {number + 1}: {names[0]}")
            yield _failure(instance, kind, names, edits)


@verb
def resilience(
    instance: Spec,
    *,
    collective: str | None = None,
    size: str | None = None,
    kind: str | Sequence[str] = FAILURES,
    slow: str | float | Fraction = 0,
    time_limit_s: float | None = 300.0,
    progress: Progress = ignore,
) -> Resilience:
    """Examine all single failures of links, ranks and switches, as ``cwb resilience`` does.

    Parameters
    ----------
    slow : str, float or Fraction
        Part of its bandwidth that a link keeps, from 0 to below 1.

    Raises
    ------
    Unsupported
        If trees do not support the collective, or the network is too large.
    """
    factor = _factor(slow)
    clock = WallClock(seconds_or_none(time_limit_s, "time_limit_s"))
    if collective is not None:
        check_name(collective, FLOW_COLLECTIVES, "--collective")
    kinds = [check_name(one, FAILURES, "--kind") for one in ((kind,) if isinstance(kind, str) else kind)]
    problem = with_demand(load(instance), collective, size, None)
    problem = problem if isinstance(problem.network, Topology) else other_view(problem) or problem
    intact = optimum_of(problem)
    results: list[Failure] = []
    with command_limits(clock, progress, asks=True) as budget:
        results.extend(failures(problem, kinds or FAILURES, factor, budget))
        over = budget.is_exhausted
    return Resilience(problem, intact, tuple(results), not over)


def _factor(slow: str | float | Fraction) -> Fraction:
    text = str(slow)
    factor = exact_number(text)
    if factor is None or factor >= 1:
        raise InputError(f"{text[:40]!r}; expected a part of the bandwidth from 0 to below 1", source="--slow")
    if 0 < factor < 1 / LARGEST_PART:
        raise InputError(f"{text[:40]!r} is too small; expected 0, or at least 1e-12", source="--slow")
    return factor


def _failure(instance: Instance, kind: str, names: tuple[str, ...], edits: Sequence[Edit]) -> Failure:
    try:
        rest = edit_instance(instance, edits)
        if isinstance(rest.network, Topology) and rest.demand is not None and not _is_all_to_all(rest):
            check_balance(rest.network, rest.demand)  # otherwise the optimum of trees is no proved optimum
    except InputError as error:
        return Failure(kind, names, None, error.problem)
    if not rest.topology.links:
        return Failure(kind, names, None, "no links are left", is_cut_off=True)
    try:
        return Failure(kind, names, optimum_of(rest))
    except InputError as error:
        return Failure(kind, names, None, error.problem, is_cut_off=True)


def _link_failures(
    network: Topology, root: str | None, slow: Fraction, budget: Budget
) -> Iterator[tuple[tuple[str, ...], list[Edit]]]:
    """Yield every class of linked pairs under symmetries that fix the root: their names, an edit of the first."""
    nodes = [(kind, node.name == root) for kind, node in zip(network.node_kinds, network.nodes, strict=True)]
    for pairs in link_orbits(nodes, network.link_ends, network.link_kinds, lambda: budget.is_exhausted):
        names = [(network.nodes[a].name, network.nodes[b].name) for a, b in pairs]
        first = ":".join(names[0])
        edit = Edit("--link", f"{first}={100 * slow}%") if slow else Edit("--without-link", first)
        yield tuple(" - ".join(pair) for pair in names), [edit]


def _without_rank(rank: int, ranks: int) -> Edit:
    others = [(0, rank - 1), (rank + 1, ranks - 1)]
    return Edit("--ranks", ",".join(f"{low}-{high}" for low, high in others if low <= high))
