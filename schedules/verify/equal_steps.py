"""Checks of all-gathers in steps of equal length: one tree translated to all ranks, and steps that are generated.

See :class:`~cwb.core.equal_steps.TranslatedTrees` for why the edges of rank 0, n - 1 for every chunk of a rank,
suffice. Of a generated schedule every send is checked with a set of bits for each rank, and none is kept
(docs/schedules/verifier.md, "Streamed steps").
"""

from typing import Any

import numpy as np

from ...core.collective import Collective, Demand
from ...core.equal_steps import Digest, StreamedSteps, TranslatedTrees, translate_ranks
from ...core.errors import InputError
from ...core.instance import Instance
from ...core.kernel import kernel
from ...core.schedule import Ints, Schedule, Sends
from ...core.timing import Semantics
from ...core.trees import TreeKind, chunks_of_kind
from .answers import Findings, Violation, check_answer, count_epochs, write_out
from .grid import TOO_LONG, grid_of
from .network import Network, network_of

#: Which way the trees of a collective go.
_KINDS = {
    Collective.ALL_GATHER: TreeKind.OUT,
    Collective.REDUCE_SCATTER: TreeKind.IN,
    Collective.ALL_REDUCE: TreeKind.BOTH,
}

MAX_SENDS = 2**26  #: An answer of more sends than this is not written out.


def demand_of_all(instance: Instance, kind: TreeKind) -> Demand | None:
    """Return the demand that all ranks share and trees of this kind satisfy; None for others."""
    demand = instance.demand
    if demand is None or instance.also or not demand.is_of_all(instance.npus):
        return None
    return demand if _KINDS.get(demand.collective) is kind else None


@check_answer.register
def verify_translated(answer: TranslatedTrees, instance: Instance, network: Network, findings: Findings) -> None:
    """Check the edges of rank 0: trees over links that all ranks have, no generator twice in a step."""
    if instance.timing is None or instance.timing.semantics is not Semantics.CIRCUIT:
        findings.add(Violation("tree", "steps of equal length need a timing of circuits"))
        return
    demand = demand_of_all(instance, answer.kind)
    if demand is None:
        findings.add(Violation("demand", f"{answer.kind.value}-trees from all ranks are not what is asked for"))
        return
    if answer.ranks != network.nodes or answer.ranks != instance.npus:
        findings.add(Violation("tree", f"sizes make {answer.ranks} ranks; expected {instance.npus} and no switches"))
        return
    if _are_trees(answer, demand.chunks, findings):
        _check_generators(instance, network, answer, findings)


@count_epochs.register
def _(answer: TranslatedTrees | StreamedSteps, instance: Instance) -> int:
    return answer.steps * int(grid_of(instance).delay.max(initial=0))  # of links that are equal


def _are_trees(answer: TranslatedTrees, chunks: int, findings: Findings) -> bool:
    n = answer.ranks
    columns = ("copy", answer.copy, chunks), ("parent", answer.parent, n), ("child", answer.child, n)
    for name, column, limit in columns:
        wrong = np.flatnonzero((column < 0) | (column >= limit))
        for edge in wrong[:1].tolist():
            findings.add(Violation("range", f"edge {edge} names {name} {column[edge]}, but there are {limit}"))
            return False
    reached = np.bincount(answer.copy * n + answer.child, minlength=chunks * n).reshape(chunks, n)
    for chunk, rank in np.argwhere(reached != (np.arange(n) > 0))[:1].tolist():
        text = f"chunk {chunk} of rank 0 reaches rank {rank} {reached[chunk, rank]} times"
        findings.add(Violation("tree", text, rank=rank, chunk=chunk))
        return False
    since = np.full(chunks * n, -1, dtype=np.int64)
    since[answer.copy * n + answer.child] = answer.step
    late = np.flatnonzero(since[answer.copy * n + answer.parent] >= answer.step)

    def not_held(edge: int) -> Violation:
        text = f"rank {answer.parent[edge]} does not hold it yet"
        return Violation("not-held", text, chunk=int(answer.copy[edge]), step=int(answer.step[edge]))

    return not findings.add_each("not-held", late, not_held)


def _check_generators(instance: Instance, network: Network, answer: TranslatedTrees, findings: Findings) -> None:
    """Check that generators are used once per step and have equal links from every rank."""
    generator = translate_ranks(answer.sizes, answer.child, answer.parent, -1)
    numbers, where = np.unique(generator, return_inverse=True)
    order = np.lexsort((where, answer.step))
    same = (np.diff(answer.step[order]) == 0) & (np.diff(where[order]) == 0)

    def twice(index: int) -> Violation:
        edge = int(order[index + 1])
        text = f"generator {generator[edge]} is used twice, so that links have two chunks at once"
        return Violation("capacity", text, chunk=int(answer.copy[edge]), step=int(answer.step[edge]))

    findings.add_each("capacity", same, twice)
    grid = grid_of(instance)
    delays: list[Ints] = []
    for way in answer.kind.passes:
        for g in numbers.tolist():
            links = generator_links(network, answer, g, way)
            if (missing := np.flatnonzero(links < 0)).size:
                findings.add(Violation("path", f"has no link by generator {g}", rank=int(missing[0])))
                return
            delays.append(grid.delay[links])
    longest = int(grid.delay.max())
    if delays and (longest >= TOO_LONG or set(np.unique(np.concatenate(delays)).tolist()) != {longest}):
        findings.add(Violation("grid", "steps are not of equal length: links differ, or a step takes too many ticks"))


