"""Verification of :class:`~cwb.core.bounds.EpochPrices` and :class:`~cwb.core.bounds.EpochWindowPrices`."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np

from ..core.bounds import EpochWindowPrices
from ..core.errors import InputError
from ..core.schedule import Ints
from ..core.topology import NodeKind
from .verify.grid import Grid

#: The largest price and the most epochs: no sum of prices along a way leaves 64 bits.
MAX_PRICE, MAX_EPOCHS = 2**31, 2**20

#: The most steps (links times epochs) that are gone through.
MAX_STEPS = 50_000_000

#: The most sinks, and the most that all windows with a price together may cost, so that no sum along a tree leaves 64
#: bits.
MAX_SINKS, MAX_TOTAL = 3, 2**40

_NO_WAY = 2**60


def fewest_epochs_by_prices(
    grid: Grid, ways: Sequence[tuple[int, int, int]], starts: Sequence[int], prices: Sequence[Sequence[int]]
) -> int:
    """Return one more than the number of epochs that prices refute, 0 if they refute none.

    Parameters
    ----------
    grid : Grid
        The verifier's own epochs, with fluid chunks.
    starts, prices : sequences
        Blocks and their prices, see :class:`~cwb.core.bounds.EpochPrices`.

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
        raise InputError("these prices prove a bound only if chunks may be split", place="certificate")
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
    grid: Grid, needs: Sequence[tuple[int, frozenset[int], int]], certificate: EpochWindowPrices
) -> int:
    """Return the number of epochs that window prices prove, 0 if none.

    Parameters
    ----------
    grid : Grid
        The verifier's own epochs, with whole chunks.
    needs : sequence of (source, targets, count)
        Chunks that must travel, copied on the way.

    Raises
    ------
    InputError
        If chunks may be split, or the numbers are not prices of windows.
    """
    _check_windows(grid, certificate)
    epochs = certificate.epochs - 1
    toll = np.zeros((len(grid.source), epochs + 1), dtype=np.int64)
    paid = 0
    for link, start, price in zip(certificate.links, certificate.starts, certificate.prices, strict=True):
        toll[link, max(0, start) : max(0, start + int(grid.window[link]))] += price
        paid += int(grid.capacity[link]) * price
    trees = _cheapest_trees(grid, certificate.sinks, toll, epochs)
    owed = 0
    for source, targets, count in needs:
        group = sum(1 << i for i, sink in enumerate(certificate.sinks) if sink in targets)
        owed += count * int(trees[group, source]) if group else 0
    return certificate.epochs if owed > paid else 0


def _check_windows(grid: Grid, certificate: EpochWindowPrices) -> None:
    links, sinks = len(grid.source), certificate.sinks
    if grid.timing.fluid:
        raise InputError("prices of windows are a bound of whole chunks", place="certificate")
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
