"""Lower bound on the time of an all-to-all from the linear program, or from a first-order search.

The solver's dual values are lengths of links. Rounded to integers, they prove the bound exactly, whatever the solver
has done (docs/methods/mcf.md).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ...algorithms.bounds.schedule_bounds import group_of, joint_length, pairs_of
from ...core.answers import BoundOnly
from ...core.bounds import LengthCertificate, SolverBound
from ...core.budget import Budget
from ...core.errors import InputError, OutOfTime
from ...core.instance import Instance
from ...core.outcome import Outcome, Status
from ...core.schedule import Floats, Ints
from ...core.solver import Capability, ResolvingSolver, Solver, SolverOptions, SolverResult, Termination
from .first_order import find_approximate_flow
from .formulation import build_classes
from .method import Algorithm, McfOptions
from .problem import Exchange, FlowClasses, bandwidth_unit, classes_of, exchange_of, line_graph_base, weights_of

#: An interior point takes this program in a thirtieth of the time of the simplex method (64 nodes of degree 4: 0.6 s).
_OPTIONS = {"highs": SolverOptions(extra={"solver": "ipm"})}

#: Of many classes, HiGHS's way from the interior to a corner takes longer than all the rest. Multipliers in the
#: interior prove nine digits.
_LARGE = 50_000
_LARGE_OPTIONS = {"highs": SolverOptions(extra={"solver": "ipm", "run_crossover": "off"})}

MOST_CLASSES = 200_000  #: Classes of flows up to which a line graph is not taken back; so many take some minutes.
_LEAST_RATE = 1e-6  #: Flows of a smaller rate, in units of the fastest link, are within the tolerances of solvers.
_PAIR_S = 1e-5  #: Seconds for computing the exact bound, and as many for verifying it, for each pair.
_LONGEST = 2**30  #: The longest link, as an integer.

_ATTESTED = "{} gives no multipliers: the bound is its own word, and cannot be recomputed"
_COARSE = "all links into a node have the same length, since the program is too large otherwise: flows may take longer"


@dataclass(frozen=True)
class FlowBound:
    """Bound proved by a solve."""

    #: Lower bound on the time of the all-to-all; None if the solver has found none in its budget.
    seconds: Fraction | None
    certificate: LengthCertificate | SolverBound | None
    report: SolverResult | None = None  #: None without a solver.
    exact: bool = True  #: True if it is the time of the maximum concurrent flow, which may be longer otherwise.
    #: ``flows(source)``, by the source's number, is its flow over every link when it sends 1 to each target; None if
    #: unknown.
    flows: Callable[[int], Floats] | None = None
    message: str = ""  #: Reason why there is no bound, or why it may not be the time of the maximum concurrent flow.
    rate: float | None = None  #: Rate that the flows of a first-order search reach, in units of the largest bandwidth.
    rounds: int = 0  #: Rounds of that search.

    @property
    def work(self) -> dict[str, Any]:
        """The solver's report, or the number of rounds, as fields of an outcome."""
        if self.report is None:
            return {"iterations": self.rounds}
        return {"reports": (self.report,), "size": self.report.size, "iterations": self.report.iterations or 0}


def bound(
    instance: Instance, solver: Solver, budget: Budget, most: int = MOST_CLASSES, algorithm: Algorithm = "program"
) -> FlowBound:
    """Bound the time from below by the maximum concurrent flow between single ranks.

    Of the collectives at least one is an all_to_all, a scatter, a gather or a message. With more than ``most`` classes
    of flows a line graph is reduced to a smaller network, and if that is not enough, ``auto`` searches by first-order
    steps. The certificate has lengths of links if the solver gives dual values, else it rests on trust in the solver.
    """
    topology = instance.topology
    if not topology.links:
        raise InputError("the network has no links", place="network.links")
    if not len((pairs := pairs_of(instance))[0]):
        raise InputError("expected data with one source and one receiver, as in an all_to_all", place="collective")
    if algorithm == "first-order":
        return _search(instance, pairs, budget)
    with budget.clock.phase("build"):
        quotient, lengths_of = _smallest(exchange_of(instance), most)
    if algorithm == "auto" and len(quotient.flows) > most:
        return _search(instance, pairs, budget)
    with budget.clock.phase("build"):
        model = build_classes(quotient)
    exact = len(lengths_of) == 0
    needs = Capability.RESOLVE | Capability.DUALS
    if isinstance(solver, ResolvingSolver) and needs in solver.capabilities:
        options = _OPTIONS if len(quotient.flows) <= _LARGE else _LARGE_OPTIONS
        compiled = solver.compile(model, budget, options.get(solver.name, SolverOptions()))
        result = compiled.solve(budget)
        if result.termination is Termination.OPTIMAL:
            # Links that only enter the one source are of no use to it.
            duals = np.array([compiled.dual(model.capacity[k]) if k in model.capacity else 0.0 for k in model.L])
            lengths: Floats = (duals / np.bincount(quotient.classes.link))[quotient.classes.link]
            for points in reversed(lengths_of):
                lengths = lengths[points]
            proved = joint_length(instance, pairs, rounded_lengths(lengths.tolist()))
            if not exact or model.rate.value <= _LEAST_RATE:
                return FlowBound(*proved, result, exact, message="" if exact else _COARSE)
            each = np.zeros(quotient.classes.sizes[0])
            each[quotient.flows] = [model.flow[c].value for c in quotient.flows]
            each /= model.rate.value
            return FlowBound(*proved, result, flows=lambda source: each[quotient.classes.flow[source]])
    else:
        result = solver.solve(model, budget)
    if result.bound is None or not 0 < result.bound < float("inf"):
        return FlowBound(None, None, result, message=result.message or result.termination.value)
    least_s = quotient.exchange.unit_s / Fraction(result.bound)
    attested = SolverBound(result.solver, result.version)
    return FlowBound(least_s, attested, result, exact, message=_ATTESTED.format(result.solver))


