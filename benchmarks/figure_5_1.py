"""Figure 5.1 of the dissertation: bytes on links by textbook algorithms, on their own networks and others.

    python benchmarks/figure_5_1.py figure_5_1.svg     # 64 NPUs
    python benchmarks/figure_5_1.py --smoke x.png      # 16 NPUs, and 8 in the three-dimensional network

An all-reduce of 1 GiB by ``ring``, ``direct``, ``rhd`` and ``dbt`` on a fully connected network, a ring, a
two-dimensional mesh and a three-dimensional hypercube. The figure's text does not say how many NPUs; 64 are those of
figure 5.2, of the same section. Its hypercube is a mesh in three dimensions (figure 5.17 has one of 5 x 5 x 5). As in
the figure, the colours of a network run to its own largest load, and a red frame marks an algorithm on the network
that it prefers (table 5.1). Other than in the figure, a pair without a link is white and an unused link grey, dbt
stands where the figure has TACOS, and the ring goes through the ranks in their order, as libraries do that do not
know the network; ``--cycle`` has it look for a cycle of links first.
"""

from __future__ import annotations

import argparse
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.files import write_whole
from cwb.core.schedule import StepSchedule
from cwb.core.topology import Topology
from cwb.core.units import SIZES, unit_for
from cwb.harness.registry import get
from cwb.instances import load
from cwb.reports.plots import plot_format
from cwb.reports.plots.look import look, new_figure, to_bytes
from cwb.reports.plots.schedule_traffic import Traffic, loads, paint, sparse

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALGORITHMS = ("ring", "direct", "rhd", "dbt")
PREFERRED = {("ring", "ring"), ("direct", "fully connected")}


def networks(*, smoke: bool) -> dict[str, str]:
    """Four networks."""
    n = 16 if smoke else 64
    side = 4 if smoke else 8
    cube = 2 if smoke else 4
    return {
        "fully connected": f"complete({n})",
        "ring": f"ring({n})",
        "2D mesh": f"mesh({side},{side})",
        "3D hypercube": f"mesh({cube},{cube},{cube})",
    }


def traffic(algorithm: str, expression: str, *, cycle: bool) -> Traffic:
    """Run an algorithm on a network."""
    demand = Demand(Collective.ALL_REDUCE, Fraction(2**30))
    instance = load(expression).with_changes(demand=demand)
    method = get(algorithm)
    in_order = algorithm == "ring" and not cycle
    options = method.options(**({"order": list(range(instance.npus))} if in_order else {}))
    nobody: Any = None  # textbook algorithms call no solver
    answer = method.run(instance, nobody, Budget(), options).answer
    assert isinstance(answer, StepSchedule) and isinstance(instance.network, Topology)
    return Traffic(algorithm, instance.network, answer.sends, answer.chunks.sizes_bytes, answer.step)


def draw(cells: dict[str, dict[str, Traffic]]) -> Figure:
    """Draw a row for every network and a column for every algorithm."""
    figure = new_figure(1.75 * len(cells) + 0.3, 1.75 * len(ALGORITHMS) + 0.9)
    grid = figure.subplots(len(cells), len(ALGORITHMS))
    for row, (network, found) in enumerate(cells.items()):
        largest = max(float(t.link_bytes.max()) for t in found.values())
        unit, size = unit_for(largest, SIZES)
        for column, (algorithm, one) in enumerate(found.items()):
            axes = grid[row, column]
            image = paint(axes, loads(one.topology, one.link_bytes).matrix / size, largest / size)
            ticks = sparse(len(one.topology.nodes), 5)
            axes.set_xticks(ticks)
            axes.set_yticks(ticks if column == 0 else [])
            own, own_size = unit_for(float(one.link_bytes.max()), SIZES)
            axes.set_title(f"max {float(one.link_bytes.max()) / own_size:.4g} {own}", size=6, pad=2)
            if row == 0:
                axes.annotate(algorithm, (0.5, 1.2), xycoords="axes fraction", ha="center", size=8)
            if column == 0:
                axes.set_ylabel(network, size=8)
            if (algorithm, network) in PREFERRED:
                for spine in axes.spines.values():
                    spine.set(color="#D50000", linewidth=1.8)
        bar = figure.colorbar(image, ax=grid[row, :], fraction=0.03, pad=0.01, aspect=14)
        bar.set_label(f"bytes over the link ({unit})", size=6)
    figure.supxlabel("target", size=7)
    figure.supylabel("source", size=7)
    return figure


def main() -> None:
    """Draw the figure, and print the loads."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("output", type=Path, help="a .svg, .pdf or .png file")
    parser.add_argument("--smoke", action="store_true", help="small networks only")
    parser.add_argument("--cycle", action="store_true", help="the ring follows a cycle of links where there is one")
    given = parser.parse_args()
    form = plot_format(given.output)
    cells = {
        name: {algorithm: traffic(algorithm, expression, cycle=given.cycle) for algorithm in ALGORITHMS}
        for name, expression in networks(smoke=given.smoke).items()
    }
    for name, found in cells.items():
        for algorithm, one in found.items():
            load_MiB = one.link_bytes / 2**20
            used = f"{(load_MiB > 0).sum():>5} of {len(load_MiB):>5} links used"
            print(f"{name:16} {algorithm:7} max {load_MiB.max():10.2f} MiB  mean {load_MiB.mean():9.2f} MiB  {used}")
    with look():
        write_whole(given.output, to_bytes(draw(cells), form))


if __name__ == "__main__":
    main()
