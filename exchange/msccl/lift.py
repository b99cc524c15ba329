"""MSCCL programs as schedules in steps, so that they are verified, timed, drawn and compared like any other.

A program is run once, and every chunk that arrives becomes a send of the chunk of the collective that it is part of
(docs/exchange/msccl.md, "In").
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from ...core.collective import Collective, Demand
from ...core.errors import InputError
from ...core.instance import Instance
from ...core.schedule import Chunks, StepSchedule, sends_from_lists
from ...core.topology import Topology
from .check import obstacle, placements
from .dialects import MAX_FUSION
from .interpreter import Event, Machine
from .links import routes
from .outcome import ROOTED, SCRATCH, Run, check_outcome
from .program import RECEIVES, REDUCES, SENDS, Algorithm

SUMS = frozenset({Collective.ALL_REDUCE, Collective.REDUCE, Collective.REDUCE_SCATTER})  #: Collectives that add.
ROUNDS = 10_000  #: Rounds in which steps are found; each settles at least one more send of a chain.


@dataclass
class Message:
    """A chunk that is sent: over which GPUs, when it is read, and when it counts."""

    chunk: int
    way: tuple[int, ...]
    reduce: bool
    read: int
    write: int
    channel: int  #: It chooses among equally short ways between two GPUs.
    before: "Message | None" = None  # what came to the source and was sent on from where it lay
    passing: bool = False  # only passed on, unless it is added


def lift(algorithm: Algorithm, topology: Topology, size_bytes: Fraction, name: str) -> tuple[Instance, StepSchedule]:
    """Convert a program without faults (:func:`~.check.check_algorithm`) to a schedule.

    GPU i is rank i of the network. A transfer takes a shortest path over links and switches.
    """
    if len(topology.ranks) != algorithm.ngpus:
        text = f"is for {algorithm.ngpus} GPUs, but the network has {len(topology.ranks)} ranks"
        raise InputError(text, place="algo.ngpus")
    if (problem := obstacle(algorithm)) is not None:
        raise InputError(f"cannot run: {problem}; see cwb check")
    machine = Machine(algorithm, placements(algorithm)[:1] == [True])
    run = machine.run
    root = check_outcome(run)
    if run.findings.wrong:
        raise InputError(f"fails: {run.findings.wrong[0]}; see cwb check")
    kind = run.meaning.kind
    if kind is None:
        raise InputError(f"coll {algorithm.coll!r} does not define the collective", place="algo.coll")
    rooted = bool(root) and kind in ROOTED  # the root is the first of the group
    ranks = (root or 0, *(rank for rank in range(algorithm.ngpus) if rank != root)) if rooted else None
    instance = Instance(name, topology, Demand(kind, size_bytes, 1, ranks))
    messages = _messages(run, machine.events())
    chunks = _chunks(run, size_bytes, root or 0)
    step = steps_of_sums(messages) if kind in SUMS else steps_of_copies(messages, chunks)
    return instance, schedule_messages(instance, chunks, messages, step)


def schedule_messages(instance: Instance, chunks: Chunks, messages: list[Message], step: list[int]) -> StepSchedule:
    """Return a schedule of messages over shortest paths of links and switches."""
    topology = instance.topology
    ways = routes(topology, {pair for message in messages for pair in pairwise(message.way)})
    sends = sends_from_lists(
        [m.chunk for m in messages],
        [topology.rank_nodes[m.way[0]] for m in messages],
        [topology.rank_nodes[m.way[-1]] for m in messages],
        [m.reduce for m in messages],
        [_path(message, ways, topology) for message in messages],
    )
    return StepSchedule(instance.sha256, chunks, sends, np.array(step, dtype=np.int64))


def _path(
    message: Message, ways: Mapping[tuple[int, int], list[tuple[int, ...]]], topology: Topology
) -> tuple[int, ...]:
    """Return the links of a send; channels alternate between equally short paths."""
    path: tuple[int, ...] = ()
    for pair in pairwise(message.way):
        some = ways.get(pair)
        if not some:
            names = [topology.ranks[rank] for rank in pair]
            raise InputError(f"gpu {pair[0]} sends to gpu {pair[1]}, but {names[0]!r} has no link to {names[1]!r}")
        path += some[message.channel % len(some)]
    return path


def _messages(run: Run, events: Iterable[Event]) -> list[Message]:
    """Return every chunk that is sent, with the time at which it counts at the target.

    Data forwarded unchanged through scratch memory is one send over the forwarding GPU, if that GPU has a sum of its
    own.
    """
    sends: dict[int, tuple[int, Message | None]] = {}
    messages: list[Message] = []
    apart: dict[tuple[int, int | None], Message] = {}  # what lies in memory as it came, and may be added later
    sums = run.meaning.kind in SUMS
    for number, (kind, gpu, sender, value, sources, target, block) in enumerate(events):
        order = number * MAX_FUSION
        if kind in RECEIVES:
            when, before = sends.pop(sender)
            reduces = kind in REDUCES
            way = block.recv, gpu
            message = Message(_chunk_of(run, value), way, reduces, when, order, max(block.chan, 0), before)
            messages.append(message)
            apart.pop((gpu, target), None)
            if target is not None and not reduces:
                apart[gpu, target] = message
                message.passing = sums and target >= SCRATCH
        if kind in SENDS:
            sends[number] = order + 1, apart.get((gpu, sources[0] if target is None else target))
        elif kind == "re":
            for place, source in enumerate(sources):
                for address in (source, target):
                    if (addend := apart.pop((gpu, address), None)) is not None:  # what was received apart counts now
                        addend.reduce, addend.write, addend.passing = True, order + place, False
        elif kind == "cpy" and (copy := apart.pop((gpu, sources[0]), None)):
            apart[gpu, target] = copy
            copy.passing = False
    passed: set[int] = set()
    for message in messages:
        if (earlier := message.before) is not None and earlier.passing:
            message.way, message.read = (*earlier.way, message.way[-1]), earlier.read
            passed.add(id(earlier))
    return [message for message in messages if id(message) not in passed]


def _chunk_of(run: Run, value: int) -> int:
    """Return the chunk of a value: the grain of a sum, or the one contribution of a copy."""
    (rank, grain), kind = run.values.any_contribution(value), run.meaning.kind
    if kind in SUMS or kind in (Collective.BROADCAST, Collective.SCATTER):
        return grain
    return rank * (run.meaning.grains if kind is Collective.ALL_TO_ALL else run.meaning.part) + grain


def _chunks(run: Run, size_bytes: Fraction, root: int) -> Chunks:
    meaning, kind, ranks = run.meaning, run.meaning.kind, run.ngpus
    own = np.repeat(np.arange(ranks), meaning.part)
    whole = kind in (Collective.ALL_REDUCE, Collective.REDUCE, Collective.BROADCAST)
    count = meaning.grains if whole else len(own) * (ranks if kind is Collective.ALL_TO_ALL else 1)
    of_all, of_root = np.full(count, ranks), np.full(count, root)
    columns: dict[Collective | None, tuple[np.ndarray, np.ndarray]] = {
        Collective.ALL_REDUCE: (of_all, of_all),
        Collective.REDUCE: (of_all, of_root),
        Collective.REDUCE_SCATTER: (of_all, own),
        Collective.BROADCAST: (of_root, of_all),
        Collective.SCATTER: (of_root, own),
        Collective.GATHER: (own, of_root),
    }
    holders, needers = columns.get(kind, (own, of_all))
    if kind is Collective.ALL_TO_ALL:
        holders, needers = np.repeat(np.arange(ranks), len(own)), np.tile(own, ranks)
    parts = ranks * meaning.grains if kind in (Collective.GATHER, Collective.SCATTER) else meaning.grains
    groups = (*((rank,) for rank in range(ranks)), tuple(range(ranks)))
    ones, holders, needers = (column.astype(np.int64) for column in (np.ones(count), holders, needers))
    return Chunks(ones, size_bytes / parts, groups, holders, needers, np.full(count, kind in SUMS))


def steps_of_sums(messages: list[Message]) -> list[int]:
    """Return steps in which every read of a chunk sees the writes before it, and no later ones."""
    events: dict[tuple[int, int], list[tuple[int, bool, int]]] = defaultdict(list)
    for index, message in enumerate(messages):
        events[message.chunk, message.way[0]].append((message.read, False, index))
        events[message.chunk, message.way[-1]].append((message.write, True, index))
    for accesses in events.values():
        accesses.sort()
    step = [0] * len(messages)
    for _ in range(ROUNDS):
        rose = [_raise_steps(accesses, messages, step) for accesses in events.values()]
        if not any(rose):
            return step
    raise InputError("no schedule in steps has the order of its steps")


def steps_of_copies(messages: list[Message], chunks: Chunks) -> list[int]:
    """Return steps in which every rank has what it sends; copies of a chunk are interchangeable."""
    since = {(chunk, rank): 0 for chunk, group in enumerate(chunks.held_by.tolist()) for rank in chunks.groups[group]}
    events = [(message.read, False, index) for index, message in enumerate(messages)]
    events += [(message.write, True, index) for index, message in enumerate(messages)]
    step = [0] * len(messages)
    for _, writes, index in sorted(events):
        chunk, way = messages[index].chunk, messages[index].way
        if writes:
            arrives = step[index] + 1
            since[chunk, way[-1]] = min(since.get((chunk, way[-1]), arrives), arrives)
        else:
            step[index] = since[chunk, way[0]]
    return step


def _raise_steps(events: list[tuple[int, bool, int]], messages: list[Message], step: list[int]) -> bool:
    """Raise steps of a chunk's accesses at a GPU to respect their order; return whether any rose."""
    read = write = -1
    copied = False
    rose = False
    for _, writes, index in events:
        copy = not messages[index].reduce
        least = max(read, write + (1 if copy or copied else 0)) if writes else write + 1
        if step[index] < least:
            step[index] = least
            rose = True
        if writes:
            copied = copy if step[index] > write else copied or copy
            write = max(write, step[index])
        else:
            read = max(read, step[index])
    return rose
