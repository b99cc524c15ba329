"""Assignment of message parts to rails."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction
from typing import Literal

from .problem import Exchange

#: Bytes of a message on every rail that it takes.
Pieces = dict[tuple[int, int, int], Fraction]

Rails = Literal["balanced", "source", "target", "optimal"]


def own_rails(exchange: Exchange, *, of_target: bool) -> Pieces:
    """Put every message on its sender's or its receiver's rail: two levels, unbalanced."""
    place = exchange.servers.place
    return {(s, t, place[t if of_target else s][1]): exchange.sizes[s, t] for s, t in exchange.between}


def balance_rails(exchange: Exchange) -> Pieces:
    """Put equally many bytes of every two servers on every rail, those of its own ranks first."""
    place = exchange.servers.place
    pairs: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for s, t in exchange.between:
        pairs[place[s][0], place[t][0]].append((s, t))
    pieces: Pieces = {}
    for messages in pairs.values():
        left = {pair: exchange.sizes[pair] for pair in messages}
        room = dict.fromkeys(exchange.rails, sum(left.values(), Fraction(0)) / len(exchange.rails))
        for of_own in (0, 1):  # the rail of the sender costs nothing there, that of the receiver nothing at the end
            for pair in sorted(messages, key=lambda pair: place[pair[0]][1] != place[pair[1]][1]):
                _take(pieces, left, room, pair, place[pair[of_own]][1])
        for pair in messages:
            for rail in exchange.rails if left[pair] else ():
                _take(pieces, left, room, pair, rail)
    return pieces


def _take(
    pieces: Pieces, left: dict[tuple[int, int], Fraction], room: dict[int, Fraction], pair: tuple[int, int], rail: int
) -> None:
    size = min(left[pair], room[rail])
    if size:
        left[pair] -= size
        room[rail] -= size
        pieces[(*pair, rail)] = pieces.get((*pair, rail), Fraction(0)) + size


def round_to_bytes(exchange: Exchange, share: Mapping[tuple[int, int, int], float]) -> Pieces:
    """Round shares of messages to whole bytes per rail; the last rail has the remainder."""
    pieces: Pieces = {}
    for s, t in exchange.between:
        size = left = exchange.sizes[s, t]
        parts = {g: max(0.0, share[s, t, g]) for g in exchange.rails}
        order = sorted(parts, key=lambda g: parts[g])
        for g in order:
            taken = left if g == order[-1] else min(left, Fraction(round(float(size) * parts[g])))
            left -= taken
            if taken:
                pieces[s, t, g] = taken
    return pieces


def rail_matrices(exchange: Exchange, pieces: Pieces) -> list[list[list[Fraction]]]:
    """Return ``X_g``: bytes from server to server on every rail."""
    place, count = exchange.servers.place, len(exchange.servers.members)
    matrices = [[[Fraction(0)] * count for _ in range(count)] for _ in exchange.rails]
    for (s, t, g), size in pieces.items():
        matrices[g][place[s][0]][place[t][0]] += size
    return matrices


def busy_s(exchange: Exchange, pieces: Pieces) -> dict[str, Fraction]:
    """Return the time of the busiest link of every kind of :attr:`Exchange.passing`."""
    carried = defaultdict(Fraction, exchange.staying)
    for way, size in pieces.items():
        for end in exchange.hops(*way):
            carried[end] += size
    longest: dict[str, Fraction] = defaultdict(Fraction)
    for (link, rank), size in carried.items():
        longest[link] = max(longest[link], size / exchange.rate(link, rank))
    return longest
