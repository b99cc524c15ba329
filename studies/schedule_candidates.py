"""Candidates of a selection by size: methods to run, and costs of their schedules (docs/exchange/select.md)."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial, singledispatch
from math import isqrt

from ..algorithms.bounds.schedule_bounds import best_bound
from ..core.answers import ChunkOrders, is_same
from ..core.budget import Progress, ignore
from ..core.collective import Collective, Demand
from ..core.equal_steps import TranslatedTrees
from ..core.errors import CwbError, InputError, locate_errors
from ..core.fields import run_validation
from ..core.instance import Instance
from ..core.network_views import supported_view
from ..core.pipelining import PIECES
from ..core.record import RunRecord
from ..core.schedule import Schedule, StepSchedule
from ..core.step_orbits import StepOrbits
from ..core.trees import Forest, TreeOrbits, TreePacking
from ..harness import registry
from ..harness.clock import WallClock
from ..harness.request import Request
from ..harness.run import FinishedRun, run, skip_scipy_statistics
from ..schedules.completion import completion_of, mode_of
from ..schedules.files import Written
from ..schedules.multirail import to_sends
from ..schedules.simulate.pipeline import Pipeline, pipeline
from ..schedules.simulate.run import totals_of
from ..schedules.simulate.transfers import Transfers, transfers_of
from ..schedules.verify import verify
from .fastest_by_size import SAME, sizes_between
from .inputs import Spec, load, machine_and_collective, seconds_or_none, whole_size

#: What is run if nobody says what: methods that end in seconds on a machine of some boxes. The answers that PCCL begins
#: with are those of other candidates, and most of its long search is without effect.
DEFAULT_MODELS = (
    "ring, direct, direct whole=true, rhd, rhd whole=true, bruck, dbt, knomial, torus-rings, shifted-ring, swing, bfb, "
    "multitree, c-cube, tto, blink, forestcoll k=1, forestcoll k=2, forestcoll k=4, forestcoll, nccl algorithm=tree, "
    "hierarchical, blueconnect, themis, tacos, pccl others=false steps=2000"
)

DEFAULT_CHUNKS = (1, 4)  #: Chunks of a rank's part, if nobody says how many.

#: Collectives whose sizes are those of one rank's part in the runtimes' files.
_PARTS = frozenset({Collective.GATHER, Collective.SCATTER})


@dataclass(frozen=True)
class Item:
    """A method with its options, as ``--models`` names it."""

    model: str
    options: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return " ".join([self.model, *(f"{name}={value}" for name, value in self.options.items())])


@dataclass(frozen=True)
class Choice:
    """A selection problem: machine, collective, sizes and methods."""

    instance: Instance  #: The machine, and the group of a collective if it has one.
    kind: Collective
    #: ``first`` and ``last``: sizes in bytes as the runtimes count them: of the full buffer, of a gather and a scatter
    #: of one rank's part.
    first: int
    last: int
    items: Sequence[Item]
    chunks: Sequence[int] = DEFAULT_CHUNKS  #: Numbers of equal chunks of each rank's part to try.
    #: ``time_limit_s`` and ``each_s``: time limit of all runs and of each, in seconds.
    time_limit_s: float | None = None
    each_s: float | None = None

    @cached_property
    def ranks(self) -> int:
        """Number of ranks of the group."""
        demand = self.instance.demand
        return self.instance.npus if demand is None or demand.ranks is None else len(demand.ranks)

    def with_size(self, size: int, chunks: int) -> Instance:
        """Return the instance with a collective of a size."""
        demand = self.instance.demand
        full = Fraction(size * self.ranks if self.kind in _PARTS else size)
        return self.instance.with_changes(demand=Demand(self.kind, full, chunks, demand.ranks if demand else None))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes that schedules are made for: the geometric mean, the first, the last."""
        return tuple(dict.fromkeys((isqrt(self.first * self.last), self.first, self.last)))

    def clock(self, reserved_s: float = 0.0) -> WallClock:
        """Return a clock with the time limit, of which some seconds are for comparing and writing, at most 60 %."""
        clock = WallClock(self.time_limit_s)
        clock.reserve_seconds(min(reserved_s, 0.6 * (self.time_limit_s or 0)))
        return clock

    def limit_s(self, clock: WallClock | None) -> float | None:
        """Return the time limit of a run: that of each, or less where less of the clock is left."""
        limits = (self.each_s, None if clock is None else clock.remaining_s())
        return min((limit for limit in limits if limit is not None), default=None)

    def bound(self, size: int, flow_s_per_byte: Fraction | None) -> float:
        """Return a proved lower bound at a size in seconds, with one for each byte that :func:`flow_bound` proved."""
        least, _ = best_bound(self.with_size(size, 1))
        return float(max(least, (flow_s_per_byte or 0) * size))


