"""Static rules of plans: what the executor has room for, what it rejects, and what it does not look at.

The executor checks that a thread block has at most 64 operations, that names are known, that sizes divide and that GPUs
are in order; everything else is used as it is, so that memory beyond an array is read.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from ..msccl.findings import Finding, Findings, Found, Note, place_text
from . import plan as plans
from .plan import MEMORY, MOVES, OTHERS, PACKETS, PORT, SIGNALS, SWITCH, WAITS, Block, Buffer, Gpu, Op, Plan, letters_of
from .run import meaning_of


def lint(plan: Plan) -> Findings:
    """Hold a plan against every rule."""
    return Findings.by(RULES, plan)


def head(plan: Plan) -> Found:
    """Check the attributes of the whole plan."""
    if not 1 <= plan.threads <= plans.MAX_THREADS:
        yield (f"{plan.threads:,} threads of a block; a block has 1 to {plans.MAX_THREADS:,}",)
    if plan.alignment < 16 or plan.alignment % 16:
        yield (f"buffer_alignment {plan.alignment}; data is moved in words of 16 bytes: expected a multiple",)
    if plan.min_bytes > plan.max_bytes:
        yield (f"min_message_size {plan.min_bytes:,} is more than max_message_size {plan.max_bytes:,}",)


def old(plan: Plan) -> Found:
    """Check that the file has the executor's current format."""
    for text in plan.old:
        yield (text,)


def gpus(plan: Plan) -> Found:
    """GPUs are in order, and each has something to run."""
    for place, gpu in enumerate(plan.gpus):
        if gpu.id != place:
            yield (f"GPU {place} of the file has id {gpu.id}: rejected",)
        if not gpu.blocks:
            yield "no thread block: nothing can be launched", gpu.id
        if len(gpu.blocks) > plans.RESIDENT:
            text = f"{len(gpu.blocks):,} thread blocks; an H100 runs {plans.RESIDENT} at once"
            yield Note(f"{text}, and who waits for another hangs"), gpu.id


def blocks(plan: Plan) -> Found:
    """Thread blocks are in order: operations go by place, channels by id."""
    for gpu in plan.gpus:
        for place, block in enumerate(gpu.blocks):
            if block.id != place:
                yield (
                    f"thread block {place} of the GPU has id {block.id}: it gets the channels of another one",
                    gpu.id,
                    block.id,
                )


def chunks(plan: Plan) -> Found:
    """Check that the numbers of chunks fit the collective, and none is 0."""
    meaning = meaning_of(plan)
    for gpu in plan.gpus:
        for name, count in (("input_chunks", gpu.input), ("output_chunks", gpu.output)):
            if count < 1:
                yield f"{name} is {count}, which sizes are divided by", gpu.id
        if gpu.scratch < 0:
            yield f"scratch_chunks is {gpu.scratch}", gpu.id
        sizes = (gpu.input, gpu.output)
        if meaning.kind is not None and min(sizes) > 0 and sizes != meaning.sizes:
            expected = " and ".join(map(str, meaning.sizes))
            yield f"{gpu.input} chunks of input and {gpu.output} of output; {plan.collective} has {expected}", gpu.id


def names(plan: Plan) -> Found:
    """Check that every operation is known."""
    for _, _, place, op in plan.operations():
        if op.name not in MOVES and op.name not in OTHERS:
            yield f"operation {op.name[:40]!r} is unknown: rejected", *place


def operations(plan: Plan) -> Found:
    """Operations of a thread block, those of pipelines too."""
    for gpu in plan.gpus:
        for block in gpu.blocks:
            count = sum(1 + len(op.ops) for op in block.ops)
            if count > plans.MAX_OPERATIONS:
                yield f"{count:,} operations; there is room for {plans.MAX_OPERATIONS}: rejected", gpu.id, block.id


