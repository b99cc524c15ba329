"""Compiled loops that make paths again from a log of splits, and give every copy of every tree its paths.

Capacity is kept as pieces: each has an amount and a path, and every edge has a queue of them. A path is a link, or two paths in a row;
links are numbered from 0, and path ``links + i`` is the i-th pair in ``left`` and ``right``.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np


@numba.njit(cache=True)
def replay(
    splits: Any, amounts: Any, first: Any, last: Any, following: Any, piece_amount: Any, piece_path: Any, links: int
) -> tuple[Any, Any, Any, Any, Any]:
    """Follow the splits: take what is split from the queues of the two edges, join the paths, and queue them at the third.

    Parameters
    ----------
    splits : array of int, shape (splits, 3)
        Edge to the switch, edge from the switch, and edge past it; -1 where that would be a loop.
    amounts : array of int, shape (splits,)
        How much.
    first, last : array of int, shape (edges,)
        First and last piece in the queue of every edge, -1 for none; changed.
    following, piece_amount, piece_path : array of int, shape (pieces,)
        Next piece in the queue, amount and path of every piece.
    links : int
        Number of links.

    Returns
    -------
    tuple of array
        The pieces after all splits (following, amount, path), and the pairs of paths (left, right).
    """
    used, pairs = len(piece_amount), 0
    room = 2 * used + 2 * len(splits) + 64
    nxt, amount, path = np.empty(room, np.int64), np.empty(room, piece_amount.dtype), np.empty(room, np.int64)
    nxt[:used], amount[:used], path[:used] = following, piece_amount, piece_path
    left, right = np.empty(room, np.int64), np.empty(room, np.int64)
    for s in range(len(splits)):
        into, out, past = splits[s]
        rest = amounts[s]
        while rest > 0:
            a, b = first[into], first[out]
            if a < 0 or b < 0:
                break  # a split of more than there is: what is missing shows when the paths are counted
            moved = min(rest, amount[a], amount[b])
            rest -= moved
            amount[a] -= moved
            amount[b] -= moved
            if past >= 0:
                if max(used, pairs) == room:
                    nxt, amount, path = _wider(nxt), _wider(amount), _wider(path)
                    left, right = _wider(left), _wider(right)
                    room *= 2
                left[pairs], right[pairs] = path[a], path[b]
                nxt[used], amount[used], path[used] = -1, moved, links + pairs
                if first[past] < 0:
                    first[past] = used
                else:
                    nxt[last[past]] = used
                last[past] = used
                used += 1
                pairs += 1
            if amount[a] == 0:
                first[into] = nxt[a]
            if amount[b] == 0:
                first[out] = nxt[b]
    return nxt[:used], amount[:used], path[:used], left[:pairs], right[:pairs]


@numba.njit(cache=True)
def _wider(values: Any) -> Any:
    wide = np.empty(2 * len(values), values.dtype)
    wide[: len(values)] = values
    return wide


@numba.njit(cache=True)
def hand_out(edges: Any, trees: Any, wanted: Any, first: Any, following: Any, amount: Any) -> tuple[Any, Any, Any]:
    """Give every edge of every tree pieces of the edge's capacity: one that is large enough if there is one, the smallest of these.

    Parameters
    ----------
    edges, trees : array of int, shape (uses,)
        Which edge is used by which tree, in the order in which they are served.
    wanted : array of int, shape (uses,)
        Copies of the tree.
    first, following, amount : array of int
        The queue of every edge; amounts are changed.

    Returns
    -------
    use, piece, given : array of int, shape (parts,)
        Which use was given how much of which piece.
    """
    room = len(edges) + 64
    use, piece, given = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, amount.dtype)
    count = 0
    for i in range(len(edges)):
        edge, rest = edges[i], wanted[i]
        while rest > 0:
            chosen = -1
            at = first[edge]
            while at >= 0:
                have = amount[at]
                if have > 0:
                    if chosen < 0:
                        chosen = at
                    elif have >= rest:
                        if amount[chosen] < rest or have < amount[chosen]:
                            chosen = at
                    elif have > amount[chosen]:
                        chosen = at
                    if have == rest:
                        chosen = at
                        break
                at = following[at]
            if chosen < 0:
                break  # more than there is: the judge will see that the tree does not carry all
            moved = min(rest, amount[chosen])
            if count == room:
                use, piece, given = _wider(use), _wider(piece), _wider(given)
                room *= 2
            use[count], piece[count], given[count] = i, chosen, moved
            count += 1
            amount[chosen] -= moved
            rest -= moved
    return use[:count], piece[:count], given[:count]


@numba.njit(cache=True)
def flatten(paths: Any, left: Any, right: Any, links: int) -> tuple[Any, Any]:
    """Give the links of paths, one after the other; offsets have one entry more than there are paths."""
    offset = np.zeros(len(paths) + 1, np.int64)
    room = 4 * len(paths) + 64
    found = np.empty(room, np.int64)
    stack = np.empty(len(left) + 2, np.int64)
    count = 0
    for i in range(len(paths)):
        stack[0] = paths[i]
        size = 1
        while size > 0:
            size -= 1
            path = stack[size]
            if path < links:
                if count == room:
                    found = _wider(found)
                    room *= 2
                found[count] = path
                count += 1
            else:
                stack[size] = right[path - links]
                stack[size + 1] = left[path - links]
                size += 2
        offset[i + 1] = count
    return offset, found[:count]
