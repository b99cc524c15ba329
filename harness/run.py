"""One run: load an instance, run a method, verify its answer, make a record."""

import gc
import platform
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from math import inf, isfinite
from pathlib import Path
from typing import Any

from ..core.answers import Answer, BoundOnly
from ..core.bounds import Certificate
from ..core.budget import STOPPED_S, Budget, Progress, ignore, limited_by
from ..core.errors import (
    CwbError,
    ExitStatus,
    InputError,
    OutOfTime,
    Refusal,
    SolverUnavailable,
    Unsupported,
    locate_errors,
)
from ..core.fields import run_validation
from ..core.formulation import resolve_function
from ..core.instance import Instance
from ..core.method import Method
from ..core.network_views import supported_view
from ..core.outcome import Alternative, Outcome, Status, Verdict
from ..core.record import ATTESTED, EXIT_STATUS, NONE, RECOMPUTED, RunRecord
from ..core.solver import relative_gap
from ..core.topology import Topology
from ..core.trees import Forest
from ..schedules import verdict_of
from ..schedules.metrics import ATTESTED_TOLERANCE
from . import registry
from .clock import WallClock, time_compiling_apart
from .environment import cwb_version, environment, peak_rss_bytes, time_stamp
from .interrupt import RunInterrupted, time_limited
from .request import DEFAULT_SOLVER, BestSoFar, Listener, RecordingSolver, Request, plain_option

__all__ = ["DEFAULT_SOLVER", "FinishedRun", "Request", "run", "run_one"]

CLAIM_TOLERANCE = 1e-9  #: Relative difference at which a method's claim and the verifier's number are not the same.
#: Methods that bound instances, in the order in which they are asked after the answer: the place of
#: ``prove(instance, solver, budget)``, whose result has a certificate, and its usual seconds with loading.
BOUNDING = {
    "hierarchical": ("cwb.heuristics.hierarchical.method:block_bound", 0.1),
    "forestcoll": ("cwb.models.forestcoll.solve:cut_bound_of", 1.0),
    "all-to-all-mcf": ("cwb.models.mcf.solve:bound", 2.0),
    "forestcoll-allreduce": ("cwb.models.forestcoll.solve_allreduce:solve_allreduce", 2.0),
}
CHEAP_SHARE, CHEAP_S = 0.1, 0.1  #: Cheap are bounds that take this share of the seconds until the answer, or so few.
LEAST_S, LEAST_ALL_S = 10.0, 60.0  #: Cheap bounds end after their share, all after as long as the answer; or so many.
ANSWER_S = 1.0  #: Seconds for putting together what a method had found that was broken off.
BOUND_S = 1.0  #: Seconds for recomputing the bound of a run without an answer.


@dataclass(frozen=True)
class FinishedRun:
    """A record with the objects that it describes."""

    record: RunRecord
    #: The problem as posed to the method and to the verifier; None if time ran out before it was loaded.
    instance: Instance | None
    answer: Answer | None  #: The full answer; the record has only the size of a schedule.
    certificate: Certificate | None
    pool: tuple[Answer, ...] = ()


def run_one(instance: Instance, request: Request) -> RunRecord:
    """Run one method on one instance and verify its answer; see :func:`run`."""
    return run(instance, request).record


def write_found(path: Path, result: FinishedRun, **words: str) -> str:
    """Write the schedule of a run that has one to a file, with words that name it; return its SHA-256."""
    from ..schedules.files import Written, write_schedule

    assert result.instance is not None and isinstance(result.answer, Written)  # noqa: S101 (of the caller)
    extra = {"model": result.record.model, "bound_s": result.record.bound, **words}
    pieces = result.record.metrics.get("pieces") if isinstance(result.answer, Forest) else None
    return write_schedule(path, result.instance, result.answer, result.certificate, extra, pieces)


def skip_scipy_statistics() -> None:
    """Keep Pyomo from importing scipy.stats along with scipy, which takes longer than a small run.

    scipy imports its submodules itself on demand. If a version of Pyomo has no such callback, nothing changes.
    """
    with suppress(ImportError, AttributeError):
        from pyomo.common import dependencies

        dependencies.scipy_available._callback = lambda module, available: None


