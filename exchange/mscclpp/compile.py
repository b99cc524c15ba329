"""Plans compiled to the executor's instructions: memory accesses of every operation, matching signals.

Memory is counted in units; a chunk has so many that the slices of groups of thread blocks and the iterations of
pipelines are whole.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import gcd, lcm
from typing import NamedTuple

from .plan import MOVES, PACKETS, PORT, SIGNALS, WAITS, Block, Buffer, Gpu, Op, Plan, letters_of

#: Units of a chunk, iterations of a pipeline, and units that a call moves, beyond which a plan is not run; of the last
#: so many, and as many more for each operation.
MAX_UNITS = 256
MAX_ITERATIONS = 2**10
MAX_MOVED = 2**18, 2**10
Way = tuple[str, int, int, int]  #: Channel of a kind from one GPU to another one, by its number among those.


class Place(NamedTuple):
    """Units of memory."""

    gpu: int
    buffer: str  #: ``i``, ``o``, ``s``, or ``p`` for packets in the scratch memory.
    offset: int
    half: bool  #: Whether it is in the half of the scratch memory that the call uses.


class Work(NamedTuple):
    """The sum of all that is read, unit by unit, is written to every place."""

    reads: tuple[Place, ...]
    writes: tuple[Place, ...]
    units: int


class Instruction(NamedTuple):
    """An instruction of a thread block."""

    name: str
    place: int
    start: int  #: Number of instructions of the thread block that have ended for all of its threads when it begins.
    works: tuple[Work, ...] = ()
    #: Channels: of signals and puts over a port, those to others; of waits, those from others.
    ways: tuple[Way, ...] = ()
    semaphores: tuple[int, ...] = ()
    barrier: tuple[int, int] = (-1, 0)


def units_of(plan: Plan) -> int | None:
    """Units of a chunk; None where they would be too many."""
    parts = sizes = 1
    units = {op.unit_bytes for _, _, _, op in plan.operations() if op.name == "pipeline"}
    for _, _, _, op in plan.operations():
        for one in (*op.src, *op.dst):
            if op.parts > 1 and one.size > 0:
                parts = lcm(parts, op.parts // gcd(op.parts, one.size))
                if parts > MAX_UNITS:
                    return None
    if units:
        sizes = 2 * max(units) // gcd(*units)
    return parts * sizes if parts * sizes <= MAX_UNITS else None


def compile_plan(plan: Plan, units: int) -> list[list[list[Instruction]]]:
    """Compile every thread block of every GPU."""
    compiler = _Compiler(plan, units)
    return [[list(compiler.compile_block(gpu, block)) for block in gpu.blocks] for gpu in plan.gpus]


class _Compiler:
    def __init__(self, plan: Plan, units: int) -> None:
        self.plan, self.units = plan, units
        sizes = {op.unit_bytes for _, _, _, op in plan.operations() if op.name == "pipeline"}
        #: Units of the iterations of a pipeline, by their bytes: half a chunk of the largest.
        self.cut = {size: size * units // (2 * max(sizes)) for size in sizes}
        self.ways = {
            (gpu.id, kind): _ways(gpu.id, kind, gpu.peers(kind)) for gpu in plan.gpus for kind in ("memory", "port")
        }

    def compile_block(self, gpu: Gpu, block: Block) -> Iterator[Instruction]:
        start = 0
        for count, (place, op, offset, unit) in enumerate(self._flat(block)):
            if op.name == "barrier":
                start = count
            yield self._instruction(gpu, block, op, place, start, offset, unit)
            if op.name in ("barrier", "nop"):
                start = count + 1

    def _flat(self, block: Block) -> Iterator[tuple[int, Op, int, int | None]]:
        """Operations one after the other, those of pipelines as often as they are done, with what is gone through."""
        for place, op in enumerate(block.ops):
            if op.name != "pipeline":
                yield place, op, 0, None
                continue
            unit = self.cut[op.unit_bytes]
            for offset in range(0, op.chunks * self.units, unit):
                for inner in op.ops:
                    yield place, inner, offset, unit

    def _instruction(
        self, gpu: Gpu, block: Block, op: Op, place: int, start: int, offset: int, unit: int | None
    ) -> Instruction:
        works: tuple[Work, ...] = ()
        ways: tuple[Way, ...] = ()
        if op.name in MOVES:
            works = tuple(self._works(gpu, block, op, offset, unit))
        if op.name in SIGNALS or op.name in WAITS or (op.name in MOVES and op.channel_type == PORT):
            ids, channels = block.channels.get(op.channel_type, ()), self.ways[gpu.id, op.channel_type]
            out = tuple(channels[ids[one]] for one in op.channels)
            ways = tuple((kind, b, a, k) for kind, a, b, k in out) if op.name in WAITS else out
        elif op.name == "flush":
            ids, channels = block.channels.get(PORT, ()), self.ways[gpu.id, PORT]
            ways = tuple(channels[ids[one]] for one in op.channels[: len(op.dst)])
        return Instruction(op.name, place, start, works, ways, op.semaphores, (op.barrier, op.blocks))

    def _works(self, gpu: Gpu, block: Block, op: Op, offset: int, unit: int | None) -> Iterator[Work]:
        """Yield the data movements of an operation, as in the kernel."""
        letters = letters_of(op.name, len(op.src), len(op.dst), op.channel_type)
        src = [self._slice(op, one) for one in op.src]
        dst = [self._slice(op, one) for one in op.dst]
        if op.name == "get":  # the kernel has the two offsets exchanged
            src, dst = (
                [(a, size) for (_, size), (a, _) in zip(one, two, strict=True)] for one, two in ((src, dst), (dst, src))
            )
        reads = [self._places(gpu, block, op, *some) for some in zip(op.src, letters[0], src, strict=True)]
        writes = [self._places(gpu, block, op, *some) for some in zip(op.dst, letters[1], dst, strict=True)]
        groups = zip(reads, writes, strict=True) if MOVES[op.name].each else [(sum(reads, ()), sum(writes, ()))]
        sizes = [size for _, size in (dst if op.name in ("put", "pws", "pwsf") else src)]
        cut = unit is not None and op.name not in PACKETS
        for (read, write), size in zip(groups, sizes, strict=False):
            count = size
            if cut and unit is not None:
                count = unit if offset > size else min(size - offset, unit)  # beyond the end, the kernel's size wraps
            if count > 0:
                yield Work(_shift_places(read, offset * cut), _shift_places(write, offset * cut), count)

    def _slice(self, op: Op, one: Buffer) -> tuple[int, int]:
        whole, rest = divmod(one.size * self.units, op.parts)
        begin, end = (part * whole + min(part, rest) for part in (op.part, op.part + 1))
        return one.first * self.units + begin, end - begin

    def _places(
        self, gpu: Gpu, block: Block, op: Op, one: Buffer, letter: str, units: tuple[int, int]
    ) -> tuple[Place, ...]:
        """Return the places of a buffer: on one GPU, or on all of a switch channel."""
        if letter in "ST":
            buffer, ranks = gpu.groups[block.channels["switch"][one.switch]]
        elif letter in "LP":
            buffer, ranks = one.type, (gpu.id,)
        else:
            other = gpu.remote[block.remote[op.channel_type][one.remote]]
            buffer, ranks = other.type, (other.rank,)
        packets = letter in "PQT"
        half = self.plan.double_scratch and (packets or (letter == "L" and buffer == "s"))
        return tuple(Place(rank, "p" if packets else buffer, units[0], half) for rank in ranks)


def _shift_places(places: tuple[Place, ...], by: int) -> tuple[Place, ...]:
    return tuple(place._replace(offset=place.offset + by) for place in places) if by else places


def _ways(gpu: int, kind: str, peers: Sequence[int]) -> list[Way]:
    """Return the channels of a GPU; equal numbers between two GPUs are the two ends of one."""
    count: dict[int, int] = defaultdict(int)
    ways: list[Way] = []
    for peer in peers:
        ways.append((kind, gpu, peer, count[peer]))
        count[peer] += 1
    return ways
