"""MSCCL programs that cwb writes, run by an interpreter of its own: outputs are what the collective demands.

A program is read as the runtimes read it: a thread block does its steps one by one, a wait is over when the flag of
the other thread block is as high, and connections of two GPUs over a channel are in order and hold a few messages. Data
is a multiset of contributions.
"""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from random import Random
from typing import Any

from cwb.benchmarks.adversary import client, networks
from cwb.benchmarks.adversary.fault import Campaign, Fault, count_comparisons
from cwb.benchmarks.adversary.networks import Data, rng

KINDS = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "broadcast", "reduce", "gather", "scatter")

#: Methods with options that keep them short.
METHODS = {
    "ring": (),
    "direct": (),
    "rhd": (),
    "bruck": (),
    "dbt": (),
    "knomial": (),
    "bfb": (),
    "forestcoll": (),
    "multitree": (),
    "tacos": ("-O", "restarts=2"),
    "pccl": ("-O", "steps=100"),
    "teccl": ("-O", "timing=store-and-forward"),
    "teccl-lp": ("-O", "timing=store-and-forward"),
}

#: Messages that wait in a connection, and bytes of a message, by protocol.
SLOTS = {"Simple": (2, 2**21), "LL": (8, 2**15), "LL128": (8, 576_000)}

#: Steps that receive, and steps that send.
RECEIVE, SEND = ("r", "rcs", "rrc", "rrs", "rrcs"), ("s", "rcs", "rrs", "rrcs")

#: Orders in which a program is run.
ORDERS = 4

Place = tuple[int, str, int]


class WrongError(Exception):
    """A fault of a run."""


@dataclass
class Block:
    """A thread block and how far it is: step, chunks that are done, and flag, which is of an earlier call at first."""

    gpu: int
    send: int
    recv: int
    channel: int
    steps: list[dict[str, Any]]
    at: int = 0
    part: int = 0
    flag: float = -inf


