"""The topology finder: Pareto frontier of a size and degree, and the best network for a job.

Every expansion multiplies the number of nodes or the degree, so sizes are processed in ascending order and every
network is made once. A network dominated in both values and in its traits is dropped on the way.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ...algorithms.breadth_first.broadcast import Broadcast, IncomingLinks, graph_of
from ...core.errors import InputError
from . import candidates, circulants
from .build import links_of

TIES = 3  #: Networks of equal values that are kept.
Cell = tuple[int, int]  #: Where a candidate of a size and degree stands.

#: Values of larger networks, and of nodes with more links, take more memory than a small machine has.
MAX_NODES = 10_000
MAX_DEGREE = 20


class Closure:
    """The best networks of the requested sizes and their divisors, for the frontiers of some degrees.

    With ``circulants``, those of theorem 22 are among the bases.
    """

    def __init__(self, sizes: Iterable[int], degrees: Sequence[int], *, circulants: bool = True) -> None:
        targets = set(sizes)
        self.sizes = [n for n in range(2, max(targets) + 1) if any(size % n == 0 for size in targets)]
        self.degrees = degrees
        self.cells: dict[Cell, list[candidates.Candidate]] = defaultdict(list)
        self._size_set = frozenset(self.sizes)
        self._factors: dict[Cell, dict[bool, candidates.Candidate]] = defaultdict(dict)
        self._factor_cells: list[Cell] = []
        cells = [(nodes, degree) for nodes in self.sizes for degree in range(1, max(degrees) + 1)]
        for nodes, degree in cells:
            for base in candidates.bases(nodes, degree, circulants=circulants, generalized=self._leads(degree)):
                self._offer(base)
        for cell in cells:
            for one in self.cells.get(cell, ()):
                self._expand(one)
            if cell in self._factors:
                self._multiply(cell)

    def frontier(self, nodes: int, degree: int, *, bidirectional: bool = False) -> list[candidates.Candidate]:
        """Return the Pareto frontier of the closure by ascending steps, with ties."""
        allowed = [c for c in self.cells.get((nodes, degree), ()) if c.bidirectional or not bidirectional]
        ordered = sorted(allowed, key=lambda c: (c.steps, c.bandwidth))
        best: list[candidates.Candidate] = []
        for one in ordered:
            if not best or one.bandwidth < best[-1].bandwidth or _is_tied(one, best[-1]):
                best.append(one)
        return best

    def _offer(self, new: candidates.Candidate) -> None:
        """Keep a candidate unless others are as good in every respect."""
        cell = self.cells[new.nodes, new.degree]
        if new in cell:
            return
        ties = 0
        for old in cell:
            if _is_as_good(old, new):
                ties += 1
                if not _is_tied(old, new) or ties == TIES:
                    return
        cell[:] = [old for old in cell if _is_tied(old, new) or not _is_as_good(new, old)]
        cell.append(new)
        if candidates.Traits.FACTOR in new.traits:
            best = self._factors[new.nodes, new.degree]
            for bidirectional in {False, new.bidirectional}:
                if bidirectional not in best or new.steps < best[bidirectional].steps:
                    best[bidirectional] = new

    def _expand(self, one: candidates.Candidate) -> None:
        """Apply every expansion that stays within the sizes and degrees."""
        nodes, degree, most = one.nodes, one.degree, max(self.degrees)
        if degree > 1 and candidates.Traits.REGULAR in one.traits and nodes * degree in self._size_set:
            self._offer(candidates.line_graph(one))
        for n in range(2, most // degree + 1):
            if not self._leads(n * degree):
                continue
            self._offer(candidates.parallel(one, n))
            if candidates.Traits.REGULAR in one.traits and n * nodes in self._size_set:
                self._offer(candidates.degree_expansion(one, n))
            if candidates.Traits.FACTOR not in one.traits and nodes**n in self._size_set:
                self._offer(candidates.power(one, n))
        if candidates.Traits.SYMMETRIC in one.traits and not one.bidirectional and 2 * degree <= most:
            self._offer(candidates.both_directions(one))

    def _leads(self, degree: int) -> bool:
        """Return True if a network that is no factor can still reach a requested degree."""
        return any(target % degree == 0 for target in self.degrees)

    def _multiply(self, cell: Cell) -> None:
        """Multiply the best factors of a cell by those of all earlier cells and of itself."""
        self._factor_cells.append(cell)
        nodes, degree = cell
        largest, most = self.sizes[-1], max(self.degrees)
        for other in self._factor_cells:
            if other[0] * nodes > largest:
                break
            if other[0] * nodes not in self._size_set or other[1] + degree > most:
                continue
            best = self._factors.get((other[0] * nodes, other[1] + degree), {})
            for bidirectional, one in self._factors[cell].items():
                two = self._factors[other].get(bidirectional)
                if two and (bidirectional not in best or one.steps + two.steps <= best[bidirectional].steps):
                    self._offer(candidates.product(one, two))


def _is_tied(one: candidates.Candidate, other: candidates.Candidate) -> bool:
    return one.steps == other.steps and one.bandwidth == other.bandwidth


def _is_as_good(one: candidates.Candidate, other: candidates.Candidate) -> bool:
    return one.steps <= other.steps and one.bandwidth <= other.bandwidth and not other.traits & ~one.traits


@dataclass(frozen=True)
class Job:
    """Requirements of a network."""

    nodes: int
    degree: int  #: Ports of a node in each direction, d; all links are equal.
    alpha_s: Fraction
    size_bytes: Fraction  #: Size M of a collective; the average of several sizes, since times are linear in M.
    bandwidth_Bps: Fraction  #: Bandwidth B of all ports of a node together.
    bidirectional: bool = False
    spare_ports: bool = False  #: True if ports may be idle: choices include networks of smaller degree.
    #: True if circulants of theorem 22 are among the bases; False reproduces the tables of the paper.
    circulants: bool = True
    searched: bool = False  #: True to search for offsets of further circulants, two-way and directed.
    all_to_all_share: Fraction = Fraction(0)  #: Share of all-to-alls among the collectives; the others are all-reduces.

    def __post_init__(self) -> None:
        if self.nodes < 2 or self.degree < 1:
            raise InputError(f"{self.nodes} nodes of degree {self.degree}; expected at least 2 nodes and degree 1")
        if self.nodes < self.degree + 1:
            limits = f"expected at least {self.degree + 1}"
            raise InputError(f"{self.nodes} nodes are too few for degree {self.degree}; {limits}", place="--nodes")
        if self.nodes > MAX_NODES or self.degree > MAX_DEGREE:
            limits = f"expected at most {MAX_NODES:,} and {MAX_DEGREE}"
            raise InputError(f"{self.nodes:,} nodes of degree {self.degree}; {limits}", place="--nodes")

    @property
    def ratio_s(self) -> Fraction:
        """M/B: seconds of the whole size at the bandwidth of a node."""
        return self.size_bytes / self.bandwidth_Bps


@dataclass(frozen=True)
class Choice:
    """A network of the frontier."""

    #: The network and its all-gather; T_B is in units of M over the bandwidth of its own links out of a node.
    candidate: candidates.Candidate
    back: candidates.Candidate  #: The same, with the all-gather on its transpose that a reduce-scatter reverses.
    steps: int  #: T_L in units of alpha.
    bandwidth: Fraction  #: T_B in units of M/B, where B is the bandwidth of all ports, including idle ones.
    #: ``reduce_steps`` and ``reduce_bandwidth``: the same of the reduce-scatter, a reversed all-gather of the
    #: transpose.
    reduce_steps: int
    reduce_bandwidth: Fraction
    diameter: int
    distance_sum: int
    all_reduce_s: Fraction  #: Time of an all-reduce: reduce-scatter, then all-gather.
    also: tuple[candidates.Candidate, ...] = ()

    @property
    def all_to_all_limit(self) -> Fraction:
        """Upper bound on the rate of every pair in an all-to-all: the number of links over the sum of distances."""
        return Fraction(self.candidate.nodes * self.candidate.degree, self.distance_sum)


def find(job: Job) -> list[Choice]:
    """Return the Pareto frontier over T_L and T_B of the networks that the expansions make from the bases.

    It is sorted by ascending T_L, and includes searched circulants if the job requests them. Of networks with equal
    values, the one with the faster all-reduce comes first, then the one with shorter distances
    (docs/methods/topology-finder.md).
    """
    degrees = range(1, job.degree + 1) if job.spare_ports else (job.degree,)
    closure = Closure([job.nodes], list(degrees), circulants=job.circulants)
    points: dict[tuple[int, Fraction], list[Choice]] = {}
    for degree in degrees:
        frontier = closure.frontier(job.nodes, degree, bidirectional=job.bidirectional)
        for one in (*frontier, *(search_circulants(job, degree, frontier) if job.searched else ())):
            for choice in value_candidate(one, job):
                points.setdefault((choice.steps, choice.bandwidth), []).append(choice)
    best: list[Choice] = []
    for (_, bandwidth), tied in sorted(points.items()):
        if not best or bandwidth < best[-1].bandwidth:
            choices = sorted(tied, key=lambda c: (c.all_reduce_s, c.distance_sum, expansions(c.candidate)))
            best.append(replace(choices[0], also=tuple(choice.candidate for choice in choices[1:])))
    if not best:
        raise InputError(_nothing(job), place="--nodes")
    return best


def search_circulants(job: Job, degree: int, front: Sequence[candidates.Candidate]) -> Iterator[candidates.Candidate]:
    """Search for circulants of a degree, unless a known network is optimal in both values.

    Formulas give the best two-way ones of degrees 1, 2 and 4.
    """
    steps, bandwidth = len(nearest(job.nodes, degree)), Fraction(job.nodes - 1, job.nodes)
    best = any(one.steps == steps and one.bandwidth == bandwidth for one in front)
    for two_way in (True, False):
        if best or degree == 1 or (degree in (2, 4) if two_way else job.bidirectional):
            continue
        trials = circulants.TRIALS // (job.degree if job.spare_ports else 1)
        for one in circulants.search(job.nodes, degree, two_way=two_way, trials=trials):
            yield candidates.circulant(one.expression, one.nodes, degree, one.steps, one.bandwidth, two_way=two_way)
            best = best or (one.steps == steps and one.bandwidth == bandwidth)


def fastest(choices: Sequence[Choice], seconds: Sequence[Fraction] | None = None) -> Choice:
    """Return the fastest choice, by default for an all-reduce; of ties the one with fewer steps."""
    times = [choice.all_reduce_s for choice in choices] if seconds is None else seconds
    return min(zip(choices, times, strict=True), key=lambda pair: (pair[1], pair[0].steps))[0]


def average_s(job: Job, choice: Choice, rate: float | None) -> Fraction:
    """Return the average time of the job's collectives; if ``rate`` is None, with the upper bound of all-to-alls."""
    share = job.all_to_all_share
    part_s = job.size_bytes / job.nodes / (job.bandwidth_Bps / job.degree)
    all_to_all_s = part_s / (choice.all_to_all_limit if rate is None else Fraction(rate))
    return (1 - share) * choice.all_reduce_s + share * all_to_all_s


