"""Schedules as MSCCL++ plans (docs/exchange/mscclpp.md, "Out").

Operations, channels, thread blocks and waits are those of MSCCL files.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...core.errors import InputError
from ...core.files import without_collector
from ...core.grouping import group_by_key
from ..msccl.blocks import DraftBlock, Drafts, Scratch
from ..msccl.dialects import DIALECTS
from ..msccl.flow import Flow
from ..msccl.operations import RRCS, RRS, Operation, Shape, operations
from ..msccl.outcome import check_outcome
from .plan import MAX_OPERATIONS, MAX_SEMAPHORES, MEMORY, PORT, RESIDENT, Block, Buffer, Channel, Gpu, Op, Plan, Remote
from .run import execute

_LARGEST = 2**30  #: Chunks of one operation: as many as it takes.
_COPIES = 20  #: Copies that a thread block does, each with what it waits for.
Link = tuple[int, int, int]  #: A connection: GPU that sends, GPU that receives, channel.
Place = tuple[str, int]  #: A place in a plan: buffer and chunk.


@dataclass(frozen=True)
class PlanVariant:
    """Variant of lowering operations to a plan."""

    forwards: bool = True
    #: Whether data is written to its destination although that has been in use in this call; the run shows whether the
    #: order of the schedule allows it.
    direct: bool = False
    #: Whether every put over a port is waited for, and not the last one of a thread block alone.
    flushes_every_put: bool = False
    signals_start: bool = True  #: Whether receivers signal to senders that they have begun the call.


class _GpuBuilder:
    """Builder of a GPU of a plan."""

    def __init__(
        self, rank: int, drafts: list[DraftBlock], links: list[Link], scratch: Scratch, *, packets: bool
    ) -> None:
        self.rank, self.drafts, self.links, self.scratch, self.packets = rank, drafts, links, scratch, packets
        self.slot: dict[int, int] = {}
        self.slots = 0
        self.semaphores: dict[tuple[int, int], int] = {}
        self.remote: dict[tuple[int, str, str], int] = {}
        self.numbers: dict[Link, int] = {}  # of connections, among the channels of their kind

    def receive(self, one: Operation, *, direct: bool) -> None:
        """Decide where something is received: where it is needed, or in a place of its own."""
        if self.packets or one.kind not in ("r", "rcs") or (one.after and not direct):
            self.slot[id(one)] = self.slots
            self.slots += one.count

    def place_of(self, one: Operation) -> Place:
        """Return the place where the sender writes a received piece."""
        place = self.slot.get(id(one))
        if place is None:
            return self._local(one.target)
        return "s", place + (0 if self.packets else self.scratch.size)

    def _local(self, place: Place) -> Place:
        """Return a place of an operation; packets come first in scratch memory and take twice the room."""
        buffer, offset = place
        if buffer == "s":
            offset = self.scratch.place.get(offset, 0)
        return buffer, offset + (2 * self.slots if self.packets and buffer == "s" else 0)

    def gpu(
        self, sizes: tuple[int, int], places: dict[int, Place], kind: Callable[[int, int], str], variant: PlanVariant
    ) -> Gpu:
        """Build the GPU; ``sent`` has the place of each sent operation's data at the receiver, by its identity."""
        self.places, self.kind, self.variant = places, kind, variant
        releases: list[dict[int, list[int]]] = [defaultdict(list) for _ in self.drafts]
        acquires: list[dict[int, list[int]]] = [defaultdict(list) for _ in self.drafts]
        for index, draft in enumerate(self.drafts):
            for place, waits in enumerate(draft.waits):
                for other in waits:
                    block, step = other.place
                    number = self.semaphores.setdefault((block, index), len(self.semaphores))
                    releases[block][step].append(number)
                    acquires[index][place].append(number)
        channels = []
        for over in (MEMORY, PORT):
            links = [link for link in self.links if kind(link[0], link[1]) == over]
            self.numbers |= {link: number for number, link in enumerate(links)}
            peers = tuple(link[1] if link[0] == self.rank else link[0] for link in links)
            channels += [Channel(over, peers)] if peers else []
        blocks = tuple(
            _BlockBuilder(self, draft, acquires[index], releases[index]).block(index)
            for index, draft in enumerate(self.drafts)
        ) or (Block(0, (Op("nop"),)),)
        remote = tuple(Remote(rank, buffer, (over,)) for rank, buffer, over in self.remote)
        values = (0,) * len(self.semaphores)
        packets = 2 if self.packets and self.scratch.size else 1  # they take twice the room beside other data
        scratch = packets * self.slots + self.scratch.size
        return Gpu(self.rank, *sizes, scratch, blocks, tuple(channels), remote, values)


