"""All-reduce by whole messages: contributions go to one site for each part, and its sum comes back."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np

from ...core.schedule import Chunks, StepSchedule, sends_from_lists
from ..common.wan.ways import Ways
from .answer import Posed

#: A message: step, part, source, target, and whether the target adds it.
Message = tuple[int, int, int, int, bool]


def schedule(posed: Posed, ways: Ways, units: Sequence[int], messages: Sequence[Message]) -> StepSchedule:
    """Give messages as a schedule in steps; each goes the shortest way.

    Parameters
    ----------
    posed : Posed
        The problem.
    ways : Ways
        Shortest ways between all sites.
    units : sequence of int
        Size of every part in proportion to the others.
    messages : sequence of Message
        What is sent; steps without a message are left out.
    """
    everyone = tuple(range(posed.wan.nodes))
    none = np.zeros(len(units), dtype=np.int64)
    unit = posed.size_bytes / Fraction(sum(units))
    chunks = Chunks(np.array(units, dtype=np.int64), unit, (everyone,), none, none, np.ones(len(units), dtype=np.bool_))
    rows = sorted(messages)
    used = {step: index for index, step in enumerate(sorted({row[0] for row in rows}))}
    sends = sends_from_lists(
        [row[1] for row in rows],
        [row[2] for row in rows],
        [row[3] for row in rows],
        [row[4] for row in rows],
        [path(posed, ways, row[2], row[3]) for row in rows],
    )
    steps = np.array([used[row[0]] for row in rows], dtype=np.int64)
    return StepSchedule(posed.instance.sha256, chunks, sends, steps)


def path(posed: Posed, ways: Ways, start: int, end: int) -> list[int]:
    """Give the directed links of the shortest way."""
    wan = posed.wan
    sites = ways.sites(start, end)
    found: list[int] = []
    for one, other in pairwise(sites):
        e = ways.link(one, other)
        found.append(int(wan.forth[e] if wan.tail[e] == one else wan.back[e]))
    return found
