"""Method ``taccl``: routing, ordering and joining of sends (docs/methods/taccl.md)."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from graphlib import TopologicalSorter
from heapq import heapify, heappop, heappush
from typing import Any

from ...algorithms.schedules.problem import Commodity, RankEdge, commodities_of, edge_labels, edges_of
from ...algorithms.schedules.stages import CopyStage, solve_stages, stages_of
from ...core.budget import Budget, require_buildable
from ...core.errors import InputError, Unsupported
from ...core.grouping import group_by_key
from ...core.instance import Instance
from ...core.outcome import Outcome, Status
from ...core.schedule import StepSchedule
from ...core.solver import Solver, SolverOptions
from ...core.topology import Topology
from .formulations import contiguity, routing
from .formulations.contiguity import QueueOrders
from .formulations.routing import Connections, RoutingProblem
from .method import TacclOptions
from .sketch import parse_sketch, ranks_of, shortest_ways

Send = tuple[int, int]  #: A chunk and an edge.
Pair = tuple[Send, Send]  #: A send and its image.

#: Times of sends that the integer program can hold beside one another: its big constants are sums of the longest ones.
WIDEST = 10**6

SLACK = 1e-6  #: Part by which times may be longer than those of the routes that are known: more than rounding.
ROUTING_SHARE = 0.5  #: Part of the time that is left that the routing may take where contiguity follows.
COLUMN_S = 6e-5  #: Seconds that a chunk on an edge takes to be built.


def run(instance: Instance, solver: Solver, budget: Budget, options: TacclOptions) -> Outcome:
    """Route, order and join the sends of every stage (``Method.run``)."""
    return solve_stages(instance, budget, lambda stage, part: _solve_stage(stage, solver, part, options))


def _solve_stage(stage: CopyStage, solver: Solver, budget: Budget, options: TacclOptions) -> Outcome:
    """Route, order and join the sends of a stage."""
    problem = routing_of_stage(stage, options)
    limits = SolverOptions(rel_gap=budget.gap or options.routing_gap, node_limit=options.nodes, use_start=True)
    with budget.clock.phase("build"):
        model = routing.build(problem)
        for send, x in model.x.items() if problem.routes else ():
            x.value = int(send in problem.routes)
    result = solver.solve(model, budget.part(ROUTING_SHARE) if options.contiguity else budget, limits)
    if not result.has_solution and not problem.routes:
        message = f"no routes were found: the solver says {result.termination.value}"
        return Outcome(Status.LIMIT, message=message, reports=(result,), size=result.size)
    plan = order_sends(problem, chosen_sends(problem, model) if result.has_solution else sorted(problem.routes))
    metrics: dict[str, object] = {"sends": len(plan.sends)}
    if result.has_solution:
        metrics["routing_s"] = model.T.value * float(problem.unit_s)
    reports = [result]
    begin, end = plan.begin, plan.horizon
    if options.contiguity and not budget.is_exhausted:
        with budget.clock.phase("build"):
            joined = contiguity.build(plan)
            for pair in joined.pairs:
                joined.g[pair].value = 0
        second = solver.solve(joined, budget, limits)
        reports.append(second)
        if second.has_solution:
            begin = [joined.b[k].value for k in joined.K]
            metrics["joined"] = sum(round(g.value) for g in joined.g.values())
            end = joined.T.value
    metrics["taccl_cost_s"] = end * float(problem.unit_s)
    schedule = schedule_of(plan, begin)
    return Outcome(Status.FEASIBLE, schedule, reports=tuple(reports), size=result.size, metrics=metrics)


@dataclass(frozen=True)
class OrderingPlan(QueueOrders):
    """Ordered sends (chunk, edge) of a routing, with their begins without joining, in units of the routing."""

    routing: RoutingProblem = field(kw_only=True)
    sends: Sequence[tuple[int, int]] = field(kw_only=True)
    begin: list[float] = field(kw_only=True)
    by_time: Sequence[int] = field(kw_only=True)  #: The sends, each after the one that brings its chunk.


def routing_of(instance: Instance, options: TacclOptions) -> RoutingProblem:
    """Return the chunks and the sketch's allowed edges (``Formulation.index``)."""
    return routing_of_stage(stages_of(instance)[0], options)


