"""All trees that are demanded: built first, proved afterwards.

Trees are grown inside known cuts without any test (:mod:`.growth`). Now and then one test of what is left shows whether the trees
still demanded exist in it; if not, the cut that is missing something joins the pool, and the trees since the last point at
which they did are taken back. A root for which no tree can be grown gets one that is certain (:mod:`.exact_tree`).
When the last tree is built, the forest is its own proof.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ....core.schedule import Ints
from ..compiled import functions
from ..digraph import INT64_SAFE, Digraph, Exact
from ..maxflow import RootedFlow, near_order
from . import growth
from .cuts import CutPool
from .exact_tree import exact_tree

#: Trees between two tests: at first, and at most.
_FIRST_TEST, _LAST_TEST = 8, 256

#: How often the number of copies is halved before what is left is tested.
_HALVINGS = 4

#: How often in a row a first tree may be taken back before a certain one is built.
_PATIENCE = 12


@dataclass(frozen=True, eq=False)
class Forest:
    """Spanning trees of a network.

    Parameters
    ----------
    graph : Digraph
        The network.
    root : array of int, shape (trees,)
        Root of every tree.
    copies : array of int, shape (trees,)
        How often it is used.
    into : array of int, shape (trees, nodes)
        Edge into every node, -1 at the root.
    counts : dict
        How many tests, failed tests and certain trees it took.
    """

    graph: Digraph
    root: Ints
    copies: Exact
    into: Ints
    counts: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.root)

    def load(self) -> Exact:
        """Copies of trees on every edge."""
        load = np.zeros(len(self.graph), dtype=self.copies.dtype)
        for into, copies in zip(self.into, self.copies, strict=True):
            load[into[into >= 0]] += copies
        return load

    def height(self) -> Ints:
        """Give the height of every tree."""
        found: Ints = growth.heights(self.into, self.graph.tail)[0]
        return found

    def tallness(self) -> tuple[int, int]:
        """Give the maximum of the heights, and their sum over all copies."""
        height = self.height()
        return int(height.max(initial=0)), int((height * self.copies).sum())


@dataclass(frozen=True, eq=False)
class _Tree:
    root: int
    copies: int
    into: Ints


class Packer:
    """Packs the trees of one network.

    Parameters
    ----------
    graph : Digraph
        A network of the nodes to span.
    demand : array of int, shape (nodes,)
        Trees from every root; they exist in the network.
    pool : CutPool
        Known cuts of the network.
    thrifty : bool
        How trees are grown at first, see :func:`.growth.grow`.
    exact_only : bool
        Whether every tree is to be a certain one.
    residual : array of int or None, shape (edges,)
        What the edges have left for these trees; None is all.
    """

    def __init__(
        self,
        graph: Digraph,
        demand: Exact,
        pool: CutPool,
        *,
        thrifty: bool = False,
        exact_only: bool = False,
        residual: Exact | None = None,
    ) -> None:
        self.graph, self.pool, self.thrifty, self.exact_only = graph, pool, thrifty, exact_only
        wide = graph.total + int(sum(demand.tolist())) * graph.nodes >= INT64_SAFE
        self.exact: Any = object if wide else np.int64
        self.residual: Exact = (graph.capacity if residual is None else residual).astype(self.exact)
        self.left: Exact = demand.astype(self.exact)
        self.weight = 1.0 / graph.capacity.astype(np.float64)
        self.slack = pool.slack(self.residual, self.left)
        self.trees: list[_Tree] = []
        self.proved = 0
        self.counts = {"tests": 0, "failed_tests": 0, "certain_trees": 0}
        self._grow: Callable[..., int] = functions(growth, self.residual.dtype)["grow"]
        self._flow = RootedFlow(graph, self.left, near_order(graph))

    def pack(self, roots: Ints | None = None, stop: Callable[[], bool] = lambda: False) -> Forest | None:
        """Build all trees, from the roots in the given order; None if told to stop."""
        queue = deque((np.flatnonzero(self.left > 0) if roots is None else roots).tolist())
        every, setbacks = _FIRST_TEST, 0
        while queue:
            if stop():
                return None
            root = queue.popleft()
            if self.left[root] <= 0:
                continue
            tree = None if self.exact_only or setbacks > _PATIENCE else self._grown(root)
            if tree is None:
                if (back := self._taken_back()) is not None:
                    queue.extendleft([root, *reversed(back)])
                    every = _FIRST_TEST
                    setbacks = 0 if self.proved_now else setbacks + 1
                    continue
                tree = self._certain(root)
            self._put(tree)
            if self.left[root] > 0:
                queue.appendleft(root)
            if len(self.trees) - self.proved >= every or setbacks:
                back = self._taken_back()
                every = min(2 * every, _LAST_TEST) if back is None else _FIRST_TEST
                setbacks = 0 if back is None or self.proved_now else setbacks + 1
                queue.extendleft(reversed(back or []))
        return Forest(
            self.graph,
            np.array([tree.root for tree in self.trees], dtype=np.int64),
            np.array([tree.copies for tree in self.trees], dtype=self.exact),
            np.array([tree.into for tree in self.trees], dtype=np.int64),
            self.counts,
        )

    def _grown(self, root: int) -> _Tree | None:
        """Grow a tree for as many copies as it goes; None if it does not go at all."""
        copies = int(self.left[root])
        into = np.empty(self.graph.nodes, dtype=np.int64)
        free, used = (np.zeros(len(self.pool), dtype=self.exact) for _ in range(2))
        for _ in range(_HALVINGS + 1):
            for thrifty in (self.thrifty, not self.thrifty):
                reached = self._grow(
                    root,
                    self._number(copies),
                    thrifty,
                    self.graph.out_start,
                    self.graph.tail,
                    self.graph.head,
                    self.residual,
                    self.weight,
                    self.slack,
                    self.pool.inside,
                    self.pool.cut_start,
                    self.pool.cuts,
                    into,
                    free,
                    used,
                )
                if reached == self.graph.nodes:
                    self.slack += free - used
                    return _Tree(root, copies, into)
            if copies == 1:
                break
            copies = (copies + 1) // 2
        return None

    def _certain(self, root: int) -> _Tree:
        self.counts["certain_trees"] += 1
        copies, into = exact_tree(self.graph, self.residual, self.left, root)
        edges = into[into >= 0]
        for j, side in enumerate(self.pool.inside):
            entering = int((side[self.graph.head[edges]] & ~side[self.graph.tail[edges]]).sum())
            self.slack[j] += copies * ((0 if side[root] else 1) - entering)
        return _Tree(root, copies, into)

    def _put(self, tree: _Tree) -> None:
        self.residual[tree.into[tree.into >= 0]] -= tree.copies
        self.left[tree.root] -= tree.copies
        self.trees.append(tree)

    def _take(self) -> _Tree:
        tree = self.trees.pop()
        self.residual[tree.into[tree.into >= 0]] += tree.copies
        self.left[tree.root] += tree.copies
        return tree

    def _taken_back(self) -> list[int] | None:
        """Test what is left; take back as many trees as must be for all others to exist, and give their roots, None if all may stay.

        The last point at which the trees still demanded exist is found by halving, since before it they exist as well. Every failed
        test adds its cut to the pool.
        """
        self.proved_now = False
        if self._exists():
            self.proved_now = len(self.trees) > self.proved
            self.proved = len(self.trees)
            return None
        good, bad = self.proved, len(self.trees)
        taken: list[_Tree] = []
        while bad - good > 1:
            middle = (good + bad) // 2
            while len(self.trees) > middle:
                taken.append(self._take())
            while len(self.trees) < middle:
                self._put(taken.pop())
            if self._exists():
                good = middle
                self.proved_now = True
            else:
                bad = middle
        while len(self.trees) > good:
            taken.append(self._take())
        while len(self.trees) < good:
            self._put(taken.pop())
        self.proved = good
        self.slack = self.pool.slack(self.residual, self.left)
        return [tree.root for tree in reversed(taken)]

    def _exists(self) -> bool:
        """Whether the trees still demanded exist in what is left; the cut that shows that they do not joins the pool."""
        self.counts["tests"] += 1
        self._flow.ask(self.residual, self.left)
        violation = self._flow.violation()
        if violation is None:
            return True
        self.counts["failed_tests"] += 1
        self.pool.add([violation.side], images=True)
        return False

    def _number(self, value: int) -> Any:
        return value if self.exact is object else np.int64(value)
