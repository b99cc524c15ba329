"""Output and files of nccl-tests, made from times."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path

REFERENCE = Path(__file__).parents[1] / "reference" / "nccl_tests"

Row = tuple[int, float, float]


def reference(name: str) -> list[Row]:
    """Size, and times out of place and in place in us, as somebody has published them."""
    with (REFERENCE / f"{name}.csv").open(encoding="utf-8") as file:
        return [(int(size), float(out), float(within)) for size, out, within in list(csv.reader(file))[1:]]


def table_text(rows: Iterable[Row], program: str = "all_reduce_perf", ranks: int = 0, *, old: bool = False) -> str:
    """The table; of old versions without a root, and with errors as numbers with an exponent."""
    lines = [f"# Collective test starting: {program}"]
    lines += [
        f"#  Rank {rank:2} Group  0 Pid   {6899 + rank} on    node device  {rank % 8} [0x18] GPU"
        for rank in range(ranks)
    ]
    lines.append(
        "#       size         count      type   redop    root"
        "     time   algbw   busbw #wrong     time   algbw   busbw #wrong"
    )
    middle, end = ("float     sum", "0e+00") if old else ("float     sum      -1", "0")
    for size, *times in rows:
        halves = "  ".join(f"{time:8.7g}  {size / time / 1e3:.2f}  {size / time / 1e3:.2f}  {end}" for time in times)
        lines.append(f"{size:12}  {size // 4:12}  {middle}  {halves}")
    return "\n".join([*lines, "# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 70.742", ""])


def json_text(rows: Iterable[Row], program: str = "all_reduce_perf", ranks: int = 2) -> str:
    """The file of ``-J``."""
    results = [
        {
            "size": size,
            "count": size // 4,
            "type": "float",
            "redop": "sum",
            "root": "-1",
            "out_of_place": {"time": out, "alg_bw": 1.0, "bus_bw": 1.0, "nwrong": 0.0},
            "in_place": {"time": within, "alg_bw": 1.0, "bus_bw": 1.0, "nwrong": None},
        }
        for size, out, within in rows
    ]
    listed = [{"rank": rank, "group": 0, "hostname": "node"} for rank in range(ranks)]
    about = {"version": 1, "args": [f"./build/{program}", "-b", "8"], "env": [], "nccl_version": 22907}
    return json.dumps({**about, "config": {}, "ranks": listed, "results": results})
