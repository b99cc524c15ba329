"""A second interpreter: slow, with multisets of contributions, steps in random order, and no code of the first.

A file is wrong if any of many runs hangs, leaves something behind, touches what is not there or gives a wrong
result. In every run thread blocks have a random priority, which finds races that a random choice of steps hardly does.
"""

from __future__ import annotations

from collections import Counter, deque
from random import Random

#: Grains that fit into a connection, by protocol.
ROOM = {"Simple": 2, "LL": 8, "LL128": 8}
PART = {"Simple": 2**21, "LL": 2**15, "LL128": 576_000}


class WrongError(Exception):
    """A fault of a run."""


def is_right(program, trials=24):
    """Check if no run of a program goes wrong, for all calls that it supports."""
    placements = [placed for placed, said in ((True, program.inplace), (False, program.outofplace)) if said]
    try:
        for placed in placements:
            for seed in range(trials):
                OneRun(program, placed, Random(seed)).check()  # noqa: S311
    except WrongError:
        return False
    return True


class OneRun:
    """One run in an order of its own."""

    def __init__(self, program, inplace, random):
        self.program, self.inplace = program, inplace
        self.ranks, self.chunks = program.ngpus, program.nchunksperloop
        self.part = self.chunks if program.coll in ("gather", "scatter") else self.chunks // self.ranks
        largest = 2**27 if program.max_bytes is None else program.max_bytes
        some = PART[program.proto] // -(-largest // self.chunks) if largest else 1
        self.at_once = max(1, min(some, 71))
        self.memory, self.queues, self.flags = {}, {}, {}
        self.threads = [
            {"gpu": gpu, "block": block, "at": 0, "unit": 0, "count": 0, "held": 0}
            for gpu in program.gpus
            for block in gpu.blocks
        ]
        random.shuffle(self.threads)
        for gpu in program.gpus:
            for grain in range(self.size(gpu, "i")):
                self.memory[gpu.id, self.where(gpu.id, "i", grain)] = Counter({(gpu.id, grain): 1})
        self.go()

    def size(self, gpu, buffer):
        """Grains of a buffer."""
        whole, part, both = self.chunks, self.part, self.part * self.ranks
        inputs = {"allgather": part, "gather": part, "scatter": both}
        outputs = {"reduce_scatter": part, "reducescatter": part, "scatter": part, "gather": both}
        if buffer == "s":
            return gpu.s_chunks
        return (inputs if buffer == "i" else outputs).get(self.program.coll, whole)

    def where(self, rank, buffer, offset):
        """Place in memory, which input and output may share."""
        if not self.inplace or buffer == "s":
            return buffer, offset
        inside = {"i": ("allgather", "gather"), "o": ("reduce_scatter", "reducescatter", "scatter")}
        return "io", offset + (rank * self.part if self.program.coll in inside[buffer] else 0)

    def go(self):
        """Always go on with the first thread that can."""
        while any(self.turn(thread) for thread in self.threads):
            pass
        for thread in self.threads:
            if thread["at"] < len(thread["block"].steps):
                raise WrongError("hangs")
        if any(self.queues.values()):
            raise WrongError("left over")

    def turn(self, thread):
        """Do one step, or a part of it; whether that was possible."""
        steps = thread["block"].steps
        if thread["at"] == len(steps):
            return False
        one = steps[thread["at"]]
        if one.type == "nop":
            if one.depid >= 0 and not self.has_passed(thread, one):
                return False
            thread["count"] += one.depid >= 0
        else:
            if thread["unit"] == 0 and one.depid >= 0 and not self.has_passed(thread, one):
                return False
            if one.cnt < 1 or one.cnt > 71:
                raise WrongError("count")
            if not self.move(thread, one):
                return False
            if thread["unit"] < one.cnt:
                return True
            thread["unit"] = 0
            if one.hasdep:
                self.flags[thread["gpu"].id, thread["block"].id] = thread["count"]
            thread["count"] += 1
        thread["at"] += 1
        return True

    def has_passed(self, thread, one):
        """Check if a wait is over."""
        flag = self.flags.get((thread["gpu"].id, one.depid))  # of an earlier call, if it has not been set in this one
        return flag is not None and flag >= one.deps

    def move(self, thread, one):
        """Do the next part of a step."""
        gpu, block, begin = thread["gpu"], thread["block"], thread["unit"]
        count = min(self.at_once, one.cnt - begin)
        takes, gives = one.type in ("r", "rcs", "rrs", "rrc", "rrcs"), one.type in ("s", "rcs", "rrs", "rrcs")
        source, target = (block.recv, gpu.id, block.chan), (gpu.id, block.send, block.chan)
        if takes and (block.recv < 0 or not self.queues.get(source)):
            return False
        if gives and (block.send < 0 or len(self.queues.get(target, ())) >= ROOM[self.program.proto]):
            return False
        came = [None] * count
        if takes:
            came, tag = self.queues[source].popleft()
            if tag != (one.cnt, begin):
                raise WrongError("sizes differ")
        out = [self.grain(gpu, one, begin + unit, came[unit]) for unit in range(count)]
        if gives:
            self.queues.setdefault(target, deque()).append((out, (one.cnt, begin)))
        thread["unit"] += count
        return True

    def grain(self, gpu, one, unit, came):
        """One grain of a step; what is sent."""
        src, dst = (one.srcbuf, one.srcoff + unit), (one.dstbuf, one.dstoff + unit)
        match one.type:
            case "s":
                return self.load(gpu, *src)
            case "r" | "rcs":
                self.store(gpu, *dst, came)
                return came
            case "rrs":
                return self.load(gpu, *src) + came
            case "rrc" | "rrcs":
                value = self.load(gpu, *src) + came
                self.store(gpu, *dst, value)
                return value
            case "cpy":
                self.store(gpu, *dst, self.load(gpu, *src))
            case "re":
                self.store(gpu, *dst, self.load(gpu, *src) + self.load(gpu, *dst))
            case _:
                raise WrongError("type")
        return None

    def place(self, gpu, buffer, offset):
        """Return the place of a chunk; a place outside the buffer is an error."""
        if buffer not in ("i", "o", "s") or not 0 <= offset < self.size(gpu, buffer):
            raise WrongError("outside")
        return gpu.id, self.where(gpu.id, buffer, offset)

    def load(self, gpu, buffer, offset):
        """Read."""
        place = self.place(gpu, buffer, offset)
        if place not in self.memory:
            raise WrongError("undefined")
        return self.memory[place]

    def store(self, gpu, buffer, offset, value):
        """Write."""
        self.memory[self.place(gpu, buffer, offset)] = value

    def check(self):
        """Compare the outputs."""
        roots = range(self.ranks) if self.program.coll in ("broadcast", "reduce", "gather", "scatter") else (0,)
        if not any(all(self.serves(rank, root) for rank in range(self.ranks)) for root in roots):
            raise WrongError("result")

    def serves(self, rank, root):
        """Check if a rank has all that it needs."""
        return all(
            self.memory.get((rank, self.where(rank, "o", grain))) == wanted
            for grain, wanted in self.required_output(rank, root)
        )

    def required_output(self, rank, root):
        """Yield the output that a rank must hold."""
        everyone, part, coll = range(self.ranks), self.part, self.program.coll
        found = []
        if coll == "allreduce" or (coll == "reduce" and rank == root):
            found = [(k, Counter({(r, k): 1 for r in everyone})) for k in range(self.chunks)]
        elif coll in ("reduce_scatter", "reducescatter"):
            found = [(k, Counter({(r, rank * part + k): 1 for r in everyone})) for k in range(part)]
        elif coll == "allgather" or (coll == "gather" and rank == root):
            found = [(r * part + k, Counter({(r, k): 1})) for r in everyone for k in range(part)]
        elif coll == "alltoall":
            found = [(r * part + k, Counter({(r, rank * part + k): 1})) for r in everyone for k in range(part)]
        elif coll == "broadcast":
            found = [(k, Counter({(root, k): 1})) for k in range(self.chunks)]
        elif coll == "scatter":
            found = [(k, Counter({(root, rank * part + k): 1})) for k in range(part)]
        return found
