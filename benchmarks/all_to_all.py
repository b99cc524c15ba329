"""All-to-all schedules along the maximum concurrent flow, with its bound: ``python benchmarks/all_to_all.py``.

Networks are those of table 7 of Zhao et al., "Efficient Direct-Connect Topologies for Collective Communications", and
some others, the last ones with switches. Every schedule is verified; its completion time is simulated.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from cwb.core.collective import Collective, Demand
from cwb.harness import Request, run_one
from cwb.instances import load

#: Networks, and chunks of every pair's data that their schedules are measured with.
NETWORKS: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("ring(8)", (1, 8, 64)),
    ("torus(4,4)", (1, 8, 64)),
    ("mesh(4,4)", (1, 8, 64)),
    ("circulant(16,[3,4])", (1, 8, 64)),
    ("L(complete_bipartite(4, 4))", (1, 8, 64)),
    ("distance_regular(4, 32)", (1, 8, 64)),
    ("torus(8,8)", (1, 8, 64)),
    ("generalized_kautz(4, 64)", (1, 8, 64)),
    ("L(modified_de_bruijn(4, 2))", (1, 8, 64)),
    ("power(diamond(), 2)", (1, 8, 64)),
    ("L(L(complete_bipartite(4, 4)))", (1, 8)),
    ("L(distance_regular(4, 32))", (1, 8)),
    ("de_bruijn(4, 4)", (1, 8)),
    ("L(power(diamond(), 2))", (1, 8)),
    ("circulant(256,[11,12])", (1,)),
    ("star(8)", (1, 8, 64)),
    ("dgx_a100(boxes=2)", (1, 8, 64)),
    ("ndv2(chassis=2)", (1, 8, 64)),
    ("fat_tree(4)", (1, 8, 64)),
    ("switch2d(inner=2,outer=3,outer_bandwidth='20 GB/s')", (1, 8, 64)),
)


def gap(network: str, chunks: int) -> float:
    """Completion time over the proved bound, less 1, of a schedule that is verified."""
    demand = Demand(Collective.ALL_TO_ALL, Fraction(2**34), chunks=chunks)
    record = run_one(load(network).with_changes(demand=demand), Request("all-to-all-schedule"))
    if not record.verified or record.bound is None:
        raise SystemExit(f"{network} in {chunks} chunks: {record.message or record.violations}")
    return float(record.metrics["completion_time_s"]) / record.bound - 1


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the table, and write it into a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="networks that begin so")
    parser.add_argument("--page", type=Path, help="write the table between its marks in this page")
    given = parser.parse_args(arguments)
    rows = ["| network | 1 chunk | 8 chunks | 64 chunks |", "|---|---|---|---|"]
    for network, measured in NETWORKS:
        if given.only and not network.startswith(given.only):
            continue
        cells = [f"{gap(network, chunks):.2%}" if chunks in measured else "" for chunks in (1, 8, 64)]
        rows.append(f"| `{network}` | {' | '.join(cells)} |")
        print(rows[-1], flush=True)
    if given.page:
        marks = re.compile(r"(<!-- begin: python benchmarks/all_to_all.py[^\n]*\n).*?(<!-- end)", re.DOTALL)
        table = "\n".join(rows)
        given.page.write_text(marks.sub(lambda found: f"{found[1]}\n{table}\n\n{found[2]}", given.page.read_text()))


if __name__ == "__main__":
    main()
