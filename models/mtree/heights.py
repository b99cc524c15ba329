"""Which height is best: higher trees carry more, and more links lie one behind the other.

All trees of a plan have the same flow time x = V / R, whatever their number, so that the time of a height H is about
``V / R(H) + 2 sqrt((l - 1) A V / R(H)) + S - A`` with the exact rate R(H) (:mod:`~cwb.core.pipelining`), where l, S and A grow with H.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from ...core.budget import Budget
from ...core.instance import Instance
from ...core.method import Outcome
from ...core.solver import Solver
from ..common.wan.bottleneck import lowest_tree
from .answer import OURSELVES, Found, ask, outcome
from .mtree import search
from .options import MtreeOptions
from .proof import GAP

#: So many heights in a row that are not faster end the search.
_PATIENCE = 2


def run(instance: Instance, solver: Solver, budget: Budget, options: MtreeOptions) -> Outcome:
    """Try heights in hops from the smallest feasible one on, until the rate is the strength or two in a row are not faster; take the fastest.

    The objective stays the flow time, and its bound is that for trees of any height.
    """
    asked = ask(instance, None, options.min_rate, budget)
    if isinstance(asked, Outcome):
        return asked
    wan, strongest = asked.wan, asked.strongest
    lowest = lowest_tree(wan, asked.limit, wan.capacity >= asked.least)[0]
    found = Found(None, strongest.rate, OURSELVES)
    best: tuple[float, int, Found] | None = None
    tried: list[list[float]] = []
    for height in range(lowest, wan.nodes):
        low = replace(asked, limit=wan.hops(height))
        found = search(low, solver, budget, options)
        seconds = outcome(low, found, budget, options).metrics.get("pipelined_time_s")
        if seconds is not None:
            tried.append([height, seconds])
            if best is None or seconds < best[0]:
                best = seconds, height, found
        budget.progress(f"height {height}: {'nothing' if seconds is None else f'{seconds:.6g} s'}")
        full = found.rated is not None and found.rated.total >= strongest.rate * (1 - Fraction(GAP))
        late = best is not None and height >= best[1] + _PATIENCE
        if full or late or budget.exhausted:
            break
    if best is None:
        return outcome(asked, replace(found, bound=strongest.rate), budget, options)
    _, height, found = best
    metrics = {**(found.metrics or {}), "auto_height": height, "heights_tried_s": tried}
    chosen = replace(found, bound=strongest.rate, metrics=metrics)
    return outcome(replace(asked, limit=wan.hops(height)), chosen, budget, options)
