"""From the family's problem to the search's, and back to sends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..answer import EpochSend
from ..epochs import EpochProblem
from .problem import EpochNetwork
from .search import Plan


def network_of(problem: EpochProblem) -> EpochNetwork:
    """Give the network and the chunks, one for each commodity.

    A switch that stores without copying is one that does not store here: what is found holds all the same.
    """
    tail, head, delay, window, room = problem.columns
    switch = np.array(problem.switch, dtype=np.bool_)
    copies = np.array(problem.copies, dtype=np.bool_)
    unlimited = np.array([hold is None for hold in problem.holds], dtype=np.bool_)
    source = np.array([commodity.source for commodity in problem.commodities], dtype=np.int64)
    need = np.zeros((len(source), problem.nodes), dtype=np.bool_)
    for index, commodity in enumerate(problem.commodities):
        need[index, list(commodity.targets)] = True
    stores = ~switch | (unlimited & copies)
    return EpochNetwork(problem.nodes, tail, head, delay, window, room, stores, copies, source, need)


def relaxed_of(problem: EpochProblem) -> EpochNetwork:
    """Give the network on which bounds hold: every switch that can hold anything stores."""
    holds = np.array([hold != 0 for hold in problem.holds], dtype=np.bool_)
    network = network_of(problem)
    return replace(network, stores=network.stores | holds)


def sends_of(plan: Plan) -> list[EpochSend]:
    """Give what a plan sends, in order."""
    rows = zip(plan.start.tolist(), plan.chunk.tolist(), plan.paths, strict=True)
    return sorted(EpochSend(start, chunk, path) for start, chunk, path in rows)