@contextmanager
def spare_older_objects() -> Iterator[None]:
    """Keep all objects that exist, such as millions of links, from being searched for garbage again and again."""
    was_frozen = _has_frozen_objects()
    gc.freeze()
    try:
        yield
    finally:
        if not was_frozen:
            gc.unfreeze()


@cache
def _has_frozen_objects() -> bool:
    """Return whether objects were frozen before the first run of this process; counting them each time is slow."""
    return gc.get_freeze_count() > 0


def unsupported_record(instance: Instance, request: Request) -> RunRecord | None:
    """Return the record of an unsupported run without running it; None if it is supported."""
    clock, started_at = WallClock(), time_stamp()
    method, solver, options = _resolve_request(request)
    if not (refusal := supported_view(method, instance)[1]):
        return None
    outcome = _add_restriction(_refusal_outcome(method, refusal), method, options)
    record = _record(instance, instance, request, method, solver, outcome, Verdict(), None, clock, started_at)
    return replace(record, peak_rss_bytes=None)


def run(
    instance: Instance,
    request: Request,
    progress: Progress = ignore,
    stop: threading.Event | None = None,
    listener: Listener | None = None,
    clock: WallClock | None = None,
) -> FinishedRun:
    """Run one method on one instance and verify its answer.

    There is a record also if the method does not support the instance, the solver is missing, or the run fails. When
    ``stop`` is set, which Ctrl-C does, the run ends with its current results. A listener receives more than lines,
    instead of ``progress``; a clock started earlier includes the loading of the instance.
    """
    method, solver, options = _resolve_request(request)
    if solver is not None:
        skip_scipy_statistics()
    listener = listener or Listener(progress)
    started_at = time_stamp()
    clock = clock or WallClock(request.time_limit_s)
    incumbent = BestSoFar(listener.tell, clock.elapsed_s)
    budget = clock.budget(
        threads=request.threads,
        seed=request.seed,
        gap=request.gap,
        log_file=request.log_file,
        pool=request.pool,
        start=request.start,
        progress=lambda message: listener.progress(f"{message}, {clock.elapsed_s():.1f} s"),
        tell=incumbent.tell,
        on_model=listener.on_model,
        stop=stop or threading.Event(),
    )
    limits = replace(budget, time_limit_s=request.verifier_limit_s)
    with spare_older_objects(), time_compiling_apart(instance, clock, listener):
        outcome, problem, exit_status = _answer(instance, method, solver, budget, options, listener, incumbent, clock)
        listener.answered()
        outcome, verdict = _verify_outcome(problem, outcome, _limits_after_stop(limits, clock))
        outcome, verdict, whose = _improve_bound(problem, outcome, verdict, request, limits, clock)
    # What was rejected or failed, was so with this solver, even if that was before it was handed a model.
    has_failed = outcome.status in (Status.UNSUPPORTED, Status.ERROR)
    solver = solver if solver is not None and (solver.called or has_failed) else None
    outcome = _add_restriction(outcome, method, options)
    record = _record(instance, problem, request, method, solver, outcome, verdict, exit_status, clock, started_at)
    record = replace(record, history=incumbent.history)
    if record.bound is not None:
        record = replace(record, bound_of=whose or method.name)
    if request.pool > 1:
        rows = [_pool_row(rank, each, problem, limits) for rank, each in enumerate(outcome.pool, start=1)]
        record = replace(record, pool=rows)
        if any(each["verified"] is False for each in rows):
            message = record.message or "an answer of the pool failed verification"
            record = replace(record, verified=False, exit_status=int(ExitStatus.VERIFICATION_FAILED), message=message)
    return FinishedRun(record, problem, outcome.answer, outcome.certificate, tuple(one.answer for one in outcome.pool))