def lower_bound(job: Job) -> tuple[int, Fraction]:
    """Return Moore and bandwidth optimality: T_L*(N, d) (definition 10) and (N - 1)/N (theorem 4)."""
    return len(nearest(job.nodes, job.degree)), Fraction(job.nodes - 1, job.nodes)


def nearest(nodes: int, degree: int, *, bidirectional: bool = False) -> list[int]:
    """Return the largest possible numbers of nodes at distance 1, 2, ... (the Moore bound).

    If ``bidirectional``, one of the links out of a node leads back to the sender; the degree is then at least 2 for
    more than two nodes.
    """
    rings, rest, most = [], nodes - 1, degree
    while rest > 0:
        rings.append(min(most, rest))
        rest -= rings[-1]
        most *= degree - bidirectional
    return rings


def value_candidate(one: candidates.Candidate, job: Job) -> list[Choice]:
    """Return the choices that a network offers for a job.

    The first has the fewest steps; a second one the least bandwidth time, if that is another all-gather.
    """
    idle = Fraction(job.degree, one.degree)
    links = links_of(one)
    graph = graph_of(range(one.nodes), links)
    home = (
        []
        if candidates.Traits.SYMMETRIC in one.traits
        else _all_gathers(candidates.transpose_candidate(one), graph_of(range(one.nodes), links[:, ::-1]))
    )

    def seconds(steps: int, bandwidth: Fraction) -> Fraction:
        return steps * job.alpha_s + bandwidth * idle * job.ratio_s

    def choice(onward: candidates.Candidate) -> Choice:
        back = min(home, key=lambda gather: seconds(gather.steps, gather.bandwidth), default=onward)
        return Choice(
            onward,
            back,
            onward.steps,
            onward.bandwidth * idle,
            back.steps,
            back.bandwidth * idle,
            graph.steps,
            graph.distance_sum,
            seconds(onward.steps + back.steps, onward.bandwidth + back.bandwidth),
        )

    return [choice(onward) for onward in _all_gathers(one, graph)]


