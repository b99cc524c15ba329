"""Index sets on a grid of epochs: only variables that chunks can reach and that can still matter."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from ...core.errors import InputError, Unsupported
from ...core.grouping import group_by_key
from .problem import EpochProblem

MAX_HOPS = 4  #: Links of the longest way through switches.
COLUMN_S = 1e-5  #: Seconds that a send to choose from takes to be built, with all that comes with it.


@dataclass(frozen=True)
class Arc:
    """Link, or several through switches such as a hyper-edge (appendix C), traversed without a stop."""

    links: tuple[int, ...]
    offsets: tuple[int, ...]
    source: int
    target: int
    delay: int


@dataclass(frozen=True, eq=False)
class IndexSets:
    """Index sets of a model.

    A chunk q starts over arc a in epoch k only if ``first[q][tail] <= k`` and ``k + delay <= last[q][head]``: it can
    be there, and a node that needs it can still be reached by the end. A node holds it from ``first`` to ``last``.
    """

    problem: EpochProblem
    epochs: int  #: K: everything has arrived by index K.
    hyper_edges: bool  #: Replace switches that cannot store by arcs between their neighbours (appendix C).
    arcs: tuple[Arc, ...]
    first: list[list[int]]
    last: list[list[int]]
    #: Count a node's own data and what it needs in a limited buffer too (appendix B as printed).
    all_count: bool = False
    objective: str = "feasible"  #: ``feasible``, ``late`` (the makespan) or ``paper``.
    weights: tuple[Fraction, ...] = ()  #: Priorities of the tenants in the paper's objective; 1 unless given.

    @property
    def columns(self) -> int:
        """Number of candidate sends."""
        return sum(j - i + 1 for spans in self.spans for i, j in spans.values())

    @cached_property
    def leaving(self) -> tuple[tuple[int, ...], ...]:
        """Arcs that leave each node."""
        return tuple(tuple(i for i, a in enumerate(self.arcs) if a.source == n) for n in range(self.problem.nodes))

    @cached_property
    def entering(self) -> tuple[tuple[int, ...], ...]:
        """Arcs that enter each node."""
        return tuple(tuple(i for i, a in enumerate(self.arcs) if a.target == n) for n in range(self.problem.nodes))

    @cached_property
    def usable(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Arcs for copied chunks, and arcs for contributions to sums, from adder to adder."""
        problem = self.problem
        stops = tuple({n for n in range(problem.nodes) if _stops(problem, n, summed)} for summed in (False, True))
        inner = [{problem.links[e].target for e in arc.links[:-1]} for arc in self.arcs]
        whole = [
            [a for a, arc in enumerate(self.arcs) if {arc.source, arc.target} <= stop and not inner[a] & stop]
            for stop in stops
        ]
        single = [a for a, arc in enumerate(self.arcs) if len(arc.links) == 1]
        return tuple(whole[0] if self.hyper_edges else single), tuple(whole[1])

    @cached_property
    def spans(self) -> list[dict[int, tuple[int, int]]]:
        """For each commodity, its usable arcs with the first and last start epoch."""
        spans: list[dict[int, tuple[int, int]]] = []
        for commodity, first, last in zip(self.problem.commodities, self.first, self.last, strict=True):
            arcs = [(a, self.arcs[a]) for a in self.usable[commodity.summed]]
            ranges = ((a, (first[arc.source], last[arc.target] - arc.delay)) for a, arc in arcs)
            spans.append({a: (i, j) for a, (i, j) in ranges if i <= j and self.arcs[a].target != commodity.source})
        return spans

    @cached_property
    def sends(self) -> list[tuple[int, int, int]]:
        """Index of F: commodity, arc, epoch."""
        return [(q, a, k) for q, spans in enumerate(self.spans) for a, (i, j) in spans.items() for k in range(i, j + 1)]

    @cached_property
    def holdings(self) -> list[tuple[int, int, int]]:
        """Index of B: commodity, node, index in time; where a chunk can be stored or is needed."""
        return [
            (q, n, k)
            for q, commodity in enumerate(self.problem.commodities)
            for n in range(self.problem.nodes)
            if self.has_buffer(q, n) or n in commodity.targets
            for k in range(self.first[q][n], self.last[q][n] + 1)
        ]

    def has_buffer(self, q: int, n: int) -> bool:
        """Check whether a chunk that is not given may be stored at a node and leave later than it came."""
        commodity = self.problem.commodities[q]
        if n == commodity.source:
            return bool(commodity.after) or self.drops(q, n)
        return self.problem.stores(commodity, n) and self.problem.room[n] != 0

    def most_sent(self, q: int, a: int) -> int:
        """Return the useful copies of a chunk over an arc per epoch: several if the head does not copy."""
        arc, targets = self.arcs[a], len(self.problem.commodities[q].targets)
        if targets == 1 or self.problem.copies[arc.target]:
            return 1
        return targets if self.problem.timing.changes else min(targets, self.problem.links[arc.links[0]].capacity)

    def most(self, q: int, n: int) -> int:
        """Return the largest B: 1, or one per destination at a switch that does not copy."""
        return 1 if self.problem.copies[n] else len(self.problem.commodities[q].targets)

    @cached_property
    def room_limits(self) -> dict[int, int]:
        """Room of the nodes that store a limited number of chunks of others."""
        return {n: limit for n, limit in enumerate(self.problem.room) if limit}

    def drops(self, q: int, n: int) -> bool:
        """Check whether a node may drop a chunk that it has from the start in a counted buffer."""
        commodity = self.problem.commodities[q]
        return self.all_count and n in self.room_limits and n == commodity.source and not commodity.after

    def is_given(self, q: int, n: int) -> bool:
        """Check whether a node has the chunk from the start, and for good."""
        commodity = self.problem.commodities[q]
        return n == commodity.source and not commodity.after and not self.drops(q, n)

    def arriving(self, q: int, n: int, k: int) -> Iterator[tuple[int, int, int]]:
        """Yield the sends that bring a chunk to a node at index k."""
        spans = self.spans[q]
        starts = ((a, k - self.arcs[a].delay) for a in self.entering[n] if a in spans)
        yield from ((q, a, start) for a, start in starts if spans[a][0] <= start <= spans[a][1])

    def departing(self, q: int, n: int, k: int) -> Iterator[tuple[int, int, int]]:
        """Yield the sends of a chunk from a node in epoch k."""
        spans = self.spans[q]
        yield from ((q, a, k) for a in self.leaving[n] if a in spans and spans[a][0] <= k <= spans[a][1])

    @cached_property
    def loads(self) -> dict[int, dict[int, list[tuple[int, int, int]]]]:
        """For each link and epoch, the sends that start over it."""
        loads: dict[int, dict[int, list[tuple[int, int, int]]]] = defaultdict(lambda: defaultdict(list))
        for send in self.sends:
            arc = self.arcs[send[1]]
            for link, offset in zip(arc.links, arc.offsets, strict=True):
                loads[link][send[2] + offset].append(send)
        return loads

    @cached_property
    def changed_links(self) -> frozenset[int]:
        """Links whose bandwidth varies."""
        return frozenset(change.link for change in self.problem.timing.changes)

    @cached_property
    def joint(self) -> dict[tuple[int, int, int], tuple[int, int, int]]:
        """For sends of several contributions to a sum: the chunk, arc and epoch where they are added up."""
        commodities = self.problem.commodities
        count = Counter(c.chunk for c in commodities if c.summed)
        several = {q: c.chunk for q, c in enumerate(commodities) if c.summed and count[c.chunk] > 1}
        return {(q, a, k): (several[q], a, k) for q, a, k in self.sends if q in several}

    @cached_property
    def members(self) -> dict[int, frozenset[int]]:
        """Nodes that have or need something of each chunk."""
        nodes_of = group_by_key((c.chunk, node) for c in self.problem.commodities for node in (c.source, *c.targets))
        return {chunk: frozenset(nodes) for chunk, nodes in nodes_of.items()}

    def windows(self, link: int) -> range:
        """Return the first epochs of the windows of a link that need a constraint.

        With constant bandwidth a window that reaches beyond the first or last start is no tighter than the one that
        ends there; where bandwidth varies every window with a start in it counts.
        """
        at, window = self.loads[link], self.problem.links[link].window
        begin, end = min(at), max(at)
        if link in self.changed_links:
            return range(max(-self.problem.begin, begin - window + 1), end + 1)
        return range(begin, max(begin, end - window + 1) + 1)

    def incoming(self, q: int, n: int, k: int) -> int:
        """Return 1 for a node's own chunk that it may drop, which no send of the model brings."""
        return int(k == 0 and self.drops(q, n))

    def room(self, link: int, epoch: int) -> int:
        """Return the number of chunks that may start in a link's window that begins with an epoch."""
        e, timing = self.problem.links[link], self.problem.timing
        if link not in self.changed_links:
            return e.capacity
        first = epoch + self.problem.begin
        return int(sum(e.rate * timing.factor(link, k) for k in range(first, first + e.window)) // 1)


def index_sets(
    problem: EpochProblem,
    epochs: int,
    *,
    hyper_edges: bool = False,
    all_count: bool = False,
    objective: str = "feasible",
    weights: tuple[Fraction, ...] = (),
) -> IndexSets:
    """Build the index sets of the general form for a number of epochs."""
    if epochs < problem.diameter:
        raise InputError(f"K = {epochs} is too small: distances alone need {problem.diameter}", place="epochs")
    ways = ways_through_switches(problem, summed=False) if hyper_edges else single_links(problem)
    if any(commodity.summed for commodity in problem.commodities):
        ways += ways_through_switches(problem, summed=True)
    arcs = tuple(dict.fromkeys(ways))
    far = problem.distance.tolist()
    first, ready, last = list[list[int]](), list[int](), list[list[int]]()
    rest = [0] * len(problem.commodities)  # epochs in which a sum must still go on from its owner
    for commodity in problem.commodities:
        begin = max((ready[p] for p in commodity.after), default=0)
        first.append([begin + d for d in far[commodity.source]])
        takes = max(far[commodity.source][t] for t in commodity.targets)
        ready.append(begin + takes)
        for before in commodity.after:
            rest[before] = max(rest[before], takes)
    for commodity, later in zip(problem.commodities, rest, strict=True):
        last.append([epochs - later - min(far[n][t] for t in commodity.targets) for n in range(problem.nodes)])
    sets = IndexSets(problem, epochs, hyper_edges, arcs, first, last, all_count, objective, weights)
    _require_ways(sets)
    return sets


def _require_ways(sets: IndexSets) -> None:
    """Reject a network with more consecutive switches than an arc may have."""
    import networkx as nx

    names = [node.name for node in sets.problem.topology.nodes]
    for source, targets, summed in {(c.source, c.targets, c.summed) for c in sets.problem.commodities}:
        arcs = (sets.arcs[a] for a in sets.usable[summed])
        graph = nx.from_edgelist([(source, source), *((arc.source, arc.target) for arc in arcs)], nx.DiGraph)
        if missing := set(targets) - {source} - nx.descendants(graph, source):
            ends = f"{names[source]!r} to {names[min(missing)]!r}"
            raise Unsupported(f"no path of at most {MAX_HOPS} links through switches leads from {ends}")


def single_links(problem: EpochProblem) -> list[Arc]:
    """Make an arc of every link."""
    return [Arc((i,), (0,), e.source, e.target, e.delay) for i, e in enumerate(problem.links)]


def _stops(problem: EpochProblem, node: int, summed: bool) -> bool:
    """Check whether arcs end at a node: one that can store the chunk, or add contributions."""
    holds = problem.holds[node]
    return not problem.switch[node] or (holds is None if summed else holds != 0)


def switches_in_a_row(problem: EpochProblem, *, summed: bool) -> bool:
    """Check whether a link joins two passed switches; long arcs and arcs back are left out then."""
    return not all(_stops(problem, e.source, summed) or _stops(problem, e.target, summed) for e in problem.links)


def ways_through_switches(problem: EpochProblem, *, summed: bool) -> list[Arc]:
    """Make arcs of links between storing nodes and of paths through others (Omega of table 5)."""
    ways: list[Arc] = []

    def extend(links: tuple[int, ...], offsets: tuple[int, ...], nodes: frozenset[int], at: int) -> None:
        node = problem.links[links[-1]].target
        source = problem.links[links[0]].source
        if _stops(problem, node, summed):
            if node != source:
                ways.append(Arc(links, offsets, source, node, at))
            return
        for e in problem.leaving[node] if len(links) < MAX_HOPS else ():
            link = problem.links[e]
            if link.target not in nodes:
                extend((*links, e), (*offsets, at), nodes | {link.target}, at + link.delay)

    for e, link in enumerate(problem.links):
        if _stops(problem, link.source, summed):
            extend((e,), (0,), frozenset((link.source, link.target)), link.delay)
    return ways
