"""Figures 6 to 8 and 11 to 13 of the MTree paper, heuristic and exact, with verdicts on its claims.

    python benchmarks/mtree_figures.py -o DIR               # all parts, 20 seeds: rows.csv and plots; about three hours
    python benchmarks/mtree_figures.py height trees -o DIR  # some parts
    python benchmarks/mtree_figures.py --seeds 0 -o DIR     # tables, plots and verdicts of what DIR has
    python benchmarks/mtree_figures.py --smoke              # GScale, one seed, one skewness, to see that it runs

What ``DIR/rows.csv`` has is not measured again, so that a run can be ended and continued. Which cells are measured says
`mtree_plan.py`. Tables and plots have means and 95 % intervals by Student's t; of parts over H or K they are over
skewness and seeds together.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cwb.reports.plots.look import COLOURS, LINES, MARKERS, look, new_figure, to_bytes
from mtree_cells import MOST, TALLEST, Mean, Measurement, Store, mean
from mtree_claims import claims
from mtree_plan import COUNTS, GSCALE, HEIGHTS, LOWEST, NETWORKS, SKEWNESS, Plan, among, heights, methods, trees

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMES = {"gscale": "GScale", "equinix_size": "Equinix's size", "idn_size": "IDN's size"}


@dataclass(frozen=True)
class Series:
    """A line of a plot: a column of the rows of a method; ``height`` is the cells' own or "any"."""

    label: str
    method: str
    column: str
    height: int | str | None = None
    trees: int | str | None = MOST

    def has(self, cell: Measurement, network: str) -> bool:
        """Check if a cell belongs to the series."""
        wanted = ((self.height, cell.height), (self.trees, cell.trees))
        return cell[0] == network and cell.method == self.method and all(a in (b, "x") for a, b in wanted)


@dataclass(frozen=True)
class Plot:
    """One row of panels, a panel for each network."""

    part: str
    label: str
    over: str
    values: Sequence[float]
    series: tuple[Series, ...]
    log: bool = False


AXES = {"skewness": "skewness", "height": "height H, hops", "trees": "trees K"}
LABELS = {
    "gost": "gost", "gost-bottleneck": "gost, r* the tree's", "mtree": "mtree", "blink-trees": "Blink, 10 trees",
    "blink-unit": "Blink, unit trees",
    "topoadopt": "TopoAdopt", "plink": "PLink", "psld": "PSLD",
}  # fmt: skip


def _of(methods: Sequence[str], column: str, suffix: str = "") -> tuple[Series, ...]:
    """Series over the skewness: MTree's with ten trees, the baselines as they are."""
    own = {"gost": (None, MOST), "gost-bottleneck": (None, MOST), "mtree": (TALLEST, MOST)}
    return tuple(Series(LABELS[name] + suffix, name, column, *own.get(name, (None, None))) for name in methods)


FOREST = ("gost", "gost-bottleneck", "mtree", "blink-trees", "blink-unit", "topoadopt")
PLOTS = (
    Plot(
        "throughput",
        "normalized throughput",
        "skewness",
        SKEWNESS,
        (*_of(FOREST, "throughput"), Series("any schedule (strength)", "gost-bottleneck", "strength")),
    ),
    Plot("structure", "mean height, hops", "skewness", SKEWNESS, _of(FOREST, "mean_height")),
    Plot("structure", "mean of largest fanouts", "skewness", SKEWNESS, _of(FOREST, "max_fanout")),
    Plot(
        "time",
        "reduction of 1 GB, s",
        "skewness",
        SKEWNESS,
        (
            *_of(("gost", "mtree"), "reduce_s", ", in chunks"),
            *_of(("gost", "blink-trees", "blink-unit", "topoadopt", "plink", "psld"), "message_s"),
        ),
        log=True,
    ),
    Plot(
        "height",
        "normalized throughput",
        "height",
        HEIGHTS,
        tuple(
            Series(label, method, "throughput", "x", None)
            for method, label in (*list(LABELS.items())[:2], ("mtree", "mtree, optimal"))
        ),
    ),
    Plot(
        "height",
        "trees of algorithm 1",
        "height",
        HEIGHTS,
        tuple(Series(LABELS[name], name, "pool", "x", None) for name in ("gost", "gost-bottleneck")),
    ),
    Plot(
        "trees",
        "normalized throughput",
        "trees",
        COUNTS,
        (
            Series("gost, H of ITH", "gost", "throughput", None, "x"),
            Series("gost, r* the tree's, H of ITH", "gost-bottleneck", "throughput", None, "x"),
            Series("mtree, the same H", "mtree", "throughput", "ith", "x"),
            Series("its bound", "mtree", "bound", "ith", "x"),
            Series(f"gost, H = {LOWEST}", "gost", "throughput", LOWEST, "x"),
            Series(f"mtree, H = {LOWEST}", "mtree", "throughput", LOWEST, "x"),
        ),
    ),
)


def points(store: Store, plot: Plot, series: Series, network: str) -> dict[float, Mean]:
    """The means of a series; those without any rows are left out."""
    rows = [row for row in series_rows(store, series, network) if row["skewness"] in among(plot.part, network)]
    values = {x: mean(row[series.column] for row in rows if row[plot.over] == x) for x in plot.values}
    return {x: value for x, value in values.items() if value.number}


def series_rows(store: Store, series: Series, network: str) -> Iterator[dict[str, Any]]:
    """The rows of a series; the height "ith" is that which ITH has chosen on the same network."""
    if series.height == LOWEST and network != GSCALE:
        return
    for cell, row in store.rows.items():
        if series.height != "ith":
            if series.has(cell, network):
                yield row
            continue
        chosen = store.rows.get(cell._replace(method="gost", height=None))
        if (cell.network, cell.method) == (network, series.method) and chosen and chosen["ith"] == cell.height:
            yield row


