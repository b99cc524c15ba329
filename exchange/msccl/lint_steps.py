"""The static rules of steps; see :mod:`.lint`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from .dialects import MAX_COUNT, MAX_FUSION, MAX_OFFSET, Dialect
from .findings import place_text
from .meaning import meaning_of
from .program import READS, RECEIVES, SENDS, WRITES, Algorithm, Block, Gpu, Step

_TYPES = frozenset({"s", "r", "rcs", "rrs", "rrc", "rrcs", "cpy", "re", "nop"})

#: Which offsets a parser looks at, by type: the source, the destination. It looks at neither of an ``rrc``.
_CHECKED = {
    "s": "src",
    "r": "dst",
    "rcs": "dst",
    "rrs": "src",
    "rrc": "",
    "rrcs": "src dst",
    "cpy": "src dst",
    "re": "src dst",
    "ra": "src dst",
}

Found = Iterator[tuple[str, str, bool]]


def _steps(algorithm: Algorithm) -> Iterator[tuple[Gpu, Block, int, Step]]:
    for gpu in algorithm.gpus:
        for block in gpu.blocks:
            for position, step in enumerate(block.steps):
                yield gpu, block, position, step


def steps(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that steps have numbers below the limit."""
    for gpu, block, position, step in _steps(algorithm):
        if step.s < 0:
            yield f"s is {step.s}: rejected", place_text(gpu.id, block.id, position), True
        elif step.s >= dialect.steps or position >= dialect.steps:
            text = f"too many steps: {dialect.name} takes {dialect.steps} in a thread block"
            yield text, place_text(gpu.id, block.id, position), True
            return