def routing_of_stage(stage: CopyStage, options: TacclOptions) -> RoutingProblem:
    """Return the chunks and the sketch's allowed edges of a stage."""
    topology = stage.instance.topology
    sketch, rank = parse_sketch(options.sketch, stage.instance.npus), ranks_of(topology)
    chunks = commodities_of(stage.instance)
    edges = sketch.allowed_edges(topology, edges_of(topology), backwards=stage.backwards)
    if not edges:
        raise InputError("the sketch leaves no edge", place="sketch")
    require_buildable(len(chunks) * len(edges), f"{len(chunks):,} chunks on {len(edges):,} edges", COLUMN_S)
    usable: list[list[int]] = []
    for chunk in chunks:
        nodes = frozenset(topology.rank_nodes)
        if options.ways == "shortest":
            nodes = shortest_ways(topology, edges, chunk.source, chunk.targets)
        inside = [(e, edge) for e, edge in enumerate(edges) if {edge.source, edge.target} <= nodes]
        home = rank[chunk.source]
        usable.append([e for e, edge in inside if sketch.takes(home, rank[edge.source], rank[edge.target])])
    links = [topology.links[edge.links[0]] for edge in edges]
    times = [link.latency_s + chunk.bytes / link.bandwidth_Bps for chunk in chunks for link in links]
    if max(times) > WIDEST * min(times):
        factor = f"{float(max(times) / min(times)):.2g}"
        raise Unsupported(
            f"sends differ in time by a factor of {factor}; the integer program holds for up to {WIDEST:,}"
        )
    connections: Connections = sketch.connections or options.connections
    problem = RoutingProblem(chunks, edges, stage, usable, connections=connections, unit_s=min(times))
    sends, same, images = set(problem.sends), list[Pair](), list[Pair]()
    for shift in sketch.shifts:
        pairs = symmetric(topology, chunks, edges, shift)
        pairs = [pair for pair in pairs if not sends.isdisjoint(pair)]
        (images if is_symmetry(problem, pairs) else same).extend(pairs)
    problem = replace(problem, same=same, images=images)
    if (routes := first_routes(problem)) is None:
        return problem
    return replace(problem, routes=routes, most=routing_time(problem, routes) * (1 + SLACK))


def chosen_sends(problem: RoutingProblem, model: Any) -> list[Send]:
    """Return the chunks and edges of a solved routing."""
    return [send for send in problem.sends if model.x[problem.first[send]].value > 0.5]


def routed_schedule(model: Any, routing: RoutingProblem) -> StepSchedule:
    """Return a solved model's routes as a schedule, without joined sends (``Formulation.extract``)."""
    plan = order_sends(routing, chosen_sends(routing, model))
    return schedule_of(plan, plan.begin)


def first_orders(instance: Instance, options: TacclOptions) -> OrderingPlan:
    """Return the orders of sends on the routes without a solver (``Formulation.index``)."""
    routing = routing_of(instance, options)
    return order_sends(routing, sorted(routing.routes))


def joined_schedule(model: Any, plan: OrderingPlan) -> StepSchedule:
    """Return a solved model's sends, some joined, as a schedule (``Formulation.extract``)."""
    return schedule_of(plan, [model.b[k].value for k in model.K])


def schedule_of(plan: OrderingPlan, begin: list[float]) -> StepSchedule:
    """Convert begin times to steps; a send follows the one that brings its chunk despite rounding."""
    step: dict[int, int] = {}
    times = {value: index for index, value in enumerate(sorted({round(value, 12) for value in begin}))}
    for k in plan.by_time:
        before = plan.after[k]
        step[k] = max(times[round(begin[k], 12)], -1 if before is None else step[before] + 1)
    rows = [(step[k], chunk, plan.routing.edges[edge]) for k, (chunk, edge) in enumerate(plan.sends)]
    return plan.routing.stage.schedule(rows)


