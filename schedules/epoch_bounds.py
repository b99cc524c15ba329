"""Verification of bounds on the number of epochs, recomputed from the instance and the certificate."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from ..core import bounds
from ..core.collective import Collective, conditions
from ..core.errors import InputError
from ..core.instance import Instance
from ..core.schedule import Ints
from ..core.timing import Semantics
from ..core.topology import NodeKind
from .network_bounds import links_out_of, shortest_distances
from .strict import reject_if
from .verify.grid import Grid, grid_of

FAR = 2**50  #: An epoch after all others: ticks of the timing ``circuit`` go up to 2^44.


@dataclass(frozen=True)
class Need:
    """Chunks that some nodes must receive from others.

    Each of the ``count`` chunks must reach all targets except its holder, which may be one of them. Copied data comes
    from its single holder. Contributions to a sum may be added up on the way, so that at least one chunk arrives,
    from any contributor.
    """

    sources: frozenset[int]
    targets: frozenset[int]
    count: int
    summed: bool


def recomputed_epochs(instance: Instance, certificate: bounds.EpochBound) -> int:  # noqa: PLR0911 (one for each kind)
    """Return the number of epochs that a certificate proves necessary."""
    grid = grid_of(instance, round_down=True)
    count = len(grid.topology.nodes)
    ends = [n for n in (getattr(certificate, "sink", None), getattr(certificate, "source", None)) if n is not None]
    sets = (*getattr(certificate, "nodes", ()), *getattr(certificate, "sinks", ()))
    for node in (*sets, getattr(certificate, "target", 0), *ends):
        reject_if(not 0 <= node < count, f"node {node} of {count}", place="certificate")
    reject_if(grid.timing.changes, "a bound for constant bandwidths proves nothing here", place="certificate")
    if grid.timing.semantics is Semantics.CIRCUIT and "switch" in {node.kind.value for node in grid.topology.nodes}:
        raise InputError("through switches chunks may share links, so epochs prove nothing here", place="certificate")
    if isinstance(certificate, bounds.EpochPartition):
        return _partition(instance, grid, certificate)
    needs = needs_of(instance)
    match certificate:
        case bounds.EpochDistance(source, target):
            in_demand = any(source in need.sources and target in need.targets for need in needs)
            return distances(grid, source)[target] if in_demand and source != target else 0
        case bounds.EpochCut():
            return _cut(grid, needs, certificate)
        case bounds.EpochChain():
            return _chain(grid, needs, certificate)
        case bounds.EpochFlow(sink, epochs):
            sources = [(min(n.sources), n.count) for n in needs if sink in n.targets - n.sources and not n.summed]
            return fewest_epochs_of_flow(grid, sources, sink, epochs)
        case bounds.EpochPrices(starts, prices):
            ways = [(min(n.sources), t, n.count) for n in needs if not n.summed for t in n.targets - n.sources]
            return fewest_epochs_by_prices(grid, ways, starts, prices)
        case bounds.EpochWindowPrices():
            copied = [(min(n.sources), n.targets - n.sources, n.count) for n in needs if not n.summed]
            return fewest_epochs_by_window_prices(grid, copied, certificate)


def needs_of(instance: Instance) -> list[Need]:
    """List the chunks to be transferred, with their sources and targets."""
    node = getattr(instance.network, "rank_nodes", ())
    needs: list[Need] = []
    sets: dict[tuple[int, ...], frozenset[int]] = {}  # one for all ranks of a group, which may be large
    for demand in instance.demands:
        for holders, receivers, summed in conditions(demand, instance.npus).bytes_of:
            for ranks in (holders, receivers):
                if ranks not in sets:
                    sets[ranks] = frozenset(node[r] for r in ranks)
            count = demand.chunks * (len(holders) if demand.collective is Collective.ALL_REDUCE else 1)
            if summed or receivers != holders:
                needs.append(Need(sets[holders], sets[receivers], count, summed))
    return needs


def _partition(instance: Instance, grid: Grid, certificate: bounds.EpochPartition) -> int:
    nodes = [node for part in certificate.parts for node in part]
    if sorted(nodes) != list(range(len(grid.topology.nodes))) or grid.timing.fluid or grid.timing.changes:
        raise InputError("expected every node in one set, and whole chunks", place="certificate.parts")
    if len(grid.topology.ranks) < len(nodes):
        raise InputError("expected a network without switches, since they might add", place="certificate.parts")
    part_of = {node: index for index, part in enumerate(certificate.parts) for node in part}
    entries = 0
    for need in needs_of(instance):
        count = len({part_of[node] for node in need.sources})
        if need.summed and need.sources == need.targets:
            entries += 2 * (count - 1) * need.count
    if not entries:
        return 0
    ends = zip(grid.source.tolist(), grid.target.tolist(), strict=True)
    into = [e for e, (a, b) in enumerate(ends) if part_of[a] != part_of[b]]
    columns = [column[into].tolist() for column in (grid.delay, grid.window, grid.capacity)]
    if 0 in columns[1]:
        return 0  # a link that takes less than a tick

    def enough(epochs: int) -> bool:
        room = sum(c * max(0, (epochs - d) // w + 1) for d, w, c in zip(*columns, strict=True))
        return bool(room >= entries)

    return _least(enough)


def distances(grid: Grid, *sources: int, backwards: bool = False) -> list[int]:
    """Return epochs of the fastest paths from the nearest of some nodes, or to it."""
    tail, head = (grid.target, grid.source) if backwards else (grid.source, grid.target)
    far = shortest_distances(links_out_of(zip(tail.tolist(), head.tolist(), strict=True), grid.delay.tolist()), sources)
    return [min(far.get(node, FAR), FAR) for node in range(len(grid.topology.nodes))]


def starts(releases: Sequence[int], window: int, capacity: int, begin: int = 0) -> list[int]:
    """Return a link's earliest starts, the n-th not before release n, at most ``capacity`` per window."""
    times: list[int] = []
    for n, release in enumerate(sorted(releases)):
        earliest = max(release, begin)
        times.append(max(earliest, times[n - capacity] + window) if n >= capacity else earliest)
    return times