class _BlockBuilder:
    def __init__(
        self, maker: _GpuBuilder, draft: DraftBlock, acquires: dict[int, list[int]], releases: dict[int, list[int]]
    ) -> None:
        self.maker, self.draft, self.acquires, self.releases = maker, draft, acquires, releases
        self.ops: list[Op] = []
        self.channels: dict[str, list[int]] = defaultdict(list)
        self.refs: dict[str, list[int]] = defaultdict(list)
        self.fresh = False  # whether something was waited for since the last nop
        self.phase: set[Operation] = set()  # what was moved since
        rank = maker.rank
        self.into = None if draft.into is None else self._end((draft.into[0], rank, draft.into[1]))
        self.out = None if draft.out is None else self._end((rank, *draft.out))

    def _end(self, link: Link) -> tuple[str, int]:
        """Return the kind of a connection, and its position in the thread block's channels."""
        kind = self.maker.kind(link[0], link[1])
        self.channels[kind].append(self.maker.numbers[link])
        return kind, len(self.channels[kind]) - 1

    def block(self, number: int) -> Block:
        if self.maker.variant.signals_start:
            for end, names in ((self.into, ("rlxsignal", "signal")), (self.out, ("rlxwait", "wait"))):
                if end is not None:
                    self._add_channel_op(names[end[0] == PORT], end)
            self.fresh = self.out is not None
        last = max((place for place, one in enumerate(self.draft.steps) if one.out), default=-1)
        for place, one in enumerate(self.draft.steps):
            self._semaphores("sem_acquire", self.acquires.get(place, []))
            if one.into is not None and self.into is not None and not self.maker.packets:
                self._add_channel_op("wait", self.into)
                self.fresh = True
            for step, ops in enumerate(self._moves(one, flush=self.maker.variant.flushes_every_put or place == last)):
                if step or self.fresh or any(other.performer in self.phase for other in one.after):
                    self._separate_phase()
                self.ops += ops
                self.phase.add(one)
            if one.out is not None and self.out is not None and self.out[0] == MEMORY and not self.maker.packets:
                self._separate_phase()
                self._add_channel_op("signal", self.out)
            if self.releases.get(place):
                if self.fresh or self.phase:
                    self._separate_phase()
                self._semaphores("sem_release", self.releases[place])
        channels = {kind: tuple(ids) for kind, ids in self.channels.items()}
        return Block(number, tuple(self.ops), channels, {kind: tuple(ids) for kind, ids in self.refs.items()})

    def _separate_phase(self) -> None:
        self.ops.append(Op("nop"))
        self.fresh = False
        self.phase.clear()

    def _add_channel_op(self, name: str, end: tuple[str, int]) -> None:
        self.ops.append(Op(name, channel_type=end[0], channels=(end[1],)))

    def _semaphores(self, name: str, numbers: list[int]) -> None:
        for begin in range(0, len(numbers), MAX_SEMAPHORES):
            self.ops.append(Op(name, semaphores=tuple(numbers[begin : begin + MAX_SEMAPHORES])))
        self.fresh = self.fresh or (bool(numbers) and name == "sem_acquire")

    def _moves(self, one: Operation, *, flush: bool) -> list[list[Op]]:
        """Return the operations that move data, in groups between which threads synchronize."""
        maker = self.maker
        source, target = (_buffer(maker._local(place), one.count) for place in (one.source, one.target))
        place = maker.slot.get(id(one))
        came = None if place is None else _buffer(maker.place_of(one), one.count)
        if one.kind == "cpy":
            return [[Op("copy", (source,), (target,))]]
        if one.kind == "s":
            return [[self._put(one, source, flush=flush)]]
        if maker.packets and came is not None:
            return [self._packet_ops(one, source, target, came)]
        if one.kind in ("r", "rcs"):
            copies = [] if came is None else [[Op("copy", (came,), (target,))]]
            return [*copies, [self._put(one, target, flush=flush)]] if one.kind == "rcs" else copies
        assert came is not None  # noqa: S101 (what is added is received in a place of its own)
        total = came if one.kind == "rrs" else target  # sums needed nowhere else stay in place
        if one.kind == "rrc" or (self.out is not None and self.out[0] == PORT):
            puts = [] if one.kind == "rrc" else [[self._put(one, total, flush=flush)]]
            return [[Op("re", (source, came), (total,))], *puts]
        return [[Op("res", (source, came), (total, self._remote(one)), channel_type=MEMORY)]]

    def _packet_ops(self, one: Operation, source: Buffer, target: Buffer, came: Buffer) -> list[Op]:
        if one.kind == "r":
            return [Op("upkt", (came,), (target,))]
        if one.kind == "rcs":
            passed = Op("rppkt", (came,), (self._remote(one),), channel_type=MEMORY)
            return [passed, Op("upkt", (came,), (target,))]
        if one.kind == "rrc":
            return [Op("repkt", (source, came), (target,))]
        return [Op("respkt", (source, came), (target, self._remote(one)), channel_type=MEMORY)]

    def _put(self, one: Operation, source: Buffer, *, flush: bool) -> Op:
        """Put a buffer into the memory of the receiver; a port signals at once."""
        assert self.out is not None  # noqa: S101 (an operation that sends has a connection)
        kind, channel = self.out
        name = "ppkt" if self.maker.packets else "put"
        if kind == PORT:
            name = "pwsf" if flush else "pws"
        channels = (channel,) if kind == PORT else ()
        return Op(name, (source,), (self._remote(one),), channel_type=kind, channels=channels)

    def _remote(self, one: Operation) -> Buffer:
        assert self.out is not None  # noqa: S101 (an operation that sends has a connection)
        assert one.out is not None  # noqa: S101 (as above)
        buffer, offset = self.maker.places[id(one)]
        kind, remote = self.out[0], self.maker.remote
        number = remote.setdefault((one.out[0], buffer, kind), len(remote))
        refs = self.refs[kind]
        if number not in refs:
            refs.append(number)
        return Buffer(offset, one.count, remote=refs.index(number))


