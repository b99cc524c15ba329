"""The schedules among which one is chosen for every size: which methods are run, and what each of their schedules costs.

A schedule is made for one size and serves all: its chunks are parts of the data. What it costs at another size is its
completion time there (:mod:`~cwb.schedules.completion`), the one model of time of all methods; of trees with the number
of pieces that is best at the size.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from math import isqrt

from ..core.answers import ChunkOrders, is_same
from ..core.budget import Progress, silent
from ..core.collective import CollectiveKind, Demand
from ..core.errors import CwbError, InputError, located
from ..core.fields import validated
from ..core.instance import Instance
from ..core.orbits import TreeOrbits
from ..core.pipelining import PIECES
from ..core.record import RunRecord
from ..core.translated import TranslatedTrees
from ..core.trees import TreePacking
from ..schedules.chunk_orders import lowered
from ..schedules.collective import heaviest
from ..schedules.completion import completion_of
from ..schedules.files import Written
from ..schedules.simulate.pipeline import Pipeline, pipeline
from ..schedules.verify import verify
from . import registry
from .clock import WallClock
from .fastest import SAME, sizes_between
from .request import Request
from .run import FinishedRun, run

#: What is run if nobody says what: methods that end in seconds on a machine of some boxes.
DEFAULT_MODELS = (
    "ring, direct, rhd, bruck, dbt, knomial, torus-rings, shifted-ring, swing, bfb, multitree, c-cube, tto, blink, "
    "forestcoll k=1, forestcoll k=2, forestcoll k=4, forestcoll, nccl algorithm=tree, blueconnect, themis, tacos, pccl"
)

#: Chunks of a rank's part, if nobody says how many.
DEFAULT_CHUNKS = (1, 4)

#: Collectives whose sizes are those of one rank's part in the runtimes' files.
_PARTS = frozenset({CollectiveKind.GATHER, CollectiveKind.SCATTER})


@dataclass(frozen=True)
class Item:
    """A method with its options, as ``--models`` names it."""

    model: str
    options: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return " ".join([self.model, *(f"{name}={value}" for name, value in self.options.items())])


@dataclass(frozen=True)
class Choice:
    """What is to be chosen.

    Parameters
    ----------
    instance : Instance
        The machine, and the group of a collective if it has one.
    kind : CollectiveKind
        The collective.
    first, last : int
        Sizes in bytes as the runtimes count them: of the full buffer, of a gather and a scatter of one rank's part.
    items : sequence of Item
        What is run.
    chunks : sequence of int
        Equal chunks of each rank's part, each of which is tried.
    time_limit_s, each_s : float or None
        Seconds for all runs, and for each.
    """

    instance: Instance
    kind: CollectiveKind
    first: int
    last: int
    items: Sequence[Item]
    chunks: Sequence[int] = DEFAULT_CHUNKS
    time_limit_s: float | None = None
    each_s: float | None = None

    @cached_property
    def ranks(self) -> int:
        """Ranks of the group."""
        known = self.instance.demand
        return self.instance.npus if known is None or known.ranks is None else len(known.ranks)

    def posed(self, size: int, chunks: int) -> Instance:
        """The collective of a size."""
        known = self.instance.demand
        full = Fraction(size * self.ranks if self.kind in _PARTS else size)
        return self.instance.with_changes(demand=Demand(self.kind, full, chunks, known.ranks if known else None))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes that schedules are made for: the middle one on a logarithmic scale, the first, the last."""
        return tuple(dict.fromkeys((isqrt(self.first * self.last), self.first, self.last)))