@dataclass
class Program:
    """One run of a program.

    Parameters
    ----------
    tree : Element
        The file.
    inside : bool
        Whether input and output are the same memory.
    root : int
        Rank that sends or receives, of a collective with a root.
    """

    tree: ET.Element
    inside: bool
    root: int
    data: dict[Place, Counter[tuple[int, int]]] = field(default_factory=dict)
    queues: dict[tuple[int, int, int], deque[list[Counter[tuple[int, int]]]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Read the file, and put everybody's input in its place."""
        self.ranks, self.chunks = (int(self.tree.attrib[name]) for name in ("ngpus", "nchunksperloop"))
        self.kind = self.tree.attrib["coll"].replace("_", "")
        self.slots, room = SLOTS[self.tree.attrib["proto"]]
        largest = int(self.tree.attrib.get("maxBytes", 0)) or 2**30
        self.at_once = max(1, room // -(-largest // self.chunks))
        self.each = self.chunks if self.kind in ("gather", "scatter") else self.chunks // self.ranks
        self.scratch: dict[int, int] = {}
        self.blocks: dict[tuple[int, int], Block] = {}
        for gpu in self.tree.iter("gpu"):
            rank = int(gpu.attrib["id"])
            self.scratch[rank] = int(gpu.attrib["s_chunks"])
            for block in gpu.iter("tb"):
                number, send, recv, channel = (int(block.attrib[name]) for name in ("id", "send", "recv", "chan"))
                steps = [
                    {k: v if k in ("type", "srcbuf", "dstbuf") else int(v) for k, v in step.attrib.items()}
                    for step in block.iter("step")
                ]
                self.blocks[rank, number] = Block(rank, send, recv, channel, steps)
            if rank == self.root or self.kind not in ("broadcast", "scatter"):
                for chunk in range(self.size("i")):
                    self.data[self.place(rank, "i", chunk)] = Counter([(rank, chunk)])

    def size(self, buffer: str) -> int:
        """Chunks of the input or the output."""
        both = self.each * self.ranks
        of = {"allgather": (self.each, both), "gather": (self.each, both)}
        of |= {"reducescatter": (both, self.each), "scatter": (both, self.each)}
        return of.get(self.kind, (self.chunks, self.chunks))[buffer == "o"]

    def place(self, rank: int, buffer: str, offset: int) -> Place:
        """Place in memory of a chunk of a buffer."""
        if not 0 <= offset < (self.scratch[rank] if buffer == "s" else self.size(buffer)):
            raise WrongError(f"GPU {rank} has no chunk {offset} in buffer {buffer}")
        if buffer == "s" or not self.inside:
            return rank, buffer, offset
        small = "i" if self.kind in ("allgather", "gather") else "o"
        cut = self.kind in ("allgather", "gather", "reducescatter", "scatter") and buffer == small
        return rank, "io", offset + rank * self.each * cut

    def go(self, random: Random) -> None:
        """Run, thread blocks by a random order of preference, until nothing moves; then look at all outputs."""
        order = list(self.blocks.values())
        random.shuffle(order)
        while any(self.moves(block) for block in order):
            pass
        for key, block in self.blocks.items():
            if block.at < len(block.steps):
                raise WrongError(f"thread block {key} hangs at step {block.at}")
        if any(self.queues.values()):
            raise WrongError("sent and not received")
        for rank in range(self.ranks):
            for chunk, want in self.required_chunks(rank):
                if (got := self.data.get(self.place(rank, "o", chunk))) != want:
                    raise WrongError(f"chunk {chunk} of the output of {rank} is {got}; expected {want}")

    def required_chunks(self, rank: int) -> Iterator[tuple[int, Counter[tuple[int, int]]]]:
        """Chunks of the output with their contributions, by the definition of the collective."""
        everyone, each = range(self.ranks), self.each
        if self.kind in ("gather", "reduce") and rank != self.root:
            return
        for chunk in range(self.size("o")):
            owner, index = divmod(chunk, each or self.chunks)
            match self.kind:
                case "allreduce" | "reduce":
                    found = [(r, chunk) for r in everyone]
                case "reducescatter":
                    found = [(r, rank * each + chunk) for r in everyone]
                case "allgather" | "gather":
                    found = [(owner, index)]
                case "alltoall":
                    found = [(owner, rank * each + index)]
                case "scatter":
                    found = [(self.root, rank * each + chunk)]
                case _:
                    found = [(self.root, chunk)]
            yield chunk, Counter(found)

    def moves(self, block: Block) -> bool:
        """Do a step or a part of it; give whether that is possible."""
        if block.at == len(block.steps):
            return False
        step = block.steps[block.at]
        other = step["depid"]
        if other >= 0 and block.part == 0:
            if (block.gpu, other) not in self.blocks:
                raise WrongError(f"GPU {block.gpu} has no thread block {other}")
            if self.blocks[block.gpu, other].flag < step["deps"]:
                return False
        if step["type"] != "nop":
            count = min(self.at_once, step["cnt"] - block.part)
            if not self.does(block, step, range(block.part, block.part + count)):
                return False
            block.part += count
            if block.part < step["cnt"]:
                return True
        block.part, block.at = 0, block.at + 1
        if step["hasdep"]:
            block.flag = step["s"]
        return True

    def does(self, block: Block, step: dict[str, Any], chunks: range) -> bool:
        """Move some chunks of a step, if a message is there and there is room for another."""
        name, gpu = step["type"], block.gpu
        into, out = ((block.recv, gpu, block.channel), (gpu, block.send, block.channel))
        if name in RECEIVE and not self.queues.get(into):
            return False
        if name in SEND and (block.send < 0 or len(self.queues.get(out, ())) >= self.slots):
            return False
        came = self.queues[into].popleft() if name in RECEIVE else []
        if name in RECEIVE and len(came) != len(chunks):
            raise WrongError(f"GPU {gpu} receives {len(came)} chunks where it expects {len(chunks)}")
        goes = []
        for index, chunk in enumerate(chunks):
            read = [came[index]] if came else []
            if name in ("s", "cpy", "re", "rrc", "rrs", "rrcs"):
                read.append(self.read(gpu, step["srcbuf"], step["srcoff"] + chunk))
            if name == "re":
                read.append(self.read(gpu, step["dstbuf"], step["dstoff"] + chunk))
            value = sum(read, Counter[tuple[int, int]]())
            if name in ("r", "rcs", "rrc", "rrcs", "cpy", "re"):
                self.data[self.place(gpu, step["dstbuf"], step["dstoff"] + chunk)] = value
            goes.append(value)
        if name in SEND:
            self.queues.setdefault(out, deque()).append(goes)
        return True

    def read(self, rank: int, buffer: str, offset: int) -> Counter[tuple[int, int]]:
        """Give what is there."""
        place = self.place(rank, buffer, offset)
        if place not in self.data:
            raise WrongError(f"GPU {rank} reads chunk {offset} of buffer {buffer}, which nobody has written")
        return self.data[place]


def wrong_in(path: Path, root: int = 0, seed: int = 0) -> str | None:
    """Give what is wrong with a program, in a few orders and each placement that it is for; None if nothing is."""
    tree = ET.parse(path).getroot()  # noqa: S314 (a file of our own)
    placements = [inside for inside, name in ((True, "inplace"), (False, "outofplace")) if int(tree.get(name, 0))]
    for inside in placements:
        try:
            for order in range(ORDERS):
                Program(tree, inside, root).go(Random(f"{seed}/{order}"))  # noqa: S311
        except WrongError as error:
            return f"{'in place' if inside else 'out of place'}: {error}"
    return None


def question(random: Random) -> Data:
    """A few ranks with links, round a switch, or with one-way links."""
    count, kind, chunks = random.choice((2, 3, 4, 5)), random.choice(KINDS), random.choice((1, 1, 2, 3))
    shape = random.random()
    if shape < 0.3:
        return networks.star(random, count, kind=kind, chunks=chunks)
    if shape < 0.5:
        data = networks.directed_network(random, count, kind=kind, high=3)[0]
        data["collective"]["chunks"] = chunks
        return data
    return networks.direct(random, count, kind=kind, chunks=chunks)


def case(seed: int) -> list[Fault]:
    """Solve with a few methods, export each schedule for a random runtime, and run it unchanged and changed."""
    random = rng("msccl", seed)
    data = question(random)
    folder = client.folder()
    path, plan, file = folder / "instance.json", folder / "plan.json", folder / "program.xml"
    path.write_text(json.dumps(data))
    found: list[Fault] = []
    for method in random.sample(list(METHODS), 3):
        words = ("solve", "--model", method, str(path), "-o", str(plan), "--quiet", "--time-limit", "5")
        plan.unlink(missing_ok=True)
        if client.command(*words, *METHODS[method])[0] != 0 or not plan.exists():
            continue
        asked = _options(random, data["collective"]["kind"])
        file.unlink(missing_ok=True)
        status, _, err = client.command("export", "msccl", str(plan), "-o", str(file), *asked)
        compact = json.dumps(data, separators=(",", ":"))
        text = f"cwb solve --model {method} '{compact}'; {client.command_text(('export', 'msccl', *asked))}"
        if status != 0:
            if status not in (2, 7) or err.count("\n") != 1:
                found.append(Fault("exit status", text, f"{status}: {err.strip()[-300:]}", "0, or one line"))
            continue
        count_comparisons()
        if wrong := wrong_in(file, 0, seed):
            found.append(Fault("wrong program", text, "written", wrong))
            continue
        found += forge_step(random, file, asked[1], text)
    return found


def _options(random: Random, kind: str) -> tuple[str, ...]:
    """Runtime, placement, protocol and the rest."""
    dialects = (
        ("msccl-executor", "rccl", "rccl") if kind in ("gather", "scatter") else ("msccl", "msccl-executor", "rccl")
    )
    dialect = random.choice(dialects)
    words = ["--dialect", dialect, "--proto", random.choice(list(SLOTS))]
    words += ["--placement", random.choice(("out", "in") if dialect == "msccl" else ("out", "in", "both"))]
    words += ["--instances", random.choice("1112")]
    if dialect != "rccl" and random.random() < 0.6:
        words.append(random.choice(("--fused", "--no-fused")))
    if random.random() < 0.5:
        words += ["--max-bytes", random.choice(("4 KiB", "1 MiB", "4 GiB"))]
    return tuple(words)


def forge_step(random: Random, file: Path, dialect: str, text: str) -> list[Fault]:
    """Change a number of a step: where the program then goes wrong here, ``cwb check`` does not call it right."""
    tree = ET.parse(file)  # noqa: S314 (a file of our own)
    steps = list(tree.iter("step"))
    if not steps:
        return []
    step, name = random.choice(steps), random.choice(("srcoff", "dstoff", "cnt", "depid", "deps", "hasdep", "type"))
    old = step.attrib[name]
    step.attrib[name] = (
        random.choice((*RECEIVE, *SEND, "cpy", "nop"))
        if name == "type"
        else str(max(-1, int(old) + random.choice((-1, 1))))
    )
    tree.write(file)
    try:
        wrong = wrong_in(file)
    except (ValueError, KeyError):
        return []
    if wrong is None:
        return []
    count_comparisons()
    status, _, err = client.command("check", str(file), "--dialect", dialect)
    if status in (2, 5):
        return []
    change = f"{text}; {name} of a step {old} -> {step.attrib[name]}"
    return [Fault("wrong program accepted", change, f"exit status {status} {err.strip()[-200:]}", wrong)]


CAMPAIGNS = (Campaign("msccl", "an interpreter of programs", case, range(6), 3000, cpu_s=120, batch=10),)
