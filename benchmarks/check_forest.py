"""Check a forest by symmetry and its certificate with a second program, which imports nothing of cwb.

    cwb solve "dgx_a100(boxes=2048)" --model forestcoll --collective all_gather --size "1 GiB" -o forest.npz
    python benchmarks/check_forest.py forest.npz

The file is an all-gather whose trees are those of a few roots (``tree-orbits`` in docs/schedules/representation.md).
The program has its own reader and its own proof, and says what it has found, or stops at the first thing that is wrong:

1. Every translation permutes the nodes, keeps their kinds, and maps links to links of the same bandwidth and latency.
   It is back after its order, and all translations commute.
2. The products of the translations map the given roots to every rank exactly once.
3. Every given tree reaches each rank once from its root, along links that join.
4. The trees of a root carry its part of the data. A product of translations maps every tree to a tree, and so the
   same holds of all ranks.
5. The time is that of the busiest link. Links that translations exchange carry the same, which is what the given trees
   put on all of them, times products over links.
6. The cut of the certificate bounds the time from below: the data of the ranks inside must leave over its links.

All sums that decide are exact.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import zipfile
from fractions import Fraction
from io import BytesIO
from math import prod
from pathlib import Path
from time import process_time

import numpy as np


class WrongForest(Exception):
    """Something in the file that does not hold."""


def insist(holds: bool, text: str) -> None:
    """Stop unless a condition holds."""
    if not holds:
        raise WrongForest(text)


class ForestFile:
    """Columns of a schedule file, by the names of the page on representation.

    Parameters
    ----------
    path : Path
        A file that ends in ``.npz``.
    """

    def __init__(self, path: Path) -> None:
        self.archive = zipfile.ZipFile(path)
        self.head = json.loads(self.archive.read("file.json"))
        network, collective = self.head["instance"]["network"], self.head["instance"]["collective"]
        insist(self.head["answer"] == "tree-orbits", "expected trees that stand for others (tree-orbits)")
        insist(self.head["trees"]["kind"] == "out", "expected out-trees")
        insist(
            collective["kind"] == "all_gather" and collective["ranks"] is None, "expected an all-gather of all ranks"
        )
        insist(not self.head["instance"].get("also"), "expected one collective")
        nodes = [network["nodes"][name] for name in ("kind", "multicast", "buffer_bytes")]
        self.node_kind = number_rows([*nodes, network["nodes"].get("reduces", [0] * len(nodes[0]))])
        self.is_rank = np.array([kind == "compute" for kind in nodes[0]])
        self.source, self.target = (self.column(f"instance/network/links/{name}") for name in ("source", "target"))
        bandwidth, latency = network["links"]["bandwidth_Bps"], network["links"]["latency_s"]
        self.link_kind = number_rows([bandwidth, latency])
        first = np.unique(self.link_kind, return_index=True)[1]
        self.rate = [Fraction(bandwidth[link]) for link in first.tolist()]  # of every kind of link
        self.size = Fraction(collective["size_bytes"])
        insist(min(self.rate) > 0 < self.size, "a rate or the size is not positive")

    def column(self, name: str) -> np.ndarray:
        """Return a column of integers."""
        column = np.load(BytesIO(self.archive.read(f"{name}.npy")), allow_pickle=False)
        insist(column.ndim == 1 and np.can_cast(column.dtype, np.int64), f"{name} is no column of integers")
        return column.astype(np.int64)

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.is_rank)


def number_rows(columns: list[list[object]]) -> np.ndarray:
    """Number the rows of a table, equal ones alike."""
    known: dict[tuple[object, ...], int] = {}
    return np.array([known.setdefault(row, len(known)) for row in zip(*columns, strict=True)], dtype=np.int64)


def links_moved(file: ForestFile, image: np.ndarray) -> np.ndarray:
    """Return the image of every link; equal parallel links keep their order."""
    kinds = len(file.rate)
    before = (file.source * file.nodes + file.target) * kinds + file.link_kind
    after = (image[file.source] * file.nodes + image[file.target]) * kinds + file.link_kind
    here, there = np.argsort(before, kind="stable"), np.argsort(after, kind="stable")
    insist(np.array_equal(before[here], after[there]), "a translation maps a link to where there is no equal one")
    moved = np.empty_like(here)
    moved[there] = here
    return moved


def check_translations(file: ForestFile) -> tuple[list[int], list[np.ndarray], list[np.ndarray]]:
    """Return orders, images of nodes and images of links of the translations (condition 1)."""
    orders = [int(order) for order in file.head["translations"]["order"]]
    images = list(file.column("translations/image").reshape(len(orders), file.nodes))
    insist(min(orders, default=1) > 0, "an order is not positive")
    everything = np.arange(file.nodes)
    for image, order in zip(images, orders, strict=True):
        insist(np.array_equal(np.sort(image), everything), "a translation is no permutation of the nodes")
        insist(np.array_equal(file.node_kind[image], file.node_kind), "a translation changes the kind of a node")
        insist(np.array_equal(power(image, order), everything), "a translation is not back after its order")
    links = [links_moved(file, image) for image in images]
    for moves in (images, links):
        for index, one in enumerate(moves):
            for other in moves[:index]:
                insist(np.array_equal(one[other], other[one]), "two translations do not commute")
    for link, order in zip(links, orders, strict=True):
        insist(np.array_equal(power(link, order), np.arange(len(link))), "links are not back after the order")
    return orders, images, links


def power(image: np.ndarray, times: int) -> np.ndarray:
    """Apply a permutation several times."""
    done = np.arange(len(image))
    for bit in bin(times)[2:]:
        done = done[done]
        if bit == "1":
            done = image[done]
    return done


def check_roots(file: ForestFile, ranks: np.ndarray, roots: np.ndarray, orders: list[int], images: list) -> None:
    """Insist that products of the translations map the roots to every rank once (condition 2)."""
    reached = ranks[roots]
    for order, image in zip(orders, images, strict=True):
        copies = [reached]
        for _ in range(order - 1):
            copies.append(image[copies[-1]])
        reached = np.concatenate(copies)
    insist(np.array_equal(np.sort(reached), ranks), "the roots do not reach every rank exactly once")


def check_trees(file: ForestFile, ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return root and units of every tree, the links of all trees, and the tree of each (condition 3)."""
    root, units, edges = (file.column(f"trees/{name}") for name in ("root", "units", "edges"))
    parent, child, hops = (file.column(f"trees/{name}") for name in ("parent", "child", "hops"))
    links, n = file.column("trees/path_links"), len(ranks)
    insist(len(root) == len(units) == len(edges) and int(edges.sum()) == len(parent), "columns of trees differ")
    insist(len(child) == len(hops) == len(parent) and int(hops.sum()) == len(links), "columns of edges differ")
    insist(int(units.min()) > 0 and int(hops.min()) > 0, "a tree or a path is empty")
    insist(int(links.min()) >= 0 and int(links.max()) < len(file.source), "there is no such link")
    insist(int(min(root.min(), parent.min(), child.min())) >= 0, "there is no such rank")
    insist(int(max(root.max(), parent.max(), child.max())) < n, "expected trees whose nodes are ranks")
    begin = np.cumsum(hops) - hops
    insist(np.array_equal(file.source[links[begin]], ranks[parent]), "a path does not begin at the parent")
    insist(np.array_equal(file.target[links[begin + hops - 1]], ranks[child]), "a path does not end at the child")
    inside = np.ones(len(links), dtype=np.bool_)
    inside[begin] = False
    later = np.flatnonzero(inside)
    insist(np.array_equal(file.source[links[later]], file.target[links[later - 1]]), "links of a path do not join")
    for tree, end in enumerate(np.cumsum(edges).tolist()):
        some = slice(end - int(edges[tree]), end)
        when = np.full(n, end, dtype=np.int64)  # the edge that reaches a rank
        insist(len(np.unique(child[some])) == n - 1 == int(edges[tree]), f"tree {tree} does not reach every rank once")
        when[child[some]] = np.arange(some.start, some.stop)
        insist(when[root[tree]] == end, f"tree {tree} enters its root")
        when[root[tree]] = -1
        insist(
            bool((when[parent[some]] < np.arange(some.start, some.stop)).all()), f"tree {tree} has an edge too early"
        )
    return root, units, links, np.repeat(np.repeat(np.arange(len(root)), edges), hops)


