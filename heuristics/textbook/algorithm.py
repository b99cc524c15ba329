"""From the primitives of an algorithm to a method: chunks with conditions, sends with paths, and all collectives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from ...algorithms.bounds.schedule_bounds import best_bound
from ...algorithms.graphs.distances import route
from ...algorithms.graphs.translations import ColouredNetwork, Symmetry, find_symmetry_of_schedule, route_by_symmetry
from ...algorithms.schedules.compose import concatenate, merge
from ...algorithms.schedules.problem import (
    GroupProblem,
    check_size,
    equal_chunks,
    fewest_sends,
    group_problems,
    supports_groups,
)
from ...core.budget import Budget
from ...core.collective import Collective
from ...core.errors import InputError, Refusal, Unsupported
from ...core.fields import Strict
from ...core.formulation import NoOptions
from ...core.instance import Instance
from ...core.method import Method
from ...core.outcome import Outcome, Status
from ...core.schedule import Ints, Sends, StepSchedule
from ...core.solver import Solver
from ...core.step_orbits import StepOrbits
from ...core.trace import Routing
from .. import heuristic


@dataclass(frozen=True, eq=False)
class Moves:
    """Copies of blocks between positions of the group.

    Each part is cut into ``slices`` blocks of one size; slice j of part i is block ``i * slices + j``. Each of several
    chunks of a block follows the one before by ``stride`` steps: 0 if they go together.
    """

    block: Ints
    source: Ints
    target: Ints
    step: Ints
    slices: int = 1
    stride: int = 0

    def __len__(self) -> int:
        return len(self.block)

    def cut(self, chunks: int) -> Moves:
        """Cut every block into chunks; chunk j of block i becomes block ``i * chunks + j``."""
        if chunks == 1:
            return self
        piece = np.tile(np.arange(chunks), len(self))
        return Moves(
            np.repeat(self.block, chunks) * chunks + piece,
            np.repeat(self.source, chunks),
            np.repeat(self.target, chunks),
            np.repeat(self.step, chunks) + self.stride * piece,
            self.slices * chunks,
        )

    def backwards(self) -> Moves:
        """Run backwards: what was copied from a rank to another now goes from the other one to the first."""
        return replace(self, source=self.target, target=self.source, step=int(self.step.max()) - self.step)

    def relabel_positions(self, position: Ints) -> Moves:
        """Let ``position[i]`` play the part of position i; the blocks stay as they are."""
        return replace(self, source=position[self.source], target=position[self.target])

    def rename_blocks(self, position: Ints) -> Moves:
        """Renumber an all-gather, whose parts are named after their owners."""
        part, piece = np.divmod(self.block, self.slices)
        return replace(self.relabel_positions(position), block=position[part] * self.slices + piece)

    def rename_pairs(self, position: Ints) -> Moves:
        """Renumber an all-to-all, whose parts are named after both ends."""
        n = len(position)
        part, piece = np.divmod(self.block, self.slices)
        pair = position[part // n] * n + position[part % n]
        return replace(self.relabel_positions(position), block=pair * self.slices + piece)


def concatenate_moves(several: Sequence[Moves]) -> Moves:
    """Put moves of the same blocks into one table."""
    names = ("block", "source", "target", "step")
    block, source, target, step = (np.concatenate([getattr(moves, name) for moves in several]) for name in names)
    return Moves(block, source, target, step, several[0].slices, several[0].stride)


def run_side_by_side(several: Sequence[Moves]) -> Moves:
    """Run algorithms side by side, each on its own equal share of every part."""
    shares, slices = len(several), several[0].slices

    def shift(share: int, moves: Moves) -> Moves:
        part, piece = np.divmod(moves.block, slices)
        return replace(moves, block=(part * shares + share) * slices + piece, slices=slices * shares)

    return concatenate_moves([shift(*each) for each in enumerate(several)])


def negabinary(step: int) -> int:
    """Distance to the partner in a step of Swing and of Bine trees: 1, -1, 3, -5, 11, ..."""
    return int(1 - (-2) ** (step + 1)) // 3


def is_shift(image: Ints, period: int = 1) -> bool:
    """Return whether an image moves all positions by one number, modulo theirs, that ``period`` divides."""
    distance = (image - np.arange(len(image))) % len(image)
    return bool((distance == distance[0]).all()) and int(distance[0]) % period == 0


def exchanges(partner: Sequence[Ints]) -> Moves:
    """Return an all-gather by pairwise exchange: in step s, positions send all they have to ``partner[s]``.

    Recursive doubling and Swing differ in the partners alone. The partners must be such that nobody receives a block
    twice.
    """
    blocks = np.eye(len(partner[0]), dtype=np.bool_)
    steps: list[Moves] = []
    for step, peer in enumerate(partner):
        source, block = np.nonzero(blocks)
        steps.append(Moves(block, source, peer[source], np.full_like(source, step)))
        blocks = blocks | blocks[peer]
    return concatenate_moves(steps)


#: Collectives that follow from an all-gather, and from a broadcast.
GATHERS = (Collective.ALL_GATHER, Collective.REDUCE_SCATTER, Collective.ALL_REDUCE)
SPREADS = (Collective.BROADCAST, Collective.REDUCE)


@dataclass(frozen=True, eq=False)
class Ends:
    """Positions of each part of the data at the start and at the end; ``n`` stands for everybody.

    A part that is needed where it is held does not exist.
    """

    held_by: Ints
    needed_by: Ints
    part_bytes: Fraction


class Direction(Enum):
    """Conversion of moves to sends."""

    COPY = "copy"
    REDUCE = "reduce"
    COPY_BACKWARDS = "copy backwards"
    REDUCE_BACKWARDS = "reduce backwards"


@dataclass(frozen=True)
class Algorithm:
    """The primitives that an algorithm defines; the other collectives follow.

    In ``all_gather`` part i of the data starts at position i; in ``broadcast`` the data is one part, which starts at
    position 0. ``tree_all_reduce`` gives where part i starts, and a broadcast of all parts, of one size, that an
    all-reduce runs backwards, then forwards. In ``all_reduce`` the data is one part, and every move adds the source's
    sum to the target's; an all-reduce uses it where it is given. In ``all_to_all`` part ``i * n + j`` goes from i to j;
    the parts with i = j do not exist. In ``gather`` part i goes from position i to position 0, whose part does not
    exist; a scatter is this backwards. Reductions run ``mirror`` backwards, where it is another algorithm: the reverse
    of a ring's is one the same way around.

    ``all_gather`` and ``all_to_all`` are asked for the parts of some positions, whose places in this list then number
    the blocks. For collectives in ``by_parts`` they leave out those of other positions; for others they may.
    """

    all_gather: Callable[[Ints], Moves] | None = None
    broadcast: Callable[[], Moves] | None = None
    tree_all_reduce: Callable[[], tuple[Ints, Moves]] | None = None
    all_reduce: Callable[[], Moves] | None = None
    all_to_all: Callable[[Ints], Moves] | None = None
    gather: Callable[[], Moves] | None = None
    mirror: Algorithm | None = None
    shares: int = 1  #: Blocks that every part of the all-gather is cut into, which multiply its sends.
    by_parts: tuple[Collective, ...] = ()
    #: True if an image of the positions maps the sends of these collectives to one another, as sets.
    is_invariant_under: Callable[[Ints], bool] = lambda image: True


def define(
    name: str,
    summary: str,
    paper: str,
    collectives: tuple[Collective, ...],
    algorithm: Callable[[GroupProblem, Any], Algorithm],
    options: type[Strict] = NoOptions,
    fits: Callable[[GroupProblem], Refusal | None] = lambda problem: None,
) -> Method:
    """Make a method.

    ``algorithm(problem, options)`` returns the primitives, ``fits(problem)`` the refusal if the network or the group
    does not fit; the rest is as in :class:`~cwb.core.method.Method`.
    """

    def supports(instance: Instance) -> Refusal | None:
        return supports_groups(instance, collectives, fits)

    def run(instance: Instance, solver: Solver, budget: Budget, settings: Any) -> Outcome:
        problems = [(problem, algorithm(problem, settings)) for problem in group_problems(instance)]
        sends = sum(count_sends(*each) for each in problems)
        first = problems[0][1]
        symmetry = find_common_symmetry(instance, sends, first.by_parts, first.is_invariant_under)
        check_size(sends // (symmetry.motions if symmetry else 1))  # before a bound is computed and moves are made
        starts = None if symmetry is None else positions_of(problems[0][0], symmetry)
        try:
            bound, certificate = best_bound(instance, starts=starts)
        except InputError as error:  # no path leads to some rank
            raise Unsupported(error.problem) from None
        budget.tell_bound(bound, certificate)
        schedule = merge(instance.sha256, [assemble(*each, symmetry) for each in problems])
        check_size(len(schedule.sends), len(schedule.sends.path_links))
        answer = schedule if symmetry is None else StepOrbits(schedule, symmetry.translations)
        return Outcome(Status.FEASIBLE, answer, bound=float(bound), certificate=certificate)

    return heuristic(
        name=name, summary=summary, paper=paper, answer_type=StepSchedule, options=options, solve=run, supports=supports
    )


MOST_LISTED = 10_000_000  #: More sends are listed for the data of one rank of every orbit, where that is possible.


def is_large(problem: GroupProblem) -> bool:
    """Return whether the sends of any algorithm are too many to be listed where that can be avoided."""
    return fewest_sends(problem) > MOST_LISTED


def find_common_symmetry(
    instance: Instance,
    sends: int,
    by_parts: Sequence[Collective] = (*GATHERS, Collective.ALL_TO_ALL),
    is_invariant_under: Callable[[Ints], bool] = lambda image: True,
) -> Symmetry | None:
    """Return a symmetry of the network under which a schedule is invariant; None if none is found or needed.

    It is needed for more than :data:`MOST_LISTED` sends, of one collective of ``by_parts`` on all ranks in order.
    """
    varies = instance.timing is not None and instance.timing.changes
    if sends <= MOST_LISTED or instance.demand is None or instance.demand.collective not in by_parts:
        return None
    if instance.also or varies or instance.rank_costs is not None or instance.routing is not Routing.FIXED:
        return None
    if instance.demand.group(instance.npus) != tuple(range(instance.npus)):
        return None
    return find_symmetry_of_schedule(ColouredNetwork.of(instance.topology), is_invariant_under)


def count_sends(problem: GroupProblem, algorithm: Algorithm) -> int:
    """Return the sends of the schedule, the fewest where only its moves tell more."""
    by_trees = problem.collective is Collective.ALL_REDUCE and algorithm.all_gather is None
    shares = algorithm.shares if problem.collective in GATHERS else 1
    return shares * fewest_sends(problem, parts=1 if by_trees else None)


def positions_of(problem: GroupProblem, symmetry: Symmetry | None) -> Ints:
    """Return one position of every orbit; all of them without symmetry."""
    return np.arange(problem.n) if symmetry is None else np.flatnonzero(np.isin(problem.nodes, symmetry.roots))


def assemble(problem: GroupProblem, algorithm: Algorithm, symmetry: Symmetry | None = None) -> StepSchedule:
    """Make the schedule of the problem's collective, by symmetry for the parts of one position of every orbit."""
    parts = phases(problem, algorithm, positions_of(problem, symmetry))
    schedules = [build(problem, *phase, symmetry) for phase in parts]
    return schedules[0] if len(schedules) == 1 else concatenate(*schedules)


