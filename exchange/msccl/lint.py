"""Static rules of a runtime: inputs that it rejects, or accepts and fails on."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Set
from heapq import merge
from itertools import groupby
from operator import itemgetter

import numpy as np

from ...core.schedule import Bools, Ints
from . import dialects
from .dialects import Dialect
from .findings import Findings, Found, Note
from .outcome import ROOTED, meaning_of
from .program import BUFFERS, FUSED, READS, RECEIVES, SENDS, WRITES, Algorithm, Block, Columns, Gpu, Step

_PARTED = frozenset({"allgather", "reduce_scatter", "reducescatter", "alltoall"})
_MOST_MEMORY = 2**42  #: Bytes that no GPU has.
_TYPES = frozenset({"s", "r", "rcs", "rrs", "rrc", "rrcs", "cpy", "re", "nop"})

#: Types of steps whose sources, and whose destinations, a parser looks at. It looks at neither of an ``rrc``.
_CHECKED_SOURCE = frozenset({"s", "rrs", "rrcs", "cpy", "re", "ra"})
_CHECKED_TARGET = frozenset({"r", "rcs", "rrcs", "cpy", "re", "ra"})


def lint(algorithm: Algorithm, dialect: Dialect) -> Findings:
    """Look at a program by every rule of a runtime."""
    return Findings.by(RULES, algorithm, dialect)


def proto(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that the protocol is known."""
    if algorithm.proto not in dialects.PROTOCOLS:
        yield (f"proto {algorithm.proto!r} is rejected; expected {', '.join(dialects.PROTOCOLS)}",)


