"""Low link-disjoint trees, each over links of its own rate: a compiled search by labels and matchings.

Given labels only require a matching, a link for every site of every tree but the roots (docs/methods/mtree.md). Labels
are distances from the roots at first. While the matching leaves sites out, a label is changed: of a site that the paths
reach, such that another link can be used; of any site, within the limits of its own link and those below it; or a root
changes places with a site below it.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.budget import Budget
from ...core.kernel import kernel
from ...core.schedule import Ints
from ..graphs.network import edges_by
from .network import HeightLimit, Wan
from .trees import draw, shortest_paths

_CHANGES = 5000  #: changes between two looks at the clock

#: Of a hundred changes, so many concern a site that paths reach, and so many any site; the others exchange roots.
_REACHED, _ANY = 40, 50

_WORSE = 100  #: one in so many changes that leave one site more out is kept
_ATTEMPTS = 50  #: attempts at a change


class SiteLinks(NamedTuple):
    """Undirected links of every site."""

    tail: Any
    head: Any
    length: Any  #: (links,) lengths of links, at least 1
    begin: Any  #: links at site v: ``near[begin[v] : begin[v + 1]]``
    near: Any


class Labelling(NamedTuple):
    """Labels of all sites in all trees, and a matching of sites to links."""

    roots: Any  #: (trees,) root of every tree, whose label is 0
    label: Any  #: (trees, sites) label of every site, and the link to its parent, -1 for none
    into: Any
    owner: Any  #: (links,) site that has a link, ``i * sites + v`` in tree i; -1 for none


class PathSearch(NamedTuple):
    """Scratch space of the search for alternating paths: stamps of visited sites, their order and predecessors."""

    mark: Any
    queue: Any
    came: Any


class LowForests:
    """Search for low link-disjoint trees of given rates."""

    def __init__(self, wan: Wan, limit: HeightLimit, state: np.ndarray) -> None:
        self.wan, self.limit, self.state = wan, limit, state
        # Without a length sites could hang on one another in a ring.
        self.length = np.maximum(limit.length, 1)
        begin, order = edges_by(np.concatenate([wan.tail, wan.head]), wan.nodes)
        self.links = SiteLinks(wan.tail, wan.head, self.length, begin, order % len(wan))
        self.reach: dict[int, Ints] = {}

    def roots(self, rate: int) -> Ints:
        """Return the sites near enough to all others over links of a rate."""
        if rate not in self.reach:
            self.reach[rate] = shortest_paths(self.wan, self.length, self.wan.capacity >= rate).reach
        reach = self.reach[rate]
        return np.flatnonzero((reach.min(axis=1) >= 0) & (reach.max(axis=1) <= self.limit.most))

    def find(self, rates: Sequence[int], changes: int, budget: Budget) -> Ints | None:
        """Search trees of these rates from a random start; None if the changes of labels find none."""
        wan = self.wan
        choices = [self.roots(rate) for rate in rates]
        if not all(len(one) for one in choices):
            return None
        roots = np.array([one[draw(self.state, len(one))] for one in choices])
        label = np.array([self.reach[rate][root] for rate, root in zip(rates, roots, strict=True)])
        allowed = np.array([wan.capacity >= rate for rate in rates])
        forest = Labelling(roots, label, np.full(label.shape, -1), np.full(len(wan), -1))
        for begin in range(0, changes, _CHANGES):
            if budget.is_exhausted:
                break
            few = min(_CHANGES, changes - begin)
            left_out = change_labels(self.links, self.limit.most, allowed, few, self.state, forest)
            if left_out == 0:
                return np.array([np.sort(row[row >= 0]) for row in forest.into])
        return None


@kernel
def change_labels(links: Any, most: int, allowed: Any, changes: int, state: Any, forest: Any) -> int:
    """Change labels until every site has a parent, or changes are used up; return the number left out."""
    roots, label, into, owner = forest
    count, nodes = label.shape
    queue, came = np.empty((2, count * nodes), np.int64)
    paths = PathSearch(np.zeros(count * nodes, np.int64), queue, came)
    least, stamp = hang_all(0, links, allowed, forest, paths)
    old_roots, old_label, old_into, old_owner = roots.copy(), label.copy(), into.copy(), owner.copy()
    for _ in range(changes):
        if least == 0:
            break
        kind = draw(state, 100)
        if kind < _REACHED:
            stamp += 1
            q = missing_site(draw(state, least), roots, into)
            size = hang(q, stamp, links, allowed, forest, paths)
            admit(paths.queue[:size], stamp, links, most, allowed, state, forest, paths.mark)
        elif kind < _REACHED + _ANY:
            shift(draw(state, count), draw(state, nodes), links, most, state, forest)
        else:
            exchange_root(draw(state, count), links, state, forest)
        left_out, stamp = hang_all(stamp, links, allowed, forest, paths)
        if left_out <= least or (left_out == least + 1 and draw(state, _WORSE) == 0):
            least = left_out
            old_roots[:], old_label[:], old_into[:], old_owner[:] = roots, label, into, owner
        else:
            roots[:], label[:], into[:], owner[:] = old_roots, old_label, old_into, old_owner
    return int(least)


@kernel
def missing_site(n: int, roots: Any, into: Any) -> int:
    """Return the n-th site without a parent, counted from 0; -1 if there is none."""
    count, nodes = into.shape
    for q in range(count * nodes):
        i, v = q // nodes, q % nodes
        if into[i, v] < 0 and v != roots[i]:
            if n == 0:
                return q
            n -= 1
    return -1


@kernel
def hang_all(stamp: int, links: Any, allowed: Any, forest: Any, paths: Any) -> Any:
    """Match every site left out; return the number that remain, and the last stamp."""
    count, nodes = forest.label.shape
    left_out = 0
    for q in range(count * nodes):
        i, v = q // nodes, q % nodes
        if forest.into[i, v] < 0 and v != forest.roots[i]:
            stamp += 1
            if hang(q, stamp, links, allowed, forest, paths):
                left_out += 1
    return left_out, stamp


@kernel
def hang(start: int, stamp: int, links: Any, allowed: Any, forest: Any, paths: Any) -> int:
    """Match a site by a shortest alternating path; return 0, or without one the number of sites reached."""
    tail, head, length, begin, near = links
    _, label, into, owner = forest
    mark, queue, came = paths
    nodes = label.shape[1]
    queue[0], size, at = start, 1, 0
    came[start], mark[start] = -1, stamp
    while at < size:
        q = queue[at]
        at += 1
        i, v = q // nodes, q % nodes
        for link in near[begin[v] : begin[v + 1]]:
            e, u = link, tail[link] + head[link] - v
            if not allowed[i, e] or label[i, u] + length[e] > label[i, v] or into[i, v] == e:
                continue
            other = owner[e]
            if other < 0:
                while q >= 0:  # each takes the link that the next one has had
                    i, v = q // nodes, q % nodes
                    old = into[i, v]
                    into[i, v], owner[e] = e, q
                    q, e = came[q], old
                return 0
            if mark[other] != stamp:
                mark[other], came[other] = stamp, q
                queue[size] = other
                size += 1
    return size


@kernel
def admit(reached: Any, stamp: int, links: Any, most: int, allowed: Any, state: Any, forest: Any, mark: Any) -> None:
    """Change a label so that a reached site may use a link that no reached site has."""
    tail, head, length, begin, near = links
    roots, label, into, owner = forest
    nodes = label.shape[1]
    for _ in range(_ATTEMPTS):
        q = reached[draw(state, len(reached))]
        i, v = q // nodes, q % nodes
        e = near[begin[v] + draw(state, begin[v + 1] - begin[v])]
        u = tail[e] + head[e] - v
        in_use = owner[e] >= 0 and mark[owner[e]] == stamp
        if in_use or not allowed[i, e] or label[i, u] + length[e] <= label[i, v]:
            continue
        if label[i, u] + length[e] <= most and draw(state, 2) == 0:
            label[i, v] = label[i, u] + length[e]
            drop_below(i, v, links, forest)
            return
        if u != roots[i] and label[i, v] > length[e]:
            label[i, u] = label[i, v] - length[e]
            own = into[i, u]
            if own >= 0 and label[i, tail[own] + head[own] - u] + length[own] > label[i, u]:
                into[i, u], owner[own] = -1, -1
            return


@kernel
def drop_below(i: int, v: int, links: Any, forest: Any) -> None:
    """Unmatch the children of a site whose label has become too large for them."""
    tail, head, length, begin, near = links
    _, label, into, owner = forest
    for e in near[begin[v] : begin[v + 1]]:
        below = tail[e] + head[e] - v
        if into[i, below] == e and label[i, v] + length[e] > label[i, below]:
            into[i, below], owner[e] = -1, -1


@kernel
def shift(i: int, v: int, links: Any, most: int, state: Any, forest: Any) -> None:
    """Change the label of a site within the limits of its own link and those below it."""
    tail, head, length, begin, near = links
    roots, label, into, _ = forest
    if v == roots[i]:
        return
    low, high = 1, most
    own = into[i, v]
    if own >= 0:
        low = label[i, tail[own] + head[own] - v] + length[own]
    for e in near[begin[v] : begin[v + 1]]:
        below = tail[e] + head[e] - v
        if into[i, below] == e:
            high = min(high, label[i, below] - length[e])
    if low < high:
        label[i, v] = low + draw(state, high - low + 1)


@kernel
def exchange_root(i: int, links: Any, state: Any, forest: Any) -> None:
    """Make a child of the root the new root, and the old root its child."""
    tail, head, length, begin, near = links
    roots, label, into, owner = forest
    root, nodes = roots[i], label.shape[1]
    e = near[begin[root] + draw(state, begin[root + 1] - begin[root])]
    v = tail[e] + head[e] - root
    if into[i, v] != e:
        return
    roots[i], into[i, v], into[i, root], owner[e] = v, -1, e, i * nodes + root
    label[i, v], label[i, root] = 0, length[e]
    drop_below(i, root, links, forest)
