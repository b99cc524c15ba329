"""Checks of all-gathers in steps of equal length: one tree translated to all ranks.

See :class:`~cwb.core.equal_steps.TranslatedTrees` for why the edges of rank 0, n - 1 for every chunk of a rank,
suffice.
"""

import numpy as np

from ...core.collective import Collective, Demand
from ...core.equal_steps import StreamedSteps, TranslatedTrees, translate_ranks
from ...core.errors import InputError
from ...core.instance import Instance
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


def demand_in_steps(answer: TranslatedTrees | StreamedSteps, instance: Instance, findings: Findings) -> Demand | None:
    """Return the demand that steps of equal length satisfy; None and a violation where they cannot."""
    if instance.timing is None or instance.timing.semantics is not Semantics.CIRCUIT:
        findings.add(Violation("size", "steps of equal length need a timing of circuits"))
        return None
    demand = demand_of_all(instance, answer.kind)
    if demand is None:
        findings.add(Violation("demand", f"a gather of all ranks ({answer.kind.value}) is not what is asked for"))
    return demand


@check_answer.register
def verify_translated(answer: TranslatedTrees, instance: Instance, network: Network, findings: Findings) -> None:
    """Check the edges of rank 0: trees over links that all ranks have, no generator twice in a step."""
    demand = demand_in_steps(answer, instance, findings)
    if demand is None:
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