def order_sends(routing: RoutingProblem, routes: Sequence[Send]) -> OrderingPlan:
    """Order a routing's sends: the earliest first; on ties, the longest remaining route.

    They take turns on their first link, and on the last one of an edge through switches.
    """
    sends = _on_trees(routing, routes)
    index = {send: k for k, send in enumerate(sends)}
    bringer = {(c, routing.edges[e].target): index[c, e] for c, e in sends}
    after = [bringer.get((c, routing.edges[e].source)) for c, e in sends]
    takes = [routing.passing(c, e) for c, e in sends]
    links = [{routing.edges[e].links[0], routing.edges[e].links[-1]} for _, e in sends]
    children = group_by_key((before, child) for child, before in enumerate(after) if before is not None)
    rest = list(takes)
    children_first = TopologicalSorter({k: children.get(k, ()) for k in range(len(sends))})
    for k in children_first.static_order():
        if (before := after[k]) is not None:
            rest[before] = max(rest[before], takes[before] + rest[k])
    ready = [(0.0, -rest[k], k) for k, before in enumerate(after) if before is None]
    heapify(ready)
    free = defaultdict[int, float](float)
    begin, by_time = [0.0] * len(sends), list[int]()
    queues = defaultdict[int, list[int]](list)
    while ready:
        at, _, k = heappop(ready)
        if (turn := max(free[link] for link in links[k])) > at:
            heappush(ready, (turn, -rest[k], k))
            continue
        begin[k] = at
        free |= dict.fromkeys(links[k], at + takes[k])
        queues[routing.edges[sends[k][1]].links[0]].append(k)
        by_time.append(k)
        for child in children.get(k, ()):
            heappush(ready, (at + takes[k], -rest[child], child))
    alpha = [routing.delay(e) for _, e in sends]
    return OrderingPlan(
        list(queues.values()),
        alpha,
        [whole - a for whole, a in zip(takes, alpha, strict=True)],
        after,
        [e for _, e in sends],
        max((b + whole for b, whole in zip(begin, takes, strict=True)), default=0.0) * (1 + SLACK),
        routing=routing,
        sends=sends,
        begin=begin,
        by_time=by_time,
    )


def _on_trees(routing: RoutingProblem, routes: Sequence[Send]) -> list[Send]:
    """Remove sends of a chunk to a node that has it already, or that serve no target."""
    sends: list[Send] = []
    of_chunk = group_by_key(routes)
    for c, chunk in enumerate(routing.chunks):
        reached, last = {chunk.source}, dict[int, int]()
        while fresh := [
            e for e in of_chunk[c] if routing.edges[e].source in reached and routing.edges[e].target not in reached
        ]:
            last[routing.edges[fresh[0]].target] = fresh[0]
            reached.add(routing.edges[fresh[0]].target)
        if missing := set(chunk.targets) - reached:
            name = routing.topology.nodes[min(missing)].name
            raise Unsupported(f"no routes bring chunk {c} to {name}, or links differ beyond the solver's tolerances")
        sends += [(c, e) for e in edges_to_targets(routing, c, last)]
    return sends


