"""Value of more bandwidth: a problem is solved repeatedly with changed bandwidths.

In a network, all links between two nodes, in both directions, are scaled by one factor. Of links that symmetries of
the network exchange, one is changed alone, then all of them together. In a fabric with given bandwidths, dimensions
are changed. In a design, these are its limits, after which all bandwidths are chosen again, and the dimensions of
the plan, with the others fixed.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from math import inf
from typing import Any

from ..algorithms.bounds.one_sided import Number, Value, one_sided
from ..algorithms.graphs.translations import Pair, link_orbits
from ..core.answers import BandwidthPlan
from ..core.budget import Progress, ignore, limited_by
from ..core.collective import Demand
from ..core.design import Comparison, Design, LinearConstraint, parse_constraints
from ..core.errors import CwbError, OutOfTime, SolverUnavailable, Unsupported
from ..core.fabric import WiredFabric
from ..core.instance import Instance
from ..core.method import Method
from ..core.outcome import Outcome, Status
from ..core.sensitivity import Entry, Sensitivity, sorted_entries
from ..core.timing import EPOCHS
from ..core.topology import Topology
from ..core.units import show
from ..harness import registry
from ..harness.clock import WallClock
from ..harness.interrupt import RunInterrupted, time_limited
from ..harness.request import RecordingSolver, Request
from ..schedules import verdict_of

#: More links that are not alike are not tried one by one, and in more links no symmetries are sought.
MAX_CLASSES, MAX_LINKS = 400, 5000

#: How a limit of a design is written.
_SIGNS = {Comparison.AT_MOST: "<=", Comparison.AT_LEAST: ">=", Comparison.EQUAL: "="}


def sensitivity(
    instance: Instance, request: Request, progress: Progress = ignore, stop: threading.Event | None = None
) -> Sensitivity:
    """Differentiate the proved bound of an instance with respect to its bandwidths.

    The time limit of the request is for all solves together.

    Raises
    ------
    Unsupported
        If the method does not support the instance, proves no time for it, or there is no bandwidth to change.
    """
    method = registry.get(request.model)
    problem, options = method.validate_and_pose(instance, request.options)
    if problem.timing is not None and problem.timing.semantics not in EPOCHS:
        raise Unsupported(f"{method.name} uses ticks that depend on the bandwidths, so these cannot be changed")
    study = _Study(method, problem, options, request, stop or threading.Event())
    base: Number | None = None
    entries: list[Entry] = []
    try:
        with time_limited(study.budget), limited_by(study.budget):
            base = study.solve_unchanged()
            for entry, value, at in study.parameters() if base is not None else ():
                if study.over:
                    break
                progress(f"sensitivity: {entry.name}")
                entries.append(replace(entry, up=one_sided(value, at, up=True), down=one_sided(value, at, up=False)))
    except (RunInterrupted, OutOfTime):
        study.over = True
    if base is None:
        raise Unsupported(f"{method.name} proves no time of this instance to differentiate")
    return Sensitivity(
        method.name,
        instance.name,
        float(base),
        study.optimal,
        sorted_entries(entries),
        study.solves,
        not study.over,
        isinstance(base, Fraction),
    )


class _Study:
    """Solves of one problem with changed bandwidths."""

    def __init__(self, method: Method, case: Instance, options: Any, request: Request, stop: threading.Event) -> None:
        self.method, self.instance, self.options, self.request = method, case, options, request
        self.solver: Any = None
        if method.needs_solver:
            self.solver = RecordingSolver(registry.solver(request.solver), request.solver_options)
            if not (installation := self.solver.installation()).ok:
                raise SolverUnavailable(installation.message)
        limits = {"threads": request.threads, "seed": request.seed, "gap": request.gap}
        self.budget = WallClock(request.time_limit_s).budget(**limits, stop=stop)
        self.bounds: dict[str, Number | None] = {}
        self.solves = 0
        self.optimal = self.over = False
        self.first: Outcome | None = None
        self.plan: BandwidthPlan | None = None

    def solve_unchanged(self) -> Number | None:
        """Return the proved bound of the unchanged problem; None if there is none."""
        self.first = self.run(self.instance)
        self.optimal = self.first.status is Status.OPTIMAL
        self.plan = self.first.answer if isinstance(self.first.answer, BandwidthPlan) else None
        return self.seconds(self.instance)

    def run(self, case: Instance) -> Outcome:
        """Run the method."""
        return self.method.run(case, self.solver, self.budget, self.options)

    def seconds(self, case: Instance) -> Number | None:
        """Return the recomputed bound of a problem; None if none is proved in time."""
        if case.sha256 not in self.bounds:
            self.bounds[case.sha256] = self._solve_bound(case)
        return self.bounds[case.sha256]

    def _solve_bound(self, case: Instance) -> Number | None:
        self.over = self.over or self.budget.is_exhausted
        if self.over or self.method.objective_unit(case) != "s":
            return None
        self.solves += 1
        try:
            if (exact := self.method.proved_bound(case, self.options)) is not None:
                return exact
            if self.method.supports(case) is not None:
                return None
            outcome = self.first if case is self.instance and self.first is not None else self.run(case)
            if outcome.bound is None or (self.optimal and outcome.status is not Status.OPTIMAL):
                return None
            recomputed = None
            if outcome.answer is not None:
                recomputed = verdict_of(case, outcome.answer, outcome.certificate).bound
        except (OutOfTime, SolverUnavailable):
            raise
        except CwbError:
            return None
        seconds = float(outcome.bound if recomputed is None else recomputed)
        return seconds if 0.0 < seconds < inf else None

    def parameters(self) -> Iterator[tuple[Entry, Value, Fraction]]:
        """Yield each parameter, the optimum as a function of it, and its current value."""
        network = self.instance.network
        if isinstance(network, Topology):
            return self.links(network)
        if isinstance(network, WiredFabric):
            return self.dimensions(network)
        if self.plan is not None and self.instance.design is not None:
            return self.limits(self.instance.design, self.plan)
        raise Unsupported(f"{network} has no bandwidths to change")

    def links(self, topology: Topology) -> Iterator[tuple[Entry, Value, Fraction]]:
        """Yield linked pairs of nodes: one of each class, then all of the class."""
        if len(topology.links) > MAX_LINKS:
            raise Unsupported(f"{len(topology.links):,} links; expected at most {MAX_LINKS:,}")
        classes = link_orbits(*self.colours(topology), lambda: self.budget.is_exhausted)
        if len(classes) > MAX_CLASSES:
            raise Unsupported(f"{len(classes):,} classes of links; expected at most {MAX_CLASSES}")
        names = [node.name for node in topology.nodes]
        for pairs in classes:
            members = tuple((names[a], names[b]) for a, b in pairs)
            at = bandwidth_of(topology, pairs[0])
            entry = Entry(" - ".join(members[0]), float(at) / 1e9, 1, len(pairs), members)
            for part in (pairs[:1], pairs)[: 1 if len(pairs) == 1 else 2]:

                def value(bandwidth: Fraction, at: Fraction = at, part: Sequence[Pair] = part) -> Number | None:
                    return self.seconds(self.instance.with_changes(network=scale_links(topology, part, bandwidth / at)))

                yield replace(entry, count=len(part)), value, at

    def colours(self, topology: Topology) -> tuple[list[Any], Sequence[Pair], list[Any]]:
        """Return node and link colours that an automorphism must preserve."""
        rank_of = {node: rank for rank, node in enumerate(topology.rank_nodes)}
        demands = self.instance.demands
        nodes = [(kind, *(_role(d, rank_of.get(n)) for d in demands)) for n, kind in enumerate(topology.node_kinds)]
        timing = self.instance.timing
        changes = () if timing is None else timing.changes
        links = [
            (kind, tuple(replace(c, link=0) for c in changes if c.link == e))
            for e, kind in enumerate(topology.link_kinds)
        ]
        return nodes, topology.link_ends, links

    def dimensions(self, fabric: WiredFabric) -> Iterator[tuple[Entry, Value, Fraction]]:
        """Yield the dimensions of a fabric, each with the others fixed."""
        for d, at in enumerate(fabric.bandwidth_Bps):

            def value(bandwidth: Fraction, d: int = d) -> Number | None:
                changed = (*fabric.bandwidth_Bps[:d], bandwidth, *fabric.bandwidth_Bps[d + 1 :])
                return self.seconds(self.instance.with_changes(network=replace(fabric, bandwidth_Bps=changed)))

            yield Entry(f"dimension {d + 1}, {fabric.dimensions[d]}", float(at) / 1e9), value, at

    def limits(self, design: Design, plan: BandwidthPlan) -> Iterator[tuple[Entry, Value, Fraction]]:
        """Yield the limits of a design, with replanning; then the dimensions of the plan, with the others fixed."""
        for name, at, changed in limits_of(design, len(plan.bandwidth_Bps)):

            def seconds_at_limit(limit: Fraction, changed: Callable[[Fraction], Design] = changed) -> Number | None:
                return self.seconds(self.instance.with_changes(design=changed(limit)))

            yield Entry(name, float(at) / 1e9), seconds_at_limit, at
        for d, bandwidth in enumerate(plan.bandwidth_Bps):
            if bandwidth <= 0:
                continue

            def seconds_at_bandwidth(bandwidth: Fraction, d: int = d) -> Number | None:
                rates = (*plan.bandwidth_Bps[:d], float(bandwidth), *plan.bandwidth_Bps[d + 1 :])
                self.solves += 1
                return verdict_of(self.instance, BandwidthPlan(rates, plan.parallelism)).objective

            name = f"dimension {d + 1}, {self.instance.fabric.dimensions[d]}, others kept"
            yield Entry(name, bandwidth / 1e9), seconds_at_bandwidth, Fraction(bandwidth)


def limits_of(design: Design, dimensions: int) -> Iterator[tuple[str, Fraction, Callable[[Fraction], Design]]]:
    """Yield each limit of a design: its name, its value in B/s, and the design as a function of it."""
    if (total := design.total_Bps) is not None:
        yield f"limit: total bandwidth = {show(total, 'GB/s')}", total, lambda to: replace(design, total_Bps=to)
    if (most := design.max_total_Bps) is not None:
        yield f"limit: total bandwidth <= {show(most, 'GB/s')}", most, lambda to: replace(design, max_total_Bps=to)
    texts = [constraint for text in design.constraints for constraint in parse_constraints(text, dimensions)]
    for index, constraint in enumerate(texts):
        if constraint.limit > 0:

            def with_limit(limit: Fraction, index: int = index) -> Design:
                limits = [c.limit if i != index else limit for i, c in enumerate(texts)]
                return replace(design, constraints=tuple(map(_constraint_text, texts, limits)))

            yield f"limit: {constraint.label}", constraint.limit, with_limit


def _constraint_text(constraint: LinearConstraint, limit: Fraction) -> str:
    """Format a constraint with its limit rounded to a thousandth of a byte per second."""
    terms = [
        f"{'-' if factor < 0 else '+'} {abs(factor)} B{d}"
        for d, factor in enumerate(constraint.coefficients, 1)
        if factor
    ]
    sign = "-" if limit < 0 else ""
    return f"{' '.join(terms)} {_SIGNS[constraint.comparison]} {sign}{float(abs(limit)):.3f} B/s"


def _role(demand: Demand, rank: int | None) -> str:
    """Return the role of a node in a collective: root, member, numbered member, or none."""
    if rank is None or (demand.ranks is not None and rank not in demand.ranks):
        return ""
    position = rank if demand.ranks is None else demand.ranks.index(rank)
    if not demand.collective.alike:
        return f"member {position}"
    return "root" if demand.collective.rooted and position == 0 else "member"


def bandwidth_of(topology: Topology, pair: Pair) -> Fraction:
    """Return the bandwidth between two nodes, in the direction with more."""
    there, back = Fraction(0), Fraction(0)
    for link, ends in zip(topology.links, topology.link_ends, strict=True):
        there += link.bandwidth_Bps if ends == pair else 0
        back += link.bandwidth_Bps if ends == (pair[1], pair[0]) else 0
    return max(there, back)


def scale_links(topology: Topology, pairs: Sequence[Pair], factor: Fraction) -> Topology:
    """Multiply the bandwidth of all links between pairs of nodes, in both directions, by a factor."""
    both = {*pairs, *((b, a) for a, b in pairs)}
    links = tuple(
        replace(link, bandwidth_Bps=link.bandwidth_Bps * factor) if ends in both else link
        for link, ends in zip(topology.links, topology.link_ends, strict=True)
    )
    return Topology(topology.nodes, links)
