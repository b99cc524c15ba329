"""A transport inside one process, which plays all programs of an execution in turns."""

from __future__ import annotations

from collections import defaultdict
from random import Random

import numpy as np
from cwb.harness.execution.player import Player
from cwb.harness.execution.program import Program
from cwb.harness.execution.values import Mismatch, compare, fill


class Wires:
    """Connections between all processes, each a stream of bytes; messages that end are told in any order."""

    def __init__(self, seed: int) -> None:
        self.streams: dict[tuple[int, int], bytearray] = defaultdict(bytearray)
        self.random = Random(seed)  # noqa: S311 - for the order of messages


class End:
    """The transport of one process."""

    def __init__(self, wires: Wires, number: int) -> None:
        self.wires, self.number = wires, number
        self.open: list[tuple[int, bool, memoryview]] = []

    def send(self, peer: int, data: memoryview) -> None:
        self.open.append((peer, False, data))

    def receive(self, peer: int, into: memoryview) -> None:
        self.open.append((peer, True, into))

    def wait(self) -> list[tuple[int, bool]]:
        """End one message that can end, or none."""
        self.wires.random.shuffle(self.open)
        for index, (peer, incoming, data) in enumerate(self.open):
            stream = self.wires.streams[(peer, self.number) if incoming else (self.number, peer)]
            if incoming and len(stream) < len(data):
                continue
            del self.open[index]
            if incoming:
                data[:] = stream[: len(data)]
                del stream[: len(data)]
            else:
                stream += data
            return [(peer, incoming)]
        return []


def play(
    programs: list[Program], dtype: str = "int64", seed: int = 0, kind: type[Player] = Player
) -> list[list[Mismatch]]:
    """Play all programs once, in random turns, and return what is wrong with the data of each process."""
    wires = Wires(seed)
    memories = [np.empty(program.elements, dtype=dtype) for program in programs]
    ends = [End(wires, number) for number in range(len(programs))]
    players = [kind(*each) for each in zip(programs, memories, ends, strict=True)]
    for program, memory, player in zip(programs, memories, players, strict=True):
        fill(memory, program.before)
        player.begin()
    turns = [number for number, player in enumerate(players) if player.pending]
    while turns:
        wires.random.shuffle(turns)
        moved = False
        for number in turns:
            ended = ends[number].wait()
            players[number].advance(ended)
            moved = moved or bool(ended)
        assert moved, "the programs wait for one another"
        turns = [number for number in turns if players[number].pending]
    assert not any(wires.streams.values())
    return [compare(memory, program.after) for program, memory in zip(programs, memories, strict=True)]
