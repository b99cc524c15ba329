"""Registry entry of the method ``sccl``."""

from dataclasses import replace
from typing import Literal, Self

from pydantic import Field, model_validator

from ...algorithms.schedules.problem import refuse_unequal_messages
from ...algorithms.schedules.stages import CopyStage, solve_stages, supports_one_stage, supports_stages
from ...core.budget import Budget, why_unbuildable
from ...core.errors import Refusal
from ...core.fields import Strict
from ...core.formulation import Formulation
from ...core.instance import Instance
from ...core.method import Kind, Method, Metric
from ...core.outcome import Outcome, Status
from ...core.schedule import StepSchedule
from ...core.solver import Solver, SolverOptions, SolverResult, Termination

PAPER = "Cai et al., Synthesizing Optimal Collective Algorithms, PPoPP 2021"


class ScclOptions(Strict):
    """Options of ``sccl``."""

    mode: Literal["least-steps", "instance"] = "least-steps"
    """least-steps, search for the fewest steps; instance, solve one instance of given steps and rounds."""
    k: int = Field(0, ge=0, le=1000, description="In least-steps mode, rounds may outnumber steps by so many.")
    steps: int | None = Field(None, ge=1, le=1000, description="Steps of the instance.")
    rounds: int | None = Field(None, ge=1, le=10_000, description="Rounds of the instance, at least as many as steps.")
    max_steps: int = Field(32, ge=1, le=1000, description="In least-steps mode, more steps are not tried.")

    @model_validator(mode="after")
    def _agree(self) -> Self:
        both = self.steps is not None and self.rounds is not None
        if self.mode == "instance" and (not both or self.rounds < self.steps):  # type: ignore[operator]
            raise ValueError("an instance needs steps, and rounds that are at least as many")
        if self.mode == "least-steps" and (self.steps is not None or self.rounds is not None):
            raise ValueError("steps and rounds are those of mode=instance; least-steps has k and max_steps")
        return self


class RoundOptions(Strict):
    """Options of ``sccl/rounds``."""

    steps: int | None = Field(None, ge=1, le=1000)
    """S; by default the most links on the way to a target, the fewest that can do."""
    rounds: int | None = Field(None, ge=1, le=10_000, description="R, the most rounds; by default as many as help.")


def supports(instance: Instance) -> Refusal | None:
    """Refuse chunks of several sizes, and sums beside other collectives; return the reason or None."""
    return supports_stages(instance) or refuse_unequal_messages(instance)


def supports_model(instance: Instance) -> Refusal | None:
    """Refuse what the method refuses, and an all-reduce, which needs two models; return the reason or None."""
    return supports_one_stage(instance) or refuse_unequal_messages(instance)


def run(instance: Instance, solver: Solver, budget: Budget, options: ScclOptions) -> Outcome:
    """Search for the steps of every stage (``Method.run``)."""
    return solve_stages(instance, budget, lambda stage, part: _search_steps(stage, solver, part, options))


def _search_steps(stage: CopyStage, solver: Solver, budget: Budget, options: ScclOptions) -> Outcome:
    """Solve models of a stage with increasing numbers of steps."""
    from .formulation import COLUMN_S, build, pose_steps, schedule_of

    problem = pose_steps(stage, options.steps, options.rounds)
    low, high = problem.steps, options.steps or options.max_steps
    reports: list[SolverResult] = []
    message = f"no schedule of up to {high} steps was found"
    for steps in range(low, high + 1):
        if budget.is_exhausted:
            message = f"the budget ended before {steps} steps were tried"
            break
        trial = replace(problem, steps=steps, rounds=options.rounds or steps + options.k)
        if why := why_unbuildable(trial.columns, f"{steps} steps", COLUMN_S):
            message = why
            break
        with budget.clock.phase("build"):
            model = build(trial)
        result = solver.solve(model, budget, SolverOptions())
        reports.append(result)
        if result.has_solution:
            proved = options.mode == "least-steps" and (steps == 1 or problem.has_every_path)
            rounds = sum(round(model.r[s].value) for s in model.S)
            latency = max(edge.latency_s for edge in problem.edges)
            slowest = min(link.bandwidth_Bps for link in stage.instance.topology.links)
            metrics = {
                "rounds": rounds,
                "sccl_steps": steps,
                "steps_proved": proved,
                "sccl_cost_s": float(steps * latency + rounds * problem.chunks[0].bytes / slowest),
            }
            answer = schedule_of(model, trial)
            return Outcome(Status.FEASIBLE, answer, size=result.size, metrics=metrics, reports=tuple(reports))
        if result.termination is not Termination.INFEASIBLE:
            message = f"the solver stopped at {steps} steps without an answer"
            break
    return Outcome(Status.LIMIT, message=message, reports=tuple(reports))


METHOD = Method(
    name="sccl",
    kind=Kind.HEURISTIC,
    summary="k-synchronous steps and rounds: the fewest steps, or one instance, as an integer program",
    paper=PAPER,
    answer_type=StepSchedule,
    options=ScclOptions,
    solve=run,
    supports=supports,
    metrics={
        "sccl_steps": Metric("steps of the schedule, S"),
        "rounds": Metric("rounds of all steps together, R"),
        "steps_proved": Metric("whether fewer steps are proved to be impossible"),
        "sccl_cost_s": Metric("S alpha + R beta, the time by SCCL's own count", "s"),
    },
)

ROUNDS = Formulation(
    "sccl/rounds",
    summary="the fewest rounds of a schedule of S synchronous steps: who has which chunk, and what links carry",
    paper=PAPER,
    equations="k-synchronous schedules, as TE-CCL describes them (sections 6.1 and G); an interpretation",
    index=f"{__package__}.formulation:index",
    build=f"{__package__}.formulation:build",
    extract=f"{__package__}.formulation:schedule_of",
    labels=f"{__package__}.formulation:labels",
    needs=("integers",),
    options=RoundOptions,
    supports=supports_model,
    agrees_with="sccl",
    bounds=False,
)