def _resolve_request(request: Request) -> tuple[Method, RecordingSolver | None, Any]:
    method = registry.get(request.model)
    if request.pool > 1 and method.formulation is None:
        raise InputError(
            f"{method.name} is no declared model; expected one of 'cwb list formulations'", source="--pool"
        )
    if request.start is not None and not (method.formulation and method.formulation.takes_start):
        every = map(registry.formulation, registry.formulation_names())
        names = ", ".join(each.name for each in every if each.takes_start)
        raise InputError(f"{method.name} takes no start; expected a formulation of {names}", source="--start")
    if request.start is not None and request.pool > 1:
        raise InputError("a search for several answers takes no start; expected one of the two", source="--start")
    if request.solver_options and not method.needs_solver:
        raise InputError(f"{method.name} uses no solver; expected no solver options", source="-S")
    solver = RecordingSolver(registry.solver(request.solver), request.solver_options) if method.needs_solver else None
    with locate_errors(source="-O"):
        options = run_validation(
            lambda: method.options.model_validate(dict(request.options)), method.options.model_fields
        )
    return method, solver, options


def _add_restriction(outcome: Outcome, method: Method, options: Any) -> Outcome:
    """Add the restriction that options set on answers, if any, to the outcome's metrics."""
    restriction = method.restricted_to(options)
    return replace(outcome, metrics={**outcome.metrics, "restricted_to": restriction}) if restriction else outcome


def _refusal_outcome(method: Method, refusal: Refusal) -> Outcome:
    return Outcome(Status.UNSUPPORTED, message=f"{method.name}: {refusal}")


def _pool_row(rank: int, each: Alternative, problem: Instance, limits: Budget) -> dict[str, Any]:
    outcome, verdict = _verify_outcome(problem, Outcome(Status.FEASIBLE, each.answer), limits)
    return {
        "rank": rank,
        "model_objective": each.model_objective,
        "objective": verdict.objective,
        "verified": None if outcome.answer is None else verdict.ok,
        "violations": list(verdict.violations[:20]),
        "answer": each.answer.to_json(),
    }


def _answer(
    instance: Instance,
    method: Method,
    solver: RecordingSolver | None,
    budget: Budget,
    options: Any,
    listener: Listener,
    incumbent: BestSoFar,
    clock: WallClock,
) -> tuple[Outcome, Instance, ExitStatus | None]:
    """Run the method; failures and timeouts become outcomes with a reason."""
    problem = instance
    try:
        with time_limited(budget), limited_by(budget):
            view, refusal = supported_view(method, instance)
            if refusal is not None:
                return _refusal_outcome(method, refusal), problem, None
            problem = method.pose(view, options)
            listener.on_problem(problem)
            if solver is not None and not (there := solver.installation()).ok:
                raise SolverUnavailable(there.message)
            if solver is not None:
                with locate_errors(source="-S"):
                    solver.check_options()
            return method.run(problem, solver or _NO_SOLVER, budget, options), problem, None
    except RunInterrupted as error:
        why = str(error) or budget.why_exhausted
    except InputError:
        raise
    except Unsupported as error:
        best = _last_outcome(str(error), budget, incumbent)  # what came before the step that is too large
        return best if best.answer is not None else Outcome(Status.UNSUPPORTED, message=str(error)), problem, None
    except OutOfTime as error:
        return _last_outcome(str(error), budget, incumbent), problem, None
    except CwbError as error:
        return Outcome(Status.ERROR, message=str(error)), problem, error.exit_status
    # Nothing holds the method's model any more.
    place = "" if clock.broken_in is None else f" in the phase {clock.broken_in}"
    return _last_outcome(f"{why}, and the method was broken off{place}", budget, incumbent), problem, None


def _last_outcome(message: str, budget: Budget, incumbent: BestSoFar) -> Outcome:
    try:
        with time_limited(replace(budget, stop=threading.Event(), clock=WallClock(ANSWER_S)), 0.0, budget.stop):
            return incumbent.outcome(message)
    except RunInterrupted:
        return incumbent.bound_outcome(f"{message}, and so was the writing of its last answer")


def _limits_after_stop(limits: Budget, clock: WallClock) -> Budget:
    """Limit the verifier after Ctrl-C to two seconds or a tenth of the run's time, if longer."""
    if not limits.stop.is_set():
        return limits
    seconds = max(STOPPED_S, clock.elapsed_s() / 10)
    return replace(limits, time_limit_s=seconds if limits.time_limit_s is None else min(seconds, limits.time_limit_s))


