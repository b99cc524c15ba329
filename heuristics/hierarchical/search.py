"""Search over levels, algorithms, pieces and orders by simulation (docs/methods/hierarchical.md, "Algorithm")."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import permutations

import numpy as np

from ...algorithms.graphs.translations import Symmetry
from ...algorithms.schedules.compose import merge
from ...algorithms.schedules.problem import GroupProblem
from ...algorithms.schedules.replay import first_come
from ...core.answers import is_same
from ...core.budget import Budget, Incumbent, ignore, why_unschedulable
from ...core.collective import Collective, Demand
from ...core.errors import InputError, Unsupported
from ...core.instance import Instance
from ...core.method import Method
from ...core.schedule import Floats, Ints, Schedule, StepSchedule
from ...core.solver import Solver
from ...core.step_orbits import StepOrbits, expand_steps
from ...core.topology import Topology
from ...core.trees import TreePacking
from ...models.bfb.method import BFB
from ...models.forestcoll.method import FORESTCOLL
from ..textbook.algorithm import positions_of
from ..textbook.exchanges import BINE, BRUCK, DIRECT, RHD
from ..textbook.rings import RING, SHIFTED_RING
from ..textbook.trees import DBT, KNOMIAL
from .levels import Hierarchy, Networks
from .phase_composition import PhaseAnswers, Shares, Site, compose_phases, shares_of, site
from .phases import AG, AR, RS, Phase, block_share, blocks_of, phases

#: Methods that may run on a level, with the options that they are asked with.
ALGORITHMS: Mapping[str, tuple[Method, Mapping[str, object]]] = {
    **{method.name: (method, {}) for method in (DIRECT, RING, RHD, BRUCK, BINE, DBT, KNOMIAL, SHIFTED_RING, BFB)},
    "forestcoll": (FORESTCOLL, {"k": "smallest", "symmetry": "written"}),
}

#: In larger groups only what needs no search of its own is tried; a part may be cut into so many slices.
_LARGE, _MOST_SLICES = 64, 64
#: Algorithms that are tried in groups of more ranks if only some parts are needed: they list only the sends of these.
_HUGE, _BY_PARTS = 1_024, ("direct", "ring", "bine")


@dataclass
class AnswerCache:
    """Cache of answers for networks of groups, by algorithm, digest and the parts that are read."""

    solver: Solver
    budget: Budget
    answers: dict[tuple[str, str, bytes], Shares | str] = field(default_factory=dict)

    def shares(self, name: str, instance: Instance, parts: Ints | None = None) -> Shares | str:
        """Return the answer of an algorithm, the same object for equal service; the reason if it has none."""
        request = instance.sha256, b"" if parts is None else parts.tobytes()
        if (key := (name, *request)) not in self.answers:
            try:
                result: Shares | str = self._run(name, instance, parts)
            except (InputError, Unsupported) as error:
                result = str(error)
            others = (answer for (_, *rest), answer in self.answers.items() if tuple(rest) == request)
            service = getattr(result, "service", None)
            alike = (other for other in others if isinstance(other, Shares) and is_same(other.service, service))
            self.answers[key] = next(alike, result)
        return self.answers[key]

    def _run(self, name: str, instance: Instance, parts: Ints | None) -> Shares:
        method, values = ALGORITHMS[name]
        by_parts, searches = parts is None or name in _BY_PARTS, name in ("bfb", "forestcoll")
        most = _LARGE if searches else instance.npus if by_parts else _HUGE
        refusal = f"expected at most {most} ranks" if instance.npus > most else method.supports(instance)
        if refusal is not None:
            raise Unsupported(str(refusal))
        options = method.options(**values)
        quiet = replace(self.budget, tell=ignore)
        answer = method.run(method.pose(instance, options), self.solver, quiet, options).answer
        shares = None
        if isinstance(answer, StepOrbits) and parts is not None:
            shares = shares_of(instance, answer.base, parts)
        if isinstance(answer, StepOrbits) and shares is None:
            if why := why_unschedulable(answer.sends, answer.motions * len(answer.base.sends.path_links)):
                raise Unsupported(why)
            answer = expand_steps(answer, instance.topology)
        if isinstance(answer, StepSchedule | TreePacking):
            shares = shares_of(instance, answer, parts)
        if shares is None or int(np.bincount(shares.part).max()) > max(_MOST_SLICES, instance.npus):
            raise Unsupported("no schedule of all data in few slices was found")
        # In steps, a switch would have to hold data that it copies or adds, without a buffer.
        nodes = [instance.topology.nodes[node] for node in np.unique(shares.sends.source).tolist()]
        if any(node.buffer_bytes is not None for node in nodes):
            raise Unsupported("its switches copy or add data that they cannot hold")
        return shares


@dataclass(eq=False)
class Levels:
    """Groups of the levels of a hierarchy, with answers of algorithms.

    ``names`` are the algorithms of every level, if they are given.
    """

    topology: Topology
    hierarchy: Hierarchy
    cache: AnswerCache
    names: Sequence[str] | None = None
    by_parts: bool = False  #: True if only the parts of some ranks are needed.
    _sites: dict[tuple[Collective, int, bytes], tuple[Ints, list[Site]]] = field(default_factory=dict)

    @cached_property
    def networks(self) -> Networks:
        """Links that groups may use."""
        return Networks(self.topology, self.hierarchy)

    def fillings(self, phase: Phase) -> list[tuple[str, PhaseAnswers]]:
        """Return the algorithms for a phase, with their answers. There must be one."""
        names = list(ALGORITHMS) if self.names is None else [self.names[phase.level]]
        bases, sites = self._groups(phase)
        parts = np.unique(phase.part) if self.by_parts else None
        result: list[tuple[str, PhaseAnswers]] = []
        reasons: list[str] = []
        for name in names:
            if result and self.cache.budget.is_exhausted:
                break
            answers = [self.cache.shares(name, each.instance, parts) for each in sites]
            shares = [answer for answer in answers if isinstance(answer, Shares)]
            if len(shares) == len(sites):
                result.append((name, PhaseAnswers(phase, bases, sites, shares)))
            reasons += [f"{name}: {answer}" for answer in answers if isinstance(answer, str)][:1]
        if not result:
            size = self.hierarchy.sizes[phase.level]
            raise Unsupported(f"no {phase.kind.name} for groups of {size} ranks here ({'; '.join(reasons)})")
        return result

    def _groups(self, phase: Phase) -> tuple[Ints, list[Site]]:
        """First positions of a phase's groups, and their networks."""
        bases = np.unique(phase.base)
        key = phase.kind, phase.level, bases.tobytes()
        if key not in self._sites:
            size = self.hierarchy.sizes[phase.level]
            demand = Demand(phase.kind, Fraction(size), ranks=tuple(range(size)))
            ranks = (self.hierarchy.group(int(base), phase.level) for base in bases)
            groups = ([self.topology.rank_nodes[rank] for rank in some] for some in ranks)
            sites = [site(self.topology, some, self.networks.links(some, phase.level), demand) for some in groups]
            self._sites[key] = bases, sites
        return self._sites[key]


