"""Alternating lower bounds and constructions, cheap ones first, until both sides meet."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations, islice

import numpy as np

from ...core.budget import Budget
from ...core.schedule import Ints
from . import flow_bounds, price_bounds
from .flow_bounds import StaticBound, StaticCut, WindowPrices, raise_epoch_by_epoch
from .problem import EpochNetwork
from .search import EpochSearch
from .symmetries import SymmetricSearch, node_representatives

EXPANDED_EDGES = 200_000  #: edges of the largest network over time that is tried
PRICED_STARTS = 40_000  #: starts in the largest program for prices that is tried, and in all of them together
ALL_PRICED_STARTS = 120_000

PAIRED = 3  #: nodes that are tried in pairs, the most promising ones
FIRST_SEARCH = 0.25  #: part of the effort that the search may take before prices are tried


@dataclass(frozen=True)
class FarPair:
    """Certificate by distance: a receiver that is ``epochs`` away from the source of a chunk."""

    epochs: int
    source: int
    target: int


Proof = FarPair | StaticCut | WindowPrices


@dataclass(eq=False)
class LadderResult:
    """Lower bound with its proof, and the best schedule."""

    proof: Proof  #: proof of the lower bound on the makespan
    search: EpochSearch  #: search with the best schedule; it can be continued

    @property
    def open(self) -> bool:
        """True if bound and makespan differ and time is left."""
        return not self.search.is_optimal and not self.search.budget.is_exhausted

    def raise_to(self, bound: int, proof: Proof | None) -> None:
        """Adopt a better bound with its proof; do nothing if the proof is None."""
        if proof is not None:
            self.search.bound, self.proof = bound, proof


def solve(
    network: EpochNetwork,
    relaxed: EpochNetwork,
    budget: Budget,
    effort: int,
    on_improvement: Callable[[EpochSearch], None] = lambda _: None,
) -> LadderResult:
    """Bound, construct, bound, search briefly, bound, as long as bound and schedule differ.

    In ``network``, which is scheduled, some node lacks a chunk, and every node that does can be reached. ``relaxed``,
    which is bounded, is the same or has more nodes that store. ``effort`` limits the arcs that the search may examine:
    with the same result on every machine. The search can be continued from the result.
    """
    clock = budget.clock
    with clock.phase("bound"):
        static = StaticBound(relaxed)
        reach = np.where(relaxed.lacking, relaxed.distance[relaxed.source], -1)
        chunk, target = np.unravel_index(int(reach.argmax()), reach.shape)
        proof: Proof = FarPair(int(reach.max()), int(relaxed.source[chunk]), int(target))
        sinks = node_representatives(relaxed)
        bound, cut = static.improve(proof.epochs, sinks)
    with clock.phase("construct"):
        search = EpochSearch(network, bound, budget, effort, on_improvement=on_improvement)
        symmetric = SymmetricSearch(search)
        symmetric.construct()
        search.construct(1)
    result = LadderResult(cut or proof, search)
    priced = _sets_of_sinks(static, sinks)
    with clock.phase("bound"):
        _raise_by_flows(relaxed, result, sinks)
        if symmetric.folded:
            _raise_by_prices(relaxed, result, islice(priced, 1))
    with clock.phase("construct"):
        symmetric.improve()
        search.construct()
    with clock.phase("search"):
        search.improve(FIRST_SEARCH)
    with clock.phase("bound"):
        _raise_by_prices(relaxed, result, priced)
    return result


def _raise_by_flows(network: EpochNetwork, result: LadderResult, sinks: Ints) -> None:
    """Raise the bound by flows over time if the time-expanded network is small enough."""
    for sink in sinks.tolist():
        best = result.search.best
        if best is None or not result.open:
            return
        if int((best // network.window).sum()) + network.nodes * best > EXPANDED_EDGES:
            return
        refute = partial(flow_bounds.cut_at, network, sink)
        result.raise_to(*raise_epoch_by_epoch(refute, result.search.bound, best))


def _sets_of_sinks(static: StaticBound, sinks: Ints) -> Iterator[tuple[int, ...]]:
    """Yield nodes by the bounds that they give alone, the largest first, then pairs of the first ones."""
    ordered = sorted(sinks.tolist(), key=lambda sink: -static.improve(0, np.array([sink]))[0])
    yield from ((sink,) for sink in ordered)
    yield from combinations(ordered[:PAIRED], 2)


def _raise_by_prices(network: EpochNetwork, result: LadderResult, sets: Iterator[tuple[int, ...]]) -> None:
    """Raise the bound by window prices for sets of sinks, if the linear programs are small enough."""
    starts = 0
    while (best := result.search.best) is not None and result.open and (together := next(sets, None)) is not None:
        size = price_bounds.size(network, together, result.search.bound)
        if size > PRICED_STARTS or starts + size > ALL_PRICED_STARTS:
            continue
        starts += size
        remaining = result.search.budget.clock.remaining_s()
        refute = partial(price_bounds.prices_for, network, together, seconds=remaining)
        result.raise_to(*raise_epoch_by_epoch(refute, result.search.bound, best))
