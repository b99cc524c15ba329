"""The topology finder: the Pareto frontier of a size and degree, what its networks take, and the best of them for a job."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from ...core.errors import InputError
from ..common.breadth_first.broadcast import Broadcast
from ..common.breadth_first.graph import Graph, graph_of
from .bases import transposed
from .build import Generate, links_of
from .candidate import Candidate, Made, Traits
from .search import Closure


@dataclass(frozen=True)
class Job:
    """What a network is wanted for.

    Parameters
    ----------
    nodes : int
        Number of nodes, N.
    degree : int
        Ports of a node in each direction, d; all links are alike.
    alpha_s : Fraction
        Latency of a step.
    size_bytes : Fraction
        Size M of an all-reduce.
    bandwidth_Bps : Fraction
        Bandwidth B of all ports of a node together.
    bidirectional : bool
        Whether every link must have one back.
    spare_ports : bool
        Whether ports may be left idle: networks of smaller degree are among the choices.
    circulants : bool
        Whether circulants of theorem 22 are among the bases; without them the tables of the paper are reproduced.
    """

    nodes: int
    degree: int
    alpha_s: Fraction
    size_bytes: Fraction
    bandwidth_Bps: Fraction
    bidirectional: bool = False
    spare_ports: bool = False
    circulants: bool = True

    def __post_init__(self) -> None:
        if self.nodes < 2 or self.degree < 1:
            raise InputError(f"{self.nodes} nodes of degree {self.degree}; expected at least 2 nodes and degree 1")
        if self.nodes < self.degree + 1:
            wanted = f"expected at least {self.degree + 1}"
            raise InputError(f"{self.nodes} nodes are too few for degree {self.degree}; {wanted}", place="--nodes")
        if self.nodes > MAX_NODES or self.degree > MAX_DEGREE:
            wanted = f"expected at most {MAX_NODES:,} and {MAX_DEGREE}"
            raise InputError(f"{self.nodes:,} nodes of degree {self.degree}; {wanted}", place="--nodes")

    @property
    def ratio_s(self) -> Fraction:
        """M/B: what the whole size takes at the bandwidth of a node."""
        return self.size_bytes / self.bandwidth_Bps


#: Values of larger networks, and of nodes with more links, take more memory than a small machine has.
MAX_NODES = 10_000
MAX_DEGREE = 20


@dataclass(frozen=True)
class Choice:
    """A network of the frontier.

    Parameters
    ----------
    candidate : Candidate
        The network and its all-gather; T_B is in units of M over the bandwidth of its own links out of a node.
    back : Candidate
        The same network, with the all-gather on its transpose that a reduce-scatter runs backwards.
    steps : int
        T_L in units of alpha.
    bandwidth : Fraction
        T_B in units of M/B, where B is the bandwidth of all ports, also idle ones.
    reduce_steps, reduce_bandwidth : int, Fraction
        The same of the reduce-scatter, an all-gather of the transpose backwards.
    diameter : int
        Largest distance of two nodes, in links.
    distance_sum : int
        Sum of the distances of all pairs.
    all_reduce_s : Fraction
        Time of an all-reduce: reduce-scatter, then all-gather.
    also : tuple of Candidate
        Other networks with the same T_L and T_B.
    """

    candidate: Candidate
    back: Candidate
    steps: int
    bandwidth: Fraction
    reduce_steps: int
    reduce_bandwidth: Fraction
    diameter: int
    distance_sum: int
    all_reduce_s: Fraction
    also: tuple[Candidate, ...] = ()

    @property
    def all_to_all_limit(self) -> Fraction:
        """Upper bound on the rate of every pair in an all-to-all, in units of a link: links over all distances."""
        return Fraction(self.candidate.nodes * self.candidate.degree, self.distance_sum)


def find(job: Job, generate: Generate) -> list[Choice]:
    """Give the Pareto frontier over T_L and T_B of the networks that the expansions make of the bases, by ascending T_L.

    Networks of other kinds may be better. The search compares the values that formulas give; what is on their frontier is built, and
    counts with the better of its expanded all-gather and its own breadth-first one, or with both.

    Of networks with the same values, the one whose all-reduce is faster comes first, then the one whose nodes are nearer
    to each other.

    Raises
    ------
    InputError
        If no network of the size and degree is known.
    """
    degrees = range(1, job.degree + 1) if job.spare_ports else (job.degree,)
    closure = Closure([job.nodes], list(degrees), circulants=job.circulants)
    points: dict[tuple[int, Fraction], list[Choice]] = {}
    for degree in degrees:
        for one in closure.frontier(job.nodes, degree, bidirectional=job.bidirectional):
            for choice in valued(one, job, generate):
                points.setdefault((choice.steps, choice.bandwidth), []).append(choice)
    best: list[Choice] = []
    for (_, bandwidth), tied in sorted(points.items()):
        if not best or bandwidth < best[-1].bandwidth:
            choices = sorted(tied, key=_preference)
            best.append(replace(choices[0], also=tuple(choice.candidate for choice in choices[1:])))
    if not best:
        raise InputError(_nothing(job), place="--nodes")
    return best


def fastest(choices: list[Choice]) -> Choice:
    """Give the choice whose all-reduce takes least time; of equals the one with fewer steps."""
    return min(choices, key=lambda choice: (choice.all_reduce_s, choice.steps))


def lower_bound(job: Job) -> tuple[int, Fraction]:
    """Moore and bandwidth optimality: T_L*(N, d) (definition 10) and (N - 1)/N (theorem 4)."""
    return len(nearest(job.nodes, job.degree)), Fraction(job.nodes - 1, job.nodes)


def nearest(nodes: int, degree: int, *, bidirectional: bool = False) -> list[int]:
    """Give how many nodes are 1, 2, ... links away, where as many are near as can be (the Moore bound).

    Parameters
    ----------
    nodes, degree : int
        N and d; d is at least 2 where links are two-way and there are more than two nodes.
    bidirectional : bool
        Whether one of the links out of a node leads back to where its data has come from.
    """
    rings, left, most = [], nodes - 1, degree
    while left > 0:
        rings.append(min(most, left))
        left -= rings[-1]
        most *= degree - bidirectional
    return rings


def valued(one: Candidate, job: Job, generate: Generate) -> list[Choice]:
    """Give what a network takes for a job: with fewest steps, and with least bandwidth time where that is another all-gather."""
    idle = Fraction(job.degree, one.degree)
    links = links_of(one, generate)
    graph = graph_of(range(one.nodes), links)
    home = (
        []
        if Traits.SYMMETRIC in one.traits
        else _all_gathers(transposed(one), graph_of(range(one.nodes), links[:, ::-1]))
    )

    def seconds(steps: int, bandwidth: Fraction) -> Fraction:
        return steps * job.alpha_s + bandwidth * idle * job.ratio_s

    def choice(onward: Candidate) -> Choice:
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


def _all_gathers(one: Candidate, graph: Graph) -> list[Candidate]:
    """Give a network's expanded all-gather and its own breadth-first one, by ascending steps, unless one beats the other.

    The formulas are those of the expanded all-gather. On a line graph it brings a node's own shard back to it, and after a degree
    expansion the other copies' shards come last: a breadth-first one on the network itself does neither.
    """
    own = Broadcast(graph)
    if one.steps == graph.steps and one.bandwidth == Fraction(one.nodes - 1, one.nodes):
        return [one]  # nothing is better
    own_bandwidth = own.bandwidth(one.degree)
    if one.steps == own.steps and one.bandwidth <= own_bandwidth:
        return [one]
    breadth_first = replace(one, steps=own.steps, bandwidth=own_bandwidth, breadth_first=True)
    return [breadth_first] if own_bandwidth <= one.bandwidth else [breadth_first, one]


def _preference(choice: Choice) -> tuple[Fraction, int, int]:
    return choice.all_reduce_s, choice.distance_sum, expansions(choice.candidate)


def expansions(one: Candidate) -> int:
    """Count how many expansions made a network."""
    return (one.made is not Made.BASE) * one.count + sum(map(expansions, one.of))


def _nothing(job: Job) -> str:
    """Say why no network was found, and what might help."""
    kind = "bidirectional network" if job.bidirectional else "network"
    if job.bidirectional and job.nodes % 2 and job.degree % 2:
        reason = "an odd number of nodes of odd degree cannot be paired"
    else:
        reason = "no expansion of the base networks has this size"
    wanted = "another size" if job.spare_ports else "another size, or --spare-ports"
    return f"no {kind} of {job.nodes} nodes and degree {job.degree} is known: {reason}; expected {wanted}"