#: Links that sends take in one schedule that is played, and in all; pieces that are tried.
PLAYED, _WORK, _PIECES = 400_000, 10_000_000, (1, 4, 16, 32, 64)
MOST_HOPS = 10_000_000  #: Links that sends take in the one schedule of a search that is played although it is large.
_HIERARCHIES, _FIRST = 2, 4  #: Hierarchies that more than a first number of pieces is tried with, and that number.
_NEAR = Fraction(5, 4)  #: How much slower alone algorithms may be that are tried together with the other phases.


@dataclass(frozen=True, eq=False)
class Part:
    """A composition of a share of the collective.

    ``filled`` has the phases, each with the name of its algorithm; ``seconds`` is the completion time, simulated link
    by link; if that is too large, time of the busiest link and latency of all steps.
    """

    filled: tuple[tuple[str, PhaseAnswers], ...]
    schedule: StepSchedule
    seconds: Fraction

    @property
    def algorithms(self) -> tuple[str, ...]:
        """Collective, level and algorithm of every phase."""
        return tuple(f"{f.phase.kind.name} {f.phase.level + 1}: {name}" for name, f in self.filled)


@dataclass(frozen=True, eq=False)
class Choice:
    """A schedule and the choices behind it.

    ``parts`` are shares with different orders of the levels. If it is another collective reversed (``backwards``), the
    schedule is timed.
    """

    hierarchy: Hierarchy
    parts: tuple[Part, ...]
    pieces: int
    schedule: StepSchedule | Schedule
    seconds: Fraction
    backwards: bool = False


