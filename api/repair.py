"""Repairs of plans and schedules after changes of their network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.budget import Progress, ignore
from ..core.errors import InputError, locate_errors
from ..core.option_names import WrongUse, verb
from ..studies.inputs import edits_of, seconds_or_none, whole
from .runs import Run

if TYPE_CHECKING:
    from ..instances.edits import Edit
    from ..studies.repair import RepairedSchedule


@verb
def repair(
    plan: str | Path,
    *,
    change: str | Sequence[str] = (),
    solver: str = "highs",
    options: Mapping[str, Any] | None = None,
    time_limit_s: float | None = None,
    seed: int = 0,
    output: str | Path | None = None,
    without_link: str | Sequence[str] = (),
    without_node: str | Sequence[str] = (),
    without_rank: str | Sequence[str] = (),
    link: str | Sequence[str] = (),
    progress: Progress = ignore,
    notice: Progress = ignore,
) -> Run | RepairedSchedule:
    """Repair a plan or a schedule after changes of its network, as ``cwb repair`` does.

    Parameters
    ----------
    plan : str or Path
        File of a plan of mtree, or of any schedule.
    change : str or sequence of str
        New bandwidths between two sites of a plan, such as ``"3-7=0"``.
    solver, seed, options, time_limit_s : optional
        Solver, seed, options and limit of mtree-repair, such as ``{"new_trees": 2}``.
    output : str or Path, optional
        File for the new plan or schedule.
    without_link, without_node, without_rank, link : str or sequence of str
        Changes of the network of a schedule, as in :func:`load`.
    notice : callable
        Called with a remark on anything that the output file leaves out.

    Returns
    -------
    Run or RepairedSchedule
        For a plan the run of mtree-repair; for a schedule the repaired one, with its times and a bound.

    Raises
    ------
    InputError
        If the file or a change is wrong, or ranks have become unreachable.
    Unsupported
        If the form of the schedule has no paths that could be changed.
    """
    path, limit_s = Path(plan), seconds_or_none(time_limit_s, "time_limit_s")
    changes = [change] if isinstance(change, str) else list(change)
    target = None if output is None else Path(output)
    if not (edits := edits_of(None, without_link, without_node, without_rank, link)):
        return _repair_plan(path, changes, solver, options or {}, limit_s, seed, target, progress, notice)
    if changes or options:
        raise WrongUse("-c and -O apply to plans of mtree only; expected them without changes of links and nodes")
    return _repair_schedule(path, edits, limit_s, target)


def _repair_plan(
    plan: Path,
    changes: list[str],
    solver: str,
    options: Mapping[str, Any],
    limit_s: float | None,
    seed: int,
    output: Path | None,
    progress: Progress,
    notice: Progress,
) -> Run:
    from ..algorithms.trees.network import to_wan
    from ..core.trees import TreePacking
    from ..harness import Request
    from ..harness import run as run_method
    from ..harness.clock import WallClock
    from ..harness.interrupt import command_limits
    from ..models.mtree.repair_input import describe_trees
    from ..schedules.files import read_schedule
    from ..studies.solve import write_answer

    clock = WallClock(limit_s)
    with command_limits(clock):
        file = read_schedule(plan)
        if not isinstance(file.answer, TreePacking):
            raise InputError("it has no trees; expected a plan of mtree", source=str(plan))
        with locate_errors(source=str(plan)):
            previous = describe_trees(to_wan(file.instance), file.answer, changes)
    for name in {"previous", "changes"} & set(options):
        raise InputError("is set by PLAN and --change", source="-O", place=name)
    all_options = {**options, "previous": [tree.model_dump() for tree in previous], "changes": changes}
    request = Request("mtree-repair", solver, all_options, whole(seed, "seed", 0, 2**31 - 1), 1, clock.limit_s)
    with locate_errors(source=str(plan)):
        result = run_method(file.instance, request, progress, clock=clock)
    if output is not None and result.instance is not None and result.answer is not None:
        write_answer(output, result.instance, result, notice)
    return Run.of(result)


def _repair_schedule(plan: Path, edits: list[Edit], limit_s: float | None, output: Path | None) -> RepairedSchedule:
    from ..harness.clock import WallClock
    from ..harness.interrupt import command_limits
    from ..instances.edits import edit_instance
    from ..schedules.files import read_schedule, write_schedule
    from ..studies.repair import repair_schedule

    with command_limits(WallClock(limit_s)), locate_errors(source=str(plan)):
        file = read_schedule(plan)
        repaired = repair_schedule(file.instance, file.answer, edit_instance(file.instance, edits), file.pieces)
    if output is not None:
        bound_s, certificate = repaired.of_objective or (None, None)
        extra = {**file.extra, "bound_s": None if bound_s is None else float(bound_s)}
        write_schedule(output, repaired.instance, repaired.answer, certificate, extra, file.pieces)
    return repaired
