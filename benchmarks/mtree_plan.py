"""Which cells `mtree_figures.py` measures, by part: all of them on GScale, and fewer where a method takes seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from mtree_cells import MOST, TALLEST, Cell, Store

GSCALE, LARGE = "gscale", ("equinix_size", "idn_size")
NETWORKS = (GSCALE, *LARGE)

#: From 0.1 to 0.9, and where a cell takes longer.
SKEWNESS = tuple(step / 10 for step in range(1, 10))
FEW = SKEWNESS[::4]

#: Of figure 13 on the larger networks; the paper's example.
TREES_AT = 0.7

HEIGHTS = tuple(range(1, TALLEST + 1))
COUNTS = tuple(range(1, MOST + 1))

#: Least height of a tree of GScale.
LOWEST = 3

#: Seeds on the larger networks: MILP (1) over the pools as written; baselines; `mtree` with K.
WRITTEN_SEEDS, BASELINE_SEEDS, SEARCHED_SEEDS = 5, 3, 1

#: The trees of `gost`, in both readings of r*.
READINGS = ("gost", "gost-bottleneck")
BASELINES = ("blink-trees", "blink-unit", "topoadopt", "plink", "psld")


def among(part: str, network: str) -> Sequence[float]:
    """Give the skewness of a part's cells; a few methods have fewer."""
    if part == "trees":
        return FEW if network == GSCALE else (TREES_AT,)
    return SKEWNESS if network == GSCALE else FEW


Plan = Callable[[str, int, Store, Sequence[float]], Iterator[Cell]]


def methods(network: str, seed: int, _: Store, chosen: Sequence[float]) -> Iterator[Cell]:
    """Figures 6, 7 and 8: at most ten trees, over the skewness."""
    small = network == GSCALE
    for skewness in (value for value in among("throughput", network) if value in chosen):
        few = skewness in FEW
        yield Cell(network, skewness, seed, "gost-bottleneck", None, MOST)
        if small or seed < WRITTEN_SEEDS:
            yield Cell(network, skewness, seed, "gost", None, MOST)
        if few and (small or seed < BASELINE_SEEDS):
            for method in BASELINES:
                yield Cell(network, skewness, seed, method)
        if few and (small or seed < SEARCHED_SEEDS):
            yield Cell(network, skewness, seed, "mtree", TALLEST, MOST)


def heights(network: str, seed: int, _: Store, chosen: Sequence[float]) -> Iterator[Cell]:
    """Figures 11 and 12: any number of trees, over H."""
    for skewness in (value for value in among("height", network) if value in chosen):
        for height in HEIGHTS:
            for method in (*READINGS, "mtree"):
                yield Cell(network, skewness, seed, method, height)


def trees(network: str, seed: int, store: Store, chosen: Sequence[float]) -> Iterator[Cell]:
    """Figure 13: K trees at the H of ITH; on GScale also at the lowest H."""
    small = network == GSCALE
    for skewness in (value for value in among("trees", network) if value in chosen):
        for count in COUNTS:
            yield Cell(network, skewness, seed, "gost-bottleneck", None, count)
            if not small and seed >= WRITTEN_SEEDS:
                continue
            cell = Cell(network, skewness, seed, "gost", None, count)
            yield cell
            if small or (seed < SEARCHED_SEEDS and count % 2 == 0):
                yield cell._replace(method="mtree", height=int(store.get(cell)["ith"]))
            if small:
                yield cell._replace(height=LOWEST)
                yield cell._replace(method="mtree", height=LOWEST)