def room(plan: Plan) -> Found:
    """Channels and buffers of a thread block and of an operation, beyond which other memory is written."""
    for gpu in plan.gpus:
        for block in gpu.blocks:
            for what, lists in (("channels", block.channels), ("remote buffers", block.remote)):
                for kind, ids in lists.items():
                    if len(ids) > plans.MAX_CHANNELS:
                        text = f"{len(ids)} {kind} {what}; there is room for {plans.MAX_CHANNELS}, which is not checked"
                        yield text, gpu.id, block.id
    for _, _, place, op in plan.operations():
        for count, most, what in (
            (len(op.channels), plans.MAX_OP_CHANNELS, "channels"),
            (len(op.src), plans.MAX_OP_BUFFERS, "sources"),
            (len(op.dst), plans.MAX_OP_BUFFERS, "targets"),
            (len(op.semaphores), plans.MAX_SEMAPHORES, "semaphores"),
        ):
            if count > most:
                yield f"{op.name} with {count} {what}; there is room for {most}, which is not checked", *place


def peers(plan: Plan) -> Found:
    """Channels and remote buffers are of other GPUs that there are."""
    everyone = range(plan.ngpus)
    for gpu in plan.gpus:
        for one in gpu.channels:
            for peer in one.peers:
                if peer not in everyone or peer == gpu.id:
                    yield f"a {one.type} channel to GPU {peer}; expected another one of {plan.ngpus}", gpu.id
            for group in one.groups:
                if gpu.id not in group or any(rank not in everyone for rank in group) or len(set(group)) < len(group):
                    yield f"a switch channel of GPUs {list(group[:8])}; expected this one and others", gpu.id
            if one.type == SWITCH and one.buffer not in ("i", "o", "s"):
                yield f"a switch channel of buffer {one.buffer!r}; expected i, o or s: rejected", gpu.id
        for remote in gpu.remote:
            if remote.rank not in everyone or remote.rank == gpu.id:
                yield f"a buffer of GPU {remote.rank}; expected another one of {plan.ngpus}", gpu.id
            if remote.type not in ("i", "o", "s"):
                yield f"a remote buffer of type {remote.type!r}; expected i, o or s: rejected", gpu.id


def references(plan: Plan) -> Found:
    """Check that thread blocks and operations refer to existing entries."""
    for gpu, block in ((one, block) for one in plan.gpus for block in one.blocks):
        for kind, ids in block.channels.items():
            count = len(gpu.groups) if kind == SWITCH else len(gpu.peers(kind))
            for one in ids:
                if not 0 <= one < count:
                    yield f"{kind} channel {one}; the GPU has {count}", gpu.id, block.id
        for kind, one in ((kind, one) for kind, ids in block.remote.items() for one in ids):
            if not 0 <= one < len(gpu.remote):
                yield f"remote buffer {one}; the GPU has {len(gpu.remote)}", gpu.id, block.id
            elif kind not in gpu.remote[one].over:
                text = f"remote buffer {one} over {kind}, which it is not said to be used over: another one is used"
                yield text, gpu.id, block.id
    for gpu, block, place, op in plan.operations():
        for text in _missing(gpu, block, op):
            yield text, *place


def _missing(gpu: Gpu, block: Block, op: Op) -> Iterator[str]:
    ids = block.channels.get(op.channel_type, ())
    for one in op.channels:
        if not 0 <= one < len(ids):
            yield f"{op.name} over {op.channel_type or 'no kind of'} channel {one}; the thread block has {len(ids)}"
    for buffer in (*op.src, *op.dst):
        refs = block.remote.get(op.channel_type, ())
        if buffer.remote >= len(refs):
            yield f"{op.name} with remote buffer {buffer.remote}; the thread block has {len(refs)}"
        switches = block.channels.get(SWITCH, ())
        if buffer.switch >= len(switches):
            yield f"{op.name} with switch channel {buffer.switch}; the thread block has {len(switches)}"
    for one in op.semaphores:
        if not 0 <= one < len(gpu.semaphores):
            yield f"semaphore {one}; the GPU has {len(gpu.semaphores)}"