def phases(problem: GroupProblem, algorithm: Algorithm, each: Ints) -> list[tuple[Moves, Ends, Direction]]:
    """Return the phases of the collective: moves, ends in the direction of the moves, and direction."""
    n, part, whole = problem.n, problem.part_bytes, problem.demand.size_bytes
    mirror = algorithm.mirror or algorithm
    copy, reduce = Direction.COPY, Direction.REDUCE_BACKWARDS
    root = np.zeros(1, dtype=np.int64)
    gathered, spread = Ends(each, np.full_like(each, n), part), Ends(root, root + n, whole)
    result: list[tuple[Moves, Ends, Direction]]
    match problem.collective:
        case Collective.ALL_GATHER if algorithm.all_gather:
            result = [(algorithm.all_gather(each), gathered, copy)]
        case Collective.REDUCE_SCATTER if mirror.all_gather:
            result = [(mirror.all_gather(each), gathered, reduce)]
        case Collective.ALL_REDUCE if algorithm.all_reduce:
            result = [(algorithm.all_reduce(), Ends(root + n, root + n, whole), Direction.REDUCE)]
        case Collective.ALL_REDUCE if algorithm.all_gather and mirror.all_gather:
            gather = algorithm.all_gather(each)
            back = gather if mirror is algorithm else mirror.all_gather(each)
            result = [(back, gathered, reduce), (gather, gathered, copy)]
        case Collective.ALL_REDUCE if algorithm.tree_all_reduce:
            roots, tree = algorithm.tree_all_reduce()
            ends = Ends(roots, np.full_like(roots, n), whole / len(roots))
            result = [(tree, ends, reduce), (tree, ends, copy)]
        case Collective.BROADCAST if algorithm.broadcast:
            result = [(algorithm.broadcast(), spread, copy)]
        case Collective.REDUCE if mirror.broadcast:
            result = [(mirror.broadcast(), spread, reduce)]
        case Collective.ALL_TO_ALL if algorithm.all_to_all:
            pairs = Ends(np.repeat(each, n), np.tile(np.arange(n), len(each)), part)
            result = [(algorithm.all_to_all(each), pairs, copy)]
        case Collective.GATHER if algorithm.gather:
            result = [(algorithm.gather(), Ends(each, np.zeros_like(each), part), copy)]
        case Collective.SCATTER if algorithm.gather:
            result = [(algorithm.gather(), Ends(each, np.zeros_like(each), part), Direction.COPY_BACKWARDS)]
        case _:
            raise Unsupported(f"the algorithm does not define {problem.collective.name}")
    return result