def _least(enough: Callable[[int], bool]) -> int:
    """Return the smallest number that satisfies a monotone condition; :data:`FAR` if none does."""
    high = 1
    text = "no number of epochs is enough: data must enter these nodes, but no link does"
    while not enough(high):
        high *= 2
        reject_if(high > FAR, text, place="certificate")
    low = 0
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low


def _cut(grid: Grid, needs: list[Need], cut: bounds.EpochCut) -> int:
    inside = frozenset(cut.nodes)
    reject_if(cut.sink is not None and cut.sink not in inside, "the sink is not in the set", place="certificate.sink")
    sinks = [cut.sink] if cut.sink is not None else sorted(frozenset[int]().union(*{n.targets for n in needs}) & inside)
    rest = distances(grid, *sinks, backwards=True)
    threshold = cut.threshold if cut.sink is not None else 0
    entering = _from_outside(needs, inside, frozenset(sinks))
    entering = [n for n in entering if min(rest[s] for s in n.sources) >= threshold]
    fluid = grid.timing.fluid
    total = sum(n.count * (len(n.targets & set(sinks)) if fluid and not n.summed else 1) for n in entering)
    if not total:
        return 0
    links = _entering(grid, inside)
    release = {e: _releases(grid, entering, e) for e in links}
    if fluid:
        spans = [(release[e][0] + int(grid.delay[e]) + rest[int(grid.target[e])], grid.rate[e]) for e in links]
        return _least(lambda k: sum((r * max(0, k - s + 1) for s, r in spans), Fraction(0)) >= total)
    after = {e: int(grid.delay[e]) + rest[int(grid.target[e])] for e in links}
    last = [t + after[e] for e in links for t in _link_starts(grid, e, release[e])]
    return _least(lambda k: sum(t <= k for t in last) >= total)


def _chain(grid: Grid, needs: list[Need], chain: bounds.EpochChain) -> int:
    inside, sink = frozenset(chain.nodes), chain.sink
    if sink not in inside or grid.timing.fluid:
        raise InputError("expected a sink in the set, and whole chunks", place="certificate.sink")
    entering = _from_outside(needs, inside, frozenset([sink]))
    count = sum(n.count for n in entering)
    arrivals = sorted(
        t + int(grid.delay[e])
        for e in _entering(grid, inside)
        for t in _link_starts(grid, e, _releases(grid, entering, e))
    )
    reject_if(count > len(arrivals), "data must enter these nodes, but no link does", place="certificate.nodes")
    doors = {int(grid.target[e]) for e in _entering(grid, inside)}
    inwards = distances(grid, *doors)
    own = [e for e in range(len(grid.source)) if int(grid.target[e]) == sink]
    bound = 0
    for m, begin in enumerate(arrivals[:count]):
        rest, times = count - m, list[int]()
        for e in own:
            tail = int(grid.source[e])
            first = begin + inwards[tail] if tail in inside else max(0, begin - int(grid.delay[e]))
            times += [t + int(grid.delay[e]) for t in _link_starts(grid, e, [first] * rest)]
        bound = max(bound, sorted(times)[rest - 1])
    return bound