def barriers(plan: Plan) -> Found:
    """Barriers are there, and as many thread blocks meet as come."""
    for gpu in plan.gpus:
        meetings: dict[int, Counter[int]] = {}
        for block in gpu.blocks:
            for place, op in enumerate(block.ops):
                for one in (op, *op.ops):
                    if one.name == "barrier":
                        if not 0 <= one.barrier < plans.MAX_BARRIERS:
                            yield f"barrier {one.barrier}; there are {plans.MAX_BARRIERS}", gpu.id, block.id, place
                        meetings.setdefault(one.barrier, Counter())[one.blocks] += 1
        for number, sizes in meetings.items():
            if len(sizes) > 1 or not 1 <= next(iter(sizes)) <= len(gpu.blocks):
                text = f"barrier {number} of {sorted(sizes)} thread blocks; the GPU has {len(gpu.blocks)}"
                yield f"{text}, and all who meet must say the same", gpu.id


def kinds(plan: Plan) -> Found:
    """Operations go over the kinds of channels that they have code for."""
    for _, _, place, op in plan.operations():
        if op.name in MOVES:
            over = MOVES[op.name].over
            remote = any(one.remote >= 0 or one.switch >= 0 for one in (*op.src, *op.dst))
        else:
            over, remote = OTHERS.get(op.name, ()), bool(OTHERS.get(op.name))
        if remote and op.channel_type not in over:
            right = " or ".join(over)
            if op.name in ("pws", "pwsf") and op.channel_type == MEMORY:
                yield f"{op.name} over a memory channel puts and does not signal; expected {right}", *place
            else:
                yield f"{op.name} over {op.channel_type or 'no'} channels does something else; expected {right}", *place
        if op.name in SIGNALS | WAITS and not op.channels:
            yield f"{op.name} without channels does nothing", *place
        if op.name == "flush" and not op.dst:
            yield Note("flush counts its channels by dst_buff: without, it does nothing"), *place
        if op.channel_type == PORT and op.name in MOVES and len(op.channels) < len(op.dst):
            yield (
                f"{op.name} of {len(op.dst)} buffers over {len(op.channels)} channels: the others go over channel 0",
                *place,
            )


def operands(plan: Plan) -> Found:
    """Operations have the sources and targets that they have code for."""
    for _, _, place, op in plan.operations():
        if op.name not in MOVES:
            continue
        if not MOVES[op.name].fits(len(op.src), len(op.dst)):
            yield f"{op.name} of {len(op.src)} sources and {len(op.dst)} targets reads what is not there", *place
            continue
        letters = letters_of(op.name, len(op.src), len(op.dst), op.channel_type)
        for one, letter in zip((*op.src, *op.dst), "".join(letters), strict=True):
            expected = {"R": "a remote buffer", "Q": "a remote buffer", "S": "a switch", "T": "a switch"}.get(letter)
            if _letter(one) != (letter if letter not in "PQT" else {"P": "L", "Q": "R", "T": "S"}[letter]):
                yield f"{op.name} with another buffer than it is for; expected {expected or 'one of the GPU'}", *place
        local = [one.type for one, letter in zip(op.src, letters[0], strict=True) if letter == "L"]
        if MOVES[op.name].each and op.channel_type != PORT and len(set(local)) > 1:
            yield f"{op.name} reads all sources from the buffer of the first, {local[0]}", *place


def _letter(one: Buffer) -> str:
    return "R" if one.remote >= 0 else "S" if one.switch >= 0 else "L" if one.type in ("i", "o", "s") else ""


def sizes(plan: Plan) -> Found:
    """Check that all buffers of an operation have one size: the executor uses the first."""
    for _, _, place, op in plan.operations():
        pairs = zip(op.src, op.dst, strict=False) if op.name in MOVES and MOVES[op.name].each else [(*op.src, *op.dst)]
        for some in pairs:
            if len({one.size for one in some}) > 1:
                yield f"{op.name} of sizes {[one.size for one in some]}: the first is taken for all", *place
        if any(one.size < 1 for one in (*op.src, *op.dst)):
            yield f"{op.name} of a size below 1", *place