def _verify_outcome(problem: Instance, outcome: Outcome, budget: Budget) -> tuple[Outcome, Verdict]:
    """Verify an answer, or recompute the bound without one; drop answers not verified in time."""
    if outcome.answer is None:
        return outcome, Verdict(bound=_recompute_bound(problem, outcome, budget))
    stop = threading.Event() if budget.stop.is_set() else budget.stop  # a second Ctrl-C ends the program
    limits = replace(budget, stop=stop, clock=WallClock(budget.time_limit_s))
    try:
        with time_limited(limits, 0.0, budget.stop):
            return outcome, verdict_of(problem, outcome.answer, outcome.certificate, budget.clock)
    except RunInterrupted as error:
        message = f"{str(error) or budget.why_exhausted} while the answer was verified; it is left out"
        return replace(outcome, status=Status.LIMIT, answer=None, message=message), Verdict()


def _improve_bound(
    problem: Instance, outcome: Outcome, verdict: Verdict, request: Request, budget: Budget, clock: WallClock
) -> tuple[Outcome, Verdict, str | None]:
    """Return the outcome and verdict with the best bound, and the other method whose bound it is, if any.

    Nothing is asked for answers that are proved best, failed verification, or are no schedules in seconds on links.
    """
    from ..schedules.collective import compare_with_certificate

    answer, least, whose, answered_s = outcome.answer, verdict.objective, None, clock.elapsed_s()
    on_links = isinstance(problem.network, Topology) and problem.timing is None and bool(problem.demands)
    is_final = outcome.status is Status.OPTIMAL or not verdict.ok or budget.stop.is_set() or not on_links
    if request.bounds == "none" or is_final or least is None or answer is None or isinstance(answer, BoundOnly):
        return outcome, verdict, whose
    every = request.bounds == "all"
    usual_s = inf if every else max(CHEAP_S, CHEAP_SHARE * answered_s)
    limit_s = max(LEAST_ALL_S if every else LEAST_S, answered_s if every else usual_s)
    if (left_s := clock.remaining_s()) is not None:
        limit_s = min(limit_s, left_s)
    if limit_s <= 0:
        return outcome, verdict, whose
    limits = WallClock(limit_s).budget()
    with clock.phase("bounds"), suppress(RunInterrupted), time_limited(limits, 0.0, budget.stop):
        for name, (place, seconds) in BOUNDING.items():
            is_closed = verdict.bound == least or not verdict.ok or limits.is_exhausted
            if is_closed or seconds > usual_s or supported_view(registry.get(name), problem)[1]:
                continue
            with suppress(CwbError):
                proof = resolve_function(place)(problem, registry.solver(DEFAULT_SOLVER), limits)
                certificate = proof[1] if isinstance(proof, tuple) else getattr(proof, "certificate", None)
                bound, wrong = compare_with_certificate(problem, answer, certificate, least)
                if bound is not None and (verdict.bound is None or float(bound) > verdict.bound):
                    metrics = {**verdict.metrics, "lower_bound_s": float(bound)}
                    verdict = Verdict(tuple(wrong), least, float(bound), metrics)
                    outcome, whose = replace(outcome, bound=float(bound), certificate=certificate), name
    return outcome, verdict, whose


def _recompute_bound(problem: Instance, outcome: Outcome, budget: Budget) -> float | None:
    """Return the certified bound of a run without an answer; None if it takes over a second."""
    if outcome.certificate is None:
        return None
    limits = replace(budget, time_limit_s=BOUND_S, stop=threading.Event(), clock=WallClock(BOUND_S))
    with suppress(RunInterrupted, InputError), time_limited(limits, 0.0, budget.stop):
        return verdict_of(problem, BoundOnly(), outcome.certificate, budget.clock).bound
    return None


