"""Plans checked: by the rules of the executor, and by running them."""

from dataclasses import dataclass
from pathlib import Path

from ...core.files import without_collector
from ..msccl.findings import Finding, Findings, first_fault
from ..msccl.outcome import check_outcome
from .compile import MAX_ITERATIONS, MAX_MOVED, MAX_UNITS, units_of
from .files import read_plan
from .plan import Plan
from .rules import RULES, lint
from .run import execute

#: A plan that breaks one of these rules cannot be run.
_NEEDED = (
    "gpus", "blocks", "names", "peers", "references", "barriers", "kinds", "operands", "sizes", "slices", "bounds",
    "pipelines",
)  # fmt: skip


@dataclass(frozen=True)
class PlanReport:
    """Findings in a plan."""

    path: Path
    plan: Plan
    rules: Findings
    run: Findings
    ran: bool
    root: int | None

    @property
    def problems(self) -> list[str]:
        """Errors in the plan."""
        return list(dict.fromkeys(map(str, [*self.rules.wrong, *self.run.wrong])))

    @property
    def notes(self) -> list[str]:
        """Remarks that are no errors."""
        return list(dict.fromkeys(str(one) for one in (*self.rules.first, *self.run.first) if not one.wrong))


@without_collector()
def check_file(path: Path) -> PlanReport:
    """Check a file."""
    return check_plan(read_plan(path), path)


def check_plan(plan: Plan, path: Path = Path()) -> PlanReport:
    """Check a plan."""
    rules, obstacle = lint(plan), obstacle_of(plan)
    if obstacle is not None:
        return PlanReport(path, plan, rules, Findings([] if rules.wrong else [obstacle]), ran=False, root=None)
    run = execute(plan, units_of(plan) or 1)
    return PlanReport(path, plan, rules, run.findings, ran=True, root=check_outcome(run))


def obstacle_of(plan: Plan) -> Finding | None:
    """Return the reason why a plan cannot be run; None if it can."""
    if (fault := first_fault(RULES, _NEEDED, plan)) is not None:
        return fault
    if min(gpu.input for gpu in plan.gpus) < 0 or min(gpu.output for gpu in plan.gpus) < 0:
        return Finding("chunks", "a negative number of chunks")
    units = units_of(plan)
    if units is None:
        return Finding("units", f"slices and pipelines cut chunks into more than {MAX_UNITS} parts: not run")
    total = 0
    for _, _, _, op in plan.operations():
        times = op.chunks * units if op.name == "pipeline" else 1
        if times > MAX_ITERATIONS:
            return Finding("iterations", f"a pipeline of more than {MAX_ITERATIONS:,} iterations: not run")
        sizes = (one.size * (plan.ngpus if one.switch >= 0 else 1) for one in (*op.src, *op.dst))
        total += units * sum(sizes) + times * len(op.ops)
    most = MAX_MOVED[0] + MAX_MOVED[1] * plan.steps
    if total > most:
        return Finding("moved", f"moves more than {most:,} chunks or parts of chunks: not run")
    return None