def coll(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that the collective is known."""
    names = {*dialect.collectives.values(), *dialect.also}
    if algorithm.coll not in names:
        yield (f"coll {algorithm.coll!r} is rejected; expected one of {', '.join(sorted(names))}",)
    elif meaning_of(algorithm).kind in ROOTED:
        yield (Note(f"a file does not name a root; the runtime takes it for every root of {algorithm.coll}"),)


def attributes(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Attributes that the runtime requires are there."""
    required = {"inplace": algorithm.inplace}
    if dialect.placed:
        required |= {
            "outofplace": algorithm.outofplace,
            "minBytes": algorithm.min_bytes,
            "maxBytes": algorithm.max_bytes,
        }
    for name, value in required.items():
        if value is None:
            yield (f"has no {name}, without which the file is rejected",)


def placement(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that the file is for some call."""
    if dialect.placed and algorithm.inplace == 0 and algorithm.outofplace == 0:
        yield ("inplace and outofplace are 0: it is never selected",)


def sizes(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that the range of sizes is not empty."""
    low, high = algorithm.min_bytes or 0, algorithm.max_bytes
    if dialect.checked:
        high = dialects.DEFAULT_MAX_BYTES if high is None else high
        if low < 0 or high < 0 or low > high:
            yield (f"sizes from {low:,} to {high:,} are rejected",)
        elif low == high:
            yield (f"sizes from {low:,} to less than {high:,} are none: it is never selected",)
    elif high is not None and high != 0 and (low > high or high < 0):
        yield (f"sizes from {low:,} to {high:,} are none: it is never selected",)


def threads(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Threads are whole warps."""
    if dialect.checked and algorithm.nthreads is not None and algorithm.nthreads % 32:
        yield (f"nthreads {algorithm.nthreads} is rejected; expected a multiple of 32",)


def loop(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that the data is cut into chunks."""
    if algorithm.nchunksperloop < 1:
        yield (f"nchunksperloop {algorithm.nchunksperloop} divides the data into nothing",)
    elif algorithm.nchunksperloop > dialects.MAX_OFFSET:
        yield (f"nchunksperloop {algorithm.nchunksperloop:,}; offsets reach to {dialects.MAX_OFFSET:,}",)
    elif algorithm.coll in _PARTED and algorithm.nchunksperloop % algorithm.ngpus:
        yield (f"nchunksperloop {algorithm.nchunksperloop} does not give each of {algorithm.ngpus} GPUs a part",)


def gpus(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that every GPU occurs once."""
    count = Counter(gpu.id for gpu in algorithm.gpus)
    for number, times in count.items():
        if not 0 <= number < algorithm.ngpus:
            yield f"is none of the {algorithm.ngpus} GPUs of ngpus", number
        elif times > 1:
            yield f"is there {times} times", number
    missing = [number for number in range(algorithm.ngpus) if number not in count]
    if missing:
        yield "has no element: its call launches no thread block", missing[0]


def launch(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that every GPU has a thread block to launch."""
    for gpu in algorithm.gpus:
        if not gpu.blocks:
            yield "has no thread block: its call has nothing to launch", gpu.id


def channels(algorithm: Algorithm, dialect: Dialect) -> Found:
    """There are as many channels as the file asks for."""
    if algorithm.nchannels < 1:
        yield (f"nchannels {algorithm.nchannels}: no connection is made",)
    elif algorithm.nchannels > dialect.channels:
        yield (f"nchannels {algorithm.nchannels}; {dialect.name} has {dialect.channels}",)


def _blocks(algorithm: Algorithm, *types: Iterable[str]) -> Iterator[tuple[Gpu, Block, list[int]]]:
    """Yield thread blocks, each with the number of its steps of types."""
    counts = [algorithm.columns.blocks_with(some) for some in types]
    blocks = ((gpu, block) for gpu in algorithm.gpus for block in gpu.blocks)
    for number, (gpu, block) in enumerate(blocks):
        yield gpu, block, [int(count[number]) for count in counts]


def _steps(algorithm: Algorithm, wrong: Bools) -> Iterator[tuple[tuple[int, int, int], Step]]:
    """Yield the steps for which a column is true, with their places."""
    for step in np.flatnonzero(wrong).tolist():
        yield algorithm.columns.place(step), algorithm.columns.rows[step]


def channel(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that every thread block is on a connected channel."""
    for gpu, block, _ in _blocks(algorithm):
        place = gpu.id, block.id
        if not 0 <= block.chan <= dialect.channels:
            yield f"chan {block.chan} is rejected; expected 0 to {dialect.channels - 1}", *place
        elif block.chan == dialect.channels:
            yield f"chan {block.chan} is taken, and written past the end of the {block.chan} channels", *place
        elif block.chan >= max(algorithm.nchannels, 1) and (block.send >= 0 or block.recv >= 0):
            text = f"chan {block.chan} is not below nchannels {algorithm.nchannels}: it is not connected, and hangs"
            yield text, *place


def blocks(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Thread blocks are numbered from 0, as many as there may be."""
    for gpu in algorithm.gpus:
        ids = Counter(block.id for block in gpu.blocks)
        for number, times in ids.items():
            if number < 0:
                yield "a thread block's id is negative: rejected", gpu.id, number
            elif number >= dialect.blocks:
                yield f"too many thread blocks: {dialect.name} takes ids below {dialect.blocks}", gpu.id, number
            elif times > 1:
                yield "two thread blocks have this id: rejected", gpu.id, number
        gap = next((number for number in sorted(ids) if number > 0 and number - 1 not in ids), None)
        if gap is not None:
            yield f"thread block {gap - 1} is missing: rejected", gpu.id, gap


def peers(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Peers are other GPUs."""
    for gpu, block, _ in _blocks(algorithm):
        for name, peer in (("send", block.send), ("recv", block.recv)):
            if peer == gpu.id:
                yield f"{name} is the GPU itself: rejected", gpu.id, block.id
            elif peer < -1:
                yield f"{name} is {peer}: rejected; -1 is none", gpu.id, block.id
            elif peer >= algorithm.ngpus:
                how = "rejected" if dialect.checked else "not checked, and connected to nobody"
                yield f"{name} is {peer} of {algorithm.ngpus} GPUs: {how}", gpu.id, block.id


def connections(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that thread blocks share no end of a connection, and that channels have room for all."""
    for gpu, blocks in groupby(_blocks(algorithm, SENDS, RECEIVES), itemgetter(0)):
        ends: dict[tuple[str, int, int], int] = {}
        per: Counter[tuple[str, int]] = Counter()
        for _, block, counts in blocks:
            for (name, peer), count in zip((("send", block.send), ("recv", block.recv)), counts, strict=True):
                per[name, block.chan] += peer >= 0
                other = ends.setdefault((name, peer, block.chan), block.id) if peer >= 0 and count else block.id
                if other != block.id:
                    text = f"has the same {name} {peer} and chan {block.chan} as tb {other}: not checked, and they"
                    yield f"{text} overwrite one another's place in the connection", gpu.id, block.id
        for (name, chan), count in per.items():
            if count > dialects.BLOCKS_PER_CHANNEL:
                text = f"{count} thread blocks {name} over channel {chan}"
                yield f"{text}; more than {dialects.BLOCKS_PER_CHANNEL} are rejected", gpu.id


def wait_numbers(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Thread blocks that are waited for have numbers of 7 bits."""
    for place, step in _steps(algorithm, algorithm.columns.depid >= dialects.MAX_WAITED):
        wrapped = (step.depid + 128) % 256 - 128
        yield f"depid {step.depid} is kept in 8 bits with a sign, as {wrapped}: it waits for something else", *place


def buffers(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Sizes of buffers agree with the chunks of the data."""
    for gpu in algorithm.gpus:
        if gpu.s_chunks < 0:
            yield f"s_chunks is {gpu.s_chunks}: rejected", gpu.id
        if not dialect.checked or algorithm.nchunksperloop < 1:
            continue
        before = algorithm.ngpus if algorithm.coll == "allgather" else 1
        after = algorithm.ngpus if algorithm.coll == "reduce_scatter" else 1
        for name, size, times in (("i_chunks", gpu.i_chunks, before), ("o_chunks", gpu.o_chunks, after)):
            if size > 0 and size * times != algorithm.nchunksperloop:
                expected = algorithm.nchunksperloop // times
                yield f"{name} is {size}, but nchunksperloop means {expected}: rejected", gpu.id


def scratch(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Scratch memory is what can be had."""
    most = max((gpu.s_chunks for gpu in algorithm.gpus), default=0)
    high = dialects.DEFAULT_MAX_BYTES if algorithm.max_bytes is None else algorithm.max_bytes
    if most <= 0 or algorithm.nchunksperloop < 1:
        return
    room = high * most // algorithm.nchunksperloop
    if room > 2**30:
        when = "at its start" if dialect.checked else "at the largest size"
        text = f"{room:,} bytes of scratch memory are allocated {when}"
        yield (text if dialect.checked and room > _MOST_MEMORY else Note(text),)


def elements(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that the runtime's reader has room for the file."""
    if len(algorithm.gpus) > dialects.MAX_CHILDREN:
        yield (f"{len(algorithm.gpus):,} GPUs; the reader writes past {dialects.MAX_CHILDREN:,} children",)
    for gpu in algorithm.gpus:
        total = 1 + len(algorithm.gpus) + len(gpu.blocks) + sum(len(block.steps) for block in gpu.blocks)
        if total > dialects.MAX_ELEMENTS:
            yield f"{total:,} elements for its reader, which takes {dialects.MAX_ELEMENTS:,}", gpu.id
        for block in gpu.blocks:
            if len(block.steps) > dialects.MAX_CHILDREN:
                yield f"{len(block.steps):,} steps; the reader writes past {dialects.MAX_CHILDREN:,}", gpu.id, block.id


def step_types(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that the build has all used types of steps."""
    if dialect.fused:
        return
    fused = [name for name in sorted(FUSED) if algorithm.columns.has_type((name,)).any()]
    if fused:
        yield (Note(f"uses {', '.join(fused)}, which {dialect.name} rejects as it is built by default"),)


def steps(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that steps have numbers below the limit."""
    columns = algorithm.columns
    beyond = np.maximum(columns.s, columns.position) >= dialect.steps
    for place, step in _steps(algorithm, (columns.s < 0) | beyond):
        if step.s < 0:
            yield f"s is {step.s}: rejected", *place
        else:
            yield f"too many steps: {dialect.name} takes {dialect.steps} in a thread block", *place
            return


def numbers(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that steps are numbered in the order of the file."""
    columns = algorithm.columns
    for place, step in _steps(algorithm, (columns.s != columns.position) & (columns.s >= 0)):
        yield f"s is {step.s}; the runtime keeps the order of the file, and waits count from 0 in it", *place


def types(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Types are known, and executed."""
    for place, step in _steps(algorithm, ~algorithm.columns.has_type(_TYPES)):
        skipped = step.type == "ra" and dialect.residual_add
        text = "ra is taken but not executed: the thread block ends there"
        yield text if skipped else f"type {step.type!r} is rejected", *place


def counts(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that steps move at least one chunk and at most as many as fit."""
    columns = algorithm.columns
    wrong = ~columns.has_type(("nop",)) & ((columns.cnt < 1) | (columns.cnt >= dialects.MAX_COUNT))
    for place, step in _steps(algorithm, wrong):
        text = f"cnt {step.cnt} is rejected; expected 1 to {dialects.MAX_COUNT - 1}"
        yield text if step.cnt else "cnt 0 moves nothing, and is counted before the first of the counts", *place


def peerless(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that blocks that send or receive have a peer."""
    for gpu, block, (sends, receives) in _blocks(algorithm, SENDS, RECEIVES):
        if (block.send == -1 and sends) or (block.recv == -1 and receives):
            for position, step in enumerate(block.steps):
                for name, peer, kinds in (("send", block.send, SENDS), ("recv", block.recv, RECEIVES)):
                    if step.type in kinds and peer == -1:
                        yield f"{step.type} in a thread block without {name}: rejected", gpu.id, block.id, position


def buffer_names(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Buffers are input, output and scratch."""
    wrong = np.maximum(algorithm.columns.srcbuf, algorithm.columns.dstbuf) >= len(BUFFERS)
    for place, step in _steps(algorithm, wrong):
        for name in (step.srcbuf, step.dstbuf):
            if name not in BUFFERS:
                yield f"buffer {name!r} is rejected; expected i, o or s", *place


def offsets(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Offsets are inside of their buffers, also those that no parser looks at."""
    meaning, columns = meaning_of(algorithm), algorithm.columns
    limit = np.array([(gpu.i_chunks, gpu.o_chunks, gpu.s_chunks) for gpu in algorithm.gpus], np.int64)
    limit = limit.reshape(-1, len(BUFFERS))
    real = limit.copy()
    if meaning.kind is not None:
        real[:, :2] = [min(size, 2**62) for size in meaning.sizes]
    sources = columns.srcbuf, columns.srcoff, _CHECKED_SOURCE, READS
    targets = columns.dstbuf, columns.dstoff, _CHECKED_TARGET, WRITES
    wrong = (_offsets(columns, name, limit, real, *ends) for name, ends in (("src", sources), ("dst", targets)))
    for step, text in merge(*wrong, key=itemgetter(0)):
        yield text, *columns.place(step)


def _offsets(
    columns: Columns, name: str, limit: Ints, real: Ints, buffer: Ints, offset: Ints, checked: Set[str], uses: Set[str]
) -> Iterator[tuple[int, str]]:
    """Yield steps whose sources or destinations are wrong, and a text."""
    place = columns.gpu[columns.block], np.minimum(buffer, len(BUFFERS) - 1)
    limit, real, count = limit[place], real[place], np.maximum(columns.cnt, 1)
    rejected = ((offset < -1) | (offset >= limit)) & columns.has_type(checked)
    beyond = (offset < 0) | (offset > np.maximum(real, 0) - count)
    wrong = rejected | (columns.has_type(uses) & (beyond | (offset >= dialects.MAX_OFFSET)))
    for step in np.flatnonzero(wrong & (buffer < len(BUFFERS))).tolist():
        first, last, which = int(offset[step]), int(offset[step]) + int(count[step]) - 1, BUFFERS[buffer[step]]
        if rejected[step]:
            yield step, f"{name}off {first} of buffer {which} with {limit[step]} chunks: rejected"
        elif beyond[step]:
            text = f"uses chunks {first} to {last} of buffer {which}, which has {real[step]}"
            yield step, f"{text}: not checked, and other memory is used"
        else:
            yield step, f"{name}off {first} is kept in 16 bits with a sign, and is another one"


def flags(algorithm: Algorithm, dialect: Dialect) -> Found:
    """``hasdep`` is 0 or 1, and not of a step that is left out."""
    columns = algorithm.columns
    flagged = (columns.hasdep == 1) & columns.has_type(("nop",))
    for place, step in _steps(algorithm, flagged | (columns.hasdep < 0) | (columns.hasdep > 1)):
        text = "a nop has hasdep, but is not executed and sets no flag"
        yield text if step.type == "nop" else f"hasdep {step.hasdep} is rejected; expected 0 or 1", *place


def nops(algorithm: Algorithm, dialect: Dialect) -> Found:
    """``nop`` steps wait, and for a step that waits too."""
    for gpu, block, (count,) in _blocks(algorithm, ("nop",)):
        pending = False
        for position, step in enumerate(block.steps if count else ()):
            if step.type == "nop" and step.depid < 0:
                text = "a nop without depid is left out, which shifts every later step that is waited for"
                yield text, gpu.id, block.id, position
            elif step.type == "nop":
                pending = True
            elif pending:
                if step.depid < 0:
                    yield "a step after nops that wait has no depid itself: rejected", gpu.id, block.id, position
                pending = False
        if pending:
            yield "the last steps are nops: nothing waits", gpu.id, block.id, len(block.steps) - 1


def dependences(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that dependences name existing steps that are flagged."""
    columns = algorithm.columns
    ends = np.append(columns.flag, -1)[columns.ends]
    for place in np.flatnonzero((columns.ends < 0) | (ends != columns.deps[columns.waits])).tolist():
        number, block = int(columns.waits[place]), columns.awaited[place]
        where, step = columns.place(number), columns.rows[number]
        if block < 0:
            yield f"waits for tb {step.depid}, which there is not: never checked, and it hangs", *where
            continue
        begin, end = columns.instruction_begin[block : block + 2]
        what = "is there" if step.deps in columns.flag[begin:end] else "is not a step of it"
        text = f"waits for step {step.deps} of tb {step.depid}, which sets no flag ({what})"
        late = Note(f"{text}: a later one lets it go on")
        yield late if columns.ends[place] >= 0 else f"{text}, nor does any later one: it hangs", *where


def chains(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Chains of ``re`` are as long as may be, and of one size."""
    columns = algorithm.columns
    lengths = np.diff(columns.source_begin)
    for chain in np.flatnonzero(lengths > 1).tolist():
        last, length = int(columns.step[chain]), lengths[chain]
        place = columns.place(last)
        if length > dialects.MAX_FUSION:
            yield f"a chain of {length} re is one step, which has room for {dialects.MAX_FUSION}", *place
        if len({*columns.cnt[last - length + 1 : last + 1].tolist()}) > 1:
            yield "a chain of re is one step, with the cnt of the last; they differ", *place


RULES: dict[str, Callable[[Algorithm, Dialect], Found]] = {
    rule.__name__: rule
    for rule in (
        proto, coll, attributes, placement, sizes, threads, loop, gpus, launch, channels, channel, blocks, peers,
        connections, wait_numbers, buffers, scratch, elements, step_types,
        steps, numbers, types, counts, peerless, buffer_names, offsets, flags, nops, dependences, chains,
    )
}  # fmt: skip
