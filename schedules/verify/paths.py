"""Whether paths follow links that exist, from where they start to where they end."""

from __future__ import annotations

import numpy as np

from ...core.schedule import Bools, Ints
from .network import Network


def broken_paths(network: Network, source: Ints, target: Ints, offset: Ints, links: Ints) -> tuple[Bools, Ints]:
    """Find paths that do not lead from source to target.

    Parameters
    ----------
    network : Network
        The network; all links exist.
    source, target : array of int, shape (paths,)
        Nodes that each path should connect.
    offset, links : array of int
        Where each path's links begin, and the links.

    Returns
    -------
    array of bool, shape (paths,)
        Whether the path is broken, or ends where it starts.
    array of int, shape (paths,)
        The first link that does not fit, or the path's first.
    """
    if len(links) == len(source):
        broken = (network.link_source[links] != source) | (network.link_target[links] != target) | (source == target)
        return broken, links
    first, last = offset[:-1], offset[1:] - 1
    begins, ends = network.link_source[links], network.link_target[links]
    expected = np.empty(len(links), dtype=np.int64)
    expected[1:] = ends[:-1]
    expected[first] = source
    at = np.where(begins != expected, np.arange(len(links)), len(links))
    where = np.minimum.reduceat(at, first)
    where = np.where((where == len(links)) & (ends[last] != target), last, where)
    broken = (where < len(links)) | (source == target)
    return broken, links[np.where(where < len(links), where, first)]