def _search(instance: Instance, pairs: tuple[Ints, Ints, list[Fraction]], budget: Budget) -> FlowBound:
    """Bound the time by a first-order search, which leaves time for the exact bound and its verification.

    Raise OutOfTime if they take longer than is left.
    """
    budget.reserve_seconds(exact_s := _PAIR_S * len(pairs[0]))
    rest_s = budget.clock.remaining_s()
    if rest_s is not None and rest_s < exact_s:
        work = f"the exact bound of {len(pairs[0]):,} pairs takes some {exact_s:.2g} s, and its verification as many"
        raise OutOfTime(f"{work}; expected a longer time limit")
    with budget.clock.phase("search"):
        exchange = exchange_of(instance)
        near = find_approximate_flow(exchange, budget.part(1 - exact_s / rest_s if rest_s else 1.0))
    seconds, certificate = joint_length(instance, pairs, rounded_lengths(near.lengths.tolist()))
    if not near.rounds:
        return FlowBound(seconds, certificate, exact=False, message="the time is over before all ranks have a flow")
    rate = near.rate(exchange)
    longer = float(exchange.unit_s / seconds) / rate - 1
    message = f"the flow that was found takes {longer:.2%} longer than the bound"
    flows = near.flow.__getitem__
    return FlowBound(seconds, certificate, None, False, flows, message, rate, near.rounds)


def _smallest(exchange: Exchange, most: int) -> tuple[FlowClasses, list[Ints]]:
    """Compute classes, reducing line graphs while there are more than ``most``.

    The list has the heads of the links of each line graph: a link has the length of the smaller network's link that its
    head is.
    """
    heads: list[Ints] = []
    quotient = classes_of(exchange)
    while len(quotient.flows) > most and (smaller := line_graph_base(exchange)) is not None:
        heads.append(exchange.heads)
        exchange = smaller
        quotient = classes_of(exchange)
    return quotient, heads


def seconds(instance: Instance, objective: float) -> float:
    """Convert the model's objective, a rate, to a time (``Formulation.value``)."""
    unit = weights_of(instance)[1] / bandwidth_unit(instance.topology)
    return float(unit / Fraction(objective)) if objective > 0 else float("inf")


def rounded_lengths(duals: Sequence[float]) -> tuple[int, ...]:
    """Round dual values to proportional integers; negative ones, rounding errors, become 0.

    Where all are 0 no link is scarce, since there is no flow: any lengths will show that a rank cannot be reached.
    """
    values: Any = np.maximum(np.array(duals), 0.0)
    if not (longest := values.max(initial=0.0)):
        return (1,) * len(values)
    return tuple(int(v) for v in np.rint(values / longest * _LONGEST))


def run(instance: Instance, solver: Solver, budget: Budget, options: McfOptions) -> Outcome:
    """Solve LP (3) or search, and prove the bound by lengths of links (``Method.run``)."""
    optimum = bound(instance, solver, budget, algorithm=options.algorithm)
    if optimum.seconds is None:
        return Outcome(Status.LIMIT, message=optimum.message, **optimum.work)
    proved, seconds = isinstance(optimum.certificate, LengthCertificate), float(optimum.seconds)
    optimal = proved and optimum.exact
    return Outcome(
        Status.OPTIMAL if optimal else Status.FEASIBLE,
        BoundOnly() if proved else None,
        objective=seconds if optimal else None,
        bound=seconds,
        certificate=optimum.certificate,
        message=optimum.message,
        metrics=measures(instance, optimum),
        **optimum.work,
    )


def measures(instance: Instance, optimum: FlowBound) -> dict[str, Any]:
    """Return the rate f between ranks, relative to the largest bandwidth and in 10^9 bytes/s."""
    if optimum.seconds is None:
        return {}
    rate_Bps = group_of(instance).part_bytes / optimum.seconds
    reached = {} if optimum.rate is None else {"rate_reached": optimum.rate}
    return {"rate": float(rate_Bps / bandwidth_unit(instance.topology)), "rate_GBps": float(rate_Bps / 10**9)} | reached
