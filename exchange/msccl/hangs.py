"""Reasons for which thread blocks do not end, and messages left in connections."""

from __future__ import annotations

from .findings import Findings, place_text
from .machine import UNITS, Connection, RunningBlock
from .program import RECEIVES, SENDS


def check_hangs(
    blocks: list[dict[int, RunningBlock]], connections: dict[tuple[int, int, int], Connection], findings: Findings
) -> bool:
    """Report what hangs, and what is sent and never received; whether everything came to its end."""
    stuck = [block for gpu in blocks for block in gpu.values() if not block.is_finished]
    told: set[RunningBlock] = set()
    for block in stuck:
        if block not in told:
            _follow(block, blocks, told, findings)
    if stuck:
        return False
    for (source, target, channel), connection in connections.items():
        if connection.items:
            sender, place = connection.sent_by[connection.taken]
            text = f"sends to gpu {target} over channel {channel} what is never received: {len(connection.items)} left"
            findings.add(
                "unmatched", text, place_text(source, sender.name, sender.instructions[(place - 1) // UNITS].position)
            )
    return True


def _follow(
    block: RunningBlock, blocks: list[dict[int, RunningBlock]], told: set[RunningBlock], findings: Findings
) -> None:
    """Follow blocked blocks to the cause, or around a cycle, and report it."""
    way: list[RunningBlock] = []
    here: RunningBlock | None = block
    kind = reason = ""
    while here is not None and here not in told:
        told.add(here)
        way.append(here)
        kind, reason, here = _waits(here, blocks)
    if here is not None and here not in way:
        return  # leads to what has been reported
    last = way[-1]
    place = place_text(last.gpu, last.name, last.instructions[last.done].position)
    if here is None:
        findings.add(kind, reason, place)
        return
    circle = way[way.index(here) :]
    names = " -> ".join(
        place_text(one.gpu, one.name, one.instructions[one.done].position) for one in (*circle[:6], here)
    )
    findings.add("hang", f"each waits for the next one: {names}", place)


def _waits(block: RunningBlock, blocks: list[dict[int, RunningBlock]]) -> tuple[str, str, RunningBlock | None]:
    """Return the finding of a stuck block, its reason in words, and the block it waits for."""
    instruction = block.instructions[block.done]
    for name, count in instruction.waits if block.unit == 0 else ():
        other = blocks[block.gpu].get(name)
        needed = None if other is None else other.instruction_reaching(count)
        if other is None or needed is None:
            what = "which there is not" if other is None else "which sets no flag as high (hasdep)"
            return "hang", f"waits for step {count} of tb {name}, {what}", None
        if other.done <= needed:
            return "hang", f"waits for step {count} of tb {name}", None if other is block else other
    step = instruction.step.type
    if step in RECEIVES and (block.fifo_in is None or not block.fifo_in.items):
        more = [one for one in (block.fifo_in.users if block.fifo_in else ()) if not one.is_finished]
        return "unmatched", f"receives from gpu {block.peers[1]} what is never sent", more[0] if more else None
    if step in SENDS:
        more = [one for one in (block.fifo_out.takers if block.fifo_out else ()) if not one.is_finished]
        return "unmatched", f"sends to gpu {block.peers[0]} what is never received", more[0] if more else None
    return "hang", f"{step} has no branch in the interpreter: the thread block ends here", None