def _from_outside(needs: Sequence[Need], inside: frozenset[int], sinks: frozenset[int]) -> list[Need]:
    """Select the chunks that must enter a set from outside for some of its nodes."""
    entering: list[Need] = []
    without: dict[frozenset[int], frozenset[int]] = {}
    for need in needs:
        if need.sources not in without:
            without[need.sources] = need.sources - inside
        outside = without[need.sources]
        if outside and (need.summed or outside == need.sources) and need.targets & sinks:
            entering.append(Need(outside, need.targets, need.count, need.summed))
    return entering


def _entering(grid: Grid, inside: frozenset[int]) -> list[int]:
    ends = zip(grid.source.tolist(), grid.target.tolist(), strict=True)
    return [e for e, (a, b) in enumerate(ends) if a not in inside and b in inside]


def _releases(grid: Grid, needs: Sequence[Need], link: int) -> list[int]:
    """Return, sorted, the first epoch at which each chunk can be at the start of a link."""
    far = distances(grid, int(grid.source[link]), backwards=True)
    return sorted(min(far[s] for s in need.sources) for need in needs for _ in range(need.count))


def _link_starts(grid: Grid, link: int, releases: Sequence[int]) -> list[int]:
    """Return the earliest starts of a link for chunks with these releases; unreachable ones are left out."""
    times = starts(releases, int(grid.window[link]), int(grid.capacity[link]))
    return [t for t in times if t < FAR]


MAX_NODES = 500_000  #: Nodes of the network over time that are tried.

#: The most chunks: what is left on a link and its way back together fits into the 32 bits of the flow's numbers.
MAX_CHUNKS = 2**30 - 1


def fewest_epochs_of_flow(grid: Grid, sources: Sequence[tuple[int, int]], sink: int, epochs: int) -> int:
    """Return ``epochs`` if the chunks of sources (node, count) do not reach the sink in ``epochs - 1``, else 0."""
    reject_if(grid.timing.fluid, "this bound is one of whole chunks", place="certificate")
    if not sources or epochs <= 0 or not grid.window.all():  # a link that takes any number in a tick bounds nothing
        return 0
    horizon = epochs - 1
    if (horizon + 1) * len(grid.topology.nodes) > MAX_NODES:
        raise InputError(f"{epochs:,} epochs are too many to be checked", place="certificate.epochs")
    total = sum(count for _, count in sources)
    reject_if(total > MAX_CHUNKS, f"a flow of {total:,} chunks is too large to be checked", place="certificate")
    return epochs if _flow(grid, sources, sink, horizon, total) < total else 0


