"""Check that paths follow existing links from source to target."""

from __future__ import annotations

import numpy as np

from ...core.schedule import Bools, Ints
from .network import Network


def broken_paths(network: Network, source: Ints, target: Ints, offset: Ints, links: Ints) -> tuple[Bools, Ints]:
    """Find paths that do not lead from source to target.

    Parameters
    ----------
    source, target : array of int, shape (paths,)
        Nodes that each path should connect.
    offset, links : array of int
        Start of each path in ``links``, and the links, all of which exist.

    Returns
    -------
    array of bool, shape (paths,)
        True if the path is broken, or ends where it starts.
    array of int, shape (paths,)
        The first link that does not fit, or the path's first.
    """
    if len(links) == len(source):
        broken = (network.link_source[links] != source) | (network.link_target[links] != target) | (source == target)
        return broken, links
    first, last = offset[:-1], offset[1:] - 1
    where = np.full(len(source), len(links), dtype=np.int64)
    apart = network.link_target[links[:-1]] != network.link_source[links[1:]]
    apart[last[:-1]] = False  # between the last link of a path and the first of the next
    wrong_end = network.link_target[links[last]] != target
    where[wrong_end] = last[wrong_end]
    entry = np.flatnonzero(apart) + 1
    np.minimum.at(where, np.searchsorted(offset, entry, side="right") - 1, entry)
    wrong_start = network.link_source[links[first]] != source
    where[wrong_start] = first[wrong_start]
    broken = (where < len(links)) | (source == target)
    return broken, links[np.where(where < len(links), where, first)]