def check_parts(file: ForestFile, root: np.ndarray, units: np.ndarray, ranks: int) -> Fraction:
    """Return the bytes of a unit; the trees of each root carry its part of the data (condition 4)."""
    unit = Fraction(file.head["trees"]["unit_bytes"])
    for one in np.unique(root).tolist():
        carried = sum(units[root == one].tolist()) * unit
        insist(carried == file.size / ranks, f"the trees of root {one} carry {carried} bytes, not {file.size / ranks}")
    return unit


def orbits_of(orders: list[int], images: list[np.ndarray]) -> np.ndarray:
    """Return the least element that products of permutations exchange with each one."""
    least = np.arange(len(images[0]))
    for order, image in zip(orders, images, strict=True):
        step = image
        for _ in range(order.bit_length()):
            least = np.minimum(least, least[step])
            step = step[step]
    return least


def forest_time(
    file: ForestFile, links: np.ndarray, units: np.ndarray, orbit: np.ndarray, products: int, unit: Fraction
) -> Fraction:
    """Return the exact seconds of the busiest link (condition 5)."""
    first, where, members = np.unique(orbit, return_inverse=True, return_counts=True)
    exact = np.int64 if int(units.max()) * len(links) < 2**63 else object
    load = np.zeros(len(first), dtype=exact)
    np.add.at(load, where[links], units)
    kinds = file.link_kind[first].tolist()
    loads = zip(load.tolist(), kinds, members.tolist(), strict=True)
    return max(amount * products * unit / (count * file.rate[kind]) for amount, kind, count in loads)


