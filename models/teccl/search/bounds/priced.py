"""The bound of prices on windows: the flow to one node over time, with every window exactly as it is.

Let every window of a link (any ``w`` epochs in a row, which take C starts) have a price of at least 0. A start pays for all windows that it
lies in. In a schedule of makespan K, trace every chunk that g lacks back to its source: it pays at least the length of the cheapest
way over time from its source, at 0, to g, by K. All traces together pay at most C for every window, times its price. So prices for which
the cheapest ways sum to more than what the windows pay prove that no schedule has makespan K.

Good prices are dual values of the linear program of this flow. They are rounded to integers, and the two sums are then compared in integers:
the proof does not rest on the solver.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .....core.bounds import SolverBound
from .....core.schedule import Ints
from ..kernels.cheapest import cheapest_ways
from ..problem import FAR, EpochNetwork

#: Prices are multiples of one over this.
SCALE = 10**6

#: Most iterations for one program.
ITERATIONS = 50_000


@dataclass(frozen=True, eq=False)
class WindowPrices:
    """Why no schedule has the makespan ``epochs - 1``.

    Parameters
    ----------
    epochs : int
        The bound.
    sink : int
        The node that traces lead to.
    link, start, price : array of int, shape (windows,)
        Windows with a price: the link, the window's first epoch, and the price. A window may begin before epoch 0.
    """

    epochs: int
    sink: int
    link: Ints
    start: Ints
    price: Ints

    def certificate(self) -> SolverBound:
        """Name the solver that the prices come from."""
        import scipy

        return SolverBound("HiGHS in scipy", scipy.__version__)


@dataclass(frozen=True, eq=False)
class _Program:
    """The flow over time: columns are starts on links, then waiting."""

    link: Ints
    at: Ints
    row_of: Ints  #: two rows, left and entered, for each column; -1 for none
    rows: int
    supply: Ints
    into_sink: np.ndarray


def size(network: EpochNetwork, epochs: int) -> int:
    """Columns of the program, at most."""
    return network.links * epochs


def improve(
    network: EpochNetwork, at_least: int, sink: int, below: int, seconds: float | None
) -> tuple[int, WindowPrices | None]:
    """Raise a bound by prices for one node, epoch by epoch, as long as it is below a number."""
    best, proof = at_least, None
    while best < below:
        found = prices_for(network, sink, best, seconds)
        if found is None:
            break
        best, proof = found.epochs, found
    return best, proof


def prices_for(network: EpochNetwork, sink: int, epochs: int, seconds: float | None) -> WindowPrices | None:
    """Give prices that prove that a makespan is too small; None if there are none or the time is too short."""
    from scipy import optimize
    from scipy.sparse import coo_array

    chunks = np.flatnonzero(network.lacking[:, sink])
    if not len(chunks):
        return None
    program = _program(network, sink, epochs, chunks)
    if program is None:
        return None
    window_row, window_column, link, start = _windows(network, program)
    columns, starts = program.row_of.shape[1], len(program.link)
    left, entered = program.row_of
    parts = [(left, np.arange(columns), 1), (entered, np.arange(columns), -1)]
    row = np.concatenate([*(p[0] for p in parts), program.rows + window_row])
    column = np.concatenate([*(p[1] for p in parts), window_column])
    value = np.concatenate([*(np.full(len(p[0]), float(p[2])) for p in parts), np.ones(len(window_row))])
    kept = row >= 0
    rows = program.rows + len(link)
    matrix = coo_array((value[kept], (row[kept], column[kept])), shape=(rows, columns)).tocsr()
    limit = np.concatenate([program.supply, network.room[link]]).astype(np.float64)
    gain = np.zeros(columns)
    gain[:starts] = -program.into_sink.astype(np.float64)
    options: dict[str, Any] = {"maxiter": ITERATIONS} | ({} if seconds is None else {"time_limit": seconds})
    solve: Any = optimize.linprog
    answer = solve(gain, A_ub=matrix, b_ub=limit, bounds=(0, None), method="highs", options=options)
    if answer.status != 0 or -answer.fun > len(chunks) - 1e-6:
        return None
    price = np.rint(-answer.ineqlin.marginals[program.rows :] * SCALE).astype(np.int64)
    keep = price > 0
    prices = WindowPrices(epochs + 1, sink, link[keep], start[keep], price[keep])
    return prices if holds(network, prices) else None


def holds(network: EpochNetwork, prices: WindowPrices) -> bool:
    """Compare the two sums, in integers."""
    epochs = prices.epochs - 1
    chunks = np.flatnonzero(network.lacking[:, prices.sink])
    toll = np.zeros((network.links, epochs + 2), dtype=np.int64)
    end = np.clip(prices.start + network.window[prices.link], 0, epochs + 1)
    np.add.at(toll, (prices.link, np.clip(prices.start, 0, epochs + 1)), prices.price)
    np.add.at(toll, (prices.link, end), -prices.price)
    toll = np.cumsum(toll, axis=1)
    order = np.argsort(network.delay, kind="stable")
    ways = cheapest_ways(
        network.stores,
        network.tail[order],
        network.head[order],
        network.delay[order],
        toll[order],
        prices.sink,
        epochs,
        FAR,
    )
    paid = int((network.room[prices.link] * prices.price).sum())
    return int(ways[network.source[chunks]].sum()) > paid


def _program(network: EpochNetwork, sink: int, epochs: int, chunks: Ints) -> _Program | None:
    release = network.distance[network.source[chunks]].min(axis=0)
    first, last = release[network.tail], epochs - network.delay - network.distance[network.head, sink]
    useful = np.flatnonzero((first <= last) & (first < FAR) & (network.tail != sink))
    if not len(useful):
        return None
    count = (last - first)[useful] + 1
    link = np.repeat(useful, count)
    at = first[link] + np.arange(len(link)) - np.repeat(np.cumsum(count) - count, count)
    tail, head, reach = network.tail[link], network.head[link], at + network.delay[link]
    width = epochs + 2
    sources, amounts = np.unique(network.source[chunks], return_counts=True)
    into_sink = head == sink
    keys = np.unique(np.concatenate([tail * width + at, (head * width + reach)[~into_sink], sources * width]))
    node = keys // width
    stays = np.flatnonzero((np.diff(node) == 0) & network.stores[node[:-1]])
    left = np.concatenate([np.searchsorted(keys, tail * width + at), stays])
    entered = np.searchsorted(keys, head * width + reach)
    entered = np.concatenate([np.where(into_sink, -1, entered), stays + 1])
    supply = np.zeros(len(keys), dtype=np.int64)
    supply[np.searchsorted(keys, sources * width)] = amounts
    return _Program(link, at, np.stack([left, entered]), len(keys), supply, into_sink)


def _windows(network: EpochNetwork, program: _Program) -> tuple[Ints, Ints, Ints, Ints]:
    """List the windows: row and column of every start in one of them; link and first epoch of every row."""
    begins = np.flatnonzero(np.concatenate([[True], program.link[1:] != program.link[:-1]]))
    ends = np.concatenate([begins[1:], [len(program.link)]])
    rows, columns, links, starts = [], [], [], []
    number = 0
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        link = int(program.link[begin])
        window = int(network.window[link])
        count = max(1, end - begin - window + 1)
        length = min(window, end - begin)
        row = np.repeat(np.arange(count), length)
        rows.append(number + row)
        columns.append(begin + row + np.tile(np.arange(length), count))
        links.append(np.full(count, link))
        starts.append(program.at[begin] + np.arange(count))
        number += count
    return tuple(np.concatenate(part).astype(np.int64) for part in (rows, columns, links, starts))  # type: ignore[return-value]
