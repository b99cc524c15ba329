"""``libra-codesign``: parallelization and bandwidth together (dissertation, section 4.6.7).

For every HP-(m, n), TP of m NPUs and DP of n, with ``m n`` the number of NPUs, the best network is found by ``libra``. All degrees are tried, so that
the smallest of the bounds is a bound on every pair of strategy and network.
"""

from __future__ import annotations

from typing import Any

from ...core.answers import BandwidthPlan
from ...core.bounds import LagrangianCertificate, SolverBound, SweepCertificate
from ...core.budget import Budget
from ...core.errors import InputError
from ...core.instance import Instance
from ...core.method import Outcome, Status
from ...core.solver import Solver
from . import solve
from .options import CodesignOptions


def run(instance: Instance, solver: Solver, budget: Budget, options: CodesignOptions) -> Outcome:
    """Try every strategy and keep the best pair (``Method.run``).

    All strategies, with their bounds, are in the metric ``strategies``.
    """
    sweep: list[dict[str, Any]] = []
    found: list[tuple[tuple[int, int], Outcome]] = []
    for tensor, data in strategies(instance, options):
        if budget.exhausted:
            break
        outcome = solve.run(instance.with_parallelism(tensor, data), solver, budget, options)
        found.append(((tensor, data), outcome))
        sweep.append(
            {
                "tensor_parallel": tensor,
                "data_parallel": data,
                "status": outcome.status.value,
                "objective": outcome.objective,
                "bound": outcome.bound,
                "bandwidth_GBps": [b / 1e9 for b in outcome.answer.bandwidth_Bps]
                if isinstance(outcome.answer, BandwidthPlan)
                else None,
            }
        )
        shown = "none" if outcome.objective is None else f"{outcome.objective:.6g}"
        budget.progress(f"HP-({tensor}, {data}): {shown}")
    answered = [(hp, o) for hp, o in found if o.answer is not None and o.objective is not None]
    if not answered:
        return found[0][1] if found else Outcome(Status.LIMIT, message="no strategy was tried in time")
    chosen, best = min(answered, key=lambda pair: pair[1].objective or 0.0)
    complete = len(found) == len(strategies(instance, options)) and all(
        o.status in (Status.OPTIMAL, Status.INFEASIBLE) for _, o in found
    )
    bounds = [o.bound for _, o in found if o.status is not Status.INFEASIBLE]
    certificates = [
        (hp, o.certificate) for hp, o in found if isinstance(o.certificate, SolverBound | LagrangianCertificate)
    ]
    bound = None if not complete or None in bounds else min(b for b in bounds if b is not None)
    assert isinstance(best.answer, BandwidthPlan)  # noqa: S101 (it is among the answered)
    return Outcome(
        Status.OPTIMAL if complete else Status.FEASIBLE,
        BandwidthPlan(best.answer.bandwidth_Bps, chosen),
        best.objective,
        bound,
        None if bound is None else SweepCertificate(tuple(certificates)),
        message=f"HP-({chosen[0]}, {chosen[1]}) is the best of {len(found)} strategies",
        reports=tuple(r for _, o in found for r in o.reports),
        size=best.size,
        iterations=sum(o.iterations for _, o in found),
        metrics={"strategies": sweep, "tensor_parallel": chosen[0], "data_parallel": chosen[1]},
    )


def strategies(instance: Instance, options: CodesignOptions) -> list[tuple[int, int]]:
    """Pairs (TP, DP) to try.

    Raises
    ------
    InputError
        If a wanted degree does not fit the network or the batch.
    """
    npus = instance.npus
    if options.tensor_parallel is not None:
        wanted = list(dict.fromkeys(options.tensor_parallel))
        for tensor in wanted:
            if npus % tensor:
                raise InputError(f"TP-{tensor} does not divide {npus:,} NPUs", source="-O tensor_parallel")
            instance.with_parallelism(tensor, npus // tensor).training()  # refuses what does not fit
        return [(tensor, npus // tensor) for tensor in wanted]
    return [pair for pair in _powers_of_two(npus) if _fits(instance, *pair)]


def _powers_of_two(npus: int) -> list[tuple[int, int]]:
    return [(1 << i, npus >> i) for i in range(npus.bit_length()) if npus % (1 << i) == 0]


def _fits(instance: Instance, tensor: int, data: int) -> bool:
    try:
        instance.with_parallelism(tensor, data).training()
    except InputError:
        return False
    return True
