"""Search for symmetric schedules: one source of every orbit, on links that stand for all of their orbits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ....core.schedule import Ints
from .kernels.state import Roads
from .search import Search
from .symmetries import Group, groups

#: Part of the effort for each group.
PART = 0.1


def improve_by_symmetry(search: Search) -> None:
    """Look for schedules that are symmetric under groups, the largest first, each from the last one; give the best to a search."""
    known = None
    for group in reversed(groups(search.network)):
        if search.done or search.budget.exhausted:
            return
        known = _improve_under(search, group, known) or known


def _improve_under(search: Search, group: Group, known: tuple[Ints, Ints] | None) -> tuple[Ints, Ints] | None:
    """Search under one group from a schedule that is symmetric under a larger one; give the best as arcs and starts of all chunks."""
    network, row, roads = search.network, group.rows(), search.arcs.roads
    arc = np.repeat(np.arange(len(roads.arc_head)), np.diff(roads.hop_first))
    if len(np.unique(arc * (row.max() + 1) + row[roads.hop_link])) < len(arc):
        return None  # an arc would be in its own way
    bases = np.flatnonzero(group.nodes.min(axis=0)[network.source] == network.source)
    part = replace(network, source=network.source[bases], need=network.need[bases])
    arcs = replace(search.arcs, roads=roads._replace(row=row))
    folded = Search(part, search.bound, search.budget, int(PART * search.effort), arcs)
    if known is not None:
        folded.adopt(known[0][bases], known[1][bases])
    folded.construct()
    folded.improve()
    search.work += folded.work
    search.moves += folded.moves
    search.constructions += folded.constructions
    found = folded.rows()
    whole = None if found is None else _unfolded(roads, group, network.source, bases, *found)
    if whole is not None:
        search.adopt(*whole)
    return whole


def _unfolded(
    roads: Roads, group: Group, source: Ints, bases: Ints, arc: Ints, start: Ints
) -> tuple[Ints, Ints] | None:
    """Give the images of the schedule of some chunks under all elements; None if the image of an arc is not among the arcs."""
    paths = [tuple(p.tolist()) for p in np.split(roads.hop_link, roads.hop_first[1:-1])]
    number = {path: index for index, path in enumerate(paths)}
    order = np.argsort(source, kind="stable")
    first = np.searchsorted(source[order], source)
    place = np.empty(len(source), dtype=np.int64)
    place[order] = np.arange(len(source))
    place -= first  # which of its source's chunks each one is
    used = np.unique(arc[arc >= 0])
    shape = len(source), arc.shape[1]
    whole = np.full(shape, -1, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    for nodes, links in zip(group.nodes, group.links, strict=True):
        images = [number.get(tuple(links[list(paths[a])].tolist()), -1) for a in used.tolist()]
        if -1 in images:
            return None
        chunks = order[np.searchsorted(source[order], nodes[source[bases]]) + place[bases]]
        moved = np.where(arc >= 0, np.array(images)[np.searchsorted(used, np.maximum(arc, used[0]))], -1)
        whole[0][chunks[:, None], nodes[None, :]] = moved
        whole[1][chunks[:, None], nodes[None, :]] = start
    return whole
