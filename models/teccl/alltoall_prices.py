"""An exact proof that epochs are too few: prices of links and epochs, from dual values.

Give every link in every epoch a price. In a schedule of K epochs every unit pays at least the cheapest way from its
source at 0 to its destination at K, and all units together pay at most what all capacities cost: ``sum_{s,t}
cheapest(s, t) <= sum_{e,k} capacity_e price_{e,k}``. Where that is false, K is too few. Cheapest ways are found by
going through the epochs once; prices are whole numbers, so that nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import lcm

import numpy as np

from ..common.colour_refinement import Ints
from .alltoall_formulation import Reduced
from .alltoall_grid import Grid
from .alltoall_problem import Exchange

#: The largest price, as a whole number.
_LARGEST = 2**24

#: The price of what cannot be.
_NEVER = 2**55


def prices_of(grid: Grid, reduced: Reduced, duals: Mapping[tuple[int, int], float]) -> Ints:
    """Round the dual values of the capacities of blocks (class of links, block) to prices of links in blocks; shape (links, blocks)."""
    values = {key: max(0.0, value) for key, value in duals.items()}
    largest = max(values.values(), default=0.0) or 1.0
    table = np.zeros((reduced.classes.sizes[2], grid.blocks), dtype=np.int64)
    for (link, block), value in values.items():
        table[link, block] = round(value / largest * _LARGEST)
    return np.asarray(table[reduced.classes.link])


def by_epoch(grid: Grid, prices: Ints) -> Ints:
    """Write the prices of blocks for every epoch; shape (links, epochs)."""
    return np.asarray(np.repeat(prices, np.diff(np.array(grid.starts)), axis=1))


def refutes(exchange: Exchange, prices: Ints) -> bool:
    """Whether prices prove that no schedule takes as few epochs as they are given for."""
    epochs = prices.shape[1]
    unit = lcm(*(capacity.denominator for capacity in exchange.capacity))
    total = sum(
        (capacity * unit) * int(row) for capacity, row in zip(exchange.capacity, prices.sum(axis=1), strict=True)
    )
    return unit * cheapest_total(exchange, prices, epochs) > Fraction(total)


def cheapest_total(exchange: Exchange, prices: Ints, epochs: int) -> int:
    """Add up the cheapest ways of all pairs in time."""
    sources, nodes = len(exchange.ranks), len(exchange.stores)
    stores = np.array(exchange.stores)
    cost = np.full((epochs + 1, nodes, sources), _NEVER, dtype=np.int64)
    for s, rank in enumerate(exchange.ranks):
        cost[0, rank, s] = 0
    for k in range(epochs + 1):
        if k:
            cost[k, stores] = np.minimum(cost[k, stores], cost[k - 1, stores])
        for link, (tail, head, delay) in enumerate(zip(exchange.tails, exchange.heads, exchange.delay, strict=True)):
            if k < epochs and k + delay <= epochs:
                np.minimum(cost[k + delay, head], cost[k, tail] + prices[link, k], out=cost[k + delay, head])
    ends = cost[epochs, list(exchange.ranks)]
    return int(ends.sum())