def to_step_orbits(steps: StepSchedule | Schedule, symmetry: Symmetry | None) -> StepSchedule | Schedule | StepOrbits:
    """Return the schedule of all data: by symmetry, a schedule in steps is of one rank's data in every orbit."""
    if symmetry is None or isinstance(steps, Schedule):
        return steps
    return StepOrbits(steps, symmetry.translations)


@dataclass
class Search:
    """The search for one collective. Every better choice is reported to the budget.

    With a symmetry, schedules are those of the data of one rank of every orbit, which its motions move to all others.
    Each link then stands for its orbit: it serves what is sent over any of them.
    """

    problem: GroupProblem
    budget: Budget
    symmetry: Symmetry | None = None
    work: int = 0

    @property
    def over(self) -> bool:
        """True if no more is to be tried."""
        return self.budget.is_exhausted or self.work > _WORK

    @cached_property
    def _topology(self) -> Topology:
        """Network with one link of every orbit, in their order."""
        topology = self.problem.topology
        if self.symmetry is None:
            return topology
        first = np.unique(self.symmetry.orbit, return_index=True)[1].tolist()
        return Topology(topology.nodes, tuple(topology.links[link] for link in first))

    def _on_orbits(self, schedule: StepSchedule) -> StepSchedule:
        if self.symmetry is None:
            return schedule
        return replace(
            schedule, sends=replace(schedule.sends, path_links=self.symmetry.orbit[schedule.sends.path_links])
        )

    @cached_property
    def _rate(self) -> Floats:
        return np.array([float(link.bandwidth_Bps) for link in self._topology.links])

    def seconds(
        self, schedule: StepSchedule, times: Fraction = Fraction(1), limit_s: Fraction | None = None
    ) -> Fraction:
        """Return the completion time of a schedule that stands for one ``times`` as large, see :class:`Part`.

        If it is beyond the limit, return some time beyond it.
        """
        hops = int(len(schedule.sends.path_links) * times)
        self.work += hops
        if hops <= PLAYED:
            return first_come(self._topology, self._on_orbits(schedule), limit_s)
        latency_s = int(schedule.sends.hops.max()) * max(float(link.latency_s) for link in self._topology.links)
        return Fraction(float(self.loads_s(schedule).max()) + schedule.steps * latency_s)

    def loads_s(self, schedule: StepSchedule) -> Floats:
        """Return the busy time of every link."""
        sends = self._on_orbits(schedule).sends
        size = schedule.chunks.sizes_bytes[sends.chunk][sends.hop_send]
        return np.bincount(sends.path_links, size, len(self._rate)) / self._rate

    def best(self, levels: Sequence[Levels], pieces: int | None, *, balance: bool | None) -> Choice:
        """Return the fastest choice found within limits of time and work.

        ``pieces=None`` tries more and more as long as they help; ``balance``, whether these use several orders of the
        levels, tries both if None.
        """
        choices: list[Choice] = []
        for each in self._promising(levels, _FIRST if pieces is None else pieces):
            for choice in self._choices(each, pieces, balance):
                if not choices or choice.seconds < min(one.seconds for one in choices):
                    self.budget.tell(
                        Incumbent(float(choice.seconds), answer=partial(to_step_orbits, choice.schedule, self.symmetry))
                    )
                choices.append(choice)
                if self.over:
                    break
        eligible = [choice for choice in choices if not balance or len(choice.parts) > 1] or choices
        best = min(eligible, key=lambda choice: choice.seconds)
        assert isinstance(best.schedule, StepSchedule)  # noqa: S101 (none is backwards yet)
        if PLAYED < len(best.schedule.sends.path_links) <= MOST_HOPS:
            best = replace(best, seconds=first_come(self._topology, self._on_orbits(best.schedule)))
        return best

    def _promising(self, levels: Sequence[Levels], pieces: int) -> list[Levels]:
        """Return the fastest hierarchies with so many pieces, in order."""
        if len(levels) <= _HIERARCHIES:
            return list(levels)
        times: list[tuple[Fraction, int]] = []
        for index, each in enumerate(levels):
            if not (times and self.over):
                times.append((self.part(each, each.hierarchy.levels, Fraction(1), pieces).seconds, index))
        return [levels[index] for _, index in sorted(times)[:_HIERARCHIES]]

    def _choices(self, levels: Levels, pieces: int | None, balance: bool | None) -> Iterator[Choice]:
        """Choices with more and more pieces, until that does not help; then as many, or four, in several orders."""
        several = len(levels.hierarchy.sizes) > 1 and self.problem.collective in (AG, RS, AR)
        best: Choice | None = None
        for count in _PIECES if pieces is None else (pieces,):
            choice = self.plain(levels, count)
            yield choice
            worse = best is not None and choice.seconds >= best.seconds
            best = best if worse else choice
            if worse or 2 * len(choice.schedule.sends.path_links) > PLAYED:
                break
        if several and balance is not False and best is not None and (best.pieces > 1 or pieces is None):
            yield self.balance_orders(levels, max(best.pieces, _PIECES[1]) if pieces is None else pieces)

    def plain(self, levels: Levels, pieces: int) -> Choice:
        """Return the choice in which all pieces go through the levels from the inside out and back."""
        part = self.part(levels, levels.hierarchy.levels, Fraction(1), pieces)
        return Choice(levels.hierarchy, (part,), pieces, part.schedule, part.seconds)

    def balance_orders(self, levels: Levels, pieces: int) -> Choice:
        """Piece after piece takes the order of levels that leaves the busiest link the least busy, as in Themis."""
        orders = list(_orders(levels.hierarchy))
        loads = [self.loads_s(self.part(levels, order, Fraction(1, pieces), 1).schedule) for order in orders]
        total, count = np.zeros_like(loads[0]), [0] * len(orders)
        for _ in range(pieces):
            best = min(range(len(orders)), key=lambda o: float((total + loads[o]).max()))
            total, count[best] = total + loads[best], count[best] + 1
        pairs = [(order, number) for order, number in zip(orders, count, strict=True) if number]
        parts = tuple(self.part(levels, order, Fraction(number, pieces), number) for order, number in pairs)
        whole = merge(self.problem.instance.sha256, [part.schedule for part in parts])
        by_step = np.argsort(whole.step, kind="stable")
        schedule = replace(whole, sends=whole.sends.take(by_step), step=whole.step[by_step])
        return Choice(levels.hierarchy, parts, pieces, schedule, self.seconds(schedule))

    def part(self, levels: Levels, order: Sequence[int], share: Fraction, pieces: int) -> Part:
        """Compose a share of the collective with a given order of the levels."""
        hierarchy, kind, roots = levels.hierarchy, self.problem.collective, None
        if self.symmetry is not None:
            roots = np.flatnonzero(np.isin(hierarchy.order, positions_of(self.problem, self.symmetry)))
        block_bytes = self.problem.demand.size_bytes * share / block_share(kind, hierarchy, order, roots)
        blocks = blocks_of(kind, hierarchy, order, roots)

        def make_part(filled: Sequence[tuple[str, PhaseAnswers]], limit_s: Fraction | None = None) -> Part:
            answers = [each for _, each in filled]
            schedule = compose_phases(self.problem, kind, hierarchy, blocks, block_bytes, answers, pieces)
            return Part(tuple(filled), schedule, self.seconds(schedule, limit_s=limit_s))

        parts = phases(kind, hierarchy, order, roots)
        ranked = [self._rank_algorithms(levels, phase, block_bytes, pieces) for phase in parts]
        best = make_part([some[0] for some in ranked])
        if len(best.schedule.sends.path_links) > PLAYED:
            return best
        identities = {_identity(best.filled)}
        for change in _changes(ranked):
            filled = [change.get(place, each) for place, each in enumerate(best.filled)]
            if self.over or (key := _identity(filled)) in identities:
                continue
            identities.add(key)
            best = min(best, make_part(filled, best.seconds), key=lambda part: part.seconds)
        return best

    def _rank_algorithms(
        self, levels: Levels, phase: Phase, block_bytes: Fraction, pieces: int
    ) -> list[tuple[str, PhaseAnswers]]:
        """Return the algorithms for a phase that are about as fast as any alone, fastest first."""
        fillings = levels.fillings(phase)
        if len(fillings) == 1:
            return fillings
        groups = _distinct_groups(fillings[0][1])
        times = Fraction(len(fillings[0][1].bases), len(groups))
        keys = [_identity([each]) for each in fillings]
        alone = {
            key: self._alone(levels.hierarchy, filled, groups, block_bytes, pieces)
            for key, (_, filled) in dict(zip(keys, fillings, strict=True)).items()
        }
        least = {key: float(self.loads_s(schedule).max()) for key, schedule in alone.items()}
        seconds_of = dict[tuple[int, ...], Fraction]()
        for key in sorted(least, key=least.__getitem__):
            most = _NEAR * min(seconds_of.values()) if seconds_of else None
            if most is None or (least[key] <= most and not self.budget.is_exhausted):
                seconds_of[key] = self.seconds(alone[key], times, most)
        ranked = sorted((seconds_of[key], index) for index, key in enumerate(keys) if key in seconds_of)
        return [fillings[index] for seconds, index in ranked if seconds <= _NEAR * ranked[0][0]]

    def _alone(
        self, hierarchy: Hierarchy, filled: PhaseAnswers, groups: Ints, block_bytes: Fraction, pieces: int
    ) -> StepSchedule:
        """Return a phase alone in some of its groups: every part as one block."""
        phase = filled.phase
        (base, part), count = np.unique(np.stack([phase.base, phase.part]), axis=1, return_counts=True)
        some = np.isin(base, filled.bases[groups])
        base, part = base[some], part[some]
        whole = np.arange(len(base))
        alone = PhaseAnswers(
            Phase(phase.kind, phase.level, whole, base, part, np.zeros_like(whole)),
            filled.bases[groups],
            [filled.sites[group] for group in groups.tolist()],
            [filled.shares[group] for group in groups.tolist()],
        )
        return compose_phases(self.problem, AR, hierarchy, whole, block_bytes * int(count.max()), [alone], pieces)