@dataclass(frozen=True, eq=False)
class Candidate:
    """A verified schedule and its cost."""

    label: str  #: Method, options and chunks as text.
    item: Item
    chunks: int
    instance: Instance
    answer: Written
    unit: int  #: Bytes of the full buffer per byte of the runtimes' size.
    record: RunRecord
    also: tuple[Candidate, ...] = ()  #: Other candidates with the same program.
    _times: dict[int, float] = field(default_factory=dict)

    @property
    def original_size(self) -> int:
        """Size of its problem, as the runtimes count it."""
        return int(self.instance.demand.size_bytes / self.unit) if self.instance.demand else 0

    def seconds(self, size: int) -> float:
        """Return the completion time at a size of the fastest candidate with its program."""
        if size not in self._times:
            self._times[size] = min([self._seconds(size), *(other.seconds(size) for other in self.also)])
        return self._times[size]

    def join(self, other: Candidate) -> Candidate:
        """Return both as one candidate with the cost of the faster one."""
        return replace(self, also=(*self.also, other), _times={})

    @cached_property
    def _line(self) -> Pipeline | None:
        """Closed form of the completion time of trees."""
        changing = self.instance.timing is not None and self.instance.timing.changes
        return None if changing or not isinstance(self.answer, Forest) else pipeline(self.instance, self.answer)

    @cached_property
    def _transfers(self) -> Transfers | None:
        """Sends of a schedule in steps, whose dependencies are the same at every size."""
        return transfers_of(self.instance, self.answer) if isinstance(self.answer, StepSchedule) else None

    def _seconds(self, size: int) -> float:
        if (line := self._line) is not None:
            flow_s = float(line.flow_s * size * self.unit / line.size_bytes)
            return min(float(line.seconds(pieces, [flow_s])[0]) for pieces in PIECES)
        if self._transfers is not None:
            transfers = self._transfers.scale(Fraction(size, self.original_size))
            return totals_of(self.instance, transfers, mode_of(self.answer, self.instance.routing)).completion_s
        completion = completion_of(*resize_schedule(self.instance, self.answer, Fraction(size * self.unit)))
        if completion.seconds is None:
            raise InputError(completion.why)
        return completion.seconds


def resize_schedule(instance: Instance, answer: Written, size_bytes: Fraction) -> tuple[Instance, Written]:
    """Return the same sends for another size; times of a timed schedule only keep their order."""
    if instance.demand is None:
        raise InputError("expected a collective", place="collective")
    scale = size_bytes / instance.collectives[0].size_bytes
    demand, *also = (replace(each, size_bytes=each.size_bytes * scale) for each in instance.demands)
    problem = instance.with_changes(demand=demand, also=tuple(also))
    return problem, scale_answer(answer, problem.sha256, scale)


@singledispatch
def scale_answer(answer: Written, sha256: str, scale: Fraction) -> Written:
    """Return an answer for another instance, with chunks scaled by a factor."""
    raise InputError(f"{type(answer).__name__} has no sends; expected a schedule or a packing of trees")


@scale_answer.register
def _(answer: StepSchedule | Schedule, sha256: str, scale: Fraction) -> StepSchedule | Schedule:
    chunks = replace(answer.chunks, unit_bytes=answer.chunks.unit_bytes * scale)
    return replace(answer, instance_sha256=sha256, chunks=chunks)


@scale_answer.register
def _scaled_trees(packing: TreePacking, sha256: str, scale: Fraction) -> TreePacking:
    unit, sums = packing.unit_bytes * scale, packing.reduction
    sums = None if sums is None else replace(sums, instance_sha256=sha256, unit_bytes=unit)
    return replace(packing, instance_sha256=sha256, unit_bytes=unit, reduction=sums)


@scale_answer.register
def _(answer: TreeOrbits, sha256: str, scale: Fraction) -> TreeOrbits:
    return replace(answer, trees=_scaled_trees(answer.trees, sha256, scale))