def _record(
    instance: Instance,
    problem: Instance,
    request: Request,
    method: Method,
    solver: RecordingSolver | None,
    outcome: Outcome,
    verdict: Verdict,
    exit_status: ExitStatus | None,
    clock: WallClock,
    started_at: str,
) -> RunRecord:
    """Return the record, with the verifier's numbers where it has them."""
    # There is nothing to verify in an attested bound without an answer.
    is_attested = isinstance(outcome.answer, BoundOnly) and verdict.ok and verdict.objective is None
    objective = outcome.objective if is_attested else verdict.objective
    violations = [*verdict.violations, *_unproved_claims(outcome, verdict, objective, method.sense)]
    if outcome.answer is None:
        objective, violations = None, []
    bound = outcome.bound if verdict.bound is None else verdict.bound
    bound = bound if bound is not None and isfinite(bound) else None
    proof = NONE if bound is None else ATTESTED if verdict.bound is None else RECOMPUTED
    gap = relative_gap(objective, bound)
    verified = None if outcome.answer is None or (is_attested and not violations) else not violations
    # A bound alone always is its own objective.
    is_closed = verified and proof == RECOMPUTED and gap == 0 and not isinstance(outcome.answer, BoundOnly)
    status = Status.OPTIMAL if is_closed and outcome.status is Status.FEASIBLE else outcome.status
    version = outcome.reports[-1].version if outcome.reports else solver.installation().version if solver else None
    if exit_status is None:
        exit_status = ExitStatus.VERIFICATION_FAILED if verified is False else EXIT_STATUS[status.value]
    return RunRecord(
        cwb_version=cwb_version(),
        model=method.name,
        kind=method.kind.value,
        instance=instance.name,
        instance_sha256=instance.sha256,
        collective=instance.collective_name,
        solver=solver.name if solver else None,
        solver_version=version if solver else None,
        options={name: plain_option(value) for name, value in request.options.items()},
        seed=request.seed,
        threads=request.threads,
        solver_options={} if solver is None else {name: plain_option(value) for name, value in solver.own.items()},
        status=status.value,
        objective=objective,
        objective_unit=method.objective_unit(problem),
        sense=method.sense,
        bound=bound,
        gap=gap,
        verified=verified,
        violations=tuple(violations[:20]),
        metrics={**outcome.metrics, **verdict.metrics, "iterations": outcome.iterations},
        seconds=clock.seconds(),
        size=asdict(outcome.size),
        answer=None if outcome.answer is None else outcome.answer.to_json(),
        certificate=None if outcome.certificate is None else outcome.certificate.to_json(),
        message=outcome.message,
        host=platform.node(),
        started_at=started_at,
        exit_status=int(exit_status),
        limits=request.limits(),
        peak_rss_bytes=peak_rss_bytes(),
        environment=environment(),
        proof=proof,
        size_bytes=_size_bytes(problem),
        row_by_row={name: reason for report in outcome.reports for name, reason in report.row_by_row.items()},
    )


def _size_bytes(problem: Instance) -> float | None:
    if problem.demand is None or problem.also or problem.demand.part_of:
        return None
    size = problem.demand.size_bytes
    return int(size) if size.denominator == 1 else float(size)


def _unproved_claims(outcome: Outcome, verdict: Verdict, objective: float | None, sense: str) -> list[str]:
    """Report claims of the method beyond the verifier's results, or beyond its own answer."""
    misses: list[str] = []
    if outcome.objective is not None and verdict.objective is not None:
        difference = abs(outcome.objective - verdict.objective)
        if not difference <= CLAIM_TOLERANCE * abs(verdict.objective):
            misses.append(f"claimed objective {outcome.objective!r}, the verifier finds {verdict.objective!r}")
    sign = 1 if sense == "minimize" else -1
    if outcome.bound is None:
        if outcome.status is Status.OPTIMAL:
            misses.append("claimed optimal without a bound")
    elif verdict.bound is not None:
        if not sign * (outcome.bound - verdict.bound) <= CLAIM_TOLERANCE * abs(verdict.bound):
            misses.append(f"claimed bound {outcome.bound!r}, its certificate proves {verdict.bound!r}")
    elif objective is not None and not sign * (outcome.bound - objective) <= ATTESTED_TOLERANCE * abs(objective):
        misses.append(f"contradiction: attested bound {outcome.bound!r}, but the answer has {objective!r}")
    return misses


class _NoSolver:
    """Placeholder for methods without a solver; any use of it is an error of the method."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        raise AttributeError(f"the method said that it needs no solver, but asked for {name}")


_NO_SOLVER: Any = _NoSolver()