def slices(plan: Plan) -> Found:
    """Check that a slice's number is below their count."""
    for _, _, place, op in plan.operations():
        if not 0 <= op.part < op.parts:
            yield f"slice {op.part} of {op.parts}", *place


def bounds(plan: Plan) -> Found:
    """Check that chunks are inside of their buffers."""
    sized = [{"i": gpu.input, "o": gpu.output, "s": gpu.scratch} for gpu in plan.gpus]
    for gpu, block, place, op in plan.operations():
        for one in (*op.src, *op.dst):
            for rank, buffer in _owners(plan, gpu, block, op, one):
                count = sized[rank].get(buffer)
                if count is None:
                    continue
                if one.first < 0 or one.first + one.size > count:
                    what = f"chunks {one.first:,} to {one.first + one.size - 1:,} of buffer {buffer} of gpu {rank}"
                    yield f"{op.name} uses {what}, which has {count:,}: not checked", *place


def _owners(plan: Plan, gpu: Gpu, block: Block, op: Op, one: Buffer) -> Iterator[tuple[int, str]]:
    """GPUs and buffers that a buffer of an operation is, as far as they are there."""
    refs, switches = block.remote.get(op.channel_type, ()), block.channels.get(SWITCH, ())
    if 0 <= one.remote < len(refs) and 0 <= refs[one.remote] < len(gpu.remote):
        remote = gpu.remote[refs[one.remote]]
        if 0 <= remote.rank < plan.ngpus:
            yield remote.rank, remote.type
    elif 0 <= one.switch < len(switches) and 0 <= switches[one.switch] < len(gpu.groups):
        buffer, group = gpu.groups[switches[one.switch]]
        yield from ((rank, buffer) for rank in group if 0 <= rank < plan.ngpus)
    elif one.remote < 0 and one.switch < 0 and 0 <= gpu.id < plan.ngpus:
        yield gpu.id, one.type


def gets(plan: Plan) -> Found:
    """Check that data read from another GPU has the same chunk on both."""
    for _, _, place, op in plan.operations():
        if op.name == "get":
            for one, two in zip(op.src, op.dst, strict=False):
                if one.first != two.first:
                    yield f"get of chunk {one.first} into chunk {two.first}: the executor exchanges the two", *place


def packets(plan: Plan) -> Found:
    """Packets are in scratch memory, which has room for them with protocol LL."""
    for _, _, place, op in plan.operations() if plan.protocol != "LL" else ():
        if op.name in PACKETS:
            text = f"{op.name} with protocol {plan.protocol[:20]}; scratch memory has room for packets with LL alone"
            yield text, *place
    for place, name, letter, buffers in _buffers_of_moves(plan):
        if letter in "PQT" and any(buffer != "s" for buffer in buffers):
            yield f"{name} of packets in buffer {buffers[0]}; packets are in scratch memory", *place


def _buffers_of_moves(plan: Plan) -> Iterator[tuple[tuple[int, int, int], str, str, list[str]]]:
    """Yield the buffers of operations that move data: place, operation, letter, and the memory that it is."""
    for gpu, block, place, op in plan.operations():
        letters = "".join(letters_of(op.name, len(op.src), len(op.dst), op.channel_type)) if op.name in MOVES else ""
        for one, letter in zip((*op.src, *op.dst), letters, strict=False):
            yield place, op.name, letter, [buffer for _, buffer in _owners(plan, gpu, block, op, one)]


def halves(plan: Plan) -> Found:
    """Check accesses to the scratch memory of other GPUs: without packets, they go to its first half in every call."""
    for place, name, letter, buffers in _buffers_of_moves(plan) if plan.double_scratch else ():
        if letter in "RS" and "s" in buffers:
            yield f"{name} with scratch memory of another GPU, which is not halved there", *place