def generator_links(network: Network, answer: TranslatedTrees, generator: int, way: TreeKind) -> Ints:
    """Return the link from each rank by a generator, or back by it; -1 without one."""
    n, nodes = answer.ranks, np.arange(answer.ranks)
    other = translate_ranks(answer.sizes, nodes, np.array(generator), -1 if way is TreeKind.IN else 1)
    key = network.link_source * n + network.link_target
    order = np.argsort(key, kind="stable")
    keys = nodes * n + other
    place = np.minimum(np.searchsorted(key[order], keys), len(order) - 1)
    links = order[place]
    return np.where(key[links] == keys, links, -1)


@write_out.register
def expand(answer: TranslatedTrees, instance: Instance) -> Schedule:
    """Expand to the timed sends of all ranks."""
    findings = Findings()
    network = network_of(instance)
    if answer.sends > MAX_SENDS:
        raise InputError(f"{answer.sends:,} sends; expected at most {MAX_SENDS:,}", place="answer")
    verify_translated(answer, instance, network, findings)
    if findings.violations or instance.demand is None or instance.timing is None:
        raise InputError(str(findings.violations[0]), place="answer")
    n, c, edges = answer.ranks, instance.demand.chunks, len(answer.step)
    root = np.repeat(np.arange(n), edges)
    up, down = (translate_ranks(answer.sizes, root, np.tile(column, n)) for column in (answer.parent, answer.child))
    chunk, step = root * c + np.tile(answer.copy, n), np.tile(answer.step, n)
    generator = np.tile(translate_ranks(answer.sizes, answer.child, answer.parent, -1), n)
    length = answer.steps // len(answer.kind.passes)
    parts: list[tuple[Ints, ...]] = []
    for number, way in enumerate(answer.kind.passes):
        a, b = (down, up) if way is TreeKind.IN else (up, down)
        link = np.empty(len(a), dtype=np.int64)
        for g in np.unique(generator).tolist():
            here = generator == g
            link[here] = generator_links(network, answer, g, way)[a[here]]
        when = length - 1 - step if way is TreeKind.IN else step + length * number
        parts.append((chunk, a, b, np.full(len(a), int(way is TreeKind.IN)), link, when))
    chunks, source, target, adds, links, when = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(when, kind="stable")
    offset = np.arange(len(order) + 1, dtype=np.int64)
    sends = Sends(chunks[order], source[order], target[order], adds[order] > 0, offset, links[order])
    epoch = float(instance.timing.epoch_s) * int(grid_of(instance).delay.max())
    begin = np.asarray(when[order], dtype=np.float64)
    data = chunks_of_kind(np.repeat(np.arange(n), c), n, instance.demand.size_bytes, answer.kind)
    return Schedule(answer.instance_sha256, data, sends, begin * epoch, (begin + 1) * epoch)


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
    if len(set(delay.tolist())) != 1 or int(delay.max()) >= TOO_LONG:
        findings.add(Violation("grid", "steps are not of equal length: links differ, or a step takes too many ticks"))
        return
    there = network.link_source * network.nodes + network.link_target
    back = network.link_target * network.nodes + network.link_source
    if answer.kind is TreeKind.BOTH and not np.array_equal(np.sort(there), np.sort(back)):
        findings.add(Violation("path", "sums go back over the opposite links; expected one for every link"))
        return
    _play(instance, network, answer, demand.chunks, findings)


def _play(instance: Instance, network: Network, answer: StreamedSteps, copies: int, findings: Findings) -> None:
    """Follow the gather step by step; for a reduce-scatter, the gather that it reverses."""
    ranks, chunks = instance.npus, instance.npus * copies
    tail, head = network.link_source, network.link_target
    if instance.demand is not None and instance.demand.collective is Collective.REDUCE_SCATTER:
        tail, head = head, tail
    stock = np.zeros(((chunks + 63) // 64, ranks), dtype=np.uint64)
    number = np.arange(chunks)
    np.bitwise_or.at(stock, (number >> 6, number // copies), np.uint64(1) << (number & 63).astype(np.uint64))
    lacking = np.full(ranks, chunks - copies, dtype=np.int64)
    digest, steps, sends = Digest(), 0, 0
    for block in answer.blocks():
        if block.dtype != np.int32 or block.ndim != 2 or block.shape[1] != len(tail):
            findings.add(Violation("size", f"a block of {block.dtype} {block.shape}; expected int32 for every link"))
            return
        count, step, link, fault = follow(stock, lacking, tail, head, chunks, block)
        if fault:
            kind, text = _FAULTS[fault]
            at, chunk = steps + int(step), int(block[step, link])
            findings.add(Violation(kind, text, link=int(link), chunk=chunk, step=at))
            return
        digest.add(block)
        steps, sends = steps + len(block), sends + int(count)
    for rank in np.flatnonzero(lacking)[:1].tolist():
        findings.add(Violation("missing", f"lacks {lacking[rank]:,} chunks at the end", rank=rank))
    claim = answer.gather_steps, answer.gather_sends, answer.digest
    if claim != (steps, sends, digest.hex()):
        text = (
            f"{steps:,} steps, {sends:,} sends, digest {digest.hex()[:12]}…; the answer says "
            f"{claim[0]:,}, {claim[1]:,}, {claim[2][:12]}…"
        )
        findings.add(Violation("size", text))


@kernel
def follow(stock: Any, lacking: Any, tail: Ints, head: Ints, chunks: int, block: Any) -> tuple[int, int, int, int]:
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
            if stock[chunk >> 6, tail[link]] & bit == np.uint64(0):
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
