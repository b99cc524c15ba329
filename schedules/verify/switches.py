"""Checks of switches: copies without multicast, and buffer limits."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

import numpy as np

from ...core.schedule import Chunks, Ints
from .holdings import NOTHING, Block
from .network import Network


def copied_by_switches(block: Block, network: Network) -> Ints:
    """Find writes by which a switch without multicast sends a chunk again.

    A switch can send copied data as often as it has received it before; of a sum, every state once, and after that it
    must not add to it. Return positions among the block's writes.
    """
    if not block.writes:
        return np.zeros(0, dtype=np.int64)
    out = np.flatnonzero(network.unicast[block.source % block.nodes])
    if not len(out):
        return out
    out = out[np.lexsort((block.read[out], block.source[out]))]
    last = block.last_write(block.source[out], block.read[out])
    sums = block.reduced[block.source[out] // block.nodes]
    starts = np.ones(len(out), dtype=np.bool_)
    starts[1:] = block.source[out][1:] != block.source[out][:-1]
    index = np.arange(len(out))
    sent = index - np.maximum.accumulate(np.where(starts, index, 0)) + 1
    received = np.where(last >= 0, last - block.first[np.maximum(last, 0)] + 1, 0)
    again = ~starts & (last == np.roll(last, 1))
    follows = np.minimum(last + 1, block.writes - 1)
    added = (last + 1 < block.writes) & (block.beneath[follows] == last)
    wrong = np.where(sums, again | added, sent > received) & (last >= 0)
    return out[wrong]


@dataclass(frozen=True, eq=False)
class Stays:
    """Intervals in which switches with a limited buffer hold chunks.

    Parameters
    ----------
    node, units, send : array of int
        The switch, the chunk's size in units, and the send that brings it.
    first, until : array of int
        Orders of the arrival and of the first instant after the interval.
    """

    node: Ints
    units: Ints
    send: Ints
    first: Ints
    until: Ints


def stays(block: Block, network: Network, chunks: Chunks, gone: Ints | None = None) -> Stays:
    """Find when the switches with a limited buffer hold the chunks of a block.

    A chunk is held from its arrival until its last forwarding before it arrives again, and a sum until its next
    part arrives; data that passes through a switch within a path is not held. Without multicast, every arrival of
    copied data is a separate copy, held until it is sent on. At the order of a send in ``gone`` it makes room for
    arrivals, by default after it.
    """
    limited = np.zeros(network.nodes, dtype=np.bool_)
    limited[list(network.buffer_bytes)] = True
    settled = np.ones(block.writes, dtype=np.bool_)  # writes of one instant leave one chunk
    settled[:-1] = block.keys[1:] != block.keys[:-1]
    single = network.unicast[block.cell % block.nodes] & ~block.sums
    index = np.flatnonzero(limited[block.cell % block.nodes] & (settled | single))
    until = block.order + (gone is None)
    out = np.flatnonzero(limited[block.source % block.nodes])
    version = block.last_write(block.source[out], block.read[out])
    once = network.unicast[block.source[out] % block.nodes] & ~block.reduced[block.source[out] // block.nodes]
    version[once] = _sent_copies(block, index[single[index]], out[once])
    left = block.read[out] + 1 if gone is None else gone[block.send[out]]
    np.maximum.at(until, version[version >= 0], left[version >= 0])
    follows = index[index + 1 < block.writes]
    grows = follows[block.beneath[follows + 1] == follows] if len(follows) else follows
    until[grows] = np.maximum(until[grows], block.order[grows + 1])
    cell = block.cell[index]
    units = chunks.units[block.base + cell // block.nodes]
    return Stays(cell % block.nodes, units, block.send[index], block.order[index], until[index])


def _sent_copies(block: Block, into: Ints, out: Ints) -> Ints:
    """Match every send out of switches with its latest previous unmatched arrival; -1 without one.

    This minimizes the copies held at every instant: each is sent as soon after its arrival as can be, and arrivals
    without a match are not held.

    Parameters
    ----------
    into, out : array of int
        Positions of the arrivals and the sends among the block's writes.
    """
    cell = np.concatenate([block.cell[into], block.source[out]])
    change = np.repeat(np.array([1, -1]), [len(into), len(out)])
    order = np.lexsort((np.concatenate([block.order[into], block.read[out]]), cell))
    # A send takes the number that are there back to what it was before the arrival that it is matched with.
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.cumsum(change[order])
    number -= change > 0
    by_number = order[np.lexsort((number[order], cell[order]))]
    arrival, send = by_number[:-1], by_number[1:]
    paired = (change[arrival] > 0) & (cell[arrival] == cell[send]) & (number[arrival] == number[send])
    found = np.full(len(out), NOTHING, dtype=np.int64)
    found[send[paired] - len(into)] = into[arrival[paired]]
    return found


def overfull_switches(parts: list[Stays], network: Network, chunks: Chunks) -> dict[int, int]:
    """Return the switches over their limits, each with the first send that does not fit."""
    if not parts:
        return {}
    node, units, send, first, until = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("node", "units", "send", "first", "until")
    )
    found: dict[int, int] = {}
    for switch, limit in network.buffer_bytes.items():
        here = node == switch
        change = np.concatenate([units[here], -units[here]])
        when = np.concatenate([first[here], until[here]])
        order = np.lexsort((change, when))
        too_full = np.flatnonzero(np.cumsum(change[order]) > floor(limit / chunks.unit_bytes))
        if len(too_full):
            found[switch] = int(send[here][order[too_full[0]]])
    return found
