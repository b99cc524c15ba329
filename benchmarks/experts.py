"""Placements of experts by the published rule and the search: the example of EPLB and models like DeepSeek-V3.

    python benchmarks/experts.py            # a minute
    python benchmarks/experts.py --smoke    # the example alone

The example and its program are deepseek-ai/EPLB on GitHub (MIT): 12 experts, 16 replicas, 4 groups, 2 nodes, 8 GPUs.
Its README prints the placement of both layers, whose loads are added up here.
"""

from __future__ import annotations

import argparse
from fractions import Fraction

import cwb
from cwb.core.answers import Placement
from cwb.instances import load
from cwb.schedules import verdict_of
from rich.console import Console
from rich.table import Table

#: Loads of the experts of two layers, and the printed placement.
LAYERS = [
    [90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86],
    [20, 107, 104, 64, 19, 197, 187, 157, 172, 86, 16, 27],
]
PRINTED = [[5, 6, 5, 7, 8, 4, 3, 4, 10, 9, 10, 2, 0, 1, 11, 1], [7, 10, 6, 8, 6, 11, 8, 9, 2, 4, 5, 1, 5, 0, 3, 1]]

#: 58 layers of 256 experts with 32 further replicas: prefilling on 4 nodes of 8 GPUs, and decoding on 144 GPUs.
MODELS = [
    "experts(gpus=32, slots=9, experts=256, layers=58, groups=8, nodes=4)",
    "experts(gpus=32, slots=9, experts=256, layers=58)",
    "experts(gpus=144, slots=2, experts=256, layers=58)",
    "experts(gpus=144, slots=2, experts=256, layers=58, skew=0.3)",
]


def printed_load(layer: int) -> Fraction:
    """The largest load of a layer of the printed placement, by the verifier."""
    instance = load(f"experts(gpus=8, slots=2, groups=4, nodes=2, loads={LAYERS[layer]})")
    slots = tuple(zip(PRINTED[layer][::2], PRINTED[layer][1::2], strict=True))
    verdict = verdict_of(instance, Placement((slots,)))
    assert verdict.ok, verdict.violations
    return Fraction(verdict.objective or 0)


def main() -> None:
    """Print a line for every instance."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="the published example alone")
    arguments = parser.parse_args()
    table = Table("instance", "printed", "published rule", "search", "bound", "gap", "seconds")
    for bound, text in (("groups=4, nodes=2, ", "groups on nodes"), ("", "free")):
        for layer, loads in enumerate(LAYERS):
            add(
                table,
                f"experts(gpus=8, slots=2, {bound}loads={loads})",
                f"layer {layer + 1}, {text}",
                f"{float(printed_load(layer)):g}" if bound else "",
            )
    for spec in [] if arguments.smoke else MODELS:
        add(table, spec, spec)
    Console(width=140).print(table)


def add(table: Table, spec: str, name: str, printed: str = "") -> None:
    """Solve an instance by the rule and by the search, and add a row."""
    rule, found = (cwb.solve(spec, "expert-placement", search=search) for search in ("published", "local"))
    assert rule.verified
    assert found.verified
    assert rule.objective is not None
    assert found.objective is not None
    numbers = (f"{value:.8g}" for value in (rule.objective, found.objective, found.bound))
    table.add_row(name, printed, *numbers, f"{found.gap or 0:.3%}", f"{found.seconds['total']:.1f}")


if __name__ == "__main__":
    main()