def symmetric(
    topology: Topology, chunks: Sequence[Commodity], edges: Sequence[RankEdge], shift: tuple[int, int]
) -> list[Pair]:
    """Pair every send with its image under a shift.

    Edges between parts of ranks that shift separately are left free if the shift does not map them to edges.
    """
    nodes, (by, size) = topology.rank_nodes, shift
    image_of = {node: nodes[(rank % size + by) % size + rank // size * size] for rank, node in enumerate(nodes)}
    part = {node: rank // size for rank, node in enumerate(nodes)}
    places = group_by_key(((edge.source, edge.target), e) for e, edge in enumerate(edges))
    between = [(i, j) for i, j in places if part[i] != part[j]]
    if any(len(places.get((image_of[i], image_of[j]), ())) != len(places[i, j]) for i, j in between):
        for ends in between:
            del places[ends]
    kinds = group_by_key(((chunk.source, tuple(sorted(chunk.targets))), c) for c, chunk in enumerate(chunks))
    to_edge, to_chunk = dict[int, int](), dict[int, int]()
    for (i, j), own in places.items():
        image = places.get((image_of[i], image_of[j]), [])
        if len(image) != len(own):
            raise InputError(f"shift {by} of {size} does not map edges to edges", place="sketch")
        to_edge |= dict(zip(own, image, strict=True))
    for (source, targets), same in kinds.items():
        image = kinds.get((image_of[source], tuple(sorted(image_of[t] for t in targets))), [])
        if len(image) != len(same):
            raise InputError(f"shift {by} of {size} does not map chunks to chunks", place="sketch")
        to_chunk |= dict(zip(same, image, strict=True))
    return [((c, e), (to_chunk[c], to_edge[e])) for c in to_chunk for e in sorted(to_edge)]


def is_symmetry(problem: RoutingProblem, pairs: Sequence[Pair]) -> bool:
    """Check that pairs permute all sends, and map links to links of the same times."""
    sends, rates = set(problem.sends), [(link.bandwidth_Bps, link.latency_s) for link in problem.topology.links]
    ways = {(problem.edges[e].links, problem.edges[image].links) for (_, e), (_, image) in pairs}
    images = {two for one, other in ways for two in zip(one, other, strict=False)}
    return (
        {one for one, _ in pairs} == sends == {other for _, other in pairs}
        and all(len(one) == len(other) for one, other in ways)
        and len(images) == len(dict(images)) == len({image for _, image in images})
        and all(rates[one] == rates[image] for one, image in images)
        and all(problem.chunks[c].bytes == problem.chunks[image].bytes for (c, _), (image, _) in pairs)
    )


def labels(index: RoutingProblem) -> Mapping[str, Callable[[Any], str]]:
    """Name nodes, edges and the chunks' sources (``Formulation.labels``)."""
    return edge_labels(index.topology, index.edges, index.chunks)


def first_routes(problem: RoutingProblem) -> frozenset[Send] | None:
    """Return routes for every chunk; routes of chunks alike in the sketch are images of one another.

    None if a chunk misses a target, or the image of a route is no route.
    """
    import networkx as nx

    images = {send: {send} for send in problem.sends}
    for part in nx.connected_components(nx.from_edgelist((*problem.same, *problem.images))):
        images |= dict.fromkeys(part, part)
    usable, load = set(problem.sends), [0.0] * len(problem.topology.links)
    routed, with_routes = set[Send](), set[int]()
    for chunk in range(len(problem.chunks)):
        if chunk in with_routes:
            continue
        if (tree := _tree(problem, chunk, [*load], images)) is None:
            return None
        routes = {image for edge in tree for image in images[chunk, edge]}
        if not routes <= usable:
            return None
        routed |= routes
        with_routes |= {c for c, _ in routes}
        _add_loads(problem, load, routes)
    for c, own in group_by_key(routed).items():
        at = arrival_times(problem, c, own)
        if len(own) != len(at) - 1 or not at.keys() >= {*problem.chunks[c].targets}:
            return None  # a node is reached twice, or a target is not
    return frozenset(routed)


def _add_loads(problem: RoutingProblem, load: list[float], sends: Set[Send]) -> None:
    for c, e in sorted(sends):
        for link in problem.edges[e].links:
            load[link] += problem.load(c, link)


def _tree(problem: RoutingProblem, chunk: int, load: list[float], images: Mapping[Send, set[Send]]) -> list[int] | None:
    """Grow a tree from a chunk's source by the earliest reachable node, given link loads, to which its images add."""
    source, missing = problem.chunks[chunk].source, set(problem.chunks[chunk].targets)
    leaving = group_by_key((problem.edges[e].source, e) for e in problem.usable[chunk])

    def busy_until(edge: int) -> float:
        return max(load[link] + problem.load(chunk, link) for link in problem.edges[edge].links)

    came: dict[int, int] = {}
    heap: list[tuple[float, float, int, int]] = [(0.0, 0.0, -1, source)]
    reached = set[int]()
    while heap and missing:
        key, at, edge, node = heappop(heap)
        if node in reached:
            continue
        if edge >= 0:
            if (busy := busy_until(edge)) > key:
                heappush(heap, (busy, at, edge, node))
                continue
            _add_loads(problem, load, images[chunk, edge])
        reached.add(node)
        missing.discard(node)
        came[node] = edge
        for e in leaving[node]:
            end = at + problem.passing(chunk, e)
            heappush(heap, (max(end, busy_until(e)), end, e, problem.edges[e].target))
    return None if missing else edges_to_targets(problem, chunk, came)


def edges_to_targets(problem: RoutingProblem, chunk: int, last: Mapping[int, int]) -> list[int]:
    """Return the edges of a tree on the paths to a chunk's targets, given the last edge to each node."""
    useful: set[int] = set()
    for target in problem.chunks[chunk].targets:
        node = target
        while node != problem.chunks[chunk].source and last[node] not in useful:
            useful.add(last[node])
            node = problem.edges[last[node]].source
    return sorted(useful)


def arrival_times(problem: RoutingProblem, chunk: int, edges: Sequence[int]) -> dict[int, float]:
    """Return the time of a chunk at its source, and at every node to which these edges bring it."""
    at = {problem.chunks[chunk].source: 0.0}
    while fresh := [e for e in edges if problem.edges[e].source in at and problem.edges[e].target not in at]:
        for e in fresh:
            at.setdefault(problem.edges[e].target, at[problem.edges[e].source] + problem.passing(chunk, e))
    return at


def routing_time(problem: RoutingProblem, routes: frozenset[Send]) -> float:
    """Return T of routes: the longest route or the busiest link."""
    load = [0.0] * len(problem.topology.links)
    _add_loads(problem, load, routes)
    arrivals = [time for c, own in group_by_key(routes).items() for time in arrival_times(problem, c, own).values()]
    return max((*arrivals, *load), default=0.0)
