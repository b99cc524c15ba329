"""Moves around a ring of positions 0, 1, ..., n - 1."""

from __future__ import annotations

import numpy as np

from .moves import Moves, joined, together


def one_way(n: int, direction: int = 1) -> Moves:
    """All-gather: every part goes all the way around; n - 1 steps of n sends (dissertation, section 2.3.2)."""
    step, position = np.divmod(np.arange(n * (n - 1)), n)
    return Moves((position - direction * step) % n, position, (position + direction) % n, step)


def two_way(n: int) -> Moves:
    """All-gather: one half of every part goes around the one way, the other half the other way; n - 1 steps."""
    return together([one_way(n, 1), one_way(n, -1)])


def breadth_first(n: int) -> Moves:
    """All-gather: every part goes both ways, half around; floor(n / 2) steps, each link equally busy over all.

    Where n is even, the position opposite gets one half of the part from either side. Source: Zhao et al., "Efficient
    Direct-Connect Topologies for Collective Communications", appendix F.1: half the latency of the ring at the same
    bandwidth.
    """
    full = (n - 1) // 2
    slices = 1 if n % 2 else 2
    step, position = np.divmod(np.arange(n * full), n)
    parts = [
        Moves(((position - way * step) % n) * slices + j, position, (position + way) % n, step, slices)
        for way in (1, -1)
        for j in range(slices)
    ]
    if slices == 2:
        position = np.arange(n)
        parts += [
            Moves(((position - way * full) % n) * 2 + j, position, (position + way) % n, np.full(n, full), 2)
            for j, way in enumerate((1, -1))
        ]
    return joined(parts)


def chain(n: int, *, both: bool) -> Moves:
    """Broadcast from position 0 along the ring, chunk after chunk: n - 2 + c steps; with ``both``, half of the data each way."""
    step = np.arange(n - 1)
    zero = np.zeros_like(step)
    forth = Moves(zero, step, step + 1, step, stride=1)
    back = Moves(zero, -step % n, -(step + 1) % n, step, stride=1)
    return together([forth, back]) if both else forth


def all_to_all(n: int, *, both: bool) -> Moves:
    """All-to-all, from neighbour to neighbour: every part travels d hops in d steps.

    One way, n - 1 steps and n^2 (n - 1) / 2 sends. With ``both``, every part goes the shorter way, floor(n / 2)
    steps; where n is even and a part has to get to the opposite side, one half of it goes each way.
    """
    slices = 2 if both and n % 2 == 0 else 1
    parts: list[Moves] = []
    for j in range(slices):
        for distance in range(1, n):
            clockwise = not both or 2 * distance < n or (2 * distance == n and j == 0)
            way, hops = (1, distance) if clockwise else (-1, n - distance)
            step, start = np.divmod(np.arange(n * hops), n)
            block = (start * n + (start + distance) % n) * slices + j
            here = (start + way * step) % n
            parts.append(Moves(block, here, (here + way) % n, step, slices))
    return joined(parts)
