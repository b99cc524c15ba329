"""Static rules of a runtime: inputs that it rejects, or accepts and fails on."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from . import dialects
from .dialects import Dialect
from .findings import Findings, Found, Note
from .outcome import ROOTED, meaning_of
from .program import FUSED, READS, RECEIVES, SENDS, WRITES, Algorithm, Block, Gpu, Step

_PARTED = frozenset({"allgather", "reduce_scatter", "reducescatter", "alltoall"})
_MOST_MEMORY = 2**42  #: Bytes that no GPU has.
_TYPES = frozenset({"s", "r", "rcs", "rrs", "rrc", "rrcs", "cpy", "re", "nop"})

#: Which offsets a parser looks at, by type: the source, the destination. It looks at neither of an ``rrc``.
_CHECKED = {"s": "src", "r": "dst", "rcs": "dst", "rrs": "src", "rrc": ""} | dict.fromkeys(
    ("rrcs", "cpy", "re", "ra"), "src dst"
)


def lint(algorithm: Algorithm, dialect: Dialect) -> Findings:
    """Look at a program by every rule of a runtime."""
    return Findings.by(RULES, algorithm, dialect)


def proto(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that the protocol is known."""
    if algorithm.proto not in dialects.PROTOCOLS:
        yield (f"proto {algorithm.proto!r} is rejected; expected {', '.join(dialects.PROTOCOLS)}",)