def cut_time(file: ForestFile, ranks: np.ndarray) -> Fraction:
    """Return the bound of the certificate: data of the ranks inside over the links that leave (condition 6)."""
    certificate = file.head["certificate"]
    insist(certificate is not None and certificate["certificate"] == "cut", "expected the certificate of a cut")
    inside = np.zeros(file.nodes, dtype=np.bool_)
    inside[np.array(certificate["nodes"], dtype=np.int64)] = True
    held = int(inside[ranks].sum())
    insist(0 < held < len(ranks), "the cut does not divide the ranks")
    leaving = np.bincount(file.link_kind[inside[file.source] & ~inside[file.target]], minlength=len(file.rate))
    return held * file.size / len(ranks) / sum(map(Fraction.__mul__, file.rate, map(Fraction, leaving.tolist())))


def check(path: Path) -> str:
    """Check a file and say what holds."""
    file = ForestFile(path)
    ranks = np.flatnonzero(file.is_rank)
    orders, images, links_images = check_translations(file)
    root, units, links, tree = check_trees(file, ranks)
    check_roots(file, ranks, np.unique(root), orders, images)
    unit = check_parts(file, root, units, len(ranks))
    orbit = orbits_of(orders, links_images)
    time, bound = forest_time(file, links, units[tree], orbit, prod(orders), unit), cut_time(file, ranks)
    insist(bound <= time, "the bound is above the time: one of the two is wrong")
    claimed, least = file.head["extra"].get("bound_s"), float(bound)
    insist(claimed is None or abs(claimed - least) <= 1e-9 * least, f"the file claims a bound of {claimed} s")
    proved = "optimal" if time == bound else f"at most {float(time / bound - 1):.3%} above the optimum"
    return (
        f"{len(ranks):,} ranks, {len(file.source):,} links in {len(np.unique(orbit)):,} orbits, "
        f"{len(root):,} trees of {len(np.unique(root)):,} roots, each moved to {prod(orders):,}: "
        f"{float(time):.9g} s, {proved}"
    )


def main() -> None:
    """Check the files that are named."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="+", help="answers of forestcoll by symmetry")
    for name in parser.parse_args().files:
        try:
            print(f"{name}: {check(Path(name))}")
        except Exception as error:  # a forged file may be wrong in any way
            sys.exit(f"{name}: wrong: {error or type(error).__name__}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    print(f"{process_time():.1f} CPU seconds, {peak:,.0f} MiB")


if __name__ == "__main__":
    main()
