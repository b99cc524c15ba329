"""Thread blocks as a runtime executes them.

A runtime leaves out every ``nop`` and joins chains of ``re``; it counts steps again, which is what waits are compared
with, whatever numbers the file has. See ``mscclGetAlgoFromXMLAndSetAlgo`` and ``runInterpreter`` in microsoft/msccl.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .dialects import MAX_FUSION
from .program import Step


class Instruction(NamedTuple):
    """What a thread block does at once.

    Parameters
    ----------
    step : Step
        The step, of a chain of ``re`` the last one.
    waits : tuple of (int, int)
        Thread blocks and counts that it waits for first.
    sources : tuple of int
        Offsets of all that a chain of ``re`` adds.
    flag : int
        What it sets the thread block's flag to, if ``hasdep`` is 1.
    position : int
        Its place among the steps of the file.
    """

    step: Step
    waits: tuple[tuple[int, int], ...]
    sources: tuple[int, ...]
    flag: int
    position: int


def compiled(steps: Sequence[Step]) -> list[Instruction]:
    """The instructions of a thread block, as a runtime makes them of its steps."""
    found: list[Instruction] = []
    waits: list[tuple[int, int]] = []
    count = reductions = 0
    chain: tuple[str, int, str] | None = None
    for position, step in enumerate(steps):
        if step.depid >= 0:
            waits.append((step.depid, step.deps))
        if step.type == "nop":
            continue
        key = (step.dstbuf, step.dstoff, step.srcbuf)
        if step.type == "re" and chain == key and step.depid == -1:
            last = found.pop()
            count = last.flag + 1
            found.append(Instruction(step, last.waits, (*last.sources, step.srcoff), count, position))
        else:
            if waits:
                count += len(waits) - 1
            found.append(Instruction(step, tuple(waits), (step.srcoff,), count, position))
            waits = []
        count += 1
        reductions += step.type == "re"
        chain = key if step.type == "re" and not step.hasdep and reductions != MAX_FUSION else None
    return found