def _all_gathers(one: candidates.Candidate, graph: IncomingLinks) -> list[candidates.Candidate]:
    """Return a network's non-dominated all-gathers, expanded and breadth-first, by ascending steps.

    Formulas are of the expanded one; the other may be better (docs/methods/topology-finder.md, "Expansions").
    """
    own = Broadcast(graph)
    if one.steps == graph.steps and one.bandwidth == Fraction(one.nodes - 1, one.nodes):
        return [one]  # nothing is better
    own_bandwidth = own.bandwidth(one.degree)
    if one.steps == own.steps and one.bandwidth <= own_bandwidth:
        return [one]
    breadth_first = replace(one, steps=own.steps, bandwidth=own_bandwidth, breadth_first=True)
    return [breadth_first] if own_bandwidth <= one.bandwidth else [breadth_first, one]


def expansions(one: candidates.Candidate) -> int:
    """Return the number of expansions that made a network."""
    return (one.form is not candidates.Construction.BASE) * one.count + sum(map(expansions, one.of))


def _nothing(job: Job) -> str:
    """Return the reason why no network was found, and possible remedies."""
    kind = "bidirectional network" if job.bidirectional else "network"
    if job.bidirectional and job.nodes % 2 and job.degree % 2:
        reason = "an odd number of nodes of odd degree cannot be paired"
    else:
        reason = "no expansion of the base networks has this size"
    remedy = "another size" if job.spare_ports else "another size, or --spare-ports"
    return f"no {kind} of {job.nodes} nodes and degree {job.degree} is known: {reason}; expected {remedy}"
