"""Algorithm 1 of appendix E: an upper bound on the number of epochs, from coarser grids."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil

from ...core.instance import Instance
from .epochs import EpochProblem, epoch_problem

#: Epochs of the coarse grids that are tried for every time.
COARSE = (4, 8, 12)

#: Times that are tried: powers of two of the smallest that is possible.
DOUBLINGS = 12


def number_of_epochs(
    instance: Instance, problem: EpochProblem, least: int, feasible: Callable[[EpochProblem, int], bool | None]
) -> int | None:
    """Give a number of epochs that should be enough.

    Total times are tried from the smallest possible one on, doubled every time, on grids of 4, 8 and 12 epochs; the first that can be met is
    counted in the epochs of the problem. A coarse grid may count less latency than the fine one, so that the number may
    still be too small; whoever uses it must be prepared for that.

    Parameters
    ----------
    instance : Instance
        Posed, on the fine grid.
    problem : EpochProblem
        Made of it.
    least : int
        Epochs that are needed at least.
    feasible : callable
        ``feasible(problem, epochs)``: whether the general form finds a schedule; None if that was not found out.

    Returns
    -------
    int or None
        None if it was not found out on some grid: longer and longer times would be tried for nothing.
    """
    assert instance.timing is not None  # noqa: S101 (a problem has been made of it)
    total = problem.seconds(max(1, least))
    for _ in range(DOUBLINGS):
        for epochs in COARSE:
            timing = replace(instance.timing, epoch_s=total / epochs, changes=())
            found = feasible(epoch_problem(instance.with_changes(timing=timing)), epochs)
            if found is None:
                return None
            if found:
                return ceil(total / problem.timing.epoch_s)
        total *= 2
    return ceil(total / problem.timing.epoch_s)
