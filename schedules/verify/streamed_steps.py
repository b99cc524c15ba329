"""Check of schedules generated step by step: every send is checked, and none is kept.

Every rank has a set of bits for its chunks: a chunk that crosses a link must be at its tail when the step begins,
and not yet at its head; at the end every rank has every chunk. So each rank receives each chunk once: reversed in
time, over reversed links, such a gather adds up every part once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.collective import Collective
from ...core.instance import Instance
from ...core.kernel import kernel
from ...core.schedule import Ints
from ...core.streamed_steps import Digest, StreamedSteps
from ...core.timing import Semantics
from ...core.trees import TreeKind
from .answers import check_answer, count_epochs
from .grid import NEVER, grid_of
from .network import Network
from .report import Findings, Violation
from .translated_trees import demand_of_all

#: Faults of a send, as the compiled loop numbers them.
_FAULTS = {
    1: ("range", "there is no such chunk"),
    2: ("not-held", "its tail does not hold the chunk yet"),
    3: ("twice", "its head has the chunk, or gets it over another link of the step"),
}


@check_answer.register
def verify_streamed(answer: StreamedSteps, instance: Instance, network: Network, findings: Findings) -> None:
    """Generate all steps again, and check each of them."""
    if instance.timing is None or instance.timing.semantics is not Semantics.CIRCUIT:
        findings.add(Violation("size", "steps of equal length need a timing of circuits"))
        return
    demand = demand_of_all(instance, answer.kind)
    if demand is None:
        findings.add(Violation("demand", f"a gather of all ranks ({answer.kind.value}) is not what is asked for"))
        return
    if network.nodes != instance.npus:
        findings.add(Violation("path", "steps of links lead from rank to rank; expected no switches"))
        return
    delay = grid_of(instance).delay
    if len(set(delay.tolist())) != 1 or int(delay.max()) >= NEVER:
        findings.add(Violation("grid", "steps are not of equal length: links differ, or a step takes too many ticks"))
        return
    if answer.kind is TreeKind.BOTH and not _has_paired_links(network):
        findings.add(Violation("path", "sums go back over the opposite links; expected one for every link"))
        return
    _play(instance, network, answer, demand.chunks, findings)


@count_epochs.register
def _(answer: StreamedSteps, instance: Instance) -> int:
    return answer.steps * int(grid_of(instance).delay.max(initial=0))  # of links that are equal


def _has_paired_links(network: Network) -> bool:
    """Return whether every pair of nodes has as many links in either direction."""
    there = network.link_source * network.nodes + network.link_target
    back = network.link_target * network.nodes + network.link_source
    return np.array_equal(np.sort(there), np.sort(back))


def _play(instance: Instance, network: Network, answer: StreamedSteps, copies: int, findings: Findings) -> None:
    """Follow the gather step by step; for a reduce-scatter, the gather that it reverses."""
    ranks, chunks = instance.npus, instance.npus * copies
    tail, head = network.link_source, network.link_target
    if instance.demand is not None and instance.demand.collective is Collective.REDUCE_SCATTER:
        tail, head = head, tail
    held = np.zeros(((chunks + 63) // 64, ranks), dtype=np.uint64)
    number = np.arange(chunks)
    np.bitwise_or.at(held, (number >> 6, number // copies), np.uint64(1) << (number & 63).astype(np.uint64))
    lacking = np.full(ranks, chunks - copies, dtype=np.int64)
    digest, steps, sends = Digest(), 0, 0
    for block in answer.blocks():
        if block.dtype != np.int32 or block.ndim != 2 or block.shape[1] != len(tail):
            findings.add(Violation("size", f"a block of {block.dtype} {block.shape}; expected int32 for every link"))
            return
        count, step, link, fault = follow(held, lacking, tail, head, chunks, block)
        if fault:
            kind, text = _FAULTS[fault]
            chunk = int(block[step, link])
            findings.add(Violation(kind, text, link=int(link), chunk=chunk, step=steps + int(step)))
            return
        digest.add(block)
        steps, sends = steps + len(block), sends + int(count)
    for rank in np.flatnonzero(lacking)[:1].tolist():
        findings.add(Violation("missing", f"lacks {lacking[rank]:,} chunks at the end", rank=rank))
    told = answer.gather_steps, answer.gather_sends, answer.digest
    if told != (steps, sends, digest.hex()):
        text = (
            f"{steps:,} steps, {sends:,} sends, digest {digest.hex()[:12]}…; the answer says {told[0]:,}, {told[1]:,}, "
            f"{told[2][:12]}…"
        )
        findings.add(Violation("size", text))


@kernel
def follow(held: Any, lacking: Any, tail: Ints, head: Ints, chunks: int, block: Any) -> tuple[int, int, int, int]:
    """Follow the sends of a block; return their number, and place and number of the first fault."""
    count = 0
    for step in range(len(block)):
        for link in range(len(tail)):
            chunk = block[step, link]
            if chunk == -1:
                continue
            if chunk < 0 or chunk >= chunks:
                return count, step, link, 1
            bit = np.uint64(1) << np.uint64(chunk & 63)
            if held[chunk >> 6, tail[link]] & bit == np.uint64(0):
                return count, step, link, 2
        for link in range(len(tail)):
            chunk = block[step, link]
            if chunk == -1:
                continue
            bit = np.uint64(1) << np.uint64(chunk & 63)
            if held[chunk >> 6, head[link]] & bit != np.uint64(0):
                return count, step, link, 3
            held[chunk >> 6, head[link]] |= bit
            lacking[head[link]] -= 1
            count += 1
    return count, 0, 0, 0
