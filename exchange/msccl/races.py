"""Accesses to the same memory, one of which writes, that nothing puts in order."""

from __future__ import annotations

from .findings import Findings, place_text
from .machine import UNITS, RunningBlock

#: An access: thread block and place in it, see :meth:`~.machine.Running.place`.
Access = tuple[RunningBlock, int]

#: Instructions that all searches together may look at, for each instruction of the program.
SEARCHED = 64


class Races:
    """Detector of races over all accesses.

    If the clocks of a GPU give no order, one over messages is searched for in the end.
    """

    def __init__(self, gpus: int) -> None:
        self.written: list[dict[int, Access]] = [{} for _ in range(gpus)]
        self.read: list[dict[int, list[Access]]] = [{} for _ in range(gpus)]
        self.unordered: dict[tuple[RunningBlock, RunningBlock], list[tuple[int, int, str]]] = {}

    def reads(self, block: RunningBlock, unit: int, address: int) -> None:
        """Note that the present instruction reads for one of its chunks."""
        place = block.place(unit)
        before = self.written[block.gpu].get(address)
        if before is not None:
            self._after(before, block, place, "is written")
        since = self.read[block.gpu].setdefault(address, [])
        if since and since[-1][0] is block:
            since[-1] = (block, place)
        else:
            since.append((block, place))

    def writes(self, block: RunningBlock, unit: int, address: int) -> None:
        """Note that the present instruction writes one of its chunks."""
        place = block.place(unit)
        written = self.written[block.gpu]
        before = written.get(address)
        if before is not None:
            self._after(before, block, place, "is written")
        for access in self.read[block.gpu].pop(address, ()):
            self._after(access, block, place, "is read")
        written[address] = (block, place)

    def _after(self, first: Access, block: RunningBlock, later: int, what: str) -> None:
        other, place = first
        if other is not block and block.clock[other.number] <= place // UNITS:
            self.unordered.setdefault((other, block), []).append((place, later, what))

    def check(self, blocks: list[dict[int, RunningBlock]], findings: Findings) -> None:
        """Report the accesses that no chain of waits and messages puts in order."""
        total = sum(len(block.instructions) for gpu in blocks for block in gpu.values())
        search = _Search(blocks, SEARCHED * total)
        for (first, second), pairs in self.unordered.items():
            known: tuple[int, int] | None = None  # an order that holds
            for earlier, later, what in sorted(pairs, key=lambda pair: (-pair[0], pair[1])):
                if known is not None and earlier <= known[0] and later >= known[1]:
                    continue
                ordered = search.before(first, earlier, second, later)
                if ordered:
                    known = (earlier, later)
                    continue
                there = first.instructions[earlier // UNITS].position
                text = f"uses memory that {what} by tb {first.name}, step {there}, and neither waits for the other"
                if ordered is None:
                    text += ", as far as was searched"
                place = place_text(second.gpu, second.name, second.instructions[later // UNITS].position)
                findings.add("race", text, place)


class _Search:
    """Finds orders over waits and messages, backward from an access.

    The chunks of a step are apart from one another, since a message may be cut between any two: what has come with the
    first of them says nothing of what its sender does with the others.
    """

    def __init__(self, blocks: list[dict[int, RunningBlock]], budget: int) -> None:
        self.blocks, self.budget = blocks, budget

    def before(self, first: RunningBlock, earlier: int, second: RunningBlock, later: int) -> bool | None:
        """Return whether a block has always passed a place when another one is at its own; None: undecided."""
        reached: dict[RunningBlock, int] = {second: later}
        rest = [(second, 0, later)]

        def reach(sources: list[Access]) -> None:
            for other, until in sources:
                since = reached.get(other, 0)
                if until > since:
                    reached[other] = until
                    rest.append((other, since, until))

        reach(self._sources(second, later // UNITS, later % UNITS + 1))
        while rest and reached.get(first, 0) <= earlier:
            block, since, until = rest.pop()
            begin, whole, part = since // UNITS, until // UNITS, until % UNITS
            self.budget -= whole - begin + 1
            if self.budget < 0:
                return None
            for index in range(begin, whole):
                reach(self._sources(block, index, max(block.instructions[index].step.cnt, 1)))
            if part:
                reach(self._sources(block, whole, part))
        return reached.get(first, 0) > earlier

    def _sources(self, block: RunningBlock, index: int, units: int) -> list[Access]:
        """Return the accesses passed for certain before so many chunks of an instruction are done."""
        found: list[Access] = []
        for name, count in block.instructions[index].waits:
            other = self.blocks[block.gpu].get(name)
            if other is not None and other is not block and (needed := other.instruction_reaching(count)) is not None:
                found.append((other, (needed + 1) * UNITS))
        if (chunk := block.come.get(index)) is not None and block.fifo_in is not None:
            sent = block.fifo_in.sent_by
            found.append(sent[min(chunk + units, len(sent)) - 1])
        return found
