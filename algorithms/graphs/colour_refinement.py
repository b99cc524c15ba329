"""Colour refinement: classes of flows that may be equal in an optimum, kinds of nodes, and symmetries of networks.

One variable per class of an equitable partition is enough, without loss (docs/methods/mcf.md; Grohe, Kersting,
Mladenov, Selman, Dimension reduction via colour refinement, ESA 2014). Colours start from the given ones and are split
until each determines the colours around it:

* a flow (s, a) by the colours of its two balances (s, tail) and (s, head) and of the link of a;
* a balance (s, v) by the flows of s that enter v and that leave v, each as a multiset;
* a link by the flows on it, over all sources and all its arcs, as a multiset of pairs (arc's own colour, flow's
  colour).

Splitting sorts whole multisets, so that different ones are never confused.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.schedule import number_within
from .network import number_values

Ints = NDArray[np.int64]

_LARGEST = 2**62  #: whole rows are compared as one number up to this one

#: Odd factors that tell the parts of a colour apart.
_WEIGHTS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], dtype=np.uint64)


@dataclass(frozen=True)
class FlowArcs:
    """Arcs that flows move on, with their points and links."""

    tails: Ints
    heads: Ints
    link_of: Ints  #: (arcs,) the link whose capacity an arc uses
    points: int
    links: int


@dataclass(frozen=True)
class Classes:
    """Stable colours; each kind counts from 0 without gaps."""

    flow: Ints  #: (sources, arcs) class of the flow of a source on an arc
    balance: Ints  #: (sources, points) class of the balance of a source at a point
    link: Ints  #: (links,) class of the capacity row of a link
    rounds: int  #: number of rounds of splitting the colours

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Number of classes of flows, balances and links."""
        return int(self.flow.max()) + 1, int(self.balance.max()) + 1, int(self.link.max()) + 1


def refine(network: FlowArcs, balances: Ints, arcs: Sequence[Any], links: Sequence[Any]) -> Classes:
    """Return the coarsest equitable partition that is finer than given colours, any hashables, of arcs and links."""
    sources = len(balances)
    own = np.array(number_values(arcs), dtype=np.int64)
    link = np.array(number_values(links), dtype=np.int64)
    balance = _rows(balances.reshape(-1, 1)).reshape(balances.shape)
    flow = np.broadcast_to(own, (sources, len(own))).copy()
    entering = _lists(network.heads, network.points)
    leaving = _lists(network.tails, network.points)
    on_link = _lists(network.link_of, network.links)
    flow, balance, link, rounds = _split_by_hashes(network, flow, balance, link, (entering, leaving))
    count = int(flow.max()), int(balance.max()), int(link.max())
    while True:
        ends = balance[:, network.tails], balance[:, network.heads]
        parts = np.stack((flow, *ends, np.broadcast_to(link[network.link_of], flow.shape)), axis=-1)
        flow = _rows(parts.reshape(-1, 4)).reshape(flow.shape)
        around = np.concatenate([balance[:, :, None], _multisets(flow, entering), _multisets(flow, leaving)], axis=2)
        balance = _rows(around.reshape(-1, around.shape[2])).reshape(balance.shape)
        joined = np.moveaxis(_multisets(flow, on_link), 0, 1).reshape(network.links, -1)
        ordered = np.concatenate([link[:, None], np.sort(joined, axis=1)], axis=1)
        link = np.array(number_values([row.tobytes() for row in ordered]), dtype=np.int64)
        now = (int(flow.max()), int(balance.max()), int(link.max()))
        if now == count:
            return Classes(_by_first(flow), _by_first(balance), _by_first(link), rounds)
        count, rounds = now, rounds + 1


def _split_by_hashes(
    network: FlowArcs, flow: Ints, balance: Ints, link: Ints, around: tuple[Ints, Ints]
) -> tuple[Ints, Ints, Ints, int]:
    """Split colours by sums of hashes: fast, never too fine, possibly too coarse."""
    colours = [_mix_bits(part.astype(np.uint64) + np.uint64(1)) for part in (flow, balance, link)]
    count, rounds = 0, 0
    while True:
        flow_hash, balance_hash, link_hash = colours
        mix = flow_hash + _mix_bits(balance_hash)[:, network.tails] * _WEIGHTS[0]
        mix += _mix_bits(balance_hash)[:, network.heads] * _WEIGHTS[1] + link_hash[network.link_of] * _WEIGHTS[2]
        flow_hash = _mix_bits(mix)
        came, went = (sum(np.where(members >= 0, flow_hash[:, members], 0) for members in lists.T) for lists in around)
        balance_hash = _mix_bits(balance_hash + came * _WEIGHTS[0] + went * _WEIGHTS[1])
        on_arc = flow_hash.sum(axis=0, dtype=np.uint64)
        on_link = np.zeros(network.links, dtype=np.uint64)
        np.add.at(on_link, network.link_of, on_arc)
        link_hash = _mix_bits(link_hash + on_link)
        now = len(np.unique(balance_hash)) + len(np.unique(link_hash))
        if now == count:
            break
        count, rounds, colours = now, rounds + 1, [flow_hash, balance_hash, link_hash]
    numbered = [np.unique(part.ravel(), return_inverse=True)[1].reshape(part.shape) for part in colours]
    return numbered[0], numbered[1], numbered[2], rounds


