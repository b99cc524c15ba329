"""The cells that `mtree_figures.py` measures, by part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from mtree_cells import MOST, TALLEST, Measurement, Store

GSCALE, LARGE = "gscale", ("equinix_size", "idn_size")
NETWORKS = (GSCALE, *LARGE)

SKEWNESS = tuple(step / 10 for step in range(1, 10))
HEIGHTS = tuple(range(1, TALLEST + 1))
COUNTS = tuple(range(1, MOST + 1))

#: Skewness of figure 13 on the larger networks, where a cell takes seconds; 0.7 is the paper's example.
TREES_AT = (0.1, 0.5, 0.7, 0.9)

#: Least height of a tree of GScale.
LOWEST = 3

#: The trees of `gost`, in both readings of r*.
READINGS = ("gost", "gost-bottleneck")
BASELINES = ("blink-trees", "blink-unit", "topoadopt", "plink", "psld")


def among(part: str, network: str) -> Sequence[float]:
    """The skewness of a part's cells."""
    return TREES_AT if part == "trees" and network != GSCALE else SKEWNESS


Plan = Callable[[str, int, Store, Sequence[float]], Iterator[Measurement]]


def methods(network: str, seed: int, _: Store, chosen: Sequence[float]) -> Iterator[Measurement]:
    """Figures 6, 7 and 8: at most ten trees, over the skewness."""
    for skewness in (value for value in among("throughput", network) if value in chosen):
        for method in READINGS:
            yield Measurement(network, skewness, seed, method, None, MOST)
        for method in BASELINES:
            yield Measurement(network, skewness, seed, method)
        yield Measurement(network, skewness, seed, "mtree", TALLEST, MOST)


def heights(network: str, seed: int, _: Store, chosen: Sequence[float]) -> Iterator[Measurement]:
    """Figures 11 and 12: any number of trees, over H."""
    for skewness in (value for value in among("height", network) if value in chosen):
        for height in HEIGHTS:
            for method in (*READINGS, "mtree"):
                yield Measurement(network, skewness, seed, method, height)


def trees(network: str, seed: int, store: Store, chosen: Sequence[float]) -> Iterator[Measurement]:
    """Figure 13: K trees at the H of ITH; on GScale also at the lowest H."""
    for skewness in (value for value in among("trees", network) if value in chosen):
        for count in COUNTS:
            cell = Measurement(network, skewness, seed, "gost", None, count)
            yield cell
            yield cell._replace(method="gost-bottleneck")
            yield cell._replace(method="mtree", height=int(store.get(cell)["ith"]))
            if network == GSCALE:
                yield cell._replace(height=LOWEST)
                yield cell._replace(method="mtree", height=LOWEST)
