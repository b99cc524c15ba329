"""What the trees of an older plan carry on the network as it is now."""

from __future__ import annotations

from fractions import Fraction

from ...core.budget import Budget
from ...core.solver import Solver, SolverResult
from ..common.wan.network import Wan
from ..common.wan.rates import best_rates
from ..common.wan.trees import Rated, filled
from .previous import Survivors


def measured(
    wan: Wan, left: Survivors, solver: Solver, budget: Budget
) -> tuple[Rated | None, list[SolverResult], dict[str, float]]:
    """Measure the trees that are left: with the data split among them as it was, and at the best rates.

    Returns
    -------
    tuple
        The trees at the best rates, None if there are none; the solver's reports; ``surviving_trees``, ``old_shares_rate_Bps`` and
        ``old_plan_rate_Bps``.
    """
    if not len(left.trees):
        return None, [], {"surviving_trees": 0, "old_shares_rate_Bps": 0.0, "old_plan_rate_Bps": 0.0}
    shares = filled(wan, Rated(left.trees, tuple(Fraction(units) for units in left.units)))
    best, report = best_rates(wan, left.trees, solver, budget)
    metrics = {
        "surviving_trees": len(left.trees),
        "old_shares_rate_Bps": float(shares.total * wan.unit_Bps),
        "old_plan_rate_Bps": float((best or shares).total * wan.unit_Bps),
    }
    return best, [report], metrics
