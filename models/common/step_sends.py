"""From sends in steps, as models list them, to a step schedule."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...core.schedule import Chunks, StepSchedule, sends_from_lists
from .hyper_edges import Edge


def step_schedule(sha256: str, chunks: Chunks, sends: Iterable[tuple[int, int, Edge]]) -> StepSchedule:
    """Make a schedule of sends ``(step, chunk, edge)``; steps in which nothing is sent are left out."""
    rows = sorted(sends, key=lambda row: (row[0], row[1], row[2].links))
    used = {step: index for index, step in enumerate(sorted({step for step, _, _ in rows}))}
    return StepSchedule(
        sha256,
        chunks,
        sends_from_lists(
            [chunk for _, chunk, _ in rows],
            [edge.source for _, _, edge in rows],
            [edge.target for _, _, edge in rows],
            False,
            [edge.links for _, _, edge in rows],
        ),
        np.array([used[step] for step, _, _ in rows], dtype=np.int64),
    )


def needed_sends(source: int, targets: Iterable[int], sends: Iterable[tuple[int, Edge]]) -> list[tuple[int, Edge]]:
    """Keep of one chunk's sends those that bring it to a target, each node's first arrival, followed back from the targets."""
    first: dict[int, tuple[int, Edge]] = {}
    for step, edge in sorted(sends, key=lambda row: (row[0], row[1].links)):
        if edge.target != source:
            first.setdefault(edge.target, (step, edge))
    kept: dict[int, tuple[int, Edge]] = {}
    for target in targets:
        node = target
        while node != source and node not in kept:
            kept[node] = first[node]
            node = first[node][1].source
    return list(kept.values())