@scale_answer.register
def _(answer: StepOrbits, sha256: str, scale: Fraction) -> StepOrbits:
    chunks = replace(answer.base.chunks, unit_bytes=answer.base.chunks.unit_bytes * scale)
    return replace(answer, base=replace(answer.base, instance_sha256=sha256, chunks=chunks))


@scale_answer.register
def _(answer: TranslatedTrees, sha256: str, scale: Fraction) -> TranslatedTrees:
    return replace(answer, instance_sha256=sha256)


def items_of(text: str) -> list[Item]:
    """Parse ``--models``: comma-separated methods, each followed by its options."""
    items: list[Item] = []
    for part in text.split(","):
        words = part.split()
        if not words:
            raise InputError("a name is missing; expected methods such as 'ring, forestcoll k=2'", source="--models")
        pairs = [word.partition("=") for word in words[1:]]
        for name, equals, value in pairs:
            if not name or not value:
                text = (
                    f"{name + equals!r} after {words[0]} is no option; expected name=value, and commas between methods"
                )
                raise InputError(text, source="--models")
        options = {name.replace("-", "_"): value for name, _, value in pairs}
        with locate_errors(source="--models"):
            kinds = registry.get(words[0]).options
            with locate_errors(words[0]):
                run_validation(partial(kinds.model_validate, options), kinds.model_fields)
        items.append(Item(words[0], options))
    return items


def counts_of(chunks: str | Sequence[int]) -> tuple[int, ...]:
    """Parse ``--chunks``: numbers of chunks, without repetitions."""
    words = [word.strip() for word in chunks.split(",")] if isinstance(chunks, str) else list(map(str, chunks))
    if not words or not all(word.isdecimal() and len(word) <= 4 and int(word) for word in words):
        raise InputError(f"{chunks!r}; expected whole numbers from 1 to 9999, such as '1, 4'", source="--chunks")
    return tuple(dict.fromkeys(map(int, words)))


def size_ends(first: str, last: str, *options: str) -> tuple[int, int]:
    """Parse the smallest and the largest size, given by one or two options."""
    low, high = (whole_size(text, option) for text, option in zip((first, last), options, strict=True))
    if low > high:
        raise InputError(f"{low:,} B is more than {high:,} B; expected a range of sizes", source=options[0])
    return low, high


def choice_of(
    spec: Spec,
    collective: str | None,
    first: int,
    last: int,
    models: str,
    chunks: str | Sequence[int],
    time_limit_s: float | None,
    run_limit_s: float | None,
) -> Choice:
    """Return the selection problem that arguments of a verb state, with ``models`` and ``chunks`` as lists."""
    items, numbers = items_of(models), counts_of(chunks)
    skip_scipy_statistics()  # before a method imports scipy
    limits = seconds_or_none(time_limit_s, "time_limit_s"), seconds_or_none(run_limit_s, "run_limit_s")
    problem, kind = machine_and_collective(load(spec), collective)
    return Choice(problem, kind, first, last, items, numbers, *limits)


@dataclass
class Candidates:
    """Schedules of all runs."""

    #: Candidates in the order of the methods, without duplicates of the same sends.
    pool: list[Candidate] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    records: list[RunRecord] = field(default_factory=list)
    why_ended: str = ""  #: Reason why not everything was run; empty if it was.
    interrupted: bool = False
    flow_s_per_byte: Fraction | None = None  #: Proved lower bound in seconds per byte.

    def add(self, new: Candidate) -> None:
        """Add a candidate, unless one of the same label has the same sends."""
        self.left_out.pop(new.label, None)
        demand = new.instance.demand
        alike = [one for one in self.pool if one.label == new.label]
        if demand and any(
            is_same(resize_schedule(one.instance, one.answer, demand.size_bytes)[1], new.answer) for one in alike
        ):
            return
        self.pool.append(new)


