"""Bytes of a schedule, counted from the paths of its sends or trees alone."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import pairwise


def pairs_of(instance, answer):
    """Bytes from rank to rank, counted hop by hop from the paths of the sends or trees alone."""
    topology = instance.network
    rank = {node: r for r, node in enumerate(topology.rank_nodes)}
    found = defaultdict(Fraction)
    for links, size in sends_of(answer):
        nodes = [topology.link_ends[links[0]][0], *(topology.link_ends[link][1] for link in links)]
        ranks = [rank[node] for node in nodes if node in rank]
        for pair in pairwise(ranks):
            found[pair] += size
    return dict(found)


def sends_of(answer):
    """Links and size of every send."""
    if hasattr(answer, "sends"):
        for send, chunk in enumerate(answer.sends.chunk.tolist()):
            yield answer.sends.path(send), answer.chunks.size_bytes(chunk)
        return
    for part in answer.passes:
        for tree in range(len(part)):
            for edge in range(part.edge_offset[tree], part.edge_offset[tree + 1]):
                links = part.path_links[part.path_offset[edge] : part.path_offset[edge + 1]].tolist()
                yield links, int(part.units[tree]) * part.unit_bytes


def links_of(answer):
    """Bytes over every link."""
    found = defaultdict(Fraction)
    for links, size in sends_of(answer):
        for link in links:
            found[link] += size
    return dict(found)