def _identity(filled: Sequence[tuple[str, PhaseAnswers]]) -> tuple[int, ...]:
    """Return a key that is equal for phases with equal answers, whatever the algorithm."""
    return tuple(id(shares) for _, answers in filled for shares in answers.shares)


def _distinct_groups(filled: PhaseAnswers) -> Ints:
    """Return one group of each kind on equal networks; all groups if some share a link."""
    links = np.concatenate([site.links for site in filled.sites])
    if len(np.unique(links)) < len(links):
        return np.arange(len(filled.bases))
    pairs = np.unique(np.stack([filled.phase.base, filled.phase.part]), axis=1)
    parts = np.split(pairs[1], np.searchsorted(pairs[0], filled.bases)[1:])
    groups = enumerate(zip(filled.sites, parts, strict=True))
    group_of = {(site.instance.sha256, mine.tobytes()): number for number, (site, mine) in groups}
    return np.array(sorted(group_of.values()), dtype=np.int64)


def _changes(ranked: Sequence[Sequence[tuple[str, PhaseAnswers]]]) -> Iterator[dict[int, tuple[str, PhaseAnswers]]]:
    """Algorithms to try in their phases: one in all phases of a level, then each in each phase."""
    together: dict[tuple[int, str], dict[int, tuple[str, PhaseAnswers]]] = {}
    for place, some in enumerate(ranked):
        for name, filled in some:
            together.setdefault((filled.phase.level, name), {})[place] = (name, filled)
    yield from (change for change in together.values() if len(change) > 1)
    for place, some in enumerate(ranked):
        yield from ({place: each} for each in some[1:])


def _orders(hierarchy: Hierarchy) -> Iterator[tuple[int, ...]]:
    """Yield orders of the levels: all of up to three, else those that begin with each in turn."""
    levels = tuple(hierarchy.levels)
    if len(levels) <= 3:
        yield from permutations(levels)
    else:
        yield from (levels[d:] + levels[:d] for d in levels)