def coll(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that the collective is known."""
    known = {*dialect.collectives.values(), *dialect.also}
    if algorithm.coll not in known:
        yield (f"coll {algorithm.coll!r} is rejected; expected one of {', '.join(sorted(known))}",)
    elif meaning_of(algorithm).kind in ROOTED:
        yield (Note(f"a file does not name a root; the runtime takes it for every root of {algorithm.coll}"),)


def attributes(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Attributes that the runtime requires are there."""
    needed = {"inplace": algorithm.inplace}
    if dialect.placed:
        needed |= {"outofplace": algorithm.outofplace, "minBytes": algorithm.min_bytes, "maxBytes": algorithm.max_bytes}
    for name, value in needed.items():
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


def _blocks(algorithm: Algorithm) -> Iterator[tuple[Gpu, Block]]:
    for gpu in algorithm.gpus:
        for block in gpu.blocks:
            yield gpu, block


def _steps(
    algorithm: Algorithm, wrong: Callable[[Step], bool] | None = None
) -> Iterator[tuple[tuple[int, int, int], Block, Step]]:
    """Yield steps with their places; with a test of type, buffers, count, depid and hasdep, those that it holds for."""
    if wrong is not None and not any(map(wrong, algorithm.kinds_of_steps)):
        return
    for gpu, block in _blocks(algorithm):
        for position, step in enumerate(block.steps):
            if wrong is None or wrong(step):
                yield (gpu.id, block.id, position), block, step


def channel(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that every thread block is on a connected channel."""
    for gpu, block in _blocks(algorithm):
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
    for gpu, block in _blocks(algorithm):
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
                    yield f"{text} overwrite one another's place in the connection", gpu.id, block.id
        for (name, chan), count in per.items():
            if count > dialects.BLOCKS_PER_CHANNEL:
                text = f"{count} thread blocks {name} over channel {chan}"
                yield f"{text}; more than {dialects.BLOCKS_PER_CHANNEL} are rejected", gpu.id


def wait_numbers(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Thread blocks that are waited for have numbers of 7 bits."""
    for place, _, step in _steps(algorithm, lambda step: step.depid >= dialects.MAX_WAITED):
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
    used = {step.type for step in algorithm.kinds_of_steps} & FUSED
    if used:
        yield (Note(f"uses {', '.join(sorted(used))}, which {dialect.name} rejects as it is built by default"),)


def steps(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that steps have numbers below the limit."""
    for place, _, step in _steps(algorithm):
        if step.s < 0:
            yield f"s is {step.s}: rejected", *place
        elif step.s >= dialect.steps or place[2] >= dialect.steps:
            yield f"too many steps: {dialect.name} takes {dialect.steps} in a thread block", *place
            return


def numbers(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that steps are numbered in the order of the file."""
    for place, _, step in _steps(algorithm):
        if step.s != place[2] and step.s >= 0:
            yield f"s is {step.s}; the runtime keeps the order of the file, and waits count from 0 in it", *place


def types(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Types are known, and executed."""
    for place, _, step in _steps(algorithm, lambda step: step.type not in _TYPES):
        if step.type == "ra" and dialect.residual_add:
            yield "ra is taken but not executed: the thread block ends there", *place
        else:
            yield f"type {step.type!r} is rejected", *place


def counts(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that steps move at least one chunk and at most as many as fit."""
    for place, _, step in _steps(algorithm, lambda step: step.type != "nop" and not 0 < step.cnt < dialects.MAX_COUNT):
        if step.cnt:
            yield f"cnt {step.cnt} is rejected; expected 1 to {dialects.MAX_COUNT - 1}", *place
        else:
            yield "cnt 0 moves nothing, and is counted before the first of the counts", *place


def peerless(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that blocks that send or receive have a peer."""
    for place, block, step in _steps(algorithm):
        for name, peer, kinds in (("send", block.send, SENDS), ("recv", block.recv, RECEIVES)):
            if step.type in kinds and peer == -1:
                yield f"{step.type} in a thread block without {name}: rejected", *place


def buffer_names(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Buffers are input, output and scratch."""
    known = {"i", "o", "s"}
    for place, _, step in _steps(algorithm, lambda step: not known >= {step.srcbuf, step.dstbuf}):
        for name in (step.srcbuf, step.dstbuf):
            if name not in known:
                yield f"buffer {name!r} is rejected; expected i, o or s", *place


def offsets(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Offsets are inside of their buffers, also those that no parser looks at."""
    meaning = meaning_of(algorithm)
    for gpu in algorithm.gpus:
        said = {"i": gpu.i_chunks, "o": gpu.o_chunks, "s": gpu.s_chunks}
        real = said if meaning.kind is None else dict(zip("ios", (*meaning.sizes, gpu.s_chunks), strict=True))
        for block in gpu.blocks:
            for position, step in enumerate(block.steps):
                for problem in _offsets(step, said, real):
                    yield problem, gpu.id, block.id, position


def _offsets(step: Step, said: Mapping[str, int], real: Mapping[str, int]) -> Iterator[str]:
    for name, uses, buffer, offset in (
        ("src", READS, step.srcbuf, step.srcoff),
        ("dst", WRITES, step.dstbuf, step.dstoff),
    ):
        if buffer not in said:
            continue
        if not -1 <= offset < said[buffer] and name in _CHECKED.get(step.type, ""):
            yield f"{name}off {offset} of buffer {buffer} with {said[buffer]} chunks: rejected"
        elif step.type not in uses:
            continue
        elif offset < 0 or offset + max(step.cnt, 1) > real[buffer]:
            last = offset + max(step.cnt, 1) - 1
            text = f"uses chunks {offset} to {last} of buffer {buffer}, which has {real[buffer]}: not checked"
            yield f"{text}, and other memory is used"
        elif offset >= dialects.MAX_OFFSET:
            yield f"{name}off {offset} is kept in 16 bits with a sign, and is another one"


def flags(algorithm: Algorithm, dialect: Dialect) -> Found:
    """``hasdep`` is 0 or 1, and not of a step that is left out."""
    for place, _, step in _steps(
        algorithm, lambda step: step.hasdep not in (0, 1) or (step.hasdep == 1 and step.type == "nop")
    ):
        if step.type == "nop":
            yield "a nop has hasdep, but is not executed and sets no flag", *place
        else:
            yield f"hasdep {step.hasdep} is rejected; expected 0 or 1", *place


def nops(algorithm: Algorithm, dialect: Dialect) -> Found:
    """``nop`` steps wait, and for a step that waits too."""
    for gpu, block in _blocks(algorithm):
        pending = False
        for position, step in enumerate(block.steps):
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
    for gpu in algorithm.gpus:
        if not any(step.depid >= 0 for block in gpu.blocks for step in block.steps):
            continue
        known = {block.id: {one.flag: one for one in block.instructions} for block in gpu.blocks}
        for block in gpu.blocks:
            for position, step in enumerate(block.steps):
                if step.depid < 0:
                    continue
                place = gpu.id, block.id, position
                target = known.get(step.depid)
                if target is None:
                    yield f"waits for tb {step.depid}, which there is not: never checked, and it hangs", *place
                    continue
                there = target.get(step.deps)
                if there is not None and there.step.hasdep:
                    continue
                what = "is there" if there is not None else "is not a step of it"
                text = f"waits for step {step.deps} of tb {step.depid}, which sets no flag ({what})"
                if any(count >= step.deps and one.step.hasdep for count, one in target.items()):
                    yield Note(f"{text}: a later one lets it go on"), *place
                else:
                    yield f"{text}, nor does any later one: it hangs", *place


def chains(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Chains of ``re`` are as long as may be, and of one size."""
    for gpu, block in _blocks(algorithm):
        for one in block.instructions:
            if len(one.sources) == 1:
                continue
            place = gpu.id, block.id, one.position
            if len(one.sources) > dialects.MAX_FUSION:
                yield f"a chain of {len(one.sources)} re is one step, which has room for {dialects.MAX_FUSION}", *place
            begin = one.position - len(one.sources) + 1
            if len({step.cnt for step in block.steps[begin : one.position + 1]}) > 1:
                yield "a chain of re is one step, with the cnt of the last; they differ", *place


RULES: dict[str, Callable[[Algorithm, Dialect], Found]] = {
    rule.__name__: rule
    for rule in (
        proto, coll, attributes, placement, sizes, threads, loop, gpus, launch, channels, channel, blocks, peers,
        connections, wait_numbers, buffers, scratch, elements, step_types,
        steps, numbers, types, counts, peerless, buffer_names, offsets, flags, nops, dependences, chains,
    )
}  # fmt: skip
