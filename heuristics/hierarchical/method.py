"""``hierarchical``: its options, the choice between a collective and another one reversed, and several collectives."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from operator import itemgetter
from typing import Annotated

import numpy as np
from pydantic import Field

from ...algorithms.bounds.schedule_bounds import best_bound, cut_bound, partition_bound
from ...algorithms.graphs.translations import Symmetry
from ...algorithms.schedules.compose import concatenate, merge, reverse
from ...algorithms.schedules.problem import GroupProblem, check_size, fewest_sends, group_problems
from ...algorithms.schedules.replay import in_order, timed_first_come
from ...algorithms.schedules.stand_in import depths
from ...core.bounds import Certificate
from ...core.budget import Budget, ignore
from ...core.collective import Collective
from ...core.equal_steps import translate_ranks
from ...core.errors import InputError, Unsupported
from ...core.fields import Strict
from ...core.instance import Instance
from ...core.method import Metric
from ...core.outcome import Outcome, Status
from ...core.refusals import refuse_unfit
from ...core.schedule import Ints, Schedule, StepSchedule
from ...core.solver import Solver
from .. import heuristic
from ..textbook.algorithm import find_common_symmetry, positions_of
from .levels import Hierarchy, Networks, find_hierarchy, hierarchy_of_sizes
from .phases import AG, AR, BROADCAST, COLLECTIVES, REDUCE, RS
from .search import ALGORITHMS, MOST_HOPS, PLAYED, AnswerCache, Choice, Levels, Search, to_step_orbits

_BLOCKS = 32  #: Blocks of a level whose cuts are tried.

_FEW = Field(min_length=1, max_length=8)


class HierarchicalOptions(Strict):
    """Options of ``hierarchical``."""

    levels: Annotated[list[Annotated[int, Field(ge=2)]], _FEW] | None = None
    """Ranks of a group of every level, in order, innermost first; by default found in the network."""
    algorithms: Annotated[list[str], _FEW] | None = None
    """The algorithm of every given level; by default the fastest one."""
    pieces: Annotated[int, Field(ge=1, le=4096)] | None = None
    """Pieces of every block that follow one another through the levels; by default the collective's chunks, or if that
    is 1, the fastest of 1, 4, 16, 32 and 64."""
    balance: bool | None = None
    """True if pieces take levels in several orders, for even loads, as in Themis; by default if faster."""


def run(instance: Instance, solver: Solver, budget: Budget, options: HierarchicalOptions) -> Outcome:
    """Compose every collective of an instance (``Method.run``)."""
    _check(options)
    problems = group_problems(instance)
    sends, first = sum(fewest_sends(problem) for problem in problems), problems[0]
    symmetry = find_common_symmetry(instance, sends, (AG, RS, AR), partial(_keeps_levels, first, options))
    check_size(sends // (symmetry.motions if symmetry else 1))
    starts = positions_of(first, symmetry) if symmetry else None
    try:
        bound, certificate = max(
            [best_bound(instance, starts=starts), *_of_blocks(instance, one=symmetry is not None)], key=itemgetter(0)
        )
    except InputError as error:  # no path leads to some rank
        raise Unsupported(error.problem) from None
    budget.tell_bound(bound, certificate)
    search_budget = budget if len(problems) == 1 else replace(budget, tell=ignore)
    choices = [choose(problem, solver, search_budget, options, symmetry) for problem in problems]
    answer = to_step_orbits(_merge_schedules(instance, [choice.schedule for choice in choices]), symmetry)
    each: dict[str, list[object]] = {
        "levels": [" x ".join(map(str, choice.hierarchy.sizes)) for choice in choices],
        "algorithms": [[line for part in choice.parts for line in part.algorithms] for choice in choices],
        "pieces": [choice.pieces for choice in choices],
        "orders": [len(choice.parts) for choice in choices],
        "backwards": [choice.backwards for choice in choices],
    }
    metrics = {name: values[0] if len(values) == 1 else values for name, values in each.items()}
    return Outcome(Status.FEASIBLE, answer, bound=float(bound), certificate=certificate, metrics=metrics)


def block_bound(instance: Instance, *_: object) -> tuple[Fraction, Certificate] | None:
    """Return the best bound of blocks of levels and its certificate; None without levels."""
    return max(_of_blocks(instance), key=itemgetter(0), default=None)


def _of_blocks(instance: Instance, *, one: bool = False) -> Iterator[tuple[Fraction, Certificate]]:
    """Yield bounds on the data of one collective that must pass blocks of levels, or only ``one`` of each."""
    if instance.also:
        return
    (problem,) = group_problems(instance)
    topology, hierarchy = problem.topology, find_hierarchy(problem)
    networks, everything = Networks(topology, hierarchy), range(len(topology.nodes))
    for level in hierarchy.levels[:-1]:
        blocks = networks.blocks(level)
        if problem.collective is Collective.ALL_REDUCE and problem.n == len(topology.ranks):
            yield partition_bound(instance, blocks)
        for block in blocks[: 1 if one else _BLOCKS]:
            inside = set(block)
            yield cut_bound(instance, block)
            yield cut_bound(instance, [node for node in everything if node not in inside])


def _hierarchy(problem: GroupProblem, options: HierarchicalOptions) -> Hierarchy:
    return find_hierarchy(problem) if options.levels is None else hierarchy_of_sizes(problem, options.levels)


def _keeps_levels(problem: GroupProblem, options: HierarchicalOptions, image: Ints) -> bool:
    """Return whether an image of the ranks adds as much to the coordinates of all of them."""
    hierarchy = _hierarchy(problem, options)
    place = np.argsort(hierarchy.order)
    images = place[image[hierarchy.order]]
    return np.array_equal(images, translate_ranks(hierarchy.sizes, place[hierarchy.order], images[:1]))


def choose(
    problem: GroupProblem,
    solver: Solver,
    budget: Budget,
    options: HierarchicalOptions,
    symmetry: Symmetry | None = None,
) -> Choice:
    """Return the fastest composition of one collective: its own phases, or another one reversed.

    By symmetry, none is reversed, and an all-reduce is a reduce-scatter of all levels followed by an all-gather.
    """
    hierarchy = _hierarchy(problem, options)
    hierarchies = [hierarchy] if options.levels else list(hierarchy.coarser())
    cache, leader = AnswerCache(solver, budget), problem.ranks[0]
    by_parts = symmetry is not None
    levels = [
        Levels(problem.topology, each.with_leader(leader), cache, options.algorithms, by_parts) for each in hierarchies
    ]
    pieces = problem.demand.chunks if options.pieces is None and problem.demand.chunks > 1 else options.pieces
    search = Search(problem, budget, symmetry)
    best = search.best(levels, pieces, balance=options.balance)
    kind = {RS: AG, REDUCE: BROADCAST, AR: AG}.get(problem.collective)  # which a reduction reverses
    if kind is None or symmetry is not None or budget.is_exhausted:
        return best
    demand = replace(problem.demand, collective=kind)
    forwards = replace(problem, instance=problem.instance.with_single_demand(demand), demand=demand)
    try:
        found_forwards = Search(forwards, replace(budget, tell=ignore)).best(levels, pieces, balance=options.balance)
    except Unsupported:  # by an algorithm that is given
        return best
    other = None if budget.is_exhausted else reverse_choice(problem, found_forwards)
    return best if other is None or best.seconds <= other.seconds else other


def _check(options: HierarchicalOptions) -> None:
    """Refuse algorithms that are unknown, or not one for every given level."""
    if options.algorithms is None:
        return
    if options.levels is None or len(options.levels) != len(options.algorithms):
        count = "levels" if options.levels is None else f"{len(options.levels)} algorithms"
        raise InputError(f"expected {count} too", source="-O", place="algorithms")
    for index, name in enumerate(options.algorithms):
        if name not in ALGORITHMS:
            text = f"unknown algorithm {name!r}; expected one of {', '.join(ALGORITHMS)}"
            raise InputError(text, source="-O", place=f"algorithms[{index}]")


def _merge_schedules(instance: Instance, schedules: Sequence[StepSchedule | Schedule]) -> StepSchedule | Schedule:
    """Run the schedules of several collectives at once; the result is timed if one is and they share no link."""
    if all(isinstance(schedule, StepSchedule) for schedule in schedules):
        return merge(instance.sha256, [schedule for schedule in schedules if isinstance(schedule, StepSchedule)])
    links = np.concatenate([np.unique(s.sends.path_links) for s in schedules])
    if len(np.unique(links)) < len(links):  # a link serves who asks first
        nodes = instance.topology.rank_nodes
        in_steps = [
            StepSchedule(s.instance_sha256, s.chunks, s.sends, depths(s, nodes)) if isinstance(s, Schedule) else s
            for s in schedules
        ]
        return merge(instance.sha256, in_steps)
    timed = [s if isinstance(s, Schedule) else timed_first_come(instance.topology, s) for s in schedules]
    no_steps = [StepSchedule(s.instance_sha256, s.chunks, s.sends, np.zeros(len(s.sends), np.int64)) for s in timed]
    whole = merge(instance.sha256, no_steps)
    start, end = (np.concatenate([getattr(s, name) for s in timed]) for name in ("start_s", "end_s"))
    return Schedule(instance.sha256, whole.chunks, whole.sends, start, end)


def reverse_choice(problem: GroupProblem, forwards: Choice) -> Choice | None:
    """Return a reduction as a timed schedule; None without reverse links, or with too many sends to simulate.

    With many sends, reverse links are assumed to be as fast.
    """
    steps = forwards.schedule
    if isinstance(steps, Schedule) or len(steps.sends.path_links) > MOST_HOPS:
        return None
    there = timed_first_come(problem.topology, steps)
    last = float(there.end_s.max())
    try:
        back = reverse(steps, problem.topology)
    except Unsupported:
        return None
    start, end = last - there.end_s, last - there.start_s
    if problem.collective is AR:
        back = concatenate(back, steps)
        start, end = (np.concatenate(pair) for pair in ((start, last + there.start_s), (end, last + there.end_s)))
    schedule = Schedule(problem.instance.sha256, back.chunks, back.sends, np.maximum(start, 0.0), end)
    if len(schedule.sends.path_links) > PLAYED:
        return replace(forwards, schedule=schedule, seconds=Fraction(float(end.max())), backwards=True)
    played, seconds = in_order(problem.topology, schedule)
    return replace(forwards, schedule=played, seconds=seconds, backwards=True)


METHOD = heuristic(
    name="hierarchical",
    summary="collectives of every level of a machine, each by its fastest algorithm, in pieces that follow one another",
    paper="Hidayetoglu et al., HiCCL: A Hierarchical Collective Communication Library, IPDPS 2025: its ideas",
    answer_type=object,
    options=HierarchicalOptions,
    solve=run,
    supports=lambda instance: refuse_unfit(instance, COLLECTIVES),
    metrics={
        "levels": Metric("ranks in a group of every level, the innermost first; of several collectives, of each"),
        "algorithms": Metric("collective, level and algorithm of every phase, of every order"),
        "pieces": Metric("pieces of every block that follow one another"),
        "orders": Metric("orders of the levels that pieces take"),
        "backwards": Metric("whether the schedule is an all-gather or a broadcast backwards in time"),
    },
)
