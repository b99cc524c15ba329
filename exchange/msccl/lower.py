"""Schedules as MSCCL programs, under the limits of a runtime."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ...core.errors import InputError
from ...core.files import without_collector
from .blocks import Drafts, gpu_of
from .dialects import BLOCKS_PER_CHANNEL, DIALECTS, MAX_CHILDREN, MAX_ELEMENTS, MAX_OFFSET, MAX_WAITED, Dialect
from .flow import Flow
from .interpreter import execute
from .lint import lint
from .operations import Shape, operations
from .outcome import check_outcome
from .program import Algorithm, Gpu

PLACEMENTS = ("out", "in", "both")  #: Where data may be: output beside the input, in the same memory, or either.


@dataclass(frozen=True)
class Target:
    """Target of a program: runtime, name, sizes and options."""

    dialect: Dialect
    name: str = "cwb"
    proto: str = "Simple"
    instances: int = 1  #: Copies that each carry an equal part of the data, on channels of their own.
    placement: str = "out"
    #: ``min_bytes`` and ``max_bytes``: first and last size of the buffer that the file is for.
    min_bytes: int = 0
    max_bytes: int = 2**30
    fused: bool | None = None  #: Whether steps may be fused; by default if the runtime has fused steps.


@without_collector()
def lower(flow: Flow, target: Target) -> Algorithm:
    """Compile a schedule to a program, and run it.

    Channels are added until no thread block has more steps than the runtime allows. If the program would hang, steps
    that receive and send are given up, and then steps of several chunks.
    """
    name = flow.name_in(target.dialect.collectives, target.dialect.name, "--dialect")
    if target.placement == "both" and not target.dialect.placed:
        text = f"{target.dialect.name} matches inplace exactly: a file is for calls in place or for others"
        raise InputError(f"{text}; expected in or out", source="--placement")
    fused = target.dialect.fused if target.fused is None else target.fused
    problem = ""
    for shape in dict.fromkeys((Shape(fused=fused, joined=fused), Shape(fused=fused), Shape(fused=fused, largest=1))):
        algorithm = _within_limits(flow, target, name, shape)
        problem = _find_fault(algorithm, target)
        if not problem:
            return algorithm
    raise InputError(f"no order of its steps runs on {target.dialect.name}: {problem}", place="sends")


def _within_limits(flow: Flow, target: Target, name: str, shape: Shape) -> Algorithm:
    """Lower with as few channels as the limit of steps allows."""
    chunks = max(flow.grains, *(max(sizes) for sizes in flow.sizes)) * target.instances
    if chunks > MAX_OFFSET:
        text = f"does not fit: the data is {chunks:,} chunks; there is room for {MAX_OFFSET:,}. {_fewer_chunks(chunks)}"
        raise InputError(text, source=f"--dialect {target.dialect.name}")
    dialect, hops = target.dialect, flow.hops
    pieces = np.array([-(-piece.grains // shape.largest) for piece in flow.chunks])[hops.chunk]
    _, pair = np.unique(hops.source * flow.ranks + hops.target, return_inverse=True)
    groups = -(-int(np.bincount(pair, pieces).max(initial=1)) // dialect.steps)  # every sending is a step of its own
    shape = replace(
        shape, instances=target.instances, inplace=target.placement != "out", only_inplace=target.placement == "in"
    )
    while True:
        algorithm = _build_algorithm(flow, target, name, replace(shape, groups=groups))
        longest = max((len(block.steps) for gpu in algorithm.gpus for block in gpu.blocks), default=0)
        if (problem := _exceeded_limit(algorithm, dialect)) is not None:
            raise InputError(f"does not fit: {problem}", source=f"--dialect {dialect.name}")
        if longest <= dialect.steps:
            return algorithm
        groups = max(groups + 1, -(-groups * longest // dialect.steps))


def _build_algorithm(flow: Flow, target: Target, name: str, shape: Shape) -> Algorithm:
    dialect, scale = target.dialect, shape.instances
    alike = flow.kind is None and dialect.checked  # its buffers are all as large as the largest
    buffers = [(flow.grains, flow.grains)] * flow.ranks if alike else flow.sizes
    gpus: list[Gpu] = []
    for rank, ops in enumerate(operations(flow, shape)):
        drafts = Drafts(ops, dialect.blocks, dialect.steps, joined=shape.joined)
        gpus.append(gpu_of((buffers[rank][0] * scale, buffers[rank][1] * scale), drafts))
    channels = max((block.chan for gpu in gpus for block in gpu.blocks), default=0) + 1
    inplace, outofplace = int(target.placement != "out"), int(target.placement != "in")
    head = target.name, target.proto, name, channels, flow.grains * scale, flow.ranks
    span = target.min_bytes, target.max_bytes + dialect.exclusive
    return Algorithm(*head, inplace, outofplace, *span, None, tuple(gpus))


def _exceeded_limit(algorithm: Algorithm, dialect: Dialect) -> str | None:
    if algorithm.nchannels > dialect.channels:
        widest = max(DIALECTS.values(), key=lambda one: one.channels)
        less = _remedy_text(algorithm.nchannels > widest.channels, widest, "fewer --instances, chunks or trees")
        return f"needs {algorithm.nchannels} channels; there are {dialect.channels}. {less}"
    if len(algorithm.gpus) > MAX_CHILDREN:
        return f"{len(algorithm.gpus):,} GPUs; the runtime's reader holds {MAX_CHILDREN:,}. Smaller groups would fit"
    for gpu in algorithm.gpus:
        for count, most, what, less in _limited_resources(gpu, len(algorithm.gpus), dialect):
            if count > most:
                return f"gpu {gpu.id} needs {count:,} {what}; there is room for {most:,}. {less}"
    return None


def _limited_resources(gpu: Gpu, gpus: int, dialect: Dialect) -> Iterator[tuple[int, int, str, str]]:
    larger = max(DIALECTS.values(), key=lambda one: one.blocks)
    count = len(gpu.blocks)
    less = _remedy_text(count > larger.blocks, larger, "fewer neighbours of a GPU")
    yield count, dialect.blocks, "thread blocks", less
    waited = sum(bool(block.steps.table[:, -1].any()) for block in gpu.blocks)
    yield waited, MAX_WAITED, "thread blocks that others wait for", "Fewer neighbours of a GPU would fit"
    chunks = max(gpu.i_chunks, gpu.o_chunks, gpu.s_chunks)
    yield chunks, MAX_OFFSET, "chunks in a buffer", _fewer_chunks(chunks)
    for end in ("send", "recv"):
        peers = Counter(block.chan for block in gpu.blocks if getattr(block, end) >= 0)
        what = f"thread blocks that {end} over a channel"
        yield max(peers.values(), default=0), BLOCKS_PER_CHANNEL, what, "Fewer neighbours of a GPU would fit"
    elements = 1 + gpus + len(gpu.blocks) + sum(len(block.steps) for block in gpu.blocks)
    fewer = f"About 1/{-(-elements // MAX_ELEMENTS)} of the chunks or trees would fit"
    yield elements, MAX_ELEMENTS, "elements of the file in the runtime's reader", fewer


def _fewer_chunks(chunks: int) -> str:
    part = -(-chunks // MAX_OFFSET)
    return f"About 1/{part:,} of the chunks or trees, or sizes with a larger common part, would fit"


def _remedy_text(too_much: bool, larger: Dialect, less: str) -> str:
    """Return the remedy: less of a resource, or another dialect."""
    return f"{less[0].upper()}{less[1:]}{'' if too_much else f', or --dialect {larger.name},'} would fit"


def _find_fault(algorithm: Algorithm, target: Target) -> str:
    if faults := lint(algorithm, target.dialect).wrong:
        return str(faults[0])
    for inplace in (False, True):
        if (target.placement == "out" and inplace) or (target.placement == "in" and not inplace):
            continue
        run = execute(algorithm, inplace=inplace)
        check_outcome(run)
        if run.findings.wrong:
            return str(run.findings.wrong[0])
    return ""
