"""A second interpreter of plans: slow, with multisets of contributions, thread blocks in random order, and no code of
the first.

A plan is wrong if any of many runs of several calls hangs, leaves signals or semaphores behind, touches what is not
there or gives a wrong result in any call. Operations are done at once, so that a missing ``nop`` is not seen. Pipelines
and slices are not run.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from random import Random


class WrongError(Exception):
    """A fault of a run."""


def is_right(plan, trials=12):
    """Check if no run of a plan goes wrong."""
    try:
        for seed in range(trials):
            OneRun(plan, Random(seed)).check()  # noqa: S311
    except (WrongError, IndexError, KeyError):
        return False
    return True


class OneRun:
    """Some calls in an order of their own."""

    def __init__(self, plan, random):
        self.plan, self.calls = plan, 3
        self.ranks = len(plan.gpus)
        self.memory, self.flags = {}, {}
        self.signals, self.waited = Counter(), Counter()
        self.values = {(g.id, n): v for g in plan.gpus for n, v in enumerate(g.semaphores)}
        self.meeting = defaultdict(list)
        self.call = [0] * self.ranks
        self.threads = [
            {"gpu": gpu, "block": block, "at": 0, "call": 0, "met": False} for gpu in plan.gpus for block in gpu.blocks
        ]
        random.shuffle(self.threads)
        for rank in range(self.ranks):
            self.begin(rank)
        while any(self.turn(thread) for thread in self.threads):
            pass

    @property
    def part(self):
        """Chunks of one rank's part."""
        gpu = self.plan.gpus[0]
        return {"allgather": gpu.input, "gather": gpu.input, "reducescatter": gpu.output, "scatter": gpu.output}.get(
            self.plan.collective, gpu.input // self.ranks
        )

    def where(self, rank, buffer, index, *, half=False):
        """Place in memory, which input and output may share."""
        gpu = self.plan.gpus[rank]
        size = {"i": gpu.input, "o": gpu.output}.get(buffer, gpu.scratch)
        if not 0 <= index < size:
            raise WrongError("outside")
        if self.plan.inplace and buffer in "io":
            inside = {"i": ("allgather", "gather"), "o": ("reducescatter", "scatter")}
            shift = rank * self.part if self.plan.collective in inside[buffer] else 0
            return rank, "io", index + shift, 0
        return rank, buffer, index, int(half)

    def begin(self, rank):
        """A call begins: the input is new, the output is nothing."""
        for place in [one for one in self.memory if one[0] == rank and one[1] in ("i", "o", "io")]:
            del self.memory[place]
        for grain in range(self.plan.gpus[rank].input):
            self.memory[self.where(rank, "i", grain)] = Counter({(rank, grain, self.call[rank]): 1})

    def turn(self, thread):
        """Go on with a thread block; whether that was possible."""
        rank = thread["gpu"].id
        if thread["call"] != self.call[rank] or thread["call"] == self.calls:
            return False
        if thread["at"] == len(thread["block"].ops):
            thread["at"], thread["call"] = 0, thread["call"] + 1
            if all(one["call"] > self.call[rank] for one in self.threads if one["gpu"].id == rank):
                self.serves(rank)
                self.call[rank] += 1
                self.begin(rank)
            return True
        if not self.does(thread, thread["block"].ops[thread["at"]]):
            return False
        thread["at"], thread["met"] = thread["at"] + 1, False
        return True

    def does(self, thread, op):
        """Do an operation, if it can be done now."""
        gpu, block = thread["gpu"], thread["block"]
        match op.name:
            case "nop" | "flush":
                return True
            case "signal" | "rlxsignal":
                self.signals.update(self.ends(gpu, block, op))
            case "wait" | "rlxwait":
                keys = [(kind, b, a, n) for kind, a, b, n in self.ends(gpu, block, op)]
                if any(self.signals[key] <= self.waited[key] for key in keys):
                    return False
                self.waited.update(keys)
            case "sem_release":
                for number in op.semaphores:
                    self.values[gpu.id, number] += 1
            case "sem_acquire":
                if any(self.values[gpu.id, number] < 1 for number in op.semaphores):
                    return False
                for number in op.semaphores:
                    self.values[gpu.id, number] -= 1
            case "barrier":
                return self.meets(thread, op)
            case _:
                return self.moves(thread, op)
        return True

    def ends(self, gpu, block, op):
        """Channels of an operation: kind, this GPU, the other one, number among those to it."""
        peers = [peer for one in gpu.channels if one.type == op.channel_type for peer in one.peers]
        numbers = [block.channels[op.channel_type][one] for one in op.channels]
        return [(op.channel_type, gpu.id, peers[n], peers[:n].count(peers[n])) for n in numbers]

    def meets(self, thread, op):
        """Meet the others at a barrier."""
        key = (thread["gpu"].id, op.barrier)
        if not thread["met"] and thread not in self.meeting[key]:
            self.meeting[key].append(thread)
            if len(self.meeting[key]) == op.blocks:
                for one in self.meeting.pop(key):
                    one["met"] = True
        return thread["met"]

    def moves(self, thread, op):
        """Move data."""
        gpu, name, double = thread["gpu"], op.name, self.plan.double_scratch
        half = double and thread["call"] % 2 == 1
        sums, puts = [], []
        pairs = [(op.src, op.dst)]
        if name in _SINGLE:
            src = op.src * len(op.dst) if name == "rppkt" else op.src
            if len(src) != len(op.dst):
                raise WrongError("operands")
            pairs = [((one,), (two,)) for one, two in zip(src, op.dst, strict=True)]
        for sources, targets in pairs:
            size = sources[0].size
            for unit in range(size):
                read = [
                    place
                    for n, one in enumerate(sources)
                    for place in self.places(
                        thread, op, one, unit, half, packet=self.packet_in(name, n, op), swap=targets[0]
                    )
                ]
                if any(place[1] == "p" and self.flags.get(place, -1) != thread["call"] for place in read) and not (
                    name == "ppkt" and op.channel_type == "port"
                ):
                    return False
                sums.append(read)
                puts.append(
                    [
                        place
                        for n, one in enumerate(targets)
                        for place in self.places(
                            thread, op, one, unit, half, packet=self.packet_out(name, n), swap=sources[0]
                        )
                    ]
                )
        for read, write in zip(sums, puts, strict=True):
            if any(place not in self.memory for place in read):
                raise WrongError("undefined")
            value = sum((self.memory[place] for place in read), Counter())
            for place in write:
                self.memory[place] = value
                if place[1] == "p":
                    self.flags[place] = thread["call"]
        if name in ("pws", "pwsf") and op.channel_type == "port":
            self.signals.update(self.ends(gpu, thread["block"], op))
        return True

    def packet_in(self, name, number, op):
        """Check if a source consists of packets."""
        if name == "ppkt":
            return op.channel_type == "port"
        return name in ("rppkt", "upkt", "gstorepkt") or (
            number > 0 and name in ("repkt", "respkt", "recpkt", "recspkt")
        )

    def packet_out(self, name, number):
        """Check if a target consists of packets."""
        return name in ("ppkt", "rppkt", "cpkt", "gstorepkt") or (
            number > 0 and name in ("respkt", "recpkt", "recspkt")
        )

    def places(self, thread, op, one, unit, half, *, packet, swap):
        """Return the places of a chunk in a buffer."""
        gpu, block = thread["gpu"], thread["block"]
        index = (swap.first if op.name == "get" else one.first) + unit
        if one.switch >= 0:
            groups = [(c.buffer, g) for c in gpu.channels if c.type == "switch" for g in c.groups]
            buffer, group = groups[block.channels["switch"][one.switch]]
            return [self.where(rank, "p" if packet else buffer, index, half=packet and half) for rank in group]
        if one.remote >= 0:
            remote = gpu.remote[block.remote[op.channel_type][one.remote]]
            return [self.where(remote.rank, "p" if packet else remote.type, index, half=packet and half)]
        if packet:
            return [self.where(gpu.id, "p", index, half=half)]
        return [self.where(gpu.id, one.type, index, half=half and one.type == "s")]

    def check(self):
        """Check that all operations ended and nothing is left."""
        if any(call < self.calls for call in self.call):
            raise WrongError("hangs")
        if any(count != self.waited[key] for key, count in self.signals.items()):
            raise WrongError("left over")
        if any(self.values[g.id, n] != v for g in self.plan.gpus for n, v in enumerate(g.semaphores)):
            raise WrongError("semaphores")

    def serves(self, rank):
        """Compare the output of a rank that ends a call."""
        if not hasattr(self, "roots"):
            rooted = self.plan.collective in ("broadcast", "reduce", "gather", "scatter")
            self.roots = set(range(self.ranks)) if rooted else {0}
        self.roots = {root for root in self.roots if self.right(rank, root)}
        if not self.roots:
            raise WrongError("result")

    def right(self, rank, root):
        """Check if a rank has all that it needs."""
        call = self.call[rank]
        return all(
            self.memory.get(self.where(rank, "o", grain)) == Counter({(r, k, call): 1 for r, k in wanted})
            for grain, wanted in self.required_output(rank, root)
        )

    def required_output(self, rank, root):
        """Yield the output that a rank must hold."""
        everyone, part, coll, chunks = range(self.ranks), self.part, self.plan.collective, self.plan.gpus[rank].output
        if coll in ("allreduce", "reducescatter") or (coll == "reduce" and rank == root):
            begin, count = (rank * part, part) if coll == "reducescatter" else (0, chunks)
            return [(k, [(r, begin + k) for r in everyone]) for k in range(count)]
        if coll == "allgather" or (coll == "gather" and rank == root):
            return [(r * part + k, [(r, k)]) for r in everyone for k in range(part)]
        if coll == "alltoall":
            return [(r * part + k, [(r, rank * part + k)]) for r in everyone for k in range(part)]
        begins = {"broadcast": 0, "scatter": rank * part}
        if coll not in begins:
            return []
        return [(k, [(root, begins[coll] + k)]) for k in range(part if coll == "scatter" else chunks)]


_SINGLE = ("put", "pws", "pwsf", "ppkt", "get", "copy", "cpkt", "upkt", "gstore", "gstorepkt", "rppkt")