def table(store: Store, plot: Plot) -> Iterator[str]:
    """A table in Markdown: a line for each network and value, with the number of cells where series differ in it."""
    yield f"\n**{plot.part}: {plot.label}**\n"
    yield "| | " + " | ".join((plot.over, *(series.label for series in plot.series))) + " |"
    yield "|---" * (len(plot.series) + 2) + "|"
    for network in NETWORKS:
        columns = [points(store, plot, series, network) for series in plot.series]
        for x in plot.values:
            cells = [column.get(x) for column in columns]
            if any(cells):
                shown = (f"{cell.text} ({cell.number})" if cell else "" for cell in cells)
                yield f"| {NAMES[network]} | {x:g} | " + " | ".join(shown) + " |"


def proof_table(store: Store) -> Iterator[str]:
    """Yield a table of the cells of `mtree` with a proof, of those with a tree, also by height."""
    yield "\n| proved by mtree | any K | " + " | ".join(f"K = {count}" for count in COUNTS) + " |"
    yield "|---" * (len(COUNTS) + 2) + "|"
    for network in (name for name in NETWORKS if any(cell.network == name for cell in store.rows)):
        shown = []
        for count in (None, *COUNTS):
            kinds: tuple[int | str, ...] = ("x",) if count is None else ("ith", LOWEST)
            series = [Series("", "mtree", "status", kind, "x") for kind in kinds]
            rows = {
                (row["skewness"], row["seed"], row["height"]): row["status"]
                for one in series
                for row in series_rows(store, one, network)
                if row["trees"] == count and row["throughput"]
            }
            shown.append(f"{sum(status == 'optimal' for status in rows.values()):,} of {len(rows):,}")
        yield f"| {NAMES[network]} | " + " | ".join(shown) + " |"


def draw(store: Store, plots: Sequence[Plot], path: Path) -> None:
    """Draw panels with error bars, and write them as SVG, and as PNG to look at."""
    networks = [name for name in NETWORKS if any(cell.network == name for cell in store.rows)]
    with look():
        figure = new_figure(1.7 * len(plots) + 0.5, 2.3 * len(networks))
        axes = figure.subplots(len(plots), len(networks), squeeze=False, sharex=True)
        for line, plot in zip(axes, plots, strict=True):
            for panel, network in zip(line, networks, strict=True):
                panel_of(panel, store, plot, network)
                if plot is plots[0]:
                    panel.set_title(NAMES[network], loc="left")
                if plot is plots[-1]:
                    panel.set_xlabel(AXES[plot.over])
            line[0].set_ylabel(plot.label)
        handles = {
            text: handle for panel in axes.flat for handle, text in zip(*panel.get_legend_handles_labels(), strict=True)
        }
        figure.legend(
            handles.values(),
            handles.keys(),
            loc="outside lower center",
            ncols=min(4, len(networks) + 1),
            handlelength=2.2,
        )
        for form in ("svg", "png"):
            path.with_suffix(f".{form}").write_bytes(to_bytes(figure, form))


def panel_of(panel: Axes, store: Store, plot: Plot, network: str) -> None:
    """Draw one panel."""
    for index, series in enumerate(plot.series):
        means = points(store, plot, series, network)
        if not means:
            continue
        look_of = {"color": COLOURS[index], "marker": MARKERS[index], "linestyle": LINES[index % 4]}
        heights = [value.mean for value in means.values()]
        halves = [value.half for value in means.values()]
        panel.errorbar(list(means), heights, halves, label=series.label, capsize=1.5, elinewidth=0.6, **look_of)
    if plot.log:
        from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

        panel.set_yscale("log")
        panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panel.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        panel.yaxis.set_minor_formatter(NullFormatter())
    else:
        panel.set_ylim(bottom=0)
    panel.grid(axis="y")


def main() -> None:
    """Measure, print, draw."""
    parts: dict[str, Plan] = {
        "throughput": methods,
        "structure": methods,
        "time": methods,
        "height": heights,
        "trees": trees,
    }
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(parts)}, claims; by default all")
    parser.add_argument("--seeds", type=int, default=20, help="number of seeds")
    parser.add_argument("--smoke", action="store_true", help="GScale, one seed, one skewness")
    parser.add_argument("-o", type=Path, metavar="DIR", help="where rows.csv and plots are")
    arguments = parser.parse_args()
    asked = arguments.parts or [*parts, "claims"]
    if wrong := set(asked) - {*parts, "claims"}:
        parser.error(f"{wrong.pop()!r} is no part")
    if arguments.o:
        arguments.o.mkdir(parents=True, exist_ok=True)
    store = Store(arguments.o / "rows.csv" if arguments.o else None)
    for seed in range(1 if arguments.smoke else arguments.seeds):
        for network in (GSCALE,) if arguments.smoke else NETWORKS:
            wanted = {parts[part]: None for part in asked if part in parts}
            for plan in wanted:
                for cell in plan(network, seed, store, SKEWNESS[4:5] if arguments.smoke else SKEWNESS):
                    store.get(cell)
    for part in (part for part in parts if part in asked):
        plots = [plot for plot in PLOTS if plot.part == part]
        for plot in plots:
            print("\n".join(table(store, plot)), flush=True)
        if arguments.o:
            draw(store, plots, arguments.o / f"mtree-{part}")
    if "claims" in asked:
        print("\n".join(proof_table(store)))
        print("\n| claim | `gost` | exact | verdict |\n|---|---|---|---|")
        for claim in claims(store):
            print(f"| {claim.text} | {claim.heuristic} | {claim.exact} | {claim.verdict} |")


if __name__ == "__main__":
    main()
