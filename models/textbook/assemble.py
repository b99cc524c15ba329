"""From moves to schedules: chunks with their conditions, sends with their paths, and the collectives that follow from the primitives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

import numpy as np

from ...core.collective import CollectiveKind
from ...core.errors import Unsupported
from ...core.schedule import Chunks, Ints, Sends, StepSchedule
from ..common.compose import concatenate
from ..common.routing import route
from .moves import Moves
from .problem import Problem, check_size

#: Collectives that follow from an all-gather, and from a broadcast.
GATHERS = (CollectiveKind.ALL_GATHER, CollectiveKind.REDUCE_SCATTER, CollectiveKind.ALL_REDUCE)
SPREADS = (CollectiveKind.BROADCAST, CollectiveKind.REDUCE)


@dataclass(frozen=True, eq=False)
class Ends:
    """Where each part of the data is at the start and at the end; ``n`` stands for everybody.

    Parameters
    ----------
    held_by, needed_by : array of int, shape (parts,)
        Positions in the group. A part that is needed where it is held does not exist.
    part_bytes : Fraction
        Size of a part.
    """

    held_by: Ints
    needed_by: Ints
    part_bytes: Fraction

    def swapped(self) -> Ends:
        """Give the ends of the collective that runs backwards."""
        return Ends(self.needed_by, self.held_by, self.part_bytes)


class Direction(Enum):
    """How moves become sends."""

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
        Where part i starts, and a broadcast of all parts that an all-reduce runs backwards, then forwards. The parts are of one size.
    all_to_all : callable or None
        Part ``i * n + j`` goes from i to j; the parts with i = j do not exist.
    gather : callable or None
        Part i goes from position i to position 0, whose part does not exist. A scatter is this backwards.
    mirror : Algorithm or None
        The algorithm that reductions run backwards, where it is another one: the reverse of a ring's is one the same way around.
    """

    all_gather: Callable[[], Moves] | None = None
    broadcast: Callable[[], Moves] | None = None
    tree_all_reduce: Callable[[], tuple[Ints, Moves]] | None = None
    all_to_all: Callable[[], Moves] | None = None
    gather: Callable[[], Moves] | None = None
    mirror: Algorithm | None = None


def fewest_sends(problem: Problem) -> int:
    """Give how many sends any algorithm needs that gives every chunk to everybody who lacks it, one at a time."""
    n, kind = problem.n, problem.collective
    passes = 2 if kind is CollectiveKind.ALL_REDUCE else 1
    parts = n if kind in (*GATHERS, CollectiveKind.ALL_TO_ALL) else 1
    return passes * parts * (n - 1) * problem.demand.chunks


def assemble(problem: Problem, algorithm: Algorithm) -> StepSchedule:
    """Make the schedule of the problem's collective.

    Raises
    ------
    Unsupported
        If the algorithm does not define the collective, or the schedule would be too large.
    """
    check_size(fewest_sends(problem))
    schedules = [build(problem, *phase) for phase in phases(problem, algorithm)]
    return schedules[0] if len(schedules) == 1 else concatenate(*schedules)


def phases(problem: Problem, algorithm: Algorithm) -> list[tuple[Moves, Ends, Direction]]:
    """Say what makes up the collective: moves, ends in the direction of the moves, and which way they are taken."""
    n, part, whole = problem.n, problem.part_bytes, problem.demand.size_bytes
    mirror = algorithm.mirror or algorithm
    copy, reduce = Direction.COPY, Direction.REDUCE_BACKWARDS
    each, root = np.arange(n), np.zeros(1, dtype=np.int64)
    gathered, spread = Ends(each, np.full(n, n), part), Ends(root, root + n, whole)
    found: list[tuple[Moves, Ends, Direction]] = []
    match problem.collective:
        case CollectiveKind.ALL_GATHER if algorithm.all_gather:
            found = [(algorithm.all_gather(), gathered, copy)]
        case CollectiveKind.REDUCE_SCATTER if mirror.all_gather:
            found = [(mirror.all_gather(), gathered, reduce)]
        case CollectiveKind.ALL_REDUCE if algorithm.all_gather and mirror.all_gather:
            gather = algorithm.all_gather()
            back = gather if mirror is algorithm else mirror.all_gather()
            found = [(back, gathered, reduce), (gather, gathered, copy)]
        case CollectiveKind.ALL_REDUCE if algorithm.tree_all_reduce:
            roots, tree = algorithm.tree_all_reduce()
            ends = Ends(roots, np.full_like(roots, n), whole / len(roots))
            found = [(tree, ends, reduce), (tree, ends, copy)]
        case CollectiveKind.BROADCAST if algorithm.broadcast:
            found = [(algorithm.broadcast(), spread, copy)]
        case CollectiveKind.REDUCE if mirror.broadcast:
            found = [(mirror.broadcast(), spread, reduce)]
        case CollectiveKind.ALL_TO_ALL if algorithm.all_to_all:
            pair = np.arange(n * n)
            found = [(algorithm.all_to_all(), Ends(pair // n, pair % n, part), copy)]
        case CollectiveKind.GATHER if algorithm.gather:
            found = [(algorithm.gather(), Ends(each, np.zeros_like(each), part), copy)]
        case CollectiveKind.SCATTER if algorithm.gather:
            found = [(algorithm.gather(), Ends(each, np.zeros_like(each), part), Direction.COPY_BACKWARDS)]
        case _:
            raise Unsupported(f"the algorithm does not define {problem.collective.value}")
    return found


def build(problem: Problem, moves: Moves, ends: Ends, direction: Direction) -> StepSchedule:
    """Cut the blocks into chunks, find paths, and write down what is held and needed.

    Parameters
    ----------
    problem : Problem
        Network, group and number of chunks.
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
        moves, ends = moves.backwards(), ends.swapped()
    if (np.diff(moves.step) < 0).any():
        moves = moves.take(np.argsort(moves.step, kind="stable"))
    exists = ends.held_by != ends.needed_by
    of_part = np.cumsum(exists) - 1
    part, piece = np.divmod(moves.block, moves.slices)
    source, target = problem.nodes[moves.source], problem.nodes[moves.target]
    paths = route(problem.topology, source, target)
    reduce = direction is Direction.REDUCE_BACKWARDS
    return StepSchedule(
        problem.instance_sha256,
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