def pipelines(plan: Plan) -> Found:
    """Pipelines hold what can be cut, in iterations of some bytes."""
    for gpu in plan.gpus:
        for block in gpu.blocks:
            for place, op in enumerate(block.ops):
                here = gpu.id, block.id, place
                if op.name == "pipeline":
                    for text in _pipeline(plan, op):
                        yield text, *here
                elif op.ops:
                    yield f"{op.name} has operations, which are of pipelines: they are not run", *here


def _pipeline(plan: Plan, op: Op) -> Iterator[str]:
    if op.unit_bytes < 1 or op.chunks < 1:
        yield f"iterations of {op.unit_bytes} bytes over {op.chunks} chunks; expected 1 or more"
    if op.unit_bytes % max(plan.alignment, 1):
        yield f"iterations of {op.unit_bytes} bytes; expected a multiple of {plan.alignment}"
    if len(op.ops) > plans.MAX_PIPELINE:
        yield f"{len(op.ops)} operations in a pipeline; there is room for {plans.MAX_PIPELINE}"
    for one in op.ops:
        if one.name == "pipeline":
            yield "a pipeline in a pipeline: the executor stops with an error"
        if one.name in PACKETS:
            yield f"{one.name} in a pipeline is not cut: every iteration does all of it"
        if one.name in MOVES and one.src and one.src[0].size < op.chunks * max(one.parts, 1):
            text = f"{one.name} of {one.src[0].size} chunks"
            sliced = f" in {one.parts} slices" if one.parts > 1 else ""
            yield f"{text}{sliced} in a pipeline over {op.chunks}: the last iterations go beyond its end"


def reuse(plan: Plan) -> Found:
    """Reused scratch memory is of a fixed size."""
    if plan.reuse:
        for gpu in plan.gpus:
            if gpu.scratch > 0 and plan.max_bytes // max(gpu.input, 1) * gpu.scratch > plans.SCRATCH_BYTES:
                text = f"{gpu.scratch} chunks of scratch memory of {plans.SCRATCH_BYTES >> 20} MiB, which is reused"
                yield Note(f"{text}: larger ones need a pipeline"), gpu.id
                return


def channel_sharing(plan: Plan) -> Found:
    """Check that only one thread block waits at a channel: it has one counter."""
    for gpu in plan.gpus:
        waiting: dict[tuple[str, int], set[int]] = {}
        for block in gpu.blocks:
            for op in (inner for one in block.ops for inner in (one, *one.ops)):
                if op.name in WAITS:
                    ids = block.channels.get(op.channel_type, ())
                    for one in op.channels:
                        if 0 <= one < len(ids):
                            waiting.setdefault((op.channel_type, ids[one]), set()).add(block.id)
        for (kind, number), some in waiting.items():
            if len(some) > 1:
                text = f"{kind} channel {number} is waited at by thread blocks {sorted(some)[:8]}"
                yield Note(f"{text}, which have one counter"), gpu.id


def channels_between_boxes(plan: Plan, boxes: Sequence[str] | None) -> list[Finding]:
    """Return the channels between boxes that are no ports: other kinds need memory that both GPUs have mapped.

    ``boxes`` has the box of every GPU; None if they are unknown.
    """
    box_of, findings = dict(enumerate(boxes or ())), Findings()
    for gpu in plan.gpus:
        others = {(MEMORY, peer) for peer in gpu.peers(MEMORY)}
        others |= {(SWITCH, peer) for _, group in gpu.groups if gpu.id in group for peer in group}
        for kind, peer in sorted(others):
            if gpu.id in box_of and peer in box_of and box_of[gpu.id] != box_of[peer]:
                text = f"{kind} channel to gpu {peer} of another box; expected a port"
                findings.add("boxes", text, place_text(gpu.id))
    return findings.first


RULES: dict[str, Callable[[Plan], Found]] = {
    rule.__name__: rule
    for rule in (
        head, old, gpus, blocks, chunks, names, operations, room, peers, references, barriers, kinds, operands, sizes,
        slices, bounds, gets, packets, halves, pipelines, reuse, channel_sharing,
    )
}  # fmt: skip