@dataclass(frozen=True, eq=False)
class Candidate:
    """A verified schedule, and what it costs.

    Parameters
    ----------
    label : str
        Method, options and chunks.
    item : Item
        The method.
    chunks : int
        Chunks that it was asked for.
    instance : Instance
        The problem that it was made for.
    answer : StepSchedule, Schedule, TreePacking, TreeOrbits or TranslatedTrees
        The schedule.
    unit : int
        Bytes of the full buffer for a byte of the runtimes' size.
    record : RunRecord
        Of its run.
    also : tuple of Candidate
        Others of the same program.
    """

    label: str
    item: Item
    chunks: int
    instance: Instance
    answer: Written
    unit: int
    record: RunRecord
    also: tuple[Candidate, ...] = ()
    _known: dict[int, float] = field(default_factory=dict)

    @property
    def made(self) -> tuple[Instance, Written]:
        """The schedule and what it was made for."""
        return self.instance, self.answer

    @property
    def made_for(self) -> int:
        """Size that it was made for, as the runtimes count it."""
        return int(self.instance.demand.size_bytes / self.unit) if self.instance.demand else 0

    def seconds(self, size: int) -> float:
        """Completion time at a size, of the fastest of those with its program.

        Raises
        ------
        InputError
            If there is none in the one model of time.
        """
        if size not in self._known:
            self._known[size] = min([self._seconds(size), *(other.seconds(size) for other in self.also)])
        return self._known[size]

    def joined(self, other: Candidate) -> Candidate:
        """Both as one, which costs what the faster one does."""
        return replace(self, also=(*self.also, other), _known={})

    @cached_property
    def _line(self) -> Pipeline | None:
        """The closed form of trees."""
        changing = self.instance.timing is not None and self.instance.timing.changes
        if changing or not isinstance(self.answer, TreePacking | TreeOrbits):
            return None
        if isinstance(self.answer, TreePacking):
            return pipeline(self.instance, self.answer)
        return pipeline(self.instance, self.answer.trees, heaviest(self.instance, self.answer)[1])

    def _seconds(self, size: int) -> float:
        if (line := self._line) is not None:
            flow_s = float(line.flow_s * size * self.unit / line.size_bytes)
            return min(float(line.seconds(pieces, [flow_s])[0]) for pieces in PIECES)
        found = completion_of(*at_size(self.instance, self.answer, Fraction(size * self.unit)))
        if found.seconds is None:
            raise InputError(found.why)
        return found.seconds


def at_size(instance: Instance, answer: Written, size_bytes: Fraction) -> tuple[Instance, Written]:
    """The same sends for another size of the collective; times of a schedule in time say no more than their order."""
    if instance.demand is None:
        raise InputError("expected a collective", place="collective")
    scale = size_bytes / instance.demand.size_bytes
    posed = instance.with_changes(demand=replace(instance.demand, size_bytes=size_bytes))
    if isinstance(answer, TreePacking):
        return posed, _trees_at(answer, posed.sha256, scale)
    if isinstance(answer, TreeOrbits):
        return posed, replace(answer, trees=_trees_at(answer.trees, posed.sha256, scale))
    if isinstance(answer, TranslatedTrees):
        return posed, replace(answer, instance_sha256=posed.sha256)
    chunks = replace(answer.chunks, unit_bytes=answer.chunks.unit_bytes * scale)
    return posed, replace(answer, instance_sha256=posed.sha256, chunks=chunks)


def _trees_at(packing: TreePacking, sha256: str, scale: Fraction) -> TreePacking:
    unit, sums = packing.unit_bytes * scale, packing.reduction
    sums = None if sums is None else replace(sums, instance_sha256=sha256, unit_bytes=unit)
    return replace(packing, instance_sha256=sha256, unit_bytes=unit, reduction=sums)


def items_of(text: str) -> list[Item]:
    """Read what ``--models`` says: methods with commas between them, each with its options after it.

    Raises
    ------
    InputError
        If a method is unknown, or what follows it is no option.
    """
    found: list[Item] = []
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
        with located(source="--models"):
            kinds = registry.get(words[0]).options
            with located(words[0]):
                validated(partial(kinds.model_validate, options), kinds.model_fields)
        found.append(Item(words[0], options))
    return found


