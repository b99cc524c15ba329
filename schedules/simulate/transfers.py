"""Common form of answers for the simulators: sends with sizes and dependencies.

A send waits at a *slot*, the pair of its chunk and its source, and feeds another one, the pair of its chunk and its
target. It leaves at a *level*, and its data is available to sends of later levels: levels are the steps of a schedule
in steps, the depths of trees, or the ranks of the given times. Links serve timed sends by start, then by end.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from ...core.answers import Answer
from ...core.errors import InputError
from ...core.instance import Instance
from ...core.kernel import kernel, worth_compiling
from ...core.schedule import Floats, Ints, Schedule, Sends, StepSchedule, offsets
from ...core.trees import TreePacking
from ..trees import tree_sends
from ..verify.answers import Whole, write_out
from ..verify.copies import numbered_slots, strides

#: Part of a given time that is taken for rounding, where the order of sends that start or end together is concerned.
ROUNDING = 1e-14

_DIGITS, _MORE = 16, 4  #: Binary digits of the first table of distinct times, and by how many more each next one has.


def served_order(start_s: Floats, end_s: Floats) -> Any:
    """Sort sends by start, then end, then position; times that differ only by rounding are equal."""
    if not worth_compiling(len(start_s)):
        return np.lexsort((rank_times(end_s), rank_times(start_s))).astype(np.int64)
    order = np.arange(len(start_s), dtype=np.int32 if len(start_s) < 2**31 else np.int64)
    for times in (end_s, start_s):
        place = _places(*_number_times(times))
        order = _sort_by_place(order, place, int(place.max(initial=0)) + 1)
    return order


def rank_times(times_s: Floats) -> Any:
    """Rank times from 0; those that differ only by rounding are equal."""
    return _places(*np.unique(times_s, return_inverse=True))


def _places(values: Floats, where: Ints) -> Any:
    """Rank times; those that differ only by rounding are equal."""
    return np.cumsum(np.diff(values, prepend=0.0) > ROUNDING * values).astype(where.dtype)[where]


def _number_times(times_s: Floats) -> tuple[Floats, Any]:
    """Return distinct times in order (some perhaps twice) and the number of each given one, by hashing."""
    number = np.empty(len(times_s), dtype=np.int32 if len(times_s) < 2**31 else np.int64)
    digits = _DIGITS
    while True:
        table, values = np.full(1 << digits, -1, dtype=number.dtype), np.empty(1 << (digits - 1))
        count = _number(times_s, times_s.view(np.uint64), np.uint64(64 - digits), table, values, number)
        if count >= 0:
            break
        digits += _MORE
    order = np.argsort(values[:count])
    rank = np.empty(count, dtype=number.dtype)
    rank[order] = np.arange(count, dtype=number.dtype)
    return values[order], rank[number]


@kernel
def _number(times: Any, bits: Any, shift: Any, table: Any, values: Any, number: Any) -> int:
    """Assign numbers to distinct values by first occurrence; return their count, -1 if half full."""
    count, mask, factor = 0, len(table) - 1, np.uint64(0x9E3779B97F4A7C15)
    for at in range(len(times)):
        place = np.int64((bits[at] * factor) >> shift)
        while table[place] >= 0 and values[table[place]] != times[at]:
            place = (place + 1) & mask
        if table[place] < 0:
            if count == len(values):
                return -1
            values[count], table[place] = times[at], count
            count += 1
        number[at] = table[place]
    return count


@kernel
def _sort_by_place(order: Any, place: Any, count: int) -> Any:
    first = np.zeros(count + 1, dtype=np.int64)
    for at in place:
        first[at + 1] += 1
    first = np.cumsum(first)
    order_of = np.empty(len(order), dtype=order.dtype)
    for item in order:
        order_of[first[place[item]]] = item
        first[place[item]] += 1
    return order_of


SAME_TIME = 1e-9  #: Given times that differ by less than this part of the schedule's length are the same.


@dataclass(frozen=True, eq=False)
class Transfers:
    """Sends in the order in which ties are broken."""

    sends: Sends
    chunk_bytes: Floats
    leaves: Ints  #: Level at which each send leaves; shape (sends,).
    arrives: Ints  #: Lowest level of the sends that may forward it; shape (sends,).
    nodes: int
    barrier: bool
    place: Ints | None  #: Position of each send in the answer; None if they are in the same order.
    fixed_order: bool = False  #: Links serve the sends in this order, not in that of their readiness.
    units: Ints | None = None  #: Size of each chunk in units; None if not known exactly.
    unit_bytes: Fraction = Fraction(1)
    in_step: bool = False
    #: What dependencies are about, if it is not the chunk: the chunk of which a send carries a part.
    data: Ints | None = None
    #: First link of the schedule's own path, which tells messages apart; None if paths are the schedule's.
    first_link: Ints | None = None
    #: 1 for sends that pay the overhead of a message, 0 for others; None if nothing costs anything.
    pays: Floats | None = None

    @cached_property
    def slot_columns(self) -> tuple[int, int, Ints, Ints, int]:
        """Strides of chunk and number in a slot, numbers at departure and arrival, and count; the last is never fed."""
        sends, chunks = self.sends, max(len(self.chunk_bytes), int(self.sends.chunk.max(initial=-1)) + 1)
        if self.barrier:
            zeros = np.zeros(len(sends), dtype=np.int64)
            return 0, 1, zeros, zeros, 2
        if self.in_step:
            return 0, 1, sends.source, sends.target, self.nodes + 1
        if self.data is not None:
            whole = replace(self, sends=replace(sends, chunk=self.data), data=None)
            return 0, 1, whole.waits_at, whole.feeds, whole.slots
        if chunks * self.nodes <= 2 * len(sends):
            return *strides(sends, chunks, self.nodes), sends.source, sends.target, chunks * self.nodes + 1
        if worth_compiling(len(sends)):
            waiting, fed_slot, count = numbered_slots(sends, chunks, self.nodes)
            return 0, 1, np.where(waiting >= 0, waiting, count).astype(np.int64), fed_slot.astype(np.int64), count + 1
        fed, slot = np.unique(sends.chunk * self.nodes + sends.target, return_inverse=True)
        waits_at = sends.chunk * self.nodes + sends.source
        at = np.searchsorted(fed, waits_at)
        has_feed = at < len(fed)
        has_feed[has_feed] = fed[at[has_feed]] == waits_at[has_feed]
        return 0, 1, np.where(has_feed, at, len(fed)), slot.astype(np.int64), len(fed) + 1

    @cached_property
    def waits_at(self) -> Ints:
        """Slot that each send leaves from."""
        per_chunk, per_number, leaving, _, _ = self.slot_columns
        return self.sends.chunk * per_chunk + leaving * per_number

    @cached_property
    def feeds(self) -> Ints:
        """Slot that each send arrives in."""
        per_chunk, per_number, _, arriving, _ = self.slot_columns
        return self.sends.chunk * per_chunk + arriving * per_number

    @property
    def slots(self) -> int:
        """Number of slots."""
        return self.slot_columns[-1]

    @cached_property
    def gate_columns(self) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        """Columns of :class:`~.events.Gates` without times; what waits for nothing lacks one arrival, the beginning."""
        levels = int(max(self.leaves.max(initial=0), self.arrives.max(initial=0))) + 1
        keys, waits = np.unique(self.waits_at * levels + self.leaves, return_inverse=True)
        slot = keys // levels
        arrivals = self.feeds * levels + self.arrives
        order, fed_by = np.argsort(arrivals), np.empty(len(arrivals), dtype=np.int64)
        fed_by[order] = np.searchsorted(keys, arrivals[order])  # several times faster in order
        inside = fed_by < len(keys)
        inside[inside] = slot[fed_by[inside]] == self.feeds[inside]
        chained = slot[1:] == slot[:-1]
        missing = np.bincount(fed_by[inside], minlength=len(keys))
        missing[1:] += chained
        following = np.full(len(keys), -1)
        following[:-1][chained] = np.flatnonzero(chained) + 1
        members, offset = np.argsort(waits, kind="stable"), offsets(np.bincount(waits, minlength=len(keys)))
        return np.where(inside, fed_by, -1), following, missing, members, offset

    @cached_property
    def service(self) -> dict[Any, tuple[Ints, ...]]:
        """Orders of all hops in the last two simulations of events at any sizes, by their rules."""
        return {}

    def scale(self, factor: Fraction) -> "Transfers":
        """Return the same sends, with the same dependencies, of chunks that are larger by a factor."""
        unit_bytes = self.unit_bytes * factor
        sizes: Any = self.chunk_bytes * float(factor) if self.units is None else self.units * float(unit_bytes)
        scaled = replace(self, chunk_bytes=sizes, unit_bytes=unit_bytes)
        vars(scaled).update(
            {name: getattr(self, name) for name in ("slot_columns", "waits_at", "feeds", "gate_columns", "service")}
        )
        return scaled


def sends_of(instance: Instance, answer: Answer, *, pieces: int | Ints = 1) -> tuple[Sends, Floats]:
    """Return the sends of an answer in the order of its trace, and the bytes of every chunk."""
    return columns_of(instance, write_out(answer, instance), pieces)[:2]


def transfers_of(
    instance: Instance, answer: Answer, *, barrier: bool = False, in_step: bool = False, pieces: int | Ints = 1
) -> Transfers:
    """Convert an answer to sends with their dependencies."""
    if (barrier or in_step) and not isinstance(answer, StepSchedule):
        raise InputError("only schedules in steps have barriers", place="barrier")
    whole = write_out(answer, instance)
    sends, chunk_bytes, levels = columns_of(instance, whole, pieces)
    place = None
    if fixed := isinstance(whole, Schedule):
        leaves, arrives, place = _rank_times(whole)
    else:
        leaves, arrives = levels, levels + 1
        if (leaves[1:] < leaves[:-1]).any():
            place = np.argsort(leaves, kind="stable").astype(np.int64)
    if place is not None:
        sends, leaves, arrives = sends.take(place), leaves[place], arrives[place]
    nodes = len(instance.topology.nodes)
    units: Ints | None
    if isinstance(whole, TreePacking):
        number = int(np.max(pieces, initial=1))
        units, unit_bytes = np.tile(whole.units, number), whole.unit_bytes / number
        if np.min(pieces, initial=number) < number:  # not known exactly
            units, unit_bytes = None, Fraction(1)
    else:
        units, unit_bytes = whole.chunks.units, whole.chunks.unit_bytes
    return Transfers(sends, chunk_bytes, leaves, arrives, nodes, barrier, place, fixed, units, unit_bytes, in_step)


def columns_of(instance: Instance, answer: Whole, pieces: int | Ints = 1) -> tuple[Sends, Floats, Ints]:
    """Return sends, chunk sizes and levels of an answer; reject numbers out of range, the verifier all else."""
    topology = instance.topology
    if answer.instance_sha256 != instance.sha256:
        raise InputError(f"made for another instance than {instance.name}", place="answer.instance_sha256")
    if (least := int(np.min(pieces, initial=2**62))) < 1:
        raise InputError(f"{least} pieces; expected at least 1", place="pieces")
    if isinstance(answer, TreePacking):
        sends, sizes_bytes, levels = tree_sends(topology, answer, pieces)
    elif np.any(np.asarray(pieces) > 1):
        raise InputError("only trees are divided into pieces", place="pieces")
    else:
        sends, sizes_bytes = answer.sends, answer.chunks.sizes_bytes
        levels = answer.step if isinstance(answer, StepSchedule) else np.zeros(len(sends), dtype=np.int64)
    for name, column, count in (
        ("chunk", sends.chunk, len(sizes_bytes)),
        ("source", sends.source, len(topology.nodes)),
        ("target", sends.target, len(topology.nodes)),
        ("path_links", sends.path_links, len(topology.links)),
    ):
        if len(column) and (column.min() < 0 or column.max() >= count):
            raise InputError(f"names a {name} that does not exist; expected numbers below {count}", place="sends")
    return sends, sizes_bytes, levels


def _rank_times(schedule: Schedule) -> tuple[Ints, Ints, Ints]:
    """Return ranks of starts and ends, and the starts' order; an end at a start is in time."""
    length = float(schedule.end_s.max()) if len(schedule.sends) else 0.0
    times = np.concatenate([schedule.start_s, schedule.end_s - SAME_TIME * length])
    ranks = np.unique(times, return_inverse=True)[1].astype(np.int64)
    order = np.asarray(served_order(schedule.start_s, schedule.end_s), dtype=np.int64)
    return ranks[: len(schedule.sends)], ranks[len(schedule.sends) :], order
