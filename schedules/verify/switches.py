"""What switches may not do: send one chunk on twice, or hold more than they can."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

import numpy as np

from ...core.schedule import Chunks, Ints
from .holdings import Block
from .network import Network


def copied_by_switches(block: Block, network: Network) -> Ints:
    """Find writes by which a switch without multicast sends on what it has sent before.

    Of data that is copied, a switch can send as often as it has received before; of a sum, every state of it once, and after
    that it may not add to it.

    Returns
    -------
    array of int
        Positions among the block's writes.
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
    """When switches with a limited buffer hold chunks.

    Parameters
    ----------
    node, units, send : array of int
        The switch, the chunk's size in units, and the send that brings it.
    first, last : array of int
        Orders of the arrival and of the last instant that it is held.
    """

    node: Ints
    units: Ints
    send: Ints
    first: Ints
    last: Ints


def stays(block: Block, network: Network, chunks: Chunks) -> Stays:
    """Find when the switches with a limited buffer hold the chunks of a block.

    A chunk is held from its arrival until it is last sent on before it arrives again, and a sum until the next part of it arrives; what
    only passes through a switch on its way is not held.
    """
    limited = np.zeros(network.nodes, dtype=np.bool_)
    limited[list(network.buffer_bytes)] = True
    settled = np.ones(block.writes, dtype=np.bool_)  # writes of one instant leave one chunk
    settled[:-1] = block.keys[1:] != block.keys[:-1]
    index = np.flatnonzero(limited[block.cell % block.nodes] & settled)
    last = block.order.copy()
    out = np.flatnonzero(limited[block.source % block.nodes])
    version = block.last_write(block.source[out], block.read[out])
    np.maximum.at(last, version[version >= 0], block.read[out][version >= 0])
    follows = index[index + 1 < block.writes]
    grows = follows[block.beneath[follows + 1] == follows] if len(follows) else follows
    last[grows] = np.maximum(last[grows], block.order[grows + 1] - 1)
    cell = block.cell[index]
    units = chunks.units[block.base + cell // block.nodes]
    return Stays(cell % block.nodes, units, block.send[index], block.order[index], last[index])


def overfull(parts: list[Stays], network: Network, chunks: Chunks) -> dict[int, int]:
    """Give the switches that hold more than they can, each with the first send that does not fit."""
    if not parts:
        return {}
    node, units, send, first, last = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("node", "units", "send", "first", "last")
    )
    found: dict[int, int] = {}
    for switch, limit in network.buffer_bytes.items():
        here = node == switch
        change = np.concatenate([units[here], -units[here]])
        when = np.concatenate([first[here], last[here] + 1])
        order = np.lexsort((change, when))
        too_full = np.flatnonzero(np.cumsum(change[order]) > floor(limit / chunks.unit_bytes))
        if len(too_full):
            found[switch] = int(send[here][order[too_full[0]]])
    return found
