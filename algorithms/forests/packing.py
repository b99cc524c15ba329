"""Packing of all demanded trees: built first, proved afterwards (docs/methods/forestcoll.md).

Trees are grown without any test inside known cuts (:func:`.kernels.grow`). A root for which no tree can be grown gets
one by the algorithm of Berczi and Frank (ForestColl, theorem 12, algorithm 5).
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ...core.schedule import Bools, Ints
from ..graphs.maxflow import FlowState, RootedFlow, arcs_of, flow_into, near_order, scratch
from ..graphs.network import INT64_SAFE, Exact, Network, components, kernel_for, mask_of
from .kernels import Capacities, KnownCuts, grow, heights
from .symmetry import Groups

_THRESHOLDS = 24  #: distinct capacities at which the network is cut into strongly connected parts
_MOST = 4096  #: a pool larger than this costs more than it saves
_FIRST_TEST, _LAST_TEST = 8, 256  #: trees between two tests: at first, and at most
_HALVINGS = 4  #: how often the number of copies is halved before what is left is tested
_PATIENCE = 12  #: how often in a row a first tree may be taken back before a certain one is built


def exact_tree(graph: Network, residual: Exact, demand: Exact, root: int) -> tuple[int, Ints]:
    """Build a tree from a root, for as many copies as one tree can have.

    An edge (x, y) can be added to mu copies of a partial tree, where mu is what y can receive from x and from all other
    roots beyond what they demand. If mu is less than the number of copies, the other copies are left to the root's
    demand. All demanded trees, at least one from this root, exist in the capacities ``residual``. Return the copies, at
    least 1, and the edge into every node, -1 at the root.
    """
    arcs, arc = arcs_of(graph)
    flow = kernel_for(flow_into, residual.dtype)
    capacity: Exact = np.zeros(len(arcs.head), dtype=residual.dtype)
    capacity[arc] = residual
    others, copies = demand.copy(), int(demand[root])
    others[root] -= copies
    into, place = np.full(graph.nodes, -2, dtype=np.int64), np.zeros(graph.nodes, dtype=np.int64)
    into[root] = -1
    # What an edge can take only falls while the tree grows, so what was found last time is a bound.
    bound = np.minimum(residual, copies)

    def spare_copies(x: int, y: int, most: int) -> int:
        """Compute ``F(x, y) - sum of others``, at most ``most``: equation (5)."""
        total = int(others.sum()) + most
        number = total if capacity.dtype == object else np.int64(total)
        state = FlowState(capacity.copy(), others.copy(), mask_of(graph.nodes, x))
        amount = flow(y, number, arcs, state, scratch(graph.nodes, len(arcs.head)))[0]
        return max(int(amount) - (total - most), 0)

    def best(edges: Ints) -> int:
        """Find the first edge that all copies can take, else the first of those that most can; tighten bounds."""
        widest, most = -1, 0
        for candidates in (edges[bound[edges] == copies], edges):
            for edge in candidates.tolist():
                if bound[edge] > most:
                    bound[edge] = spare_copies(int(graph.tail[edge]), int(graph.head[edge]), int(bound[edge]))
                    if bound[edge] == copies:
                        return int(edge)
                    if candidates is edges and bound[edge] > most:
                        widest, most = int(edge), int(bound[edge])
        return widest

    for count in range(1, graph.nodes):
        reached = into != -2
        edges = np.flatnonzero(reached[graph.tail] & ~reached[graph.head] & (bound > 0))
        edge = best(edges[np.argsort(place[graph.tail[edges]], kind="stable")])
        y = int(graph.head[edge])
        into[y] = edge
        place[y] = count
        if bound[edge] < copies:
            others[root] += copies - int(bound[edge])
            copies = int(bound[edge])
            bound = np.minimum(residual, copies)
        capacity[arc] = residual
        capacity[arc[into[into >= 0]]] -= copies
    return copies, into


class CutPool:
    """Cuts that no tree may overload, at first all groups; one found in a group is copied to equal groups."""

    def __init__(self, graph: Network, groups: Iterable[Groups]) -> None:
        self.graph = graph
        self.groups = tuple(groups)
        self._keys: set[bytes] = set()
        self.inside: Bools = np.zeros((0, graph.nodes), dtype=np.bool_)
        several = (level for level in self.groups if len(level.family) > 1)
        sides = [level.group == index for level in several for index in range(len(level.family))]
        self.add([*sides, *_linked_parts(graph)])

    def __len__(self) -> int:
        return len(self.inside)

    def add(self, sides: Iterable[Bools], *, images: bool = False) -> None:
        """Add new cuts, with their images in equal groups if asked for."""
        fresh: list[Bools] = []
        for side in sides:
            for each in (side, *(self._images(side) if images else ())):
                key = np.packbits(each).tobytes()
                size = int(each.sum())
                if 1 < size < self.graph.nodes and key not in self._keys and len(self._keys) < _MOST:
                    self._keys.add(key)
                    fresh.append(each)
        if fresh or not len(self.inside):
            self.inside = np.concatenate([self.inside, np.array(fresh, dtype=np.bool_).reshape(-1, self.graph.nodes)])
            node, cut = np.nonzero(self.inside.T)
            self.cuts = cut.astype(np.int64)
            self.cut_start = np.searchsorted(node, np.arange(self.graph.nodes + 1)).astype(np.int64)

    def slack(self, residual: Exact, demand: Exact) -> Exact:
        """Compute the slack of every cut; shape (cuts,)."""
        tail, head = self.graph.tail, self.graph.head
        by_head = np.argsort(head, kind="stable")
        into = np.split(by_head, np.searchsorted(head[by_head], np.arange(1, self.graph.nodes)))
        spare = np.zeros(len(self.inside), dtype=residual.dtype)
        total = demand.sum()
        for j, side in enumerate(self.inside):
            edges = np.concatenate([into[node] for node in np.flatnonzero(side)])
            spare[j] = residual[edges[~side[tail[edges]]]].sum() - (total - demand[side].sum())
        return spare

    def _images(self, side: Bools) -> Iterable[Bools]:
        """Copy a set within one group, by position, to all equal groups."""
        for level in self.groups:
            owner = np.unique(level.group[side])
            if len(owner) != 1 or owner[0] < 0 or len(level.family) < 2:
                continue
            alike = np.flatnonzero(level.family == level.family[owner[0]])
            size = int(level.position[level.group == owner[0]].max()) + 1
            place = mask_of(size, level.position[side])
            for other in alike.tolist():
                if other != owner[0]:
                    members = np.flatnonzero(level.group == other)
                    yield mask_of(self.graph.nodes, members[place[level.position[members]]])
            return


def _linked_parts(graph: Network) -> Iterable[Bools]:
    """Yield the components joined by edges of at least some capacity, for a few capacities."""
    values = sorted(set(graph.capacity.tolist()))
    step = max(len(values) // _THRESHOLDS, 1)
    for least in values[1::step]:
        strong = graph.capacity >= least
        label = components(graph.nodes, graph.tail[strong], graph.head[strong])
        sizes = np.bincount(label)
        for part in np.flatnonzero(sizes > 1):
            yield label == part


def seeds(groups: Iterable[Groups], members: Ints) -> tuple[Groups, ...]:
    """Renumber groups of the whole network by its members, given as numbers in the whole network."""
    return tuple(Groups(level.group[members], level.position[members], level.family) for level in groups)


@dataclass(frozen=True, eq=False)
class SpanningTrees:
    """Spanning trees of a network."""

    graph: Network
    root: Ints  #: (trees,) root node of every tree
    copies: Exact  #: (trees,) number of copies of every tree
    into: Ints  #: (trees, nodes) edge into every node, -1 at the root
    counts: dict[str, int] = field(default_factory=dict)  #: numbers of tests, failed tests and certain trees

    def __len__(self) -> int:
        return len(self.root)

    def load(self) -> Exact:
        """Count the copies of trees on every edge."""
        load = np.zeros(len(self.graph), dtype=self.copies.dtype)
        for into, copies in zip(self.into, self.copies, strict=True):
            load[into[into >= 0]] += copies
        return load

    def height(self) -> Ints:
        """Return the height of every tree."""
        height: Ints = heights(self.into, self.graph.tail)[0]
        return height

    def tallness(self) -> tuple[int, int]:
        """Return the maximum of the heights, and their sum over all copies."""
        height = self.height()
        return int(height.max(initial=0)), int((height * self.copies).sum())


class _Tree(NamedTuple):
    root: int
    copies: int
    into: Ints


class Packer:
    """Packing of the trees of one network of nodes to span, in which all demanded trees exist.

    ``thrifty`` is the initial way to grow trees, see :func:`.kernels.grow`; ``exact_only`` builds every tree by
    :func:`exact_tree`. ``residual`` are the capacities available to these trees, by default all.
    """

    def __init__(
        self,
        graph: Network,
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
        self.rest: Exact = demand.astype(self.exact)
        self.weight = 1.0 / graph.capacity.astype(np.float64)
        self.slack = pool.slack(self.residual, self.rest)
        self.trees: list[_Tree] = []
        self.proved = 0
        self.counts = {"tests": 0, "failed_tests": 0, "certain_trees": 0}
        self._grow: Callable[..., int] = kernel_for(grow, self.residual.dtype)
        self._flow = RootedFlow(graph, self.rest, near_order(graph))

    def pack(self, roots: Ints | None = None, stop: Callable[[], bool] = lambda: False) -> SpanningTrees | None:
        """Build all trees, from the roots in the given order; None if stopped."""
        queue = deque((np.flatnonzero(self.rest > 0) if roots is None else roots).tolist())
        every, setbacks = _FIRST_TEST, 0
        while queue:
            if stop():
                return None
            root = queue.popleft()
            if self.rest[root] <= 0:
                continue
            tree = None if self.exact_only or setbacks > _PATIENCE else self._grow_tree(root)
            if tree is None:
                if (back := self._take_back_trees()) is not None:
                    queue.extendleft([root, *reversed(back)])
                    every = _FIRST_TEST
                    setbacks = 0 if self.proved_now else setbacks + 1
                    continue
                tree = self._add_exact_tree(root)
            self._add_tree(tree)
            if self.rest[root] > 0:
                queue.appendleft(root)
            if len(self.trees) - self.proved >= every or setbacks:
                back = self._take_back_trees()
                every = min(2 * every, _LAST_TEST) if back is None else _FIRST_TEST
                setbacks = 0 if back is None or self.proved_now else setbacks + 1
                queue.extendleft(reversed(back or []))
        return SpanningTrees(
            self.graph,
            np.array([tree.root for tree in self.trees], dtype=np.int64),
            np.array([tree.copies for tree in self.trees], dtype=self.exact),
            np.array([tree.into for tree in self.trees], dtype=np.int64),
            self.counts,
        )

    def _grow_tree(self, root: int) -> _Tree | None:
        """Grow a tree for as many copies as possible; None if there is none."""
        copies = int(self.rest[root])
        into = np.empty(self.graph.nodes, dtype=np.int64)
        free, load = (np.zeros(len(self.pool), dtype=self.exact) for _ in range(2))
        graph, pool = self.graph, self.pool
        net = Capacities(graph.out_start, graph.tail, graph.head, self.residual, self.weight)
        cuts = KnownCuts(pool.inside, pool.cut_start, pool.cuts, self.slack, free, load)
        for _ in range(_HALVINGS + 1):
            for thrifty in (self.thrifty, not self.thrifty):
                number = copies if self.exact is object else np.int64(copies)
                reached = self._grow(root, number, thrifty, net, cuts, into)
                if reached == self.graph.nodes:
                    self.slack += free - load
                    return _Tree(root, copies, into)
            if copies == 1:
                break
            copies = (copies + 1) // 2
        return None

    def _add_exact_tree(self, root: int) -> _Tree:
        self.counts["certain_trees"] += 1
        copies, into = exact_tree(self.graph, self.residual, self.rest, root)
        edges = into[into >= 0]
        for j, side in enumerate(self.pool.inside):
            entering = int((side[self.graph.head[edges]] & ~side[self.graph.tail[edges]]).sum())
            self.slack[j] += copies * ((0 if side[root] else 1) - entering)
        return _Tree(root, copies, into)

    def _add_tree(self, tree: _Tree) -> None:
        self.residual[tree.into[tree.into >= 0]] -= tree.copies
        self.rest[tree.root] -= tree.copies
        self.trees.append(tree)

    def _keep_trees(self, count: int, others: list[_Tree]) -> None:
        """Take back the last trees to ``others``, or add these again, until so many are kept."""
        while len(self.trees) > count:
            tree = self.trees.pop()
            self.residual[tree.into[tree.into >= 0]] += tree.copies
            self.rest[tree.root] += tree.copies
            others.append(tree)
        while len(self.trees) < count:
            self._add_tree(others.pop())

    def _take_back_trees(self) -> list[int] | None:
        """Remove trees until all others exist; return their roots, None if all trees may stay."""
        self.proved_now = False
        if self._exists():
            self.proved_now = len(self.trees) > self.proved
            self.proved = len(self.trees)
            return None
        good, bad = self.proved, len(self.trees)
        stack: list[_Tree] = []
        while bad - good > 1:
            middle = (good + bad) // 2
            self._keep_trees(middle, stack)
            if self._exists():
                good = middle
                self.proved_now = True
            else:
                bad = middle
        self._keep_trees(good, stack)
        self.proved = good
        self.slack = self.pool.slack(self.residual, self.rest)
        return [tree.root for tree in reversed(stack)]

    def _exists(self) -> bool:
        """Test that the trees still demanded exist in what is left; if not, the violated cut joins the pool."""
        self.counts["tests"] += 1
        self._flow.ask(self.residual, self.rest)
        violation = self._flow.violation()
        if violation is None:
            return True
        self.counts["failed_tests"] += 1
        self.pool.add([violation.side], images=True)
        return False
