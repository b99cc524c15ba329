"""Schedules as MSCCL++ plans.

Operations, channels, thread blocks and waits are those of MSCCL files. Data is written into the memory of the receiver:
to its destination if nothing there is in use, otherwise into a place of its own in scratch memory, from where the
receiver adds or copies it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from ...core.errors import InputError
from ..msccl.blocks import DraftBlock, draft_blocks, find_waits
from ..msccl.dialects import DIALECTS
from ..msccl.flow import Flow
from ..msccl.operations import Operation, Shape, operations
from ..msccl.outcome import check_outcome
from .blocks import GpuBuilder, PlanVariant
from .plan import MAX_OPERATIONS, MEMORY, PORT, RESIDENT, Gpu, Plan
from .run import execute

_LARGEST = 2**30  #: Chunks of one operation: as many as it takes.
_COPIES = 20  #: Copies that a thread block does, each with what it waits for.
Link = tuple[int, int, int]  #: A connection: GPU that sends, GPU that receives, channel.


@dataclass(frozen=True)
class Target:
    """Target of a plan: name, protocol, channels and sizes."""

    name: str = "cwb"
    protocol: str = "Simple"  #: ``Simple``: data, then signals. ``LL``: packets, whose flags are the signals.
    channel: str = MEMORY
    box: int | None = None  #: GPUs of a box, with ports between boxes; None if all are in one.
    instances: int = 1  #: Copies that each carry an equal part of the data, on channels of their own.
    inplace: bool = False
    #: ``min_bytes`` and ``max_bytes``: first and last size of the input, of an all-gather of the output.
    min_bytes: int = 0
    max_bytes: int = 2**30

    def kind(self, first: int, second: int) -> str:
        """Kind of the channels between two GPUs."""
        return PORT if self.box is not None and first // self.box != second // self.box else self.channel


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


def lower(flow: Flow, target: Target) -> Plan:
    """Make a plan that does what the schedule does, and run it.

    Channels are added until no thread block has more operations than the executor takes.
    """
    if target.protocol == "LL" and any(
        target.kind(*pair) == PORT for way in flow.transfers for pair in zip(way.way, way.way[1:], strict=False)
    ):
        text = "packets that a port puts have to be packets before; expected Simple where there are ports"
        raise InputError(text, source="--protocol")
    problem = ""
    for variant in _VARIANTS[target.protocol]:
        found = _within_limits(flow, target, variant)
        run = execute(found)
        if run.ended:
            check_outcome(run)
        if not run.findings.wrong:
            return found
        problem = str(run.findings.wrong[0])
    raise InputError(f"no order of its operations runs: {problem}", place="sends")


def _within_limits(flow: Flow, target: Target, variant: PlanVariant) -> Plan:
    groups, most = 1, max(len(flow.chunks), 1)
    while True:
        shape = Shape(
            target.instances, groups, _LARGEST, target.inplace, target.inplace, fused=True, joined=variant.forwards
        )
        found = _build_plan(flow, target, variant, shape)
        longest = max((len(block.ops) for gpu in found.gpus for block in gpu.blocks), default=0)
        if longest <= MAX_OPERATIONS:
            return found
        if groups >= most:
            text = f"a thread block needs {longest} operations; there is room for {MAX_OPERATIONS}"
            raise InputError(f"does not fit: {text}. More chunks, spread over channels, would fit")
        groups = min(max(groups + 1, -(-groups * longest // MAX_OPERATIONS)), most)


def _build_plan(flow: Flow, target: Target, variant: PlanVariant, shape: Shape) -> Plan:
    ranks: list[list[DraftBlock]] = []
    made = operations(flow, shape)
    for some in made:
        ranks.append(draft_blocks(some, RESIDENT, _COPIES, joined=variant.forwards))
        find_waits(some, ranks[-1])
    links, packets = _links(ranks), target.protocol == "LL"
    makers = [GpuBuilder(rank, made[rank], ranks[rank], links[rank], packets=packets) for rank in range(flow.ranks)]
    pairs = list(_pairs(ranks))
    for _, received in pairs:
        makers[received.gpu].receive(received, direct=variant.direct)
    sent = {id(one): makers[received.gpu].place_of(received) for one, received in pairs}
    gpus: list[Gpu] = []
    for rank, maker in enumerate(makers):
        sizes = tuple(max(size * shape.instances, 1) for size in flow.sizes[rank])
        gpus.append(maker.gpu((sizes[0], sizes[1]), sent, target.kind, variant))
    kind = flow.kind.name if flow.kind is not None else "point_to_point"
    return Plan(
        target.name,
        DIALECTS["msccl-executor"].collectives[kind],
        target.protocol,
        target.inplace,
        tuple(gpus),
        double_scratch=target.protocol == "LL",
        min_bytes=target.min_bytes,
        max_bytes=target.max_bytes,
    )


def _pairs(ranks: list[list[DraftBlock]]) -> Iterator[tuple[Operation, Operation]]:
    """Yield every send with its receive; both are in the same order on a connection."""
    sent: dict[Link, list[Operation]] = defaultdict(list)
    got: dict[Link, list[Operation]] = defaultdict(list)
    for rank, drafts in enumerate(ranks):
        for draft in drafts:
            for one in draft.steps:
                if one.given is not None:
                    sent[rank, one.given[0], one.given[1]].append(one)
                if one.taken is not None:
                    got[one.taken[0], rank, one.taken[1]].append(one)
    for link, some in sent.items():
        yield from zip(some, got[link], strict=True)


def _links(ranks: list[list[DraftBlock]]) -> list[list[Link]]:
    """Return the connections of every GPU, in the same order at both ends."""
    found: list[set[Link]] = [set() for _ in ranks]
    for rank, drafts in enumerate(ranks):
        for draft in drafts:
            if draft.given is not None:
                found[rank].add((rank, *draft.given))
            if draft.taken is not None:
                found[rank].add((draft.taken[0], rank, draft.taken[1]))
    return [sorted(some) for some in found]