def _buffer(place: Place, count: int) -> Buffer:
    return Buffer(place[1], count, place[0])


@dataclass(frozen=True)
class Target:
    """Target of a plan: name, protocol, channels and sizes."""

    name: str = "cwb"
    protocol: str = "Simple"  #: ``Simple``: data, then signals. ``LL``: packets, whose flags are the signals.
    channel: str = MEMORY
    box: int | None = None  #: GPUs of a box, with ports between boxes; None for the boxes of the network.
    instances: int = 1  #: Copies that each carry an equal part of the data, on channels of their own.
    inplace: bool = False
    #: ``min_bytes`` and ``max_bytes``: first and last size of the input, of an all-gather of the output.
    min_bytes: int = 0
    max_bytes: int = 2**30

    def kinds(self, flow: Flow) -> Callable[[int, int], str]:
        """Return the function that gives the kind of the channels between two GPUs."""
        boxes: Sequence[object] = flow.boxes or [""] * flow.ranks
        if self.box is not None:
            boxes = [rank // self.box for rank in range(flow.ranks)]
        return lambda first, second: self.channel if boxes[first] == boxes[second] else PORT


#: Variants that are tried, by protocol.
_VARIANTS = {
    "Simple": (
        PlanVariant(direct=True),
        PlanVariant(),
        PlanVariant(forwards=False),
        PlanVariant(forwards=False, flushes_every_put=True),
    ),
    "LL": (PlanVariant(signals_start=False), PlanVariant(), PlanVariant(forwards=False)),
}


@without_collector()
def lower(flow: Flow, target: Target) -> Plan:
    """Make a plan of a schedule with as few channels as the limits allow, and run it."""
    kind, hops = target.kinds(flow), flow.hops
    if target.protocol == "LL" and any(
        kind(*pair) == PORT for pair in zip(hops.source.tolist(), hops.target.tolist(), strict=True)
    ):
        text = "packets that a port puts have to be packets before; expected Simple where there are ports"
        raise InputError(text, source="--protocol")
    problem = ""
    for variant in _VARIANTS[target.protocol]:
        plan = _within_limits(flow, target, variant)
        run = execute(plan)
        check_outcome(run)
        if not run.findings.wrong:
            return plan
        problem = str(run.findings.wrong[0])
    raise InputError(f"no order of its operations runs: {problem}", place="sends")


def _within_limits(flow: Flow, target: Target, variant: PlanVariant) -> Plan:
    groups, most = 1, max(len(flow.chunks), 1)
    while True:
        shape = Shape(
            target.instances, groups, _LARGEST, target.inplace, target.inplace, fused=True, joined=variant.forwards
        )
        plan = _build_plan(flow, target, variant, shape)
        longest = max((len(block.ops) for gpu in plan.gpus for block in gpu.blocks), default=0)
        if longest <= MAX_OPERATIONS:
            return plan
        if groups >= most:
            text = f"a thread block needs {longest} operations; there is room for {MAX_OPERATIONS}"
            raise InputError(f"does not fit: {text}. More chunks, spread over channels, would fit")
        groups = min(max(groups + 1, -(-groups * longest // MAX_OPERATIONS)), most)


def _build_plan(flow: Flow, target: Target, variant: PlanVariant, shape: Shape) -> Plan:
    drafts = [Drafts(some, RESIDENT, _COPIES, joined=variant.forwards) for some in operations(flow, shape)]
    packets = target.protocol == "LL"
    for some in drafts if packets else ():  # what is added to packets is always kept
        some.ops.kind[some.ops.kind == RRS] = RRCS
    ranks = [some.objects() for some in drafts]
    connections = _connections(ranks)
    links = group_by_key((end, link) for link in sorted(connections) for end in link[:2])
    makers = [
        _GpuBuilder(rank, some, links[rank], drafts[rank].scratch(), packets=packets) for rank, some in enumerate(ranks)
    ]
    pairs = [pair for some in connections.values() for pair in some]
    for _, received in pairs:
        makers[received.gpu].receive(received, direct=variant.direct)
    places = {id(one): makers[received.gpu].place_of(received) for one, received in pairs}
    least = [(max(before * shape.instances, 1), max(after * shape.instances, 1)) for before, after in flow.sizes]
    gpus = [maker.gpu(sizes, places, target.kinds(flow), variant) for maker, sizes in zip(makers, least, strict=True)]
    return Plan(
        target.name,
        flow.name_in(DIALECTS["msccl-executor"].collectives, "MSCCL++"),
        target.protocol,
        target.inplace,
        tuple(gpus),
        double_scratch=target.protocol == "LL",
        min_bytes=target.min_bytes,
        max_bytes=target.max_bytes,
    )


def _connections(ranks: list[list[DraftBlock]]) -> dict[Link, list[tuple[Operation, Operation]]]:
    """Return every send with its receive, by connection, on which both are in the same order."""
    every = [(rank, one) for rank, drafts in enumerate(ranks) for draft in drafts for one in draft.steps]
    sends = group_by_key(((rank, *one.out), one) for rank, one in every if one.out is not None)
    receives = group_by_key(((one.into[0], rank, one.into[1]), one) for rank, one in every if one.into is not None)
    return {link: list(zip(some, receives[link], strict=True)) for link, some in sends.items()}
