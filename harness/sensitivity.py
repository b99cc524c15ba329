"""What more bandwidth is worth: a problem is solved again and again, each time with another bandwidth.

Of a network, the bandwidth between two nodes is changed in both directions at once. Of links that symmetries of the
network exchange, one is tried, and all of them together. Of a fabric with given bandwidths these are its dimensions. Of
a design they are its limits, after which all bandwidths are chosen again, and the dimensions of the plan, where the
others are kept.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from math import inf
from typing import Any

from ..algorithms.bounds.one_sided import Number, Value, one_sided
from ..algorithms.graphs.link_orbits import Pair, link_orbits
from ..core.answers import BandwidthPlan
from ..core.budget import Budget, Progress, silent
from ..core.collective import CollectiveKind, Demand
from ..core.design import Comparison, Design, LinearConstraint, parse_constraints
from ..core.effort import spending
from ..core.errors import CwbError, OutOfTime, SolverUnavailable, Unsupported, located
from ..core.fabric import WiredFabric
from ..core.fields import validated
from ..core.instance import Instance
from ..core.method import Method, Outcome, Status
from ..core.network_views import taken
from ..core.sensitivity import Entry, Sensitivity, sorted_entries
from ..core.timing import EPOCHS
from ..core.topology import Topology
from ..core.units import show
from ..schedules import verdict_of
from . import registry
from .clock import WallClock
from .environment import spare_bytes
from .interrupt import BrokenOff, broken_off
from .noting import Noting
from .request import Request

#: More links that are not alike are not tried one by one, and in more links no symmetries are sought.
MAX_CLASSES, MAX_LINKS = 400, 5000

#: Collectives in which the first rank of the group is another one than the rest.
_ROOTED = {
    CollectiveKind.LATE_ALL_REDUCE,
    CollectiveKind.BROADCAST,
    CollectiveKind.REDUCE,
    CollectiveKind.GATHER,
    CollectiveKind.SCATTER,
    CollectiveKind.POINT_TO_POINT,
}

#: How a limit of a design is written.
_SIGNS = {Comparison.AT_MOST: "<=", Comparison.AT_LEAST: ">=", Comparison.EQUAL: "="}


def sensitivity(
    instance: Instance, request: Request, progress: Progress = silent, stop: threading.Event | None = None
) -> Sensitivity:
    """Differentiate what a method proves of an instance in its bandwidths.

    Parameters
    ----------
    instance : Instance
        The problem, as it is handed to the method.
    request : Request
        Method or formulation, solver, options and limits; the time limit is that of all solves together.
    progress : callable
        Shows lines.
    stop : threading.Event, optional
        Set by the first Ctrl-C, and ends the solves.

    Returns
    -------
    Sensitivity

    Raises
    ------
    InputError
        If a name or an option is wrong.
    Unsupported
        If the method does not support the instance, proves no time of it, or there is no bandwidth to change.
    SolverUnavailable
        If the solver is missing.
    """
    method = registry.get(request.model)
    with located(source="-O"):
        options = validated(lambda: method.options.model_validate(dict(request.options)))
    seen, reason = taken(method.supports, instance)
    if reason is not None:
        raise Unsupported(f"{method.name}: {reason}")
    posed = method.pose(seen, options)
    if posed.timing is not None and posed.timing.semantics not in EPOCHS:
        raise Unsupported(f"{method.name} counts in ticks that follow from the bandwidths, which must then stay")
    study = _Study(method, posed, options, request, stop or threading.Event())
    base: Number | None = None
    entries: list[Entry] = []
    try:
        with broken_off(study.budget), spending(study.budget):
            base = study.begun()
            for entry, value, at in study.parameters() if base is not None else ():
                if study.over:
                    break
                progress(f"sensitivity: {entry.name}")
                entries.append(replace(entry, up=one_sided(value, at, up=True), down=one_sided(value, at, up=False)))
    except (BrokenOff, OutOfTime):
        study.over = True
    if base is None:
        raise Unsupported(f"{method.name} proves no time of this instance that could be differentiated")
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
    """Solves one problem with changed bandwidths."""

    def __init__(self, method: Method, posed: Instance, options: Any, request: Request, stop: threading.Event) -> None:
        self.method, self.instance, self.options, self.request = method, posed, options, request
        self.solver: Any = None
        if method.needs_solver:
            self.solver = Noting(registry.solver(request.solver), request.solver_options)
            if not (found := self.solver.installed()).ok:
                raise SolverUnavailable(found.message)
        clock = WallClock(request.time_limit_s)
        self.budget = Budget(
            request.time_limit_s,
            request.threads,
            request.seed,
            request.gap,
            clock=clock,
            stop=stop,
            keep=clock.keep,
            spare_bytes=spare_bytes,
        )
        self.known: dict[str, Number | None] = {}
        self.solves = 0
        self.optimal = self.over = False
        self.plan: BandwidthPlan | None = None

    def begun(self) -> Number | None:
        """What the method proves of the problem as it is; None if that is nothing."""
        first = self.run(self.instance)
        self.optimal = first.status is Status.OPTIMAL
        self.plan = first.answer if isinstance(first.answer, BandwidthPlan) else None
        return self.seconds(self.instance)

    def run(self, posed: Instance) -> Outcome:
        """Run the method."""
        return self.method.run(posed, self.solver, self.budget, self.options)

    def seconds(self, posed: Instance) -> Number | None:
        """What the method proves of a problem, as the verifier recomputes it; None if nothing is proved in time."""
        if posed.sha256 not in self.known:
            self.known[posed.sha256] = self._solved(posed)
        return self.known[posed.sha256]

    def _solved(self, posed: Instance) -> Number | None:
        self.over = self.over or self.budget.exhausted
        if self.over or self.method.objective_unit(posed) != "s":
            return None
        self.solves += 1
        try:
            if (exact := self.method.proved_bound(posed, self.options)) is not None:
                return exact
            if self.method.supports(posed) is not None:
                return None
            outcome = self.run(posed)
            if outcome.bound is None or (self.optimal and outcome.status is not Status.OPTIMAL):
                return None
            recomputed = None
            if outcome.answer is not None:
                recomputed = verdict_of(posed, outcome.answer, outcome.certificate).bound
        except (OutOfTime, SolverUnavailable):
            raise
        except CwbError:
            return None
        seconds = float(outcome.bound if recomputed is None else recomputed)
        return seconds if 0.0 < seconds < inf else None

    def parameters(self) -> Iterator[tuple[Entry, Value, Fraction]]:
        """What can be changed, with the optimum as its function, and what it is now."""
        network = self.instance.network
        if isinstance(network, Topology):
            return self.links(network)
        if isinstance(network, WiredFabric):
            return self.dimensions(network)
        if self.plan is not None and self.instance.design is not None:
            return self.limits(self.instance.design, self.plan)
        raise Unsupported(f"{network} has no bandwidths that could be changed")

    def links(self, topology: Topology) -> Iterator[tuple[Entry, Value, Fraction]]:
        """Pairs of nodes with links between them: one of each class, then all of the class."""
        if len(topology.links) > MAX_LINKS:
            raise Unsupported(f"{len(topology.links):,} links; expected at most {MAX_LINKS:,}")
        classes = link_orbits(*self.colours(topology), lambda: self.budget.exhausted)
        if len(classes) > MAX_CLASSES:
            raise Unsupported(f"{len(classes):,} links that are not alike; expected at most {MAX_CLASSES}")
        names = [node.name for node in topology.nodes]
        for pairs in classes:
            members = tuple((names[a], names[b]) for a, b in pairs)
            at = bandwidth_of(topology, pairs[0])
            shown = Entry(" - ".join(members[0]), float(at) / 1e9, 1, len(pairs), members)
            for chosen in (pairs[:1], pairs)[: 1 if len(pairs) == 1 else 2]:

                def value(bandwidth: Fraction, at: Fraction = at, chosen: Sequence[Pair] = chosen) -> Number | None:
                    return self.seconds(self.instance.with_changes(network=widened(topology, chosen, bandwidth - at)))

                yield replace(shown, count=len(chosen)), value, at

    def colours(self, topology: Topology) -> tuple[list[Any], Sequence[Pair], list[Any]]:
        """What symmetries have to keep: what nodes and links are, who takes part, and whose data it is."""
        rank_of = {node: rank for rank, node in enumerate(topology.rank_nodes)}
        nodes = [
            (
                node.kind,
                node.multicast,
                node.buffer_bytes,
                node.reduces,
                *(_role(d, rank_of.get(n)) for d in self.instance.demands),
            )
            for n, node in enumerate(topology.nodes)
        ]
        timing = self.instance.timing
        changes = () if timing is None else timing.changes
        links = [
            (link.bandwidth_Bps, link.latency_s, tuple(replace(c, link=0) for c in changes if c.link == e))
            for e, link in enumerate(topology.links)
        ]
        return nodes, topology.link_ends, links

    def dimensions(self, fabric: WiredFabric) -> Iterator[tuple[Entry, Value, Fraction]]:
        """Dimensions of a fabric, each with the others as they are."""
        for d, at in enumerate(fabric.bandwidth_Bps):

            def value(bandwidth: Fraction, d: int = d) -> Number | None:
                changed = (*fabric.bandwidth_Bps[:d], bandwidth, *fabric.bandwidth_Bps[d + 1 :])
                return self.seconds(self.instance.with_changes(network=replace(fabric, bandwidth_Bps=changed)))

            yield Entry(f"dimension {d + 1}, {fabric.dimensions[d]}", float(at) / 1e9), value, at

    def limits(self, design: Design, plan: BandwidthPlan) -> Iterator[tuple[Entry, Value, Fraction]]:
        """Limits of a design, after which all is planned again; then the dimensions of the plan, the others kept."""
        for name, at, changed in limits_of(design, len(plan.bandwidth_Bps)):

            def planned(limit: Fraction, changed: Callable[[Fraction], Design] = changed) -> Number | None:
                return self.seconds(self.instance.with_changes(design=changed(limit)))

            yield Entry(name, float(at) / 1e9), planned, at
        for d, bandwidth in enumerate(plan.bandwidth_Bps):
            if bandwidth <= 0:
                continue

            def kept(bandwidth: Fraction, d: int = d) -> Number | None:
                rates = (*plan.bandwidth_Bps[:d], float(bandwidth), *plan.bandwidth_Bps[d + 1 :])
                self.solves += 1
                return verdict_of(self.instance, BandwidthPlan(rates, plan.parallelism)).objective

            name = f"dimension {d + 1}, {self.instance.fabric.dimensions[d]}, others kept"
            yield Entry(name, bandwidth / 1e9), kept, Fraction(bandwidth)


def limits_of(design: Design, dimensions: int) -> Iterator[tuple[str, Fraction, Callable[[Fraction], Design]]]:
    """Limits of a design in bytes per second: name, what each is, and the design with another one."""
    if (total := design.total_Bps) is not None:
        yield f"limit: total bandwidth = {show(total, 'GB/s')}", total, lambda to: replace(design, total_Bps=to)
    if (most := design.max_total_Bps) is not None:
        yield f"limit: total bandwidth <= {show(most, 'GB/s')}", most, lambda to: replace(design, max_total_Bps=to)
    texts = [constraint for text in design.constraints for constraint in parse_constraints(text, dimensions)]
    for index, constraint in enumerate(texts):
        if constraint.limit > 0:

            def changed(limit: Fraction, index: int = index) -> Design:
                limits = [c.limit if i != index else limit for i, c in enumerate(texts)]
                return replace(design, constraints=tuple(map(_written, texts, limits)))

            yield f"limit: {constraint.label}", constraint.limit, changed


def _written(constraint: LinearConstraint, limit: Fraction) -> str:
    """A constraint as text, with a limit to a thousandth of a byte per second."""
    terms = [
        f"{'-' if factor < 0 else '+'} {abs(factor)} B{d}"
        for d, factor in enumerate(constraint.coefficients, 1)
        if factor
    ]
    sign = "-" if limit < 0 else ""
    return f"{' '.join(terms)} {_SIGNS[constraint.comparison]} {sign}{float(abs(limit)):.3f} B/s"


def _role(demand: Demand, rank: int | None) -> str:
    """What a node is in a collective: its root, another member of the group, or nothing."""
    if rank is None or (demand.ranks is not None and rank not in demand.ranks):
        return ""
    root = demand.ranks[0] if demand.ranks is not None else 0
    return "root" if demand.collective in _ROOTED and rank == root else "member"


def bandwidth_of(topology: Topology, pair: Pair) -> Fraction:
    """Bandwidth between two nodes, in the direction that has more."""
    there, back = Fraction(0), Fraction(0)
    for link, ends in zip(topology.links, topology.link_ends, strict=True):
        there += link.bandwidth_Bps if ends == pair else 0
        back += link.bandwidth_Bps if ends == (pair[1], pair[0]) else 0
    return max(there, back)


def widened(topology: Topology, pairs: Sequence[Pair], more_Bps: Fraction) -> Topology:
    """The network with so much more bandwidth between pairs of nodes, in each direction that has a link.

    Of parallel links each has its part of it, in proportion.
    """
    chosen = {*pairs, *((b, a) for a, b in pairs)}
    total: dict[Pair, Fraction] = {}
    for link, ends in zip(topology.links, topology.link_ends, strict=True):
        if ends in chosen:
            total[ends] = total.get(ends, Fraction(0)) + link.bandwidth_Bps
    links = tuple(
        replace(link, bandwidth_Bps=link.bandwidth_Bps * (1 + more_Bps / total[ends])) if ends in total else link
        for link, ends in zip(topology.links, topology.link_ends, strict=True)
    )
    return Topology(topology.nodes, links)
