"""Static rules of a runtime: inputs that it rejects, or accepts and fails on.

A rule is a function that yields findings for a program and a dialect. Findings that are no faults are notes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from .dialects import (
    BLOCKS_PER_CHANNEL,
    DEFAULT_MAX_BYTES,
    MAX_CHILDREN,
    MAX_ELEMENTS,
    MAX_OFFSET,
    MAX_WAITED,
    PROTOCOLS,
    Dialect,
)
from .findings import Findings, place_text
from .lint_steps import STEP_RULES
from .meaning import ROOTED, meaning_of
from .program import FUSED, RECEIVES, SENDS, Algorithm

#: What a rule finds: text, place, whether it is wrong.
Found = Iterator[tuple[str, str, bool]]


def lint(algorithm: Algorithm, dialect: Dialect) -> Findings:
    """Look at a program by every rule of a runtime."""
    findings = Findings()
    for name, rule in RULES.items():
        for text, place, wrong in rule(algorithm, dialect):
            findings.add(name, text, place, wrong=wrong)
    return findings


def proto(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that the protocol is known."""
    del dialect
    if algorithm.proto not in PROTOCOLS:
        yield f"proto {algorithm.proto!r} is rejected; expected {', '.join(PROTOCOLS)}", "", True


def coll(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that the collective is known."""
    known = {*dialect.collectives.values(), *dialect.also}
    if algorithm.coll not in known:
        yield f"coll {algorithm.coll!r} is rejected; expected one of {', '.join(sorted(known))}", "", True
    elif meaning_of(algorithm).kind in ROOTED:
        yield f"a file does not name a root; the runtime takes it for every root of {algorithm.coll}", "", False


def attributes(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Attributes that the runtime requires are there."""
    needed = {"inplace": algorithm.inplace}
    if dialect.placed:
        needed |= {
            "outofplace": algorithm.outofplace,
            "minBytes": algorithm.min_bytes,
            "maxBytes": algorithm.max_bytes,
        }
    for name, value in needed.items():
        if value is None:
            yield f"has no {name}, without which the file is rejected", "", True


def placement(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that the file is for some call."""
    if dialect.placed and algorithm.inplace == 0 and algorithm.outofplace == 0:
        yield "inplace and outofplace are 0: it is never selected", "", True


def sizes(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that the range of sizes is not empty."""
    low, high = algorithm.min_bytes or 0, algorithm.max_bytes
    if dialect.checked:
        high = DEFAULT_MAX_BYTES if high is None else high
        if low < 0 or high < 0 or low > high:
            yield f"sizes from {low:,} to {high:,} are rejected", "", True
        elif low == high:
            yield f"sizes from {low:,} to less than {high:,} are none: it is never selected", "", True
    elif high is not None and high != 0 and (low > high or high < 0):
        yield f"sizes from {low:,} to {high:,} are none: it is never selected", "", True


def threads(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Threads are whole warps."""
    if dialect.checked and algorithm.nthreads is not None and algorithm.nthreads % 32:
        yield f"nthreads {algorithm.nthreads} is rejected; expected a multiple of 32", "", True


def loop(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that the data is cut into chunks."""
    del dialect
    if algorithm.nchunksperloop < 1:
        yield f"nchunksperloop {algorithm.nchunksperloop} divides the data into nothing", "", True
    elif algorithm.nchunksperloop > MAX_OFFSET:
        yield f"nchunksperloop {algorithm.nchunksperloop:,}; offsets reach to {MAX_OFFSET:,}", "", True
    elif algorithm.coll in _PARTED and algorithm.nchunksperloop % algorithm.ngpus:
        text = f"nchunksperloop {algorithm.nchunksperloop} does not give each of {algorithm.ngpus} GPUs a part"
        yield text, "", True


_PARTED = frozenset({"allgather", "reduce_scatter", "reducescatter", "alltoall"})


def gpus(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that every GPU occurs once."""
    del dialect
    count = Counter(gpu.id for gpu in algorithm.gpus)
    for number, times in count.items():
        if not 0 <= number < algorithm.ngpus:
            yield f"is none of the {algorithm.ngpus} GPUs of ngpus", f"gpu {number}", True
        elif times > 1:
            yield f"is there {times} times", f"gpu {number}", True
    missing = [number for number in range(algorithm.ngpus) if number not in count]
    if missing:
        yield "has no element: its call launches no thread block", f"gpu {missing[0]}", True


def launch(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that every GPU has a thread block to launch."""
    del dialect
    for gpu in algorithm.gpus:
        if not gpu.blocks:
            yield "has no thread block: its call has nothing to launch", f"gpu {gpu.id}", True


def channels(algorithm: Algorithm, dialect: Dialect) -> Found:
    """There are as many channels as the file asks for."""
    if algorithm.nchannels < 1:
        yield f"nchannels {algorithm.nchannels}: no connection is made", "", True
    elif algorithm.nchannels > dialect.channels:
        yield f"nchannels {algorithm.nchannels}; {dialect.name} has {dialect.channels}", "", True


def channel(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that every thread block is on a connected channel."""
    for gpu in algorithm.gpus:
        for block in gpu.blocks:
            place = place_text(gpu.id, block.id)
            if not 0 <= block.chan <= dialect.channels:
                yield f"chan {block.chan} is rejected; expected 0 to {dialect.channels - 1}", place, True
            elif block.chan == dialect.channels:
                yield f"chan {block.chan} is taken, and written past the end of the {block.chan} channels", place, True
            elif block.chan >= max(algorithm.nchannels, 1) and (block.send >= 0 or block.recv >= 0):
                text = f"chan {block.chan} is not below nchannels {algorithm.nchannels}: it is not connected, and hangs"
                yield text, place, True


def blocks(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Thread blocks are numbered from 0, as many as there may be."""
    for gpu in algorithm.gpus:
        ids = Counter(block.id for block in gpu.blocks)
        for number, times in ids.items():
            if number < 0:
                yield "a thread block's id is negative: rejected", place_text(gpu.id, number), True
            elif number >= dialect.blocks:
                text = f"too many thread blocks: {dialect.name} takes ids below {dialect.blocks}"
                yield text, place_text(gpu.id, number), True
            elif times > 1:
                yield "two thread blocks have this id: rejected", place_text(gpu.id, number), True
        gap = next((number for number in sorted(ids) if number > 0 and number - 1 not in ids), None)
        if gap is not None:
            yield f"thread block {gap - 1} is missing: rejected", place_text(gpu.id, gap), True


def peers(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Peers are other GPUs."""
    for gpu in algorithm.gpus:
        for block in gpu.blocks:
            for name, peer in (("send", block.send), ("recv", block.recv)):
                place = place_text(gpu.id, block.id)
                if peer == gpu.id:
                    yield f"{name} is the GPU itself: rejected", place, True
                elif peer < -1:
                    yield f"{name} is {peer}: rejected; -1 is none", place, True
                elif peer >= algorithm.ngpus:
                    how = "rejected" if dialect.checked else "not checked, and connected to nobody"
                    yield f"{name} is {peer} of {algorithm.ngpus} GPUs: {how}", place, True


def connections(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that thread blocks share no end of a connection, and that channels have room for all."""
    del dialect
    for gpu in algorithm.gpus:
        ends: dict[tuple[str, int, int], int] = {}
        per: Counter[tuple[str, int]] = Counter()
        for block in gpu.blocks:
            used = {step.type for step in block.steps}
            for name, peer, kinds in (("send", block.send, SENDS), ("recv", block.recv, RECEIVES)):
                if peer < 0:
                    continue
                per[name, block.chan] += 1
                if not used & kinds:
                    continue
                other = ends.setdefault((name, peer, block.chan), block.id)
                if other != block.id:
                    text = f"has the same {name} {peer} and chan {block.chan} as tb {other}: not checked, and they"
                    yield f"{text} overwrite one another's place in the connection", place_text(gpu.id, block.id), True
        for (name, chan), count in per.items():
            if count > BLOCKS_PER_CHANNEL:
                text = f"{count} thread blocks {name} over channel {chan}; more than {BLOCKS_PER_CHANNEL} are rejected"
                yield text, f"gpu {gpu.id}", True


def wait_numbers(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Thread blocks that are waited for have numbers of 7 bits."""
    del dialect
    for gpu in algorithm.gpus:
        for block in gpu.blocks:
            for position, step in enumerate(block.steps):
                if step.depid >= MAX_WAITED:
                    wrapped = (step.depid + 128) % 256 - 128
                    text = (
                        f"depid {step.depid} is kept in 8 bits with a sign, as {wrapped}: it waits for something else"
                    )
                    yield text, place_text(gpu.id, block.id, position), True


def buffers(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Sizes of buffers agree with the chunks of the data."""
    for gpu in algorithm.gpus:
        if gpu.s_chunks < 0:
            yield f"s_chunks is {gpu.s_chunks}: rejected", f"gpu {gpu.id}", True
        if not dialect.checked or algorithm.nchunksperloop < 1:
            continue
        before = algorithm.ngpus if algorithm.coll == "allgather" else 1
        after = algorithm.ngpus if algorithm.coll == "reduce_scatter" else 1
        for name, size, times in (("i_chunks", gpu.i_chunks, before), ("o_chunks", gpu.o_chunks, after)):
            if size > 0 and size * times != algorithm.nchunksperloop:
                expected = algorithm.nchunksperloop // times
                yield f"{name} is {size}, but nchunksperloop means {expected}: rejected", f"gpu {gpu.id}", True


def scratch(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Scratch memory is what can be had."""
    most = max((gpu.s_chunks for gpu in algorithm.gpus), default=0)
    high = DEFAULT_MAX_BYTES if algorithm.max_bytes is None else algorithm.max_bytes
    if most <= 0 or algorithm.nchunksperloop < 1:
        return
    room = high * most // algorithm.nchunksperloop
    if room > 2**30:
        when = "at its start" if dialect.checked else "at the largest size"
        wrong = dialect.checked and room > _MOST_MEMORY
        yield f"{room:,} bytes of scratch memory are allocated {when}", "", wrong


#: Bytes that no GPU has.
_MOST_MEMORY = 2**42


def elements(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that the runtime's reader has room for the file."""
    del dialect
    if len(algorithm.gpus) > MAX_CHILDREN:
        yield f"{len(algorithm.gpus):,} GPUs; the reader writes past {MAX_CHILDREN:,} children", "", True
    for gpu in algorithm.gpus:
        total = 1 + len(algorithm.gpus) + len(gpu.blocks) + sum(len(block.steps) for block in gpu.blocks)
        if total > MAX_ELEMENTS:
            yield f"{total:,} elements for its reader, which takes {MAX_ELEMENTS:,}", f"gpu {gpu.id}", True
        for block in gpu.blocks:
            if len(block.steps) > MAX_CHILDREN:
                yield (
                    f"{len(block.steps):,} steps; the reader writes past {MAX_CHILDREN:,}",
                    place_text(gpu.id, block.id),
                    True,
                )


def step_types(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that the build has all used types of steps."""
    if dialect.fused:
        return
    used = {step.type for gpu in algorithm.gpus for block in gpu.blocks for step in block.steps} & FUSED
    if used:
        text = f"uses {', '.join(sorted(used))}, which {dialect.name} rejects as it is built by default"
        yield text, "", False


RULES: dict[str, Callable[[Algorithm, Dialect], Found]] = {
    rule.__name__: rule
    for rule in (
        proto, coll, attributes, placement, sizes, threads, loop, gpus, launch, channels, channel, blocks, peers,
        connections, wait_numbers, buffers, scratch, elements, step_types,
    )
} | STEP_RULES  # fmt: skip
