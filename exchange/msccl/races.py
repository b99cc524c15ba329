"""Accesses to the same memory, one of which writes, that nothing puts in order."""

from __future__ import annotations

from .findings import Findings, at
from .machine import Running

#: An access: thread block and instruction.
Access = tuple[Running, int]

#: Instructions that all searches together may look at, for each instruction of the program.
SEARCHED = 64


class Races:
    """Looks at every access; where the clocks of a GPU give no order, one over messages is searched for in the end."""

    def __init__(self, gpus: int) -> None:
        self.written: list[dict[int, Access]] = [{} for _ in range(gpus)]
        self.read: list[dict[int, list[Access]]] = [{} for _ in range(gpus)]
        self.unordered: dict[tuple[Running, Running], list[tuple[int, int, str]]] = {}

    def reads(self, block: Running, address: int) -> None:
        """Note that the present instruction reads."""
        before = self.written[block.gpu].get(address)
        if before is not None:
            self._after(before, block, "is written")
        since = self.read[block.gpu].setdefault(address, [])
        if since and since[-1][0] is block:
            since[-1] = (block, block.done)
        else:
            since.append((block, block.done))

    def writes(self, block: Running, address: int) -> None:
        """Note that the present instruction writes."""
        written = self.written[block.gpu]
        before = written.get(address)
        if before is not None:
            self._after(before, block, "is written")
        for access in self.read[block.gpu].pop(address, ()):
            self._after(access, block, "is read")
        written[address] = (block, block.done)

    def _after(self, first: Access, block: Running, what: str) -> None:
        other, instruction = first
        if other is not block and block.clock[other.number] <= instruction:
            self.unordered.setdefault((other, block), []).append((instruction, block.done, what))

    def judge(self, blocks: list[dict[int, Running]], findings: Findings) -> None:
        """Report the accesses that no chain of waits and messages puts in order."""
        total = sum(len(block.instructions) for gpu in blocks for block in gpu.values())
        search = _Search(blocks, SEARCHED * total)
        for (first, second), pairs in self.unordered.items():
            known: tuple[int, int] | None = None  # an order that holds
            for instruction, later, what in sorted(pairs, key=lambda pair: (-pair[0], pair[1])):
                if known is not None and instruction <= known[0] and later >= known[1]:
                    continue
                ordered = search.before(first, instruction, second, later)
                if ordered:
                    known = (instruction, later)
                    continue
                there = first.instructions[instruction].position
                text = f"uses memory that {what} by tb {first.name}, step {there}, and neither waits for the other"
                if ordered is None:
                    text += ", as far as was searched"
                place = at(second.gpu, second.name, second.instructions[later].position)
                findings.add("race", text, place)


class _Search:
    """Finds orders over waits and messages, backward from an instruction."""

    def __init__(self, blocks: list[dict[int, Running]], budget: int) -> None:
        self.blocks, self.budget = blocks, budget

    def before(self, first: Running, instruction: int, second: Running, later: int) -> bool | None:
        """Whether an instruction has always ended when one of another block accesses memory; None: not decided."""
        reached: dict[Running, int] = {second: later}
        rest = [(second, 0, later)]

        def reach(sources: list[Access]) -> None:
            for other, last in sources:
                since = reached.get(other, 0)
                if last >= since:
                    reached[other] = last + 1
                    rest.append((other, since, last + 1))

        reach(self._sources(second, later))
        while rest and reached.get(first, 0) <= instruction:
            block, begin, end = rest.pop()
            self.budget -= end - begin
            if self.budget < 0:
                return None
            for index in range(begin, end):
                reach(self._sources(block, index))
        return reached.get(first, 0) > instruction

    def _sources(self, block: Running, index: int) -> list[Access]:
        """What must have ended before an instruction can."""
        found: list[Access] = []
        for name, count in block.instructions[index].waits:
            other = self.blocks[block.gpu].get(name)
            if other is not None and other is not block and (needed := other.reaching(count)) is not None:
                found.append((other, needed))
        if (chunk := block.come.get(index)) is not None and block.fifo_in is not None:
            sent = block.fifo_in.sent_by
            found.append(sent[min(chunk + max(block.instructions[index].step.cnt, 1), len(sent)) - 1])
        return found