def _flow(grid: Grid, sources: Sequence[tuple[int, int]], sink: int, horizon: int, most: int) -> int:
    """Return the largest number of chunks, up to ``most``, that reach the sink by the horizon."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import maximum_flow

    nodes, times = len(grid.topology.nodes), horizon + 1
    at = np.arange(times)
    heads, tails, room = list[np.ndarray](), list[np.ndarray](), list[np.ndarray]()

    def add(a: np.ndarray, b: np.ndarray, capacity: int | np.ndarray) -> None:
        tails.append(a)
        heads.append(b)
        # More than all chunks never pass; so no sum of what is written here leaves 64 bits.
        room.append(np.broadcast_to(np.minimum(capacity, most), a.shape))

    first = distances(grid, *(source for source, _ in sources))
    # Where starts count in blocks, chunks may come too early or leave too late by their count: at the ends of such
    # links they must be able to wait.
    blocks = grid.window > 1
    early = {*grid.source[blocks].tolist(), *grid.target[blocks].tolist()}
    for node, data in enumerate(grid.topology.nodes):
        if data.kind is NodeKind.COMPUTE or data.buffer_bytes != 0 or node in early:
            add(node * times + at[:-1], node * times + at[1:], most)
    extra = nodes * times + 2
    for e in range(len(grid.source)):
        delay, window, capacity = int(grid.delay[e]), int(grid.window[e]), int(grid.capacity[e])
        a, b = int(grid.source[e]), int(grid.target[e])
        start = np.arange(first[a], horizon - delay + 1)
        if window == 1:
            add(a * times + start, b * times + start + delay, capacity)
            continue
        # All starts of a block share its room and count as if they had left with it: a node of its own collects them.
        begin = start[::window]
        add(a * times + start, extra + (start - first[a]) // window, capacity)
        add(extra + np.arange(len(begin)), b * times + begin + delay, capacity)
        extra += len(begin)
    source = nodes * times
    where = np.array([node * times for node, _ in sources])
    add(np.full(len(where), source), where, np.array([count for _, count in sources]))
    columns = tuple(np.concatenate(part) for part in (tails, heads, room))
    graph = coo_array((columns[2], (columns[0], columns[1])), shape=(extra, extra)).tocsr()  # adds up what is parallel
    graph.data = np.minimum(graph.data, most).astype(np.int32)
    return int(maximum_flow(graph, source, sink * times + horizon).flow_value)


#: The largest price and the most epochs: no sum of prices along a way leaves 64 bits.
MAX_PRICE, MAX_EPOCHS = 2**31, 2**20

MAX_STEPS = 50_000_000  #: The most steps (links times epochs) that are gone through.

#: The most sinks, and the most that all windows with a price together may cost, so that no sum along a tree leaves 64
#: bits.
MAX_SINKS, MAX_TOTAL = 3, 2**40

_NO_WAY = 2**60


def fewest_epochs_by_prices(
    grid: Grid, ways: Sequence[tuple[int, int, int]], starts: Sequence[int], prices: Sequence[Sequence[int]]
) -> int:
    """Return one more than the number of epochs that prices of blocks refute, 0 if they refute none."""
    _check_prices(grid, starts, prices)
    epochs, lengths = starts[-1], [b - a for a, b in pairwise(starts)]
    table = np.repeat(np.array(prices, dtype=np.int64).reshape(len(prices), -1), lengths, axis=1)
    sums = (sum(p * n for p, n in zip(row, lengths, strict=True)) for row in prices)
    all_links = sum((rate * cost for rate, cost in zip(grid.rate, sums, strict=True)), Fraction(0))
    sources = sorted({source for source, _, _ in ways})
    cheapest = _cheapest(grid, sources, table, epochs)
    cost = sum(count * int(cheapest[target, sources.index(source)]) for source, target, count in ways)
    return epochs + 1 if cost > all_links else 0


def _check_prices(grid: Grid, starts: Sequence[int], prices: Sequence[Sequence[int]]) -> None:
    reject_if(not grid.timing.fluid, "these prices prove a bound only if chunks may be split", place="certificate")
    ordered = len(starts) > 1 and starts[0] == 0 and all(a < b for a, b in pairwise(starts))
    if not ordered or starts[-1] > MAX_EPOCHS or starts[-1] * len(prices) > MAX_STEPS:
        text = "expected starts of blocks from 0 that increase, and not too many epochs"
        raise InputError(text, place="certificate.starts")
    if len(prices) != len(grid.rate) or any(len(row) != len(starts) - 1 for row in prices):
        raise InputError("expected a price for every link in every block", place="certificate.prices")
    if any(not 0 <= price <= MAX_PRICE for row in prices for price in row):
        raise InputError(f"a price is not from 0 to {MAX_PRICE:,}", place="certificate.prices")


def _cheapest(grid: Grid, sources: Sequence[int], prices: Ints, epochs: int) -> Ints:
    """Return the costs of cheapest paths from index 0 to the last index; shape (nodes, sources)."""
    nodes = grid.topology.nodes
    # A switch with any buffer is taken to hold all: that can only make ways cheaper.
    holds = np.array([node.kind is NodeKind.COMPUTE or node.buffer_bytes != 0 for node in nodes])
    longest = int(grid.delay[grid.delay <= epochs].max(initial=1))
    if (longest + 1) * len(nodes) * len(sources) > MAX_STEPS:
        raise InputError("too many epochs, nodes and sources to be checked", place="certificate.starts")
    # What is known of index k + d stands in row (k + d) modulo the longest delay and one.
    coming = np.full((longest + 1, len(nodes), len(sources)), _NO_WAY, dtype=np.int64)
    for column, source in enumerate(sources):
        coming[0, source, column] = 0
    links = list(zip(grid.source.tolist(), grid.target.tolist(), grid.delay.tolist(), strict=True))
    for k in range(epochs):
        now = coming[k % (longest + 1)].copy()
        coming[k % (longest + 1)] = _NO_WAY
        after = coming[(k + 1) % (longest + 1)]
        after[holds] = np.minimum(after[holds], now[holds])
        for link, (source, target, delay) in enumerate(links):
            if k + delay <= epochs:
                there = coming[(k + delay) % (longest + 1), target]
                np.minimum(there, now[source] + prices[link, k], out=there)
    return np.asarray(coming[epochs % (longest + 1)])


def fewest_epochs_by_window_prices(
    grid: Grid, needs: Sequence[tuple[int, frozenset[int], int]], certificate: bounds.EpochWindowPrices
) -> int:
    """Return the number of epochs that window prices prove for chunks that are copied on the way, 0 if none."""
    _check_windows(grid, certificate)
    epochs = certificate.epochs - 1
    toll = np.zeros((len(grid.source), epochs + 1), dtype=np.int64)
    room = 0
    for link, start, price in zip(certificate.links, certificate.starts, certificate.prices, strict=True):
        toll[link, max(0, start) : max(0, start + int(grid.window[link]))] += price
        room += int(grid.capacity[link]) * price
    trees = _cheapest_trees(grid, certificate.sinks, toll, epochs)
    debt = 0
    for source, targets, count in needs:
        group = sum(1 << i for i, sink in enumerate(certificate.sinks) if sink in targets)
        debt += count * int(trees[group, source]) if group else 0
    return certificate.epochs if debt > room else 0


def _check_windows(grid: Grid, certificate: bounds.EpochWindowPrices) -> None:
    links, sinks = len(grid.source), certificate.sinks
    reject_if(grid.timing.fluid, "prices of windows are a bound of whole chunks", place="certificate")
    if not 1 <= len(set(sinks)) == len(sinks) <= MAX_SINKS:
        raise InputError(f"expected from 1 to {MAX_SINKS} different nodes", place="certificate.sinks")
    steps = (certificate.epochs << len(sinks)) * max(links, len(grid.topology.nodes))
    if not 1 <= certificate.epochs <= MAX_EPOCHS or steps > 2 * MAX_STEPS:
        raise InputError(f"{certificate.epochs:,} epochs cannot be checked", place="certificate.epochs")
    if not len(certificate.links) == len(certificate.starts) == len(certificate.prices):
        raise InputError("expected a start and a price for every window", place="certificate.prices")
    if any(not 0 <= link < links for link in certificate.links):
        raise InputError(f"a link is not one of {links}", place="certificate.links")
    if any(abs(start) > MAX_EPOCHS for start in certificate.starts):
        raise InputError("a window is too far away", place="certificate.starts")
    if min(certificate.prices, default=0) < 0 or sum(certificate.prices) > MAX_TOTAL:
        raise InputError(f"prices are from 0 on, and all together at most {MAX_TOTAL:,}", place="certificate.prices")


def _cheapest_trees(grid: Grid, sinks: Sequence[int], toll: Ints, epochs: int) -> Ints:
    """Return costs of cheapest trees from index 0 to each set of sinks at the last; shape (sets, nodes)."""
    nodes = grid.topology.nodes
    # As above; and a switch that does not copy is taken to do so.
    holds = np.array([node.kind is NodeKind.COMPUTE or node.buffer_bytes != 0 for node in nodes])
    least = np.full((epochs + 1, 1 << len(sinks), len(nodes)), _NO_WAY, dtype=np.int64)
    at_once = bool((grid.delay == 0).any())
    for k in range(epochs, -1, -1):
        then = k + grid.delay
        on_time = np.flatnonzero((then <= epochs) & (grid.delay > 0))
        free = np.flatnonzero(grid.delay == 0)
        for group in range(1, 1 << len(sinks)):
            row = least[k, group]
            if k < epochs:
                row[holds] = least[k + 1, group, holds]
            if group.bit_count() == 1:
                row[sinks[group.bit_length() - 1]] = 0
            for part in range(1, group):
                if part & group == part:
                    np.minimum(row, least[k, part] + least[k, group - part], out=row)
            ways = toll[on_time, k] + least[then[on_time], group, grid.target[on_time]]
            np.minimum.at(row, grid.source[on_time], ways)
            while at_once:
                before = row.copy()
                np.minimum.at(row, grid.source[free], toll[free, k] + row[grid.target[free]])
                if (row == before).all():
                    break
    return np.asarray(least[0])
