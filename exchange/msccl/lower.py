"""Schedules as MSCCL programs, under the limits of a runtime."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from ...core.errors import InputError
from .blocks import drafted, gpu_of
from .dialects import BLOCKS_PER_CHANNEL, MAX_CHILDREN, MAX_ELEMENTS, MAX_OFFSET, MAX_WAITED, Dialect
from .flow import Flow
from .interpreter import execute
from .operations import Shape, operations
from .outcome import judge_outcome
from .program import Algorithm, Gpu

#: Where data may be: output beside the input, in the same memory, or either.
PLACEMENTS = ("out", "in", "both")


@dataclass(frozen=True)
class Target:
    """What a program is for.

    Parameters
    ----------
    dialect : Dialect
        The runtime.
    name, proto : str
        Name and protocol that the file says.
    instances : int
        Copies that each carry an equal part of the data, on channels of their own.
    placement : str
        One of :data:`PLACEMENTS`.
    min_bytes, max_bytes : int
        First and last size of the buffer that the file is for.
    fused : bool or None
        Whether steps may do two things at once; by default if the runtime has them.
    """

    dialect: Dialect
    name: str = "cwb"
    proto: str = "Simple"
    instances: int = 1
    placement: str = "out"
    min_bytes: int = 0
    max_bytes: int = 2**30
    fused: bool | None = None


def lower(flow: Flow, target: Target) -> Algorithm:
    """Make a program that does what the schedule does, and run it.

    Channels are added until no thread block has more steps than the runtime takes. Steps that receive and send
    are given up, and then steps of several chunks, if the program would hang with them.

    Parameters
    ----------
    flow : Flow
        The schedule.
    target : Target
        What the program is for.

    Raises
    ------
    InputError
        If the runtime does not know the collective, or the schedule does not fit: which limit it is, and what would fit.
    """
    name = _collective(flow, target)
    fused = target.dialect.fused if target.fused is None else target.fused
    tries = [Shape(fused=fused, joined=fused)]
    tries += [Shape(fused=fused)] if fused else []
    problem = ""
    for shape in (*tries, Shape(fused=fused, largest=1)):
        found = _within_limits(flow, target, name, shape)
        problem = _fault(found, target)
        if not problem:
            return found
    raise InputError(f"no order of its steps runs on {target.dialect.name}: {problem}", place="sends")


def _collective(flow: Flow, target: Target) -> str:
    """Name of the collective in files."""
    kind = flow.kind.value if flow.kind is not None else "point_to_point"
    name = target.dialect.collectives.get(kind)
    if name is None:
        known = ", ".join(sorted(target.dialect.collectives))
        raise InputError(f"{target.dialect.name} has no {kind}; it has {known}", source="--dialect")
    return name


def _within_limits(flow: Flow, target: Target, name: str, shape: Shape) -> Algorithm:
    """Lower with as few channels as the limit of steps allows."""
    dialect, groups = target.dialect, 1
    shape = replace(
        shape,
        instances=target.instances,
        inplace=target.placement != "out",
        only_inplace=target.placement == "in",
    )
    while True:
        found = _lowered(flow, target, name, replace(shape, groups=groups))
        longest = max((len(block.steps) for gpu in found.gpus for block in gpu.blocks), default=0)
        problem = _exceeded(found, dialect)
        if longest <= dialect.steps and problem is None:
            return found
        if problem is not None:
            text = problem if longest <= dialect.steps or groups > 1 else f"{problem}; {longest} steps in a thread block"
            raise InputError(_advice(text, flow, groups > 1), source=f"--dialect {dialect.name}")
        groups = max(groups + 1, -(-groups * longest // dialect.steps))


def _lowered(flow: Flow, target: Target, name: str, shape: Shape) -> Algorithm:
    dialect = target.dialect
    scale = shape.instances
    gpus: list[Gpu] = []
    for rank, some in enumerate(operations(flow, shape)):
        drafts = drafted(some, dialect.blocks, dialect.steps, joined=shape.joined)
        sizes = flow.sizes[rank][0] * scale, flow.sizes[rank][1] * scale
        gpus.append(gpu_of(rank, sizes, some, drafts))
    channels = max((block.chan for gpu in gpus for block in gpu.blocks), default=0) + 1
    inplace, outofplace = int(target.placement != "out"), int(target.placement != "in")
    return Algorithm(
        target.name,
        target.proto,
        name,
        channels,
        flow.grains * scale,
        flow.ranks,
        inplace,
        outofplace if dialect.placed else None,
        target.min_bytes,
        target.max_bytes + dialect.exclusive,
        None,
        tuple(gpus),
    )


def _exceeded(found: Algorithm, dialect: Dialect) -> str | None:
    """The first limit that is exceeded, other than that of steps."""
    if found.nchannels > dialect.channels:
        return f"needs {found.nchannels} channels; there are {dialect.channels}"
    if len(found.gpus) > MAX_CHILDREN:
        return f"{len(found.gpus):,} GPUs; the runtime's reader holds {MAX_CHILDREN:,}"
    for gpu in found.gpus:
        where = f"gpu {gpu.id} needs"
        if len(gpu.blocks) > dialect.blocks:
            return f"{where} {len(gpu.blocks)} thread blocks; there are {dialect.blocks}"
        waited = sum(any(step.hasdep for step in block.steps) for block in gpu.blocks)
        if waited > MAX_WAITED:
            return f"{where} {waited} thread blocks that others wait for; there are {MAX_WAITED}"
        largest = max(gpu.i_chunks, gpu.o_chunks, gpu.s_chunks)
        if largest > MAX_OFFSET:
            return f"{where} a buffer of {largest:,} chunks; offsets reach to {MAX_OFFSET:,}"
        for end in ("send", "recv"):
            peers = Counter(block.chan for block in gpu.blocks if getattr(block, end) >= 0)
            if peers and max(peers.values()) > BLOCKS_PER_CHANNEL:
                return f"{where} {max(peers.values())} thread blocks of a channel; there are {BLOCKS_PER_CHANNEL}"
        elements = 1 + len(found.gpus) + len(gpu.blocks) + sum(len(block.steps) for block in gpu.blocks)
        if elements > MAX_ELEMENTS:
            return f"{where} {elements:,} elements of the file; the runtime's reader holds {MAX_ELEMENTS:,}"
    return None


def _advice(problem: str, flow: Flow, more_channels: bool) -> str:
    """Say what would fit."""
    chunks = len(flow.chunks)
    less = "fewer GPUs in a communicator" if chunks <= flow.ranks else f"fewer than its {chunks:,} chunks or trees"
    reason = ", with the channels that its steps need" if more_channels else ""
    return f"does not fit: {problem}{reason}; {less}, or another dialect, would"


def _fault(found: Algorithm, target: Target) -> str:
    """What goes wrong when the program runs; empty if nothing."""
    for inplace in (False, True):
        if (target.placement == "out" and inplace) or (target.placement == "in" and not inplace):
            continue
        run = execute(found, inplace=inplace)
        if run.ended:
            judge_outcome(run)
        if run.findings.wrong:
            return str(run.findings.wrong[0])
    return ""
