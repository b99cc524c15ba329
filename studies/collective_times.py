"""Times of a workload's collectives: closed form, bound, latency and bandwidth, or a schedule."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from math import inf, prod
from typing import Any

import numpy as np

from ..algorithms.bounds.schedule_bounds import best_bound
from ..core.budget import Progress, ignore
from ..core.collective import Collective, Demand, collective_names
from ..core.design import PartialUse
from ..core.errors import InputError, Unsupported, did_you_mean, locate_errors
from ..core.fabric import Block, Fabric, WiredFabric, coordinates
from ..core.instance import Instance
from ..core.network_views import links_of, supported_view
from ..core.record import RunRecord
from ..core.schedule import Floats
from ..core.topology import Topology
from ..core.units import SIZES, UnitKind, amount, parse
from ..core.workload import Communication, Span
from ..harness import registry
from ..harness.request import Request
from ..harness.run import run
from ..schedules.completion import completion_of
from ..schedules.files import Written
from ..schedules.training import communication_time

ANALYTICAL = "analytical"  #: The closed form of multi-rail collectives (:mod:`cwb.schedules.training`).
IDEAL = "ideal"  #: The largest lower bound that needs no search.
AUTO = "auto"  #: The fastest of :data:`TRIED` for each collective.
TRIED = ("ring", "direct", "rhd", "dbt", "nccl", "forestcoll", "hierarchical", "pccl")
EVERYTHING = "all"  #: The key of what is said of all collectives.
WORDS = (ANALYTICAL, IDEAL, AUTO)  #: Words that are no names of methods.
MAX_GROUPS = 4_096  #: Groups of one name that are scheduled together.


@dataclass(frozen=True)
class TimedCollective:
    """A collective with its time."""

    communication: Communication
    ranks: int
    method: str  #: Source of the seconds, such as a method's name.
    seconds: Fraction
    verified: bool | None = None  #: True if a schedule of all groups was verified and simulated; else None.
    bound_s: float | None = None  #: Lower bound on the time; None if the method has none.
    #: Seconds for which all groups use every link; None without a schedule.
    busy_s: Floats | None = field(default=None, compare=False)


@dataclass
class CollectiveTimes:
    """Seconds of collectives, each computed once."""

    #: A :class:`~cwb.core.fabric.WiredFabric` or links; of a design only the use of parts of a dimension matters.
    instance: Instance
    shape: Fabric  #: Dimensions that spans refer to: those of the network, or for links one for each degree.
    groups: Mapping[str, Span]
    #: Source of the seconds of ``GROUP/COLLECTIVE``, ``GROUP``, ``COLLECTIVE`` or :data:`EVERYTHING`:
    #: :data:`ANALYTICAL`, :data:`IDEAL`, a latency and an algbw such as ``20 us + 11 GB/s``, or a method.
    methods: Mapping[str, str]
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    chunks: int = 1
    seed: int = 0
    time_limit_s: float | None = None
    progress: Progress = ignore
    results: dict[Communication, TimedCollective] = field(default_factory=dict)

    def __call__(self, communication: Communication) -> Fraction:
        """Return the seconds of a collective; raise Unsupported if its method finds no answer."""
        if communication not in self.results:
            self.results[communication] = self._time_collective(communication)
        return self.results[communication].seconds

    def _time_collective(self, communication: Communication) -> TimedCollective:
        span = self.groups[communication.group]
        ranks = prod(span)
        spec = self._method(communication)
        if ranks == 1 or not communication.size_bytes:
            return TimedCollective(communication, ranks, "nothing to move", Fraction(0))
        if spec == ANALYTICAL:
            return TimedCollective(communication, ranks, spec, self._analytical(communication, span))
        if (line := line_of(spec)) is not None:
            return TimedCollective(communication, ranks, spec, line[0] + communication.size_bytes / line[1])
        case = self._pose_collective(communication, span)
        if spec == IDEAL:
            on_links = case.with_changes(network=links_of(case.network))
            return TimedCollective(communication, ranks, spec, best_bound(on_links)[0])
        if spec != AUTO:
            return self._schedule_collective(communication, ranks, spec, case)
        candidates: list[TimedCollective] = []
        for name in TRIED:
            try:
                candidates.append(self._schedule_collective(communication, ranks, name, case))
            except Unsupported as error:
                self.progress(str(error))
        if not candidates:
            raise Unsupported(f"none of {', '.join(TRIED)} schedules {communication.collective.name} of {ranks} ranks")
        return min(candidates, key=lambda each: each.seconds)

    def slowdowns(self, together: Sequence[Communication]) -> list[Fraction]:
        """Return the largest load of a link that each of several collectives uses at once, at least 1.

        A collective's load of a link is the part of its time for which it transmits there. If all take their time
        times this, no link has more than it can carry.
        """
        timed = [self.results[each] for each in together]
        loads = [0 if each.busy_s is None else each.busy_s / float(each.seconds) for each in timed]
        total: Any = sum(loads)
        most = [1.0 if each.busy_s is None else float(max(1, *total[each.busy_s > 0])) for each in timed]
        return [Fraction(factor).limit_denominator(1000) for factor in most]

    def _method(self, communication: Communication) -> str:
        """Return the method of a collective, from its most specific key."""
        group, kind = communication.group, communication.collective.name
        for key in (f"{group}/{kind}", group, kind, EVERYTHING):
            if key in self.methods:
                return self.methods[key]
        if isinstance(self.instance.network, Fabric):
            return ANALYTICAL
        raise InputError(
            f"nothing for the {kind} of the group {group}; expected such as {kind}=ring or "
            f"{kind}='20 us + 11 GB/s', since {ANALYTICAL} is for networks of dimensions",
            source="--method",
        )

    def _analytical(self, communication: Communication, span: Span) -> Fraction:
        network = self.instance.network
        if not isinstance(network, WiredFabric):
            raise InputError(f"{ANALYTICAL} is for networks of dimensions such as RI(4)_SW(32)", source="--method")
        seconds = communication_time(self.instance, communication, span, network.bandwidth_Bps)
        if seconds == inf:
            raise InputError(f"a dimension of the group {communication.group} has no bandwidth", source="--bandwidth")
        return Fraction(seconds)

    def _pose_collective(self, communication: Communication, span: Span) -> Instance:
        """Return the instance of a collective in all groups of a name; a message is a broadcast to one rank."""
        kind, size = communication.collective, communication.size_bytes
        network = self.instance.network
        if isinstance(network, Fabric):
            network, members = self._own(network, span), [tuple(range(prod(span)))]
        else:
            members = groups_of(self.shape, span)
            if len(members) > MAX_GROUPS:
                text = f"{len(members):,} groups {communication.group} at once; expected at most {MAX_GROUPS:,}"
                raise Unsupported(text)
        if kind is Collective.POINT_TO_POINT:
            kind, members = Collective.BROADCAST, [ranks[:2] for ranks in members]
        npus = network.npus if isinstance(network, Fabric) else len(network.ranks)
        demands = [Demand(kind, size, self.chunks, None if ranks == tuple(range(npus)) else ranks) for ranks in members]
        costs, routing = self.instance.rank_costs, self.instance.routing
        return Instance(self.instance.name, network, demands[0], tuple(demands[1:]), rank_costs=costs, routing=routing)

    def _own(self, network: Fabric, span: Span) -> WiredFabric:
        """Return the dimensions of one group; groups of the same name are disjoint."""
        assert isinstance(network, WiredFabric)  # noqa: S101 (made by 'training')
        wide = [d for d, n in enumerate(span) if n > 1]
        dimensions = tuple(replace(network.dimensions[d], size=span[d]) for d in wide)
        rates = tuple(network.bandwidth_Bps[d] * self._part(network, d, span[d]) for d in wide)
        return WiredFabric(dimensions, rates, tuple(network.latency_s[d] for d in wide))

    def _part(self, network: Fabric, d: int, n: int) -> Fraction:
        """Return a group's share of a dimension's bandwidth if it spans a part of it."""
        dimension, design = network.dimensions[d], self.instance.design
        if design is None or design.partial_use is PartialUse.FULL or dimension.block is not Block.FULLY_CONNECTED:
            return Fraction(1)
        return Fraction(n - 1, dimension.size - 1)

    def _schedule_collective(
        self, communication: Communication, ranks: int, name: str, case: Instance
    ) -> TimedCollective:
        """Schedule all groups together, or each alone if the method has one collective: then links add their times."""
        apart = bool(case.also) and supported_view(registry.get(name), case)[1] is not None
        problems = [case.with_changes(demand=each, also=()) for each in case.demands] if apart else [case]
        what = f"{name}: {communication.collective.name} of {amount(communication.size_bytes, SIZES)}, {ranks} ranks"
        runs = [self._verified_run(each, name, what) for each in problems]
        seconds = max(Fraction(record.objective or 0) for record, _ in runs)
        busy: Floats | None = None
        if isinstance(case.network, Topology) and all(len(each) == len(case.network.links) for _, each in runs):
            busy = links = np.sum([each for _, each in runs], axis=0)
            seconds = max(seconds, Fraction(float(links.max())))
        self.progress(f"{what}: {float(seconds) * 1e6:,.6g} us")
        return TimedCollective(
            communication,
            ranks,
            name,
            seconds,
            None if apart else True,  # what groups that are scheduled alone take together is an estimate
            max((r.bound for r, _ in runs if r.bound), default=None),
            busy,
        )

    def _verified_run(self, case: Instance, name: str, what: str) -> tuple[RunRecord, Floats]:
        """Run a method, and return its record and the seconds of every link."""
        request = Request(name, options=self.options.get(name, {}), seed=self.seed, time_limit_s=self.time_limit_s)
        stop = threading.Event()
        final = run(case, request, stop=stop)
        record = final.record
        if stop.is_set():  # Ctrl-C ends the whole training, not one of its runs
            raise KeyboardInterrupt
        if record.verified is not True or record.objective is None or record.objective_unit != "s":
            reason = record.message or "; ".join(record.violations) or f"its objective is no time but {record.status}"
            raise Unsupported(f"{what}: {reason}")
        if not isinstance(case.network, Topology) or final.instance is None or not isinstance(final.answer, Written):
            return record, np.zeros(0)
        return record, completion_of(final.instance, final.answer).busy_s


def line_of(spec: str) -> tuple[Fraction, Fraction] | None:
    """Parse ``LATENCY + ALGBW``; return None for any other text."""
    latency, plus, rate = (part.strip() for part in spec.partition(" + "))
    if not plus:
        return None
    with locate_errors(source="--method"):
        return parse(latency, UnitKind.TIME), parse(rate, UnitKind.RATE, allow_zero=False)


def checked_methods(methods: Mapping[str, str], groups: Iterable[str]) -> dict[str, str]:
    """Check the methods of collectives."""
    names, kinds = list(groups), collective_names()
    for key, spec in methods.items():
        parts = key.split("/")
        choices = [[EVERYTHING, *names, *kinds]] if len(parts) == 1 else [names, kinds]
        if len(parts) > 2 or any(part not in some for part, some in zip(parts, choices, strict=True)):
            hint = did_you_mean(key, [*names, *kinds])
            expected = f"expected a group ({', '.join(names)}), a collective, or GROUP/COLLECTIVE{hint}"
            raise InputError(f"{key!r} is unknown; {expected}", source="--method")
        if spec not in WORDS and line_of(spec) is None:
            try:
                registry.get(spec)
            except InputError as error:
                text = f"{error.problem}; or {', '.join(WORDS)}, or such as '20 us + 11 GB/s'"
                raise InputError(text, source="--method") from None
    return dict(methods)


def groups_of(shape: Fabric, span: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the ranks of every group of a span that covers each dimension completely or not at all."""
    if any(n not in (1, size) for n, size in zip(span, shape.sizes, strict=True)):
        raise InputError(f"{list(span)} spans a part of a dimension of {shape}; expected 1 or all of it")
    stride = [prod(shape.sizes[:d]) for d in range(len(span))]
    places = (place[::-1] for place in product(*(range(n) for n in reversed(span))))  # the innermost dimension fastest
    offsets = [sum(i * s for i, s in zip(place, stride, strict=True)) for place in places]
    firsts = [
        rank
        for rank in range(shape.npus)
        if all(c == 0 or n == 1 for c, n in zip(coordinates(rank, shape.sizes), span, strict=True))
    ]
    return [tuple(first + offset for offset in offsets) for first in firsts]
