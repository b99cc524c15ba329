"""From the linear program to a bound on the time of an all-to-all.

The dual of LP (3) seeks lengths of links for which the distances between all pairs are large and the network is small:
for any lengths, f is at most ``sum_e b_e length_e / sum_{s != t} d(s, t)``. So the solver's dual values are rounded to
integers, and the bound is computed from them exactly: it holds whatever the solver has done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ...core.bounds import LengthCertificate, SolverBound
from ...core.budget import Budget
from ...core.errors import InputError
from ...core.instance import Instance
from ...core.solver import Capability, ResolvingSolver, Solver, SolverOptions, SolverResult, Termination
from .flow_model import bandwidth_unit, build, largest_exchange
from .joint_bounds import joint_length, pairs_of
from .schedule_bounds import network_of

#: An interior point takes this program in a thirtieth of the time of the simplex method (64 nodes of degree 4: 0.6 s).
_OPTIONS = {"highs": SolverOptions(extra={"solver": "ipm"})}

#: The longest link, as an integer.
_LONGEST = 2**30


@dataclass(frozen=True)
class FlowBound:
    """What a solve proves.

    Parameters
    ----------
    seconds : Fraction or None
        Lower bound on the time of the all-to-all; None if the solver has found none in its budget.
    certificate : LengthCertificate or SolverBound or None
        What proves it.
    report : SolverResult
        The solve.
    """

    seconds: Fraction | None
    certificate: LengthCertificate | SolverBound | None
    report: SolverResult


def bound(instance: Instance, solver: Solver, budget: Budget) -> FlowBound:
    """Bound the time from below by the maximum concurrent flow of what single ranks have for single ranks.

    Parameters
    ----------
    instance : Instance
        An explicit network and collectives, at least one of them an all_to_all, a scatter, a gather or a message.
    solver : Solver
        Solves the linear program.
    budget : Budget
        Limits of the run.

    Returns
    -------
    FlowBound
        With lengths of links as certificate where the solver gives dual values, else with the solver's word.

    Raises
    ------
    InputError
        If no rank alone has what another one alone needs, or a rank cannot be reached.
    """
    topology = network_of(instance)
    if not topology.links:
        raise InputError("the network has no links", place="network.links")
    if not len((pairs := pairs_of(instance))[0]):
        raise InputError("expected data that one rank has and one rank needs, as in an all_to_all", place="collective")
    with budget.clock.phase("build"):
        model = build(instance)
    wanted = Capability.RESOLVE | Capability.DUALS
    if isinstance(solver, ResolvingSolver) and wanted in solver.capabilities:
        compiled = solver.compile(model, budget, _OPTIONS.get(solver.name, SolverOptions()))
        result = compiled.solve(budget)
        if result.termination is Termination.OPTIMAL:
            lengths = rounded_lengths([compiled.dual(model.capacity[e]) for e in model.E])
            return FlowBound(*joint_length(instance, pairs, lengths), result)
    else:
        result = solver.solve(model, budget)
    if result.bound is None or not 0 < result.bound < float("inf"):
        return FlowBound(None, None, result)
    seconds = largest_exchange(instance) / (Fraction(result.bound) * bandwidth_unit(topology))
    return FlowBound(seconds, SolverBound(result.solver, result.version), result)


def rounded_lengths(duals: Sequence[float]) -> tuple[int, ...]:
    """Give integers in proportion to dual values; what is negative is rounding and becomes 0.

    Where all are 0 no link is scarce, since there is no flow: any lengths will show that a rank cannot be reached.
    """
    values: Any = np.maximum(np.array(duals), 0.0)
    if not (longest := values.max(initial=0.0)):
        return (1,) * len(values)
    return tuple(int(v) for v in np.rint(values / longest * _LONGEST))