def build(
    problem: GroupProblem, moves: Moves, ends: Ends, direction: Direction, symmetry: Symmetry | None
) -> StepSchedule:
    """Cut the blocks into chunks, find paths, and write down what is held and needed.

    Moves and ends are in the direction of the moves; sends that go backwards are these reversed.
    """
    check_size(len(moves) * problem.demand.chunks)
    moves = moves.cut(problem.demand.chunks)
    if direction in (Direction.COPY_BACKWARDS, Direction.REDUCE_BACKWARDS):
        moves, ends = moves.backwards(), Ends(ends.needed_by, ends.held_by, ends.part_bytes)
    unsorted = (np.diff(moves.step) < 0).any()
    order = np.argsort(moves.step, kind="stable") if unsorted else slice(None)
    exists = (ends.held_by != ends.needed_by) | (ends.held_by == problem.n)
    of_part = np.cumsum(exists) - 1
    part, piece = np.divmod(moves.block[order], moves.slices)
    source, target = problem.nodes[moves.source[order]], problem.nodes[moves.target[order]]
    find_paths = route if symmetry is None else partial(route_by_symmetry, symmetry=symmetry)
    paths = find_paths(problem.topology, source=source, target=target)
    check_size(len(moves), len(paths.links))
    reduce = direction in (Direction.REDUCE, Direction.REDUCE_BACKWARDS)
    holders, receivers = (np.repeat(end[exists], moves.slices) for end in (ends.held_by, ends.needed_by))
    chunks = equal_chunks(problem.ranks, ends.part_bytes / moves.slices, holders, receivers, reduced=reduce)
    chunk, flags = of_part[part] * moves.slices + piece, np.full(len(moves), reduce)
    sends = Sends(chunk, source, target, flags, paths.offset, paths.links)
    return StepSchedule(problem.instance.sha256, chunks, sends, moves.step[order])
