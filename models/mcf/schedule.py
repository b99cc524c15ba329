"""``all-to-all-schedule``: pieces routed along the maximum concurrent flow, served in turn by each link."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import numpy as np

from ...algorithms.bounds.schedule_bounds import group_of
from ...algorithms.schedules.serve_in_turn import Ways, serve_pieces
from ...core.budget import Budget
from ...core.errors import Unsupported
from ...core.formulation import NoOptions
from ...core.instance import Instance
from ...core.limits import require_schedulable
from ...core.outcome import Outcome, Status
from ...core.schedule import Chunks, Schedule, Sends
from ...core.solver import Solver
from .path_decomposition import ways_of
from .problem import Exchange, exchange_of
from .solve import bound, measures

#: Pieces of which a link that has fewer is served first; which is better depends on the network.
_FEW = (0, 2)

#: Ticks of the longest window: times are rounded up to them.
_TICKS = 2**24


def run(instance: Instance, solver: Solver, budget: Budget, options: NoOptions) -> Outcome:
    """Solve LP (3), cut its flows into pieces, and schedule these (``Method.run``)."""
    del options
    found = bound(instance, solver, budget)
    if found.seconds is None or found.flows is None:
        message = (
            found.report.message or "the flows cannot be computed: the network is too large, or links differ too much"
        )
        bound_s = None if found.seconds is None else float(found.seconds)
        return Outcome(
            Status.LIMIT, bound=bound_s, certificate=found.certificate, message=message, reports=(found.report,)
        )
    budget.tell_bound(float(found.seconds), found.certificate)
    with budget.clock.phase("ways"):
        exchange, pieces, wanted = exchange_of(instance), _pieces(instance), found.flows
        sends = ceil(pieces * sum(float(wanted(number).sum()) for number in range(len(exchange.sources))))
        require_schedulable(sends, sends)
        ways = ways_of(exchange, lambda number: pieces * wanted(number), pieces, lambda: budget.exhausted)
    with budget.clock.phase("times"):
        made = None if ways is None else schedule_pieces(instance, exchange, ways, budget)
    return Outcome(
        Status.LIMIT if made is None else Status.FEASIBLE,
        made,
        bound=float(found.seconds),
        certificate=found.certificate,
        message="the time is over" if made is None else "",
        reports=(found.report,),
        size=found.report.size,
        iterations=found.report.iterations or 0,
        metrics=measures(instance, found) | ({} if made is None or ways is None else {"sends": len(made.sends)}),
    )


def schedule_pieces(instance: Instance, exchange: Exchange, ways: Ways, budget: Budget) -> Schedule | None:
    """Schedule the pieces, those with the most links left first; None when the time is over.

    Times are rounded up to ticks of which the longest transmission has 2^24.
    """
    topology, pieces = instance.topology, _pieces(instance)
    piece_bytes = group_of(instance).part_bytes / pieces
    taken = [piece_bytes / link.bandwidth_Bps for link in topology.links]
    tick_s = max(taken) / _TICKS
    window = np.array([-(-time // tick_s) for time in taken], dtype=np.int64)
    ticks = [-(-link.latency_s // tick_s) for link in topology.links]
    if max(ticks) >= 2**53:
        raise Unsupported("latencies are too long for the time of a piece; expected at most 2^53 times as long")
    delay = window + np.array(ticks, dtype=np.int64)
    pairs = (len(ways.first) - 1) // pieces
    order = np.arange(pairs * pieces).reshape(pairs, pieces).T.ravel()  # a piece of every pair, then the next ones
    tried = (serve_pieces(ways, exchange.tails, window, delay, order, lambda: budget.exhausted, few) for few in _FEW)
    found = [start for start in tried if start is not None]
    if not found:
        return None
    start = min(found, key=lambda start: int((start + delay[ways.link]).max()))
    chosen = np.argsort(start, kind="stable")
    link = ways.link[chosen]
    return Schedule(
        instance.sha256,
        _chunks(instance, exchange, pieces, piece_bytes),
        Sends(
            np.repeat(np.arange(pairs * pieces), np.diff(ways.first))[chosen],
            exchange.tails[link],
            exchange.heads[link],
            np.zeros(len(link), dtype=np.bool_),
            np.arange(len(link) + 1),
            link,
        ),
        np.asarray(start[chosen] * float(tick_s), dtype=np.float64),
        np.asarray((start[chosen] + delay[link]) * float(tick_s), dtype=np.float64),
    )


def _chunks(instance: Instance, exchange: Exchange, pieces: int, piece_bytes: Fraction) -> Chunks:
    """List pieces by source in the group's order, target in the network's order, and number."""
    ranks = np.array(group_of(instance).ranks, dtype=np.int64)
    listed = np.argsort(ranks)
    source, target = np.nonzero(exchange.weights[:, np.array(instance.topology.rank_nodes)[ranks[listed]]])
    each = np.ones(len(source) * pieces, dtype=np.int64)
    groups = tuple((int(rank),) for rank in ranks)
    return Chunks(each, piece_bytes, groups, np.repeat(source, pieces), np.repeat(listed[target], pieces), each < 0)


def _pieces(instance: Instance) -> int:
    return 1 if instance.demand is None else instance.demand.chunks
