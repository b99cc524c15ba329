"""Lower bounds on the makespan by prices on windows, from flows over time to one or several nodes.

Every window of a link (any ``w`` epochs in a row, which take C starts) has a price of at least 0, and a start pays for
all windows that it lies in. With several sinks, the linear program has one commodity for every set of sinks still to be
reached, which divides where the paths part. The proof is on the page docs/methods/teccl-search.md.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.kernel import kernel
from ...core.schedule import Ints, ranges
from .flow_bounds import WindowPrices
from .problem import FAR, EpochNetwork
from .symmetries import kinds_of_nodes

SCALE = 10**6  #: prices are multiples of one over this
ITERATIONS = 50_000  #: most iterations for one program


@dataclass(frozen=True, eq=False)
class _Program:
    """Linear program of the flow over time; columns are starts, then waits, then divisions."""

    link: Ints  #: of every start
    at: Ints  #: epoch of every start
    row: Ints  #: entries of the balances: place, column and coefficient
    column: Ints
    value: Ints
    supply: Ints  #: of every place
    gain: Ints  #: sinks that a column reaches


def _build_quotient(network: EpochNetwork, sinks: tuple[int, ...]) -> tuple[EpochNetwork, tuple[int, ...], Ints]:
    """Merge equal nodes and links: some optimal flow is equal on equal links, and so are its prices.

    Return the network, its sinks, and the link that each link became.
    """
    kinds = kinds_of_nodes(network, sinks)
    columns = [kinds[network.tail], kinds[network.head], network.delay, network.window, network.room]
    ends, kind, count = np.unique(np.stack(columns), axis=1, return_inverse=True, return_counts=True)
    _, node = np.unique(kinds, return_index=True)
    owed = _lacking_sinks(network, sinks) > 0
    need = np.zeros((int(owed.sum()), len(node)), dtype=np.bool_)
    need[:, kinds[list(sinks)]] = network.lacking[owed][:, list(sinks)]
    tail, head, delay, window, room = ends
    stores, copies, source = network.stores[node], network.copies[node], kinds[network.source[owed]]
    small = EpochNetwork(len(node), tail, head, delay, window, room * count, stores, copies, source, need)
    return small, tuple(kinds[list(sinks)].tolist()), kind.reshape(-1)


def size(network: EpochNetwork, sinks: tuple[int, ...], epochs: int) -> int:
    """Count the starts in the linear program."""
    small, folded_sinks, _ = _build_quotient(network, sinks)
    return sum(int(count.sum()) for *_, count in _spans(small, folded_sinks, epochs))


def prices_for(
    network: EpochNetwork, sinks: tuple[int, ...], epochs: int, seconds: float | None
) -> WindowPrices | None:
    """Compute prices that refute a makespan; None if there are none or the time is too short."""
    from scipy import optimize
    from scipy.sparse import coo_array

    folded, folded_sinks, kind = _build_quotient(network, sinks)
    total = int(network.lacking[:, list(sinks)].sum())
    program = _program(folded, folded_sinks, epochs) if total else None
    if program is None:
        return None
    window_row, window_column, link, start = _windows(folded, program)
    places, columns = len(program.supply), len(program.gain)
    row = np.concatenate([program.row, places + window_row])
    column = np.concatenate([program.column, window_column])
    value = np.concatenate([program.value, np.ones(len(window_row))])
    matrix = coo_array((value, (row, column)), shape=(places + len(link), columns)).tocsr()
    limit = np.concatenate([program.supply, folded.room[link]]).astype(np.float64)
    options: dict[str, Any] = {"maxiter": ITERATIONS} | ({} if seconds is None else {"time_limit": seconds})
    solve: Any = optimize.linprog
    answer = solve(
        -program.gain.astype(np.float64), A_ub=matrix, b_ub=limit, bounds=(0, None), method="highs-ipm", options=options
    )
    if answer.status != 0 or -answer.fun > total - 1e-6:
        return None
    price = np.rint(-answer.ineqlin.marginals[places:] * SCALE).astype(np.int64)
    priced, count = np.flatnonzero(price > 0), np.bincount(kind)
    many = count[link[priced]]
    members = np.argsort(kind, kind="stable")[ranges((np.cumsum(count) - count)[link[priced]], many)]
    prices = WindowPrices(epochs + 1, sinks, members, np.repeat(start[priced], many), np.repeat(price[priced], many))
    return prices if check_prices(network, prices) else None


def check_prices(network: EpochNetwork, prices: WindowPrices) -> bool:
    """Check in integers that the cheapest trees cost more than the windows admit."""
    epochs = prices.epochs - 1
    toll = np.zeros((len(network.tail), epochs + 2), dtype=np.int64)
    end = np.clip(prices.start + network.window[prices.link], 0, epochs + 1)
    np.add.at(toll, (prices.link, np.clip(prices.start, 0, epochs + 1)), prices.price)
    np.add.at(toll, (prices.link, end), -prices.price)
    toll = np.cumsum(toll, axis=1)
    order = np.argsort(network.delay, kind="stable")
    links = network.tail[order], network.head[order], network.delay[order], toll[order]
    trees = cheapest_trees(network.stores, links, np.array(prices.sinks, dtype=np.int64), epochs, FAR)
    worth = int((network.room[prices.link] * prices.price).sum())
    debt = _lacking_sinks(network, prices.sinks)
    return int(trees[debt, network.source][debt > 0].sum()) > worth


def _lacking_sinks(network: EpochNetwork, sinks: tuple[int, ...]) -> Ints:
    """Return the set of sinks that lack each chunk, as bits; shape (chunks,)."""
    return np.asarray(network.lacking[:, list(sinks)] @ (1 << np.arange(len(sinks))), dtype=np.int64)


def _spans(network: EpochNetwork, sinks: tuple[int, ...], epochs: int) -> list[tuple[int, Ints, Ints, Ints]]:
    """List, for every set of sinks, the useful links with their first start, and the number of starts."""
    lacked, spans = _lacking_sinks(network, sinks), []
    for group in range(1, 1 << len(sinks)):
        chunks = np.flatnonzero((lacked & group) == group)
        if not len(chunks):
            continue
        release = network.distance[network.source[chunks]].min(axis=0)
        members = [sink for i, sink in enumerate(sinks) if group >> i & 1]
        rest = network.distance[network.head][:, members].max(axis=1)
        first, last = release[network.tail], epochs - network.delay - rest
        at_its_sink = (len(members) == 1) & (network.tail == members[0])
        useful = np.flatnonzero((first <= last) & (first < FAR) & ~at_its_sink)
        spans.append((group, useful, first[useful], (last - first + 1)[useful]))
    return spans


def _program(network: EpochNetwork, sinks: tuple[int, ...], epochs: int) -> _Program | None:
    """Build flow conservation for every set of sinks, node and epoch; None without useful starts."""
    width, nodes = epochs + 2, network.nodes
    rows = [
        (np.full(count.sum(), group), np.repeat(useful, count), ranges(first, count))
        for group, useful, first, count in _spans(network, sinks, epochs)
    ]
    group, link, at = (np.concatenate(part).astype(np.int64) for part in zip(*rows, strict=True))
    if not len(link):
        return None
    ends = np.array([(nodes << i) + sink for i, sink in enumerate(sinks)])
    departure = (group * nodes + network.tail[link]) * width + at
    came = (group * nodes + network.head[link]) * width + at + network.delay[link]
    lacked = _lacking_sinks(network, sinks)
    begins, amounts = np.unique((lacked * nodes + network.source)[lacked > 0] * width, return_counts=True)
    whole, one, other = _subset_splits(np.unique(np.concatenate([came, begins])), nodes * width, len(sinks))
    keys = np.unique(np.concatenate([departure, came, begins, one, other]))
    keys = keys[~np.isin(keys // width, ends)]
    stays = np.flatnonzero((np.diff(keys // width) == 0) & network.stores[keys[:-1] // width % nodes])
    column = np.arange(len(link) + len(stays) + len(whole))
    # What a column brings to places: a start to one, waiting to one, dividing to two.
    entered = np.concatenate([came, keys[stays + 1], one, other])
    of = np.concatenate([column, column[len(link) + len(stays) :]])
    reached = np.isin(entered // width, ends)
    supply = np.zeros(len(keys), dtype=np.int64)
    supply[np.searchsorted(keys, begins)] = amounts
    return _Program(
        link,
        at,
        np.searchsorted(keys, np.concatenate([departure, keys[stays], whole, entered[~reached]])),
        np.concatenate([column, of[~reached]]),
        np.concatenate([np.ones(len(column), np.int64), np.full(int((~reached).sum()), -1)]),
        supply,
        np.bincount(of[reached], minlength=len(column)),
    )


def _subset_splits(places: Ints, width: int, sinks: int) -> tuple[Ints, Ints, Ints]:
    """List divisions of a flow for a set of sinks into two smaller sets: place and both parts."""
    whole, parts = [places[:0]], [places[:0]]
    for group in range(1, 1 << sinks):
        here = places[places // width == group]
        for part in range(group // 2 + 1, group):
            if part & group == part:
                whole.append(here)
                parts.append(np.full_like(here, part))
    place, part_of = np.concatenate(whole), np.concatenate(parts)
    return place, place - part_of * width, place % width + part_of * width


def _windows(network: EpochNetwork, program: _Program) -> tuple[Ints, Ints, Ints, Ints]:
    """List row and column of every start in a window, and link and first epoch of every row."""
    links = np.unique(program.link)
    first, last = np.full(len(network.tail), FAR), np.full(len(network.tail), -FAR)
    np.minimum.at(first, program.link, program.at)
    np.maximum.at(last, program.link, program.at)
    last = np.maximum(first, last - network.window + 1)
    count = (last - first + 1)[links]
    base = np.zeros(len(network.tail), dtype=np.int64)
    base[links] = np.cumsum(count) - count
    of = program.link
    begin = np.maximum(first[of], program.at - network.window[of] + 1)
    many = np.minimum(last[of], program.at) - begin + 1
    column = np.repeat(np.arange(len(of)), many)
    row = ranges(base[of] + begin - first[of], many)
    link = np.repeat(links, count)
    return row, column, link, first[link] + np.arange(len(link)) - base[link]


@kernel
def start_over_links(row: Any, ahead: Any, links: Any, now: int) -> None:
    """Relax the tolls ``row`` of one epoch, of those of all epochs (``ahead``), by all starts in it."""
    tail, head, delay, toll = links
    for e in range(len(tail) - 1, -1, -1):
        then = now + delay[e]
        if then < len(ahead):
            row[tail[e]] = min(row[tail[e]], toll[e, now] + ahead[then, head[e]])
    changed = True
    while changed:
        changed = False
        for e in range(len(tail)):
            if delay[e] > 0:
                break
            way = toll[e, now] + row[head[e]]
            if way < row[tail[e]]:
                row[tail[e]] = way
                changed = True


@kernel
def cheapest_trees(stores: Any, links: Any, sinks: Any, epochs: int, far: int) -> Any:
    """Compute the least toll of a tree over time from every node to each set of sinks.

    Trees start at epoch 0 and reach their sinks by the last epoch. ``links`` are tails, heads, delays, those without
    first, and the price of a start in every epoch, which a tree pays once for each. The result has shape (sets, nodes);
    set s has the i-th sink if bit i of s is 1.
    """
    nodes, sets = len(stores), 1 << len(sinks)
    least = np.full((sets, epochs + 1, nodes), far, np.int64)
    for now in range(epochs, -1, -1):
        for group in range(1, sets):
            row = least[group, now]
            if now < epochs:
                for node in range(nodes):
                    if stores[node]:
                        row[node] = least[group, now + 1, node]
            for i in range(len(sinks)):
                if group == 1 << i:
                    row[sinks[i]] = 0
            # A tree divides here into one to some of the sinks and one to the others.
            part = (group - 1) & group
            while part > 0:
                for node in range(nodes):
                    row[node] = min(row[node], least[part, now, node] + least[group - part, now, node])
                part = (part - 1) & group
            start_over_links(row, least[group], links, now)
    return least[:, 0]