@dataclass
class Candidates:
    """The schedules that were found.

    Parameters
    ----------
    found : list of Candidate
        In the order of the methods; of the same sends one.
    left_out : dict of str to str
        What has none, and why.
    records : list of RunRecord
        Of every run.
    why_ended : str
        Why not everything was run; empty if it was.
    interrupted : bool
        Whether that was Ctrl-C.
    """

    found: list[Candidate] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    records: list[RunRecord] = field(default_factory=list)
    why_ended: str = ""
    interrupted: bool = False

    def add(self, made: Candidate) -> None:
        """Keep a candidate, unless one of the same label has the same sends."""
        self.left_out.pop(made.label, None)
        demand = made.instance.demand
        alike = [one for one in self.found if one.label == made.label]
        if demand and any(is_same(at_size(*one.made, demand.size_bytes)[1], made.answer) for one in alike):
            return
        self.found.append(made)


def candidates(choice: Choice, progress: Progress = silent) -> Candidates:
    """Run every method for every number of chunks and the sizes of the choice, until the time is over.

    Trees depend neither on the size nor on the chunks, so that a method that answers with trees is run once.
    """
    clock, stop, result = WallClock(choice.time_limit_s), threading.Event(), Candidates()
    plan = [(size, chunks, item) for size in choice.sizes for chunks in choice.chunks for item in choice.items]
    trees: set[str] = set()
    for number, (size, chunks, item) in enumerate(plan):
        if str(item) in trees:
            continue
        left_s = clock.remaining_s()
        if stop.is_set() or (left_s is not None and left_s <= 0):
            why = "stopped" if stop.is_set() else f"the time limit of {choice.time_limit_s:g} s ran out"
            result.why_ended, result.interrupted = f"{why} after {number} of {len(plan)} runs", stop.is_set()
            break
        label = f"{item}, {chunks} chunks" if chunks > 1 else str(item)
        progress(f"{number + 1} of {len(plan)}: {label}, {size:,} B")
        limit_s = min((limit for limit in (left_s, choice.each_s) if limit is not None), default=None)
        request = Request(item.model, options=item.options, time_limit_s=limit_s)
        try:
            done = run(choice.posed(size, chunks), request, stop=stop)
        except CwbError as error:
            result.left_out.setdefault(label, str(error))
            continue
        except Exception as error:
            result.left_out.setdefault(label, f"internal error: {type(error).__name__}: {error}")
            continue
        result.records.append(done.record)
        if (made := _schedule(done)) is None:
            result.left_out.setdefault(label, done.record.message or f"{done.record.status}, no schedule")
            continue
        if isinstance(made[1], TreePacking):
            trees.add(label := str(item))
        result.add(Candidate(label, item, chunks, *made, choice.ranks if choice.kind in _PARTS else 1, done.record))
    if stop.is_set() and not result.interrupted:
        result.why_ended, result.interrupted = "stopped in the last run", True
    return result


def _schedule(done: FinishedRun) -> tuple[Instance, Written] | None:
    """The verified schedule of a run; orders of chunks as sends on the links of their fabric."""
    if done.instance is None or not done.record.verified:
        return None
    if isinstance(done.answer, ChunkOrders):
        with suppress(InputError):
            made = lowered(done.instance, done.answer)
            return made if verify(*made).ok else None
    return (done.instance, done.answer) if isinstance(done.answer, Written) else None


def different(found: Candidates, choice: Choice, sizes: Sequence[int] = ()) -> list[Candidate]:
    """The candidates that have a completion time, without those that cost the same at every size as one before.

    The sizes are those given, or half octaves of the choice.
    """
    sizes = sizes or sizes_between(choice.first, choice.last)
    kept: list[tuple[Candidate, list[float]]] = []
    for one in found.found:
        try:
            curve = [one.seconds(size) for size in sizes]
        except InputError as error:
            found.left_out[one.label] = f"no completion time: {error.problem}"
            continue
        if not any(all(abs(a - b) <= SAME * b for a, b in zip(curve, other, strict=True)) for _, other in kept):
            kept.append((one, curve))
    labels = Counter(one.label for one, _ in kept)
    return [
        one if labels[one.label] == 1 else replace(one, label=f"{one.label}, of {one.made_for:,} B") for one, _ in kept
    ]