def numbers(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that steps are numbered in the order of the file."""
    del dialect
    for gpu, block, position, step in _steps(algorithm):
        if step.s != position and step.s >= 0:
            text = f"s is {step.s}; the runtime keeps the order of the file, and waits count from 0 in it"
            yield text, place_text(gpu.id, block.id, position), True


def types(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Types are known, and executed."""
    for gpu, block, position, step in _steps(algorithm):
        if step.type in _TYPES:
            continue
        place = place_text(gpu.id, block.id, position)
        if step.type == "ra" and dialect.residual_add:
            yield "ra is taken but not executed: the thread block ends there", place, True
        else:
            yield f"type {step.type!r} is rejected", place, True


def counts(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that steps move at least one chunk and at most as many as fit."""
    del dialect
    for gpu, block, position, step in _steps(algorithm):
        if step.type == "nop" or 0 < step.cnt < MAX_COUNT:
            continue
        place = place_text(gpu.id, block.id, position)
        if step.cnt:
            yield f"cnt {step.cnt} is rejected; expected 1 to {MAX_COUNT - 1}", place, True
        else:
            yield "cnt 0 moves nothing, and is counted before the first of the counts", place, True


def peerless(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that blocks that send or receive have a peer."""
    del dialect
    for gpu, block, position, step in _steps(algorithm):
        for name, peer, kinds in (("send", block.send, SENDS), ("recv", block.recv, RECEIVES)):
            if step.type in kinds and peer == -1:
                yield (
                    f"{step.type} in a thread block without {name}: rejected",
                    place_text(gpu.id, block.id, position),
                    True,
                )


def buffer_names(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Buffers are input, output and scratch."""
    del dialect
    for gpu, block, position, step in _steps(algorithm):
        for name in (step.srcbuf, step.dstbuf):
            if name not in ("i", "o", "s"):
                yield f"buffer {name!r} is rejected; expected i, o or s", place_text(gpu.id, block.id, position), True


def offsets(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Offsets are inside of their buffers, also those that no parser looks at."""
    del dialect
    meaning = meaning_of(algorithm)
    for gpu in algorithm.gpus:
        said = {"i": gpu.i_chunks, "o": gpu.o_chunks, "s": gpu.s_chunks}
        real = said if meaning.kind is None else dict(zip("ios", (*meaning.sizes, gpu.s_chunks), strict=True))
        for block in gpu.blocks:
            for position, step in enumerate(block.steps):
                for problem in _offsets(step, said, real):
                    yield problem, place_text(gpu.id, block.id, position), True


def _offsets(step: Step, said: Mapping[str, int], real: Mapping[str, int]) -> Iterator[str]:
    """Yield the faults of a step's offsets."""
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
        elif offset >= MAX_OFFSET:
            yield f"{name}off {offset} is kept in 16 bits with a sign, and is another one"


def flags(algorithm: Algorithm, dialect: Dialect) -> Found:
    """``hasdep`` is 0 or 1, and not of a step that is left out."""
    del dialect
    for gpu, block, position, step in _steps(algorithm):
        if step.hasdep == 0 or (step.hasdep == 1 and step.type != "nop"):
            continue
        place = place_text(gpu.id, block.id, position)
        if step.type == "nop":
            yield "a nop has hasdep, but is not executed and sets no flag", place, True
        else:
            yield f"hasdep {step.hasdep} is rejected; expected 0 or 1", place, True


def nops(algorithm: Algorithm, dialect: Dialect) -> Found:
    """``nop`` steps wait, and for a step that waits too."""
    del dialect
    for gpu in algorithm.gpus:
        for block in gpu.blocks:
            pending = False
            for position, step in enumerate(block.steps):
                place = place_text(gpu.id, block.id, position)
                if step.type == "nop" and step.depid < 0:
                    yield (
                        "a nop without depid is left out, which shifts every later step that is waited for",
                        place,
                        True,
                    )
                elif step.type == "nop":
                    pending = True
                elif pending:
                    if step.depid < 0:
                        yield "a step after nops that wait has no depid itself: rejected", place, True
                    pending = False
            if pending:
                yield "the last steps are nops: nothing waits", place_text(gpu.id, block.id, len(block.steps) - 1), True


def dependences(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Check that dependences name existing steps that are flagged."""
    del dialect
    for gpu in algorithm.gpus:
        known = {block.id: {one.flag: one for one in block.instructions} for block in gpu.blocks}
        for block in gpu.blocks:
            for position, step in enumerate(block.steps):
                if step.depid < 0:
                    continue
                place = place_text(gpu.id, block.id, position)
                target = known.get(step.depid)
                if target is None:
                    yield f"waits for tb {step.depid}, which there is not: never checked, and it hangs", place, True
                    continue
                there = target.get(step.deps)
                if there is not None and there.step.hasdep:
                    continue
                later = any(count >= step.deps and one.step.hasdep for count, one in target.items())
                what = "is there" if there is not None else "is not a step of it"
                if later:
                    text = f"waits for step {step.deps} of tb {step.depid}, which sets no flag ({what})"
                    yield f"{text}: a later one lets it go on", place, False
                else:
                    text = f"waits for step {step.deps} of tb {step.depid}, which sets no flag ({what})"
                    yield f"{text}, nor does any later one: it hangs", place, True


def chains(algorithm: Algorithm, dialect: Dialect) -> Found:
    """Chains of ``re`` are as long as may be, and of one size."""
    del dialect
    for gpu in algorithm.gpus:
        for block in gpu.blocks:
            for one in block.instructions:
                if len(one.sources) == 1:
                    continue
                place = place_text(gpu.id, block.id, one.position)
                if len(one.sources) > MAX_FUSION:
                    text = f"a chain of {len(one.sources)} re is one step, which has room for {MAX_FUSION}"
                    yield text, place, True
                begin = one.position - len(one.sources) + 1
                if len({step.cnt for step in block.steps[begin : one.position + 1]}) > 1:
                    yield "a chain of re is one step, with the cnt of the last; they differ", place, True


STEP_RULES: dict[str, Callable[[Algorithm, Dialect], Found]] = {
    rule.__name__: rule
    for rule in (
        steps, numbers, types, counts, peerless, buffer_names, offsets, flags, nops, dependences, chains,
    )
}  # fmt: skip