def _mix_bits(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix numbers over all 64 bits (the finalizer of splitmix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _rows(table: Ints) -> Ints:
    """Return a number for every row, equal for equal rows, in lexicographic order."""
    numbers, room = np.zeros(len(table), dtype=np.int64), 1
    for column in table.T:
        low = int(column.min(initial=0))
        span = int(column.max(initial=0)) - low + 1
        if room * span > _LARGEST:
            numbers = np.unique(numbers, return_inverse=True)[1]
            room = int(numbers.max(initial=0)) + 1
        numbers, room = numbers * span + (column - low), room * span
    return np.unique(numbers, return_inverse=True)[1].astype(np.int64, copy=False)


def _by_first(colours: Ints) -> Ints:
    first, number = np.unique(colours, return_index=True, return_inverse=True)[1:]
    return np.argsort(np.argsort(first))[number].reshape(colours.shape)


def _lists(owner: Ints, count: int) -> Ints:
    """List the members of every owner, padded with -1."""
    number = number_within(owner)
    table = np.full((count, int(number.max(initial=0)) + 1), -1, dtype=np.int64)
    table[owner, number] = np.arange(len(owner))
    return table


def _multisets(flow: Ints, lists: Ints) -> Ints:
    """Return the sorted colours of the listed members, padded with -1; shape (sources, owners, width)."""
    return np.sort(np.where(lists >= 0, flow[:, lists], -1), axis=2)


def refine_nodes(colour: Ints, tail: Ints, head: Ints, label: Ints) -> Ints:
    """Split colours of nodes until nodes of one have equal links, by ``label``, to and from nodes of equal colours.

    Sums of hashes are compared, so that different nodes may share a colour if these collide. Colours are numbered
    alike in isomorphic networks.
    """
    count = len(np.unique(colour))
    while True:
        out, into = (np.zeros(len(colour), dtype=np.uint64) for _ in range(2))
        np.add.at(out, tail, _hash_pair(colour[head], label))
        np.add.at(into, head, _hash_pair(colour[tail], label))
        together = _hash_pair(colour, _hash_pair(out, into))
        colour = np.unique(together, return_inverse=True)[1].reshape(-1).astype(np.int64)
        if colour.max() + 1 == count:
            return colour
        count = int(colour.max()) + 1


def _hash_pair(colour: Any, label: Any) -> NDArray[np.uint64]:
    return _mix_bits((colour.astype(np.uint64) << np.uint64(20)) + label.astype(np.uint64) + np.uint64(1))


def find_mapping(
    colour: Ints, links: tuple[Ints, Ints, Ints], marks: Sequence[tuple[int, int]], choose: Callable[[int, Ints], int]
) -> Ints | None:
    """Extend given images of some nodes to a permutation of all nodes; None if colours or ``links`` forbid it.

    Colours of two copies of the network are refined; while several nodes share one, ``choose`` selects the image of the
    first of them. The result may rest on wrong choices, and has to be checked. ``links`` are tails, heads and labels.
    """
    size, (tail, head, label) = len(colour), links
    twice = np.concatenate([tail, tail + size]), np.concatenate([head, head + size]), np.tile(label, 2)
    colour = np.tile(colour, 2)
    while True:
        for node, image in marks:
            colour[[node, size + image]] = colour.max() + 1
        colour = refine_nodes(colour, *twice)
        count = np.bincount(colour[:size], minlength=int(colour.max()) + 1)
        if (count != np.bincount(colour[size:], minlength=len(count))).any():
            return None
        if (count == 1).all():
            return np.argsort(colour[size:])[colour[:size]]
        node = int(np.flatnonzero(count[colour[:size]] > 1)[0])
        marks = [(node, choose(node, np.flatnonzero(colour[size:] == colour[node])))]
