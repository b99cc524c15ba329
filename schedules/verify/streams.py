"""Checks of all-gathers whose steps are generated: of every send, with a set of bits for each rank.

With translations, one rank of every orbit has a set, and only links into it are followed: any other rank has the images
of its chunks, and receives those at the same times (docs/schedules/verifier.md, "Streamed steps").
"""

from typing import Any

import numpy as np

from ...core.equal_steps import Digest, StreamedSteps
from ...core.instance import Instance
from ...core.kernel import kernel
from ...core.schedule import Ints
from ...core.trees import TreeKind, least_images, orbit_of
from .answers import Findings, Violation, check_answer
from .equal_steps import demand_in_steps
from .grid import TOO_LONG, grid_of
from .network import Network
from .orbits import Motions, checked_motions, roots_reach_ranks

#: Faults of a send, as the compiled loop numbers them.
_FAULTS = {
    1: ("range", "there is no such chunk"),
    2: ("not-held", "its tail does not hold the chunk yet"),
    3: ("twice", "its head has the chunk, or gets it over another link of the step"),
}


@check_answer.register
def verify_streamed(answer: StreamedSteps, instance: Instance, network: Network, findings: Findings) -> None:
    """Generate all steps again, and check each of them."""
    demand = demand_in_steps(answer, instance, findings)
    if demand is None:
        return
    if network.nodes != instance.npus:
        findings.add(Violation("path", "steps of links lead from rank to rank; expected no switches"))
        return
    delay = grid_of(instance).delay
    if len(set(delay.tolist())) != 1 or int(delay.max()) >= TOO_LONG:
        findings.add(Violation("grid", "steps are not of equal length: links differ, or a step takes too many ticks"))
        return
    there = network.link_source * network.nodes + network.link_target
    back = network.link_target * network.nodes + network.link_source
    if answer.kind is TreeKind.BOTH and not np.array_equal(np.sort(there), np.sort(back)):
        findings.add(Violation("path", "sums go back over the opposite links; expected one for every link"))
        return
    motions = checked_motions(network, answer, findings) if answer.translations else Motions((), (), ())
    if motions is not None:
        _play(network, answer, demand.chunks, motions, findings)


def _play(network: Network, answer: StreamedSteps, copies: int, motions: Motions, findings: Findings) -> None:
    """Follow the gather into the first rank of every orbit; for a reduce-scatter, the gather that it reverses."""
    ranks, chunks = network.nodes, network.nodes * copies
    roots = np.unique(least_images(motions.orders, motions.nodes, ranks))
    if not roots_reach_ranks(network, roots, motions, findings):
        return
    tail, head = network.link_source, network.link_target
    if answer.kind is TreeKind.IN:
        tail, head = head, tail
    images = orbit_of(np.arange(ranks), motions.orders, motions.nodes)
    by, root = np.empty((2, ranks), dtype=np.int64)
    by[images[:, roots]], root[images[:, roots]] = np.arange(len(images))[:, None], np.arange(len(roots))
    links = np.flatnonzero(by[head] == 0)
    ends = root[tail[links]], by[tail[links]], root[head[links]]
    origin = np.argsort(images, axis=1).astype(np.int32)  # the rank that each motion moves to each one
    own = (origin[..., None] * np.int32(copies) + np.arange(copies, dtype=np.int32)).reshape(-1, chunks)
    stock = np.zeros(((chunks + 63) // 64, len(roots)), dtype=np.uint64)
    data = roots[:, None] * copies + np.arange(copies)
    np.bitwise_or.at(stock, (data >> 6, root[roots, None]), np.uint64(1) << (data & 63).astype(np.uint64))
    lacking = np.full(len(roots), chunks - copies, dtype=np.int64)
    digest, steps, sends = Digest(), 0, 0
    for block in answer.blocks():
        if block.dtype != np.int32 or block.ndim != 2 or block.shape[1] != len(links):
            findings.add(Violation("size", f"a block of {block.dtype} {block.shape}; expected int32 for every link"))
            return
        count, step, place, fault = follow(stock, lacking, *ends, own, block)
        if fault:
            kind, text = _FAULTS[fault]
            at, chunk = steps + int(step), int(block[step, place])
            findings.add(Violation(kind, text, link=int(links[place]), chunk=chunk, step=at))
            return
        digest.add(block)
        steps, sends = steps + len(block), sends + len(images) * int(count)
    for place in np.flatnonzero(lacking)[:1].tolist():
        findings.add(Violation("missing", f"lacks {lacking[place]:,} chunks at the end", rank=int(roots[place])))
    claim = answer.gather_steps, answer.gather_sends, answer.digest
    if claim != (steps, sends, digest.hex()):
        text = (
            f"{steps:,} steps, {sends:,} sends, digest {digest.hex()[:12]}…; the answer says "
            f"{claim[0]:,}, {claim[1]:,}, {claim[2][:12]}…"
        )
        findings.add(Violation("size", text))


@kernel
def follow(
    stock: Any, lacking: Any, tail: Ints, motion: Ints, head: Ints, own: Any, block: Any
) -> tuple[int, int, int, int]:
    """Follow the sends of a block; return their number, and place and number of the first fault.

    The tail of a link has the images of the chunks of rank ``tail`` by its ``motion``; ``own`` leads back to these.
    """
    count = 0
    for step in range(len(block)):
        for link in range(len(tail)):
            chunk = block[step, link]
            if chunk == -1:
                continue
            if chunk < 0 or chunk >= own.shape[1]:
                return count, step, link, 1
            there = own[motion[link], chunk]
            if stock[there >> 6, tail[link]] & (np.uint64(1) << np.uint64(there & 63)) == np.uint64(0):
                return count, step, link, 2
        for link in range(len(tail)):
            chunk = block[step, link]
            if chunk == -1:
                continue
            bit = np.uint64(1) << np.uint64(chunk & 63)
            if stock[chunk >> 6, head[link]] & bit != np.uint64(0):
                return count, step, link, 3
            stock[chunk >> 6, head[link]] |= bit
            lacking[head[link]] -= 1
            count += 1
    return count, 0, 0, 0
