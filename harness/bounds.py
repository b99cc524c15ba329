"""Best lower bound for an answer: its method's own, or that of another method that bounds the instance.

The verifier recomputes every bound from its certificate, so that an answer below one is a contradiction.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from math import inf
from typing import Any, NamedTuple

from ..core.answers import BoundOnly
from ..core.bounds import Certificate
from ..core.budget import Budget
from ..core.errors import CwbError
from ..core.instance import Instance
from ..core.network_views import supported_view
from ..core.outcome import Outcome, Status, Verdict
from ..core.topology import Topology
from . import registry
from .clock import WallClock
from .interrupt import RunInterrupted, time_limited


class Bounding(NamedTuple):
    """A method that bounds all answers to an instance."""

    method: str
    prove: str  #: Place of ``prove(instance, solver, budget)``, which returns a result with a certificate, or None.
    usual_s: float  #: Seconds that it takes on a small network, with the loading of compiled loops or a solver.


#: Methods in the order in which they are asked.
BOUNDING = (
    Bounding("hierarchical", "cwb.heuristics.hierarchical.method:block_bound", 0.1),
    Bounding("forestcoll", "cwb.models.forestcoll.solve:cut_bound_of", 1.0),
    Bounding("all-to-all-mcf", "cwb.models.mcf.solve:bound", 2.0),
    Bounding("forestcoll-allreduce", "cwb.models.forestcoll.solve_allreduce:solve_allreduce", 2.0),
)

#: Bounds are cheap if they usually take this share of the seconds until the answer, or this little.
CHEAP_SHARE, CHEAP_S = 0.1, 0.1

#: Cheap bounds end after their share, but not before some seconds; all bounds after as long as the answer took.
LEAST_S, LEAST_ALL_S = 2.0, 60.0


def proved_bounds(instance: Instance, budget: Budget, usual_s: float) -> Iterator[tuple[str, Certificate]]:
    """Yield the certificates of methods that bound an instance and usually take no longer, with their names."""
    solver: Any = registry.solver("highs")
    for name, place, seconds in BOUNDING:
        if seconds > usual_s or budget.is_exhausted or supported_view(registry.get(name), instance)[1]:
            continue
        module, _, function = place.partition(":")
        with suppress(CwbError):
            found = getattr(import_module(module), function)(instance, solver, budget)
            certificate = found[1] if isinstance(found, tuple) else getattr(found, "certificate", None)
            if certificate is not None:
                yield name, certificate


def improve_bound(
    instance: Instance, outcome: Outcome, verdict: Verdict, level: str, budget: Budget, clock: WallClock
) -> tuple[Outcome, Verdict, str | None]:
    """Return the outcome and verdict with the best bound, and the other method whose bound it is, if any.

    Nothing is asked for answers that are proved best, are no schedules on a network, or failed verification.
    """
    from ..schedules.collective import replace_certificate

    whose, answered_s, answer = None, clock.elapsed_s(), outcome.answer
    done = outcome.status is Status.OPTIMAL or not verdict.ok or budget.stop.is_set() or not instance.demands
    if level == "none" or done or answer is None or isinstance(answer, BoundOnly):
        return outcome, verdict, whose
    if not isinstance(instance.network, Topology):
        return outcome, verdict, whose
    usual_s = inf if level == "all" else max(CHEAP_S, CHEAP_SHARE * answered_s)
    limit_s = max(LEAST_ALL_S, answered_s) if level == "all" else max(LEAST_S, usual_s)
    limits = WallClock(limit_s).budget(seed=budget.seed, threads=budget.threads)
    with clock.phase("bounds"), suppress(RunInterrupted), time_limited(limits, 0.0, budget.stop):
        for name, certificate in proved_bounds(instance, limits, usual_s):
            better = replace_certificate(instance, answer, verdict, certificate)
            if better is not verdict:
                outcome = replace(outcome, bound=better.bound, certificate=certificate)
                verdict, whose = better, name
            if not verdict.ok or verdict.bound == verdict.objective:
                break
    return outcome, verdict, whose
