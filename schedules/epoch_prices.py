"""The judge of prices on a grid of epochs (:class:`~cwb.core.bounds.EpochPrices`)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np

from ..core.errors import InputError
from ..core.schedule import Ints
from .verify.grid import Grid

#: The largest price and the most epochs: no sum of prices along a way leaves 64 bits.
MAX_PRICE, MAX_EPOCHS = 2**31, 2**20

#: The most steps (links times epochs) that are gone through.
MAX_STEPS = 50_000_000

_NO_WAY = 2**60


def fewest_epochs_by_prices(
    grid: Grid, ways: Sequence[tuple[int, int, int]], starts: Sequence[int], prices: Sequence[Sequence[int]]
) -> int:
    """Give one more than the epochs that prices refute, 0 if they do not.

    Parameters
    ----------
    grid : Grid
        The judge's own count of epochs; fluid.
    ways : sequence of (source, target, count)
        What must travel.
    starts, prices : sequences
        See :class:`~cwb.core.bounds.EpochPrices`.

    Raises
    ------
    InputError
        If chunks may not be split, or the numbers are not prices of blocks.
    """
    _check(grid, starts, prices)
    epochs, lengths = starts[-1], [b - a for a, b in pairwise(starts)]
    table = np.repeat(np.array(prices, dtype=np.int64).reshape(len(prices), -1), lengths, axis=1)
    all_links = sum(
        (
            rate * sum(p * n for p, n in zip(row, lengths, strict=True))
            for rate, row in zip(grid.rate, prices, strict=True)
        ),
        Fraction(0),
    )
    sources = sorted({source for source, _, _ in ways})
    cheapest = _cheapest(grid, sources, table, epochs)
    paid = sum(count * int(cheapest[target, sources.index(source)]) for source, target, count in ways)
    return epochs + 1 if paid > all_links else 0


def _check(grid: Grid, starts: Sequence[int], prices: Sequence[Sequence[int]]) -> None:
    if not grid.timing.fluid:
        raise InputError("prices prove something only where chunks may be split", place="certificate")
    ordered = len(starts) > 1 and starts[0] == 0 and all(a < b for a, b in pairwise(starts))
    if not ordered or starts[-1] > MAX_EPOCHS or starts[-1] * len(prices) > MAX_STEPS:
        raise InputError(
            "expected starts of blocks from 0 that increase, and not too many epochs", place="certificate.starts"
        )
    if len(prices) != len(grid.rate) or any(len(row) != len(starts) - 1 for row in prices):
        raise InputError("expected a price for every link in every block", place="certificate.prices")
    if any(not 0 <= price <= MAX_PRICE for row in prices for price in row):
        raise InputError(f"a price is not from 0 to {MAX_PRICE:,}", place="certificate.prices")


def _cheapest(grid: Grid, sources: Sequence[int], prices: Ints, epochs: int) -> Ints:
    """Cheapest ways from every source at index 0 to every node at the last index; shape (nodes, sources)."""
    nodes = grid.topology.nodes
    # A switch with any buffer is taken to hold all: that can only make ways cheaper.
    holds = np.array([node.buffer_bytes is None or node.buffer_bytes > 0 for node in nodes])
    longest = int(grid.delay.max(initial=1))
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
