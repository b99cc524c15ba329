"""Which shards can come over which links in which step: the data of all formulations.

In the terms of theorem 19, the shards that come to a node in a step are jobs, the links into the node are processors, and f(v) says which
of them can do job v. Shards with the same links are exchangeable, so that they are counted as one class; nodes and steps with
the same classes are one problem.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ...core.errors import Unsupported
from ...core.schedule import Ints
from .graph import Graph, distances_to

#: Pairs of a receiver and a shard; each takes some 50 bytes.
MAX_PAIRS = 2**26

#: Links whose bits one word of a mask holds.
_WORD = 62


@dataclass(frozen=True)
class Problem:
    """What one node has to receive in one step.

    Parameters
    ----------
    masks : tuple of int
        Sets of links into the node, bit i for the i-th one; different, and none is empty.
    counts : tuple of int
        Number of shards that can come over exactly these links.
    """

    masks: tuple[int, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Jobs:
    """Shards in the order of steps, receivers and sets of links; receivers are those of the orbit alone.

    Parameters
    ----------
    graph : Graph
        The network.
    steps : int
        Number of steps, the diameter.
    step, target, shard : array of int, shape (shards,)
        In which step, counted from 0, which node receives whose shard.
    mask : array of int, shape (shards,)
        Place in ``masks`` of the links that it can come over.
    masks : tuple of int or None
        Sets of links; None if the places are the sets.
    problem : array of int, shape (problems,)
        Place in ``problems`` of every (step, receiver).
    problems : tuple of Problem
        The different ones.
    """

    graph: Graph
    steps: int
    step: Ints
    target: Ints
    shard: Ints
    mask: Ints
    masks: tuple[int, ...] | None
    problem: Ints
    problems: tuple[Problem, ...]

    def slots_of(self, job: int) -> list[int]:
        """Give the links that a shard can come over, by their place among those into the receiver."""
        mask = int(self.mask[job]) if self.masks is None else self.masks[self.mask[job]]
        return bits(mask)


def bits(mask: int) -> list[int]:
    """Positions of the bits of a set, in ascending order."""
    found: list[int] = []
    while mask:
        found.append((mask & -mask).bit_length() - 1)
        mask &= mask - 1
    return found


def jobs_of(graph: Graph) -> Jobs:
    """Find all shards that the nodes of the orbit receive.

    Raises
    ------
    InputError
        If a node cannot be reached from another one.
    Unsupported
        If there are too many.
    """
    targets = graph.orbit
    if (pairs := graph.nodes * len(targets)) > MAX_PAIRS:
        raise Unsupported(f"{pairs:,} pairs of nodes of a graph without translations; expected at most {MAX_PAIRS:,}")
    step, words = _steps_and_words(graph, targets)
    problems = int(step.max()) * len(targets)
    places = (problems - 1).bit_length() + (graph.nodes - 1).bit_length()
    code, masks = _codes(words, graph.source.shape[1], places)
    # One sort of numbers made of three is several times faster than one of places.
    low, middle = (graph.nodes - 1).bit_length(), int(code.max()).bit_length()
    rows = (step - 1) * len(targets)
    rows += np.arange(len(targets))
    rows <<= middle
    rows |= code
    rows <<= low
    rows |= np.arange(graph.nodes)[:, None]
    rows = np.sort(rows[step > 0])
    problem, code, shard = rows >> (low + middle), rows >> low & (1 << middle) - 1, rows & (1 << low) - 1
    which, found = _distinct(problem, code, masks, problems)
    return Jobs(
        graph,
        int(step.max()),
        problem // len(targets),
        targets[problem % len(targets)],
        shard,
        code,
        masks,
        which,
        found,
    )


def _steps_and_words(graph: Graph, targets: Ints) -> tuple[Ints, list[Ints]]:
    """Step in which each shard (row) comes to each receiver (column), and over which links, as words of bits."""
    columns = np.unique(np.concatenate([targets, graph.source[targets].ravel()]))
    distance = distances_to(graph, columns)
    step = distance[:, np.searchsorted(columns, targets)]
    words: list[Ints] = []
    for i, sender in enumerate(graph.source[targets].T):
        if i % _WORD == 0:
            words.append(np.zeros(step.shape, dtype=np.int64))
        nearer = (distance[:, np.searchsorted(columns, sender)] + 1 == step).astype(np.int64)
        nearer <<= i % _WORD
        words[-1] |= nearer
    return step.astype(np.int64), words


def _codes(words: list[Ints], links: int, places: int) -> tuple[Ints, tuple[int, ...] | None]:
    """Give each set of links a number that fits beside so many bits: the set itself, or its place in a list."""
    if links + places <= _WORD:
        return words[0], None
    rows, place = np.unique(np.stack([w.ravel() for w in words], axis=1), axis=0, return_inverse=True)
    masks = tuple(sum(word << _WORD * k for k, word in enumerate(row)) for row in rows.tolist())
    return place.reshape(words[0].shape).astype(np.int64), masks


def _distinct(
    problem: Ints, code: Ints, masks: tuple[int, ...] | None, problems: int
) -> tuple[Ints, tuple[Problem, ...]]:
    """Find the different problems: those with the same sets of links and as many shards for each."""
    first = np.flatnonzero(np.diff(problem, prepend=-1) | np.diff(code, prepend=-1))
    classes = np.stack([code[first], np.diff(first, append=len(code))], axis=1)
    starts = np.searchsorted(problem[first], np.arange(problems + 1)).tolist()
    places: dict[bytes, int] = {}
    which = [places.setdefault(classes[a:b].tobytes(), len(places)) for a, b in pairwise(starts)]
    found: list[Problem] = []
    for text in places:
        rows = np.frombuffer(text, dtype=np.int64).reshape(-1, 2).T.tolist() if text else [[], []]
        sets = rows[0] if masks is None else [masks[place] for place in rows[0]]
        found.append(Problem(tuple(sets), tuple(rows[1])))
    return np.array(which, dtype=np.int64), tuple(found)
