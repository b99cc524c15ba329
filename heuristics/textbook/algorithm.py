"""From the primitives of an algorithm to a method: chunks with conditions, sends with paths, and all collectives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np

from ...algorithms.bounds.schedule_bounds import best_bound
from ...algorithms.graphs.distances import route
from ...algorithms.schedules.compose import concatenate, merge
from ...algorithms.schedules.problem import GroupProblem, check_size, fewest_sends, group_problems, supports_groups
from ...core.budget import Budget
from ...core.collective import Collective
from ...core.errors import InputError, Refusal, Unsupported
from ...core.fields import Strict
from ...core.formulation import NoOptions
from ...core.instance import Instance
from ...core.method import Kind, Method
from ...core.outcome import Outcome, Status
from ...core.schedule import Chunks, Ints, Sends, StepSchedule
from ...core.solver import Solver
from .moves import Moves

#: Collectives that follow from an all-gather, and from a broadcast.
GATHERS = (Collective.ALL_GATHER, Collective.REDUCE_SCATTER, Collective.ALL_REDUCE)
SPREADS = (Collective.BROADCAST, Collective.REDUCE)


@dataclass(frozen=True, eq=False)
class Ends:
    """Positions of each part of the data at the start and at the end; ``n`` stands for everybody.

    Parameters
    ----------
    held_by, needed_by : array of int, shape (parts,)
        Positions in the group. A part that is needed where it is held does not exist.
    """

    held_by: Ints
    needed_by: Ints
    part_bytes: Fraction

    def swap(self) -> Ends:
        """Return the ends of the reversed collective."""
        return Ends(self.needed_by, self.held_by, self.part_bytes)


class Direction(Enum):
    """Conversion of moves to sends."""

    COPY = "copy"
    COPY_BACKWARDS = "copy backwards"
    REDUCE_BACKWARDS = "reduce backwards"


@dataclass(frozen=True)
class Algorithm:
    """The primitives that an algorithm defines; the other collectives follow.

    Parameters
    ----------
    all_gather : callable or None
        Part i of the data starts at position i.
    broadcast : callable or None
        The data is one part, which starts at position 0.
    tree_all_reduce : callable or None
        Where part i starts, and a broadcast of all parts that an all-reduce runs backwards, then forwards. The parts
        are of one size.
    all_to_all : callable or None
        Part ``i * n + j`` goes from i to j; the parts with i = j do not exist.
    gather : callable or None
        Part i goes from position i to position 0, whose part does not exist. A scatter is this backwards.
    mirror : Algorithm or None
        The algorithm that reductions run backwards, where it is another one: the reverse of a ring's is one the same
        way around.
    """

    all_gather: Callable[[], Moves] | None = None
    broadcast: Callable[[], Moves] | None = None
    tree_all_reduce: Callable[[], tuple[Ints, Moves]] | None = None
    all_to_all: Callable[[], Moves] | None = None
    gather: Callable[[], Moves] | None = None
    mirror: Algorithm | None = None


def define(
    name: str,
    summary: str,
    paper: str,
    collectives: tuple[Collective, ...],
    algorithm: Callable[[GroupProblem, Any], Algorithm],
    options: type[Strict] = NoOptions,
    fits: Callable[[GroupProblem], Refusal | None] | None = None,
) -> Method:
    """Make a method.

    Parameters
    ----------
    name, summary, paper : str
        As of :class:`~cwb.core.method.Method`, which shows them.
    algorithm : callable
        A function ``algorithm(problem, options) -> Algorithm``.
    fits : callable or None
        ``fits(problem) -> Refusal | None``: the refusal if the network or the group does not fit.
    """

    def supports(instance: Instance) -> Refusal | None:
        return supports_groups(instance, collectives, fits)

    def run(instance: Instance, solver: Solver, budget: Budget, given: Any) -> Outcome:
        del solver
        try:
            bound, certificate = best_bound(instance)
        except InputError as error:  # no path leads to some rank
            raise Unsupported(error.problem) from None
        budget.tell_bound(bound, certificate)
        schedules = [assemble(problem, algorithm(problem, given)) for problem in group_problems(instance)]
        schedule = merge(instance.sha256, schedules)
        check_size(len(schedule.sends), len(schedule.sends.path_links))
        return Outcome(Status.FEASIBLE, schedule, bound=float(bound), certificate=certificate)

    return Method(
        name=name,
        kind=Kind.HEURISTIC,
        summary=summary,
        paper=paper,
        answer_type=StepSchedule,
        options=options,
        solve=run,
        supports=supports,
        needs_solver=False,
    )


def assemble(problem: GroupProblem, algorithm: Algorithm) -> StepSchedule:
    """Make the schedule of the problem's collective.

    Raises
    ------
    Unsupported
        If the algorithm does not define the collective, or the schedule would be too large.
    """
    by_trees = problem.collective is Collective.ALL_REDUCE and algorithm.all_gather is None
    check_size(fewest_sends(problem, parts=1 if by_trees else None))
    schedules = [build(problem, *phase) for phase in phases(problem, algorithm)]
    return schedules[0] if len(schedules) == 1 else concatenate(*schedules)


def phases(problem: GroupProblem, algorithm: Algorithm) -> list[tuple[Moves, Ends, Direction]]:
    """Return the phases of the collective: moves, ends in the direction of the moves, and direction."""
    n, part, whole = problem.n, problem.part_bytes, problem.demand.size_bytes
    mirror = algorithm.mirror or algorithm
    copy, reduce = Direction.COPY, Direction.REDUCE_BACKWARDS
    each, root = np.arange(n), np.zeros(1, dtype=np.int64)
    gathered, spread = Ends(each, np.full(n, n), part), Ends(root, root + n, whole)
    done: list[tuple[Moves, Ends, Direction]] = []
    match problem.collective:
        case Collective.ALL_GATHER if algorithm.all_gather:
            done = [(algorithm.all_gather(), gathered, copy)]
        case Collective.REDUCE_SCATTER if mirror.all_gather:
            done = [(mirror.all_gather(), gathered, reduce)]
        case Collective.ALL_REDUCE if algorithm.all_gather and mirror.all_gather:
            gather = algorithm.all_gather()
            back = gather if mirror is algorithm else mirror.all_gather()
            done = [(back, gathered, reduce), (gather, gathered, copy)]
        case Collective.ALL_REDUCE if algorithm.tree_all_reduce:
            roots, tree = algorithm.tree_all_reduce()
            ends = Ends(roots, np.full_like(roots, n), whole / len(roots))
            done = [(tree, ends, reduce), (tree, ends, copy)]
        case Collective.BROADCAST if algorithm.broadcast:
            done = [(algorithm.broadcast(), spread, copy)]
        case Collective.REDUCE if mirror.broadcast:
            done = [(mirror.broadcast(), spread, reduce)]
        case Collective.ALL_TO_ALL if algorithm.all_to_all:
            pair = np.arange(n * n)
            done = [(algorithm.all_to_all(), Ends(pair // n, pair % n, part), copy)]
        case Collective.GATHER if algorithm.gather:
            done = [(algorithm.gather(), Ends(each, np.zeros_like(each), part), copy)]
        case Collective.SCATTER if algorithm.gather:
            done = [(algorithm.gather(), Ends(each, np.zeros_like(each), part), Direction.COPY_BACKWARDS)]
        case _:
            raise Unsupported(f"the algorithm does not define {problem.collective.name}")
    return done


def build(problem: GroupProblem, moves: Moves, ends: Ends, direction: Direction) -> StepSchedule:
    """Cut the blocks into chunks, find paths, and write down what is held and needed.

    Parameters
    ----------
    moves : Moves
        What is copied where; sends that go backwards are this reversed.
    ends : Ends
        Start and end of every part in the direction of the moves.
    direction : Direction
        Whether the moves are taken backwards, and whether they reduce.
    """
    check_size(len(moves) * problem.demand.chunks)
    moves = moves.cut(problem.demand.chunks)
    if direction is not Direction.COPY:
        moves, ends = moves.backwards(), ends.swap()
    if (np.diff(moves.step) < 0).any():
        moves = moves.take(np.argsort(moves.step, kind="stable"))
    exists = ends.held_by != ends.needed_by
    of_part = np.cumsum(exists) - 1
    part, piece = np.divmod(moves.block, moves.slices)
    source, target = problem.nodes[moves.source], problem.nodes[moves.target]
    paths = route(problem.topology, source, target)
    check_size(len(moves), len(paths.links))
    reduce = direction is Direction.REDUCE_BACKWARDS
    return StepSchedule(
        problem.instance.sha256,
        Chunks(
            np.ones(int(exists.sum()) * moves.slices, dtype=np.int64),
            ends.part_bytes / moves.slices,
            (*((rank,) for rank in problem.ranks), tuple(sorted(problem.ranks))),
            np.repeat(ends.held_by[exists], moves.slices),
            np.repeat(ends.needed_by[exists], moves.slices),
            np.full(int(exists.sum()) * moves.slices, reduce),
        ),
        Sends(
            of_part[part] * moves.slices + piece,
            source,
            target,
            np.full(len(moves), reduce),
            paths.offset,
            paths.links,
        ),
        moves.step,
    )