def candidates(
    choice: Choice,
    progress: Progress = ignore,
    stop: threading.Event | None = None,
    clock: WallClock | None = None,
    compared: Sequence[int] = (),
) -> Candidates:
    """Run every method for all numbers of chunks and the sizes of the choice, until the time limit.

    The limit is that of ``clock``, if it is given, and includes the costs of schedules at the sizes ``compared``.
    """
    clock, stop, result = clock or choice.clock(), stop or threading.Event(), Candidates()
    able = [item for item in choice.items if _supports(choice, item, result)]
    plan = [(size, chunks, item) for size in choice.sizes for chunks in choice.chunks for item in able]
    trees: set[str] = set()
    for number, (size, chunks, item) in enumerate(plan):
        if str(item) in trees:
            continue
        if stop.is_set() or clock.remaining_s() == 0:
            why = "stopped" if stop.is_set() else f"the time limit of {choice.time_limit_s:g} s ran out"
            result.why_ended, result.interrupted = f"{why} after {number} of {len(plan)} runs", stop.is_set()
            break
        label = f"{item}, {chunks} chunks" if chunks > 1 else str(item)
        progress(f"{number + 1} of {len(plan)}: {label}, {size:,} B")
        request = Request(item.model, options=item.options, time_limit_s=choice.limit_s(clock))
        try:
            finish = run(choice.with_size(size, chunks), request, stop=stop)
        except Exception as error:
            internal = "" if isinstance(error, CwbError) else f"internal error: {type(error).__name__}: "
            result.left_out.setdefault(label, f"{internal}{error}")
            continue
        result.records.append(finish.record)
        if (schedule := _schedule(finish)) is None:
            result.left_out.setdefault(label, finish.record.message or f"{finish.record.status}, no schedule")
            continue
        if isinstance(schedule[1], TreePacking):
            trees.add(label := str(item))
        one = Candidate(label, item, chunks, *schedule, choice.ranks if choice.kind in _PARTS else 1, finish.record)
        result.add(one)
        with suppress(InputError):  # of one without a time, distinct_candidates tells why
            all(map(one.seconds, compared if result.pool[-1] is one else ()))
    if stop.is_set() and not result.interrupted:
        result.why_ended, result.interrupted = "stopped in the last run", True
    return result


def _supports(choice: Choice, item: Item, result: Candidates) -> bool:
    """Return True if a method supports some number of chunks; otherwise keep the reason."""
    method = registry.get(item.model)
    refusals = [supported_view(method, choice.with_size(choice.last, chunks))[1] for chunks in choice.chunks]
    if not all(refusals):
        return True
    result.left_out[str(item)] = f"{item.model}: {refusals[0]}"
    return False


def bounding_method(kind: Collective) -> str:
    """Return the method whose bound is taken, and differentiated."""
    return "all-to-all-mcf" if kind is Collective.ALL_TO_ALL else "forestcoll"


def flow_bound(choice: Choice, stop: threading.Event | None = None, clock: WallClock | None = None) -> Fraction | None:
    """Return a verified lower bound in seconds per byte, without latency; None if there is none in time."""
    method, problem = registry.get(bounding_method(choice.kind)), choice.with_size(choice.last, 1)
    try:
        if supported_view(method, problem)[1] is None:
            exact = method.proved_bound(problem, method.options())
            if exact is not None:
                return exact / choice.last
        record = run(problem, Request(method.name, time_limit_s=choice.limit_s(clock)), stop=stop).record
    except CwbError:
        return None
    return None if record.bound is None or not record.verified else Fraction(record.bound) / choice.last


def _schedule(result: FinishedRun) -> tuple[Instance, Written] | None:
    """Return the verified schedule of a run, with chunk orders as sends on the links of their fabric."""
    if result.instance is None or not result.record.verified:
        return None
    if isinstance(result.answer, ChunkOrders):
        with suppress(InputError):
            sends = to_sends(result.instance, result.answer)
            return sends if verify(*sends).ok else None
    return (result.instance, result.answer) if isinstance(result.answer, Written) else None


def distinct_candidates(
    results: Candidates, choice: Choice, sizes: Sequence[int] = (), stop: threading.Event | None = None
) -> list[Candidate]:
    """Return candidates with distinct completion times; of those that agree at every size, the first.

    The sizes are the given ones, or half octaves of the choice. Once ``stop`` is set, the others are not compared.
    """
    sizes = sizes or sizes_between(choice.first, choice.last)
    distinct: list[tuple[Candidate, list[float]]] = []
    for one in results.pool:
        if stop is not None and stop.is_set():
            break
        try:
            curve = [one.seconds(size) for size in sizes]
        except InputError as error:
            results.left_out[one.label] = f"no completion time: {error.problem}"
            continue
        if not any(all(abs(a - b) <= SAME * b for a, b in zip(curve, other, strict=True)) for _, other in distinct):
            distinct.append((one, curve))
    labels = Counter(one.label for one, _ in distinct)
    return [
        one if labels[one.label] == 1 else replace(one, label=f"{one.label}, of {one.original_size:,} B")
        for one, _ in distinct
    ]
