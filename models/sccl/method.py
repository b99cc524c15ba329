"""``sccl``: the method, as the registry knows it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from ...core.budget import Budget
from ...core.errors import InputError, Unsupported
from ...core.fields import Strict
from ...core.instance import Instance
from ...core.method import Kind, Method, Outcome, Status
from ...core.schedule import StepSchedule
from ...core.solver import Solver, SolverOptions, SolverResult, Termination
from ...core.topology import Topology
from ..common.hyper_edges import Edge, edges_of
from ..common.schedule_bounds import best_bound
from ..common.step_sends import needed_sends, step_schedule
from ..common.whole_chunks import WholeChunk, unfit, whole_chunks


class Options(Strict):
    """Options of ``sccl``."""

    mode: Literal["least-steps", "instance"] = Field(
        "least-steps", description="Search for the fewest steps, or solve one instance of given steps and rounds."
    )
    k: int = Field(0, ge=0, le=1000, description="In least-steps mode, rounds may outnumber steps by so many.")
    steps: int | None = Field(None, ge=1, le=1000, description="Steps of the instance.")
    rounds: int | None = Field(None, ge=1, le=10_000, description="Rounds of the instance, at least as many as steps.")
    max_steps: int = Field(32, ge=1, le=1000, description="In least-steps mode, more steps are not tried.")

    @model_validator(mode="after")
    def _agree(self) -> Options:
        given = self.steps is not None and self.rounds is not None
        if self.mode == "instance" and (not given or self.rounds < self.steps):  # type: ignore[operator]
            raise ValueError("an instance needs steps, and rounds that are at least as many")
        if self.mode == "least-steps" and (self.steps is not None or self.rounds is not None):
            raise ValueError("steps and rounds are those of mode=instance; least-steps has k and max_steps")
        return self


def supports(instance: Instance) -> str | None:
    """Networks without switches and chunks of one size."""
    if (reason := unfit(instance)) is not None:
        return reason
    if isinstance(instance.network, Topology) and instance.network.switches:
        return "its steps know ranks and links, but no switches"
    return None


def farthest(chunks: tuple[WholeChunk, ...], edges: tuple[Edge, ...]) -> int:
    """Fewest steps: the most links between a source and a target."""
    ends = {(edge.source, edge.target) for edge in edges}
    most = 0
    for chunk in set(chunks):
        reached, steps = {chunk.source}, 0
        while not set(chunk.targets) <= reached:
            beyond = reached | {j for i, j in ends if i in reached}
            if beyond == reached:
                raise InputError("a rank cannot be reached", place="network.links")
            reached, steps = beyond, steps + 1
        most = max(most, steps)
    return most


def run(instance: Instance, solver: Solver, budget: Budget, options: Options) -> Outcome:
    """Solve one instance after the other (``Method.run``)."""
    from .formulation import Steps, build

    topology = instance.network
    if not isinstance(topology, Topology):
        raise Unsupported("expected an explicit network")
    chunks, columns = whole_chunks(instance)
    if len({chunk.bytes for chunk in chunks}) != 1:
        raise Unsupported("rounds need chunks of one size")
    edges = edges_of(topology)
    slowest = min(edge.bandwidth_Bps for edge in edges)
    room = [min(len(chunks), int(edge.bandwidth_Bps / slowest)) for edge in edges]  # no link carries a chunk twice
    bound, certificate = best_bound(instance)
    low = options.steps or farthest(chunks, edges)
    high = options.steps or options.max_steps
    reports: list[SolverResult] = []
    message = f"no schedule of up to {high} steps was found"
    for steps in range(low, high + 1):
        if budget.exhausted:
            message = f"the budget ended before {steps} steps were tried"
            break
        model = build(Steps(chunks, edges, room, steps, options.rounds or steps + options.k))
        result = solver.solve(model, budget, SolverOptions())
        reports.append(result)
        if result.has_solution:
            sends = [
                (s, c, edge)
                for c, chunk in enumerate(chunks)
                for s, edge in needed_sends(
                    chunk.source,
                    chunk.targets,
                    [(s, edges[e]) for e in model.E for s in model.S if model.y[c, e, s].value > 0.5],
                )
            ]
            proved = all(report.termination is Termination.INFEASIBLE for report in reports[:-1])
            used = sum(round(model.r[s].value) for s in model.S)
            latency = max(edge.latency_s for edge in edges)
            metrics = {
                "rounds": used,
                "sccl_steps": steps,
                "steps_proved": proved and options.mode == "least-steps",
                "sccl_cost_s": float(steps * latency + used * chunks[0].bytes / slowest),
            }
            schedule: StepSchedule = step_schedule(instance.sha256, columns, sends)
            return Outcome(
                Status.FEASIBLE,
                schedule,
                bound=float(bound),
                certificate=certificate,
                reports=tuple(reports),
                size=result.size,
                iterations=len(reports),
                metrics=metrics,
            )
        if result.termination is not Termination.INFEASIBLE:
            message = f"the solver stopped at {steps} steps without an answer"
            break
    return Outcome(
        Status.LIMIT,
        bound=float(bound),
        certificate=certificate,
        message=message,
        reports=tuple(reports),
        iterations=len(reports),
    )


METHOD = Method(
    name="sccl",
    kind=Kind.HEURISTIC,
    summary="k-synchronous steps and rounds: the fewest steps, or one instance, as an integer program",
    paper="Cai et al., Synthesizing Optimal Collective Algorithms, PPoPP 2021",
    answer_type=StepSchedule,
    options=Options,
    run=run,
    supports=supports,
)
