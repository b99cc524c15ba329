"""``mtree``: aggregation trees over wide-area networks.

Rate, share of what any schedule can reach, shape of the trees (MTree, section 5).
"""

from __future__ import annotations

from dataclasses import replace

from ..numbers import NumberFormat
from ..spec import Column
from .collective import ACROSS, ALGBW, GAP, OWN, RUNS, TIME, collective_table, interval, metric

SPEC = collective_table(
    "mtree",
    "MTree against GOST and other all-reduces",
    ("mtree", "gost"),
    (
        Column(
            "allreduce_rate_Bps",
            "Rate",
            metric("allreduce_rate_Bps"),
            NumberFormat("general", 5, 1e6 / 8),
            "Mb/s",
            best="largest",
        ),
        Column("normalized_throughput", "Rate/N", metric("normalized_throughput"), NumberFormat("general", 5)),
        Column(
            "strength_share",
            "Share",
            metric("strength_share"),
            NumberFormat("fixed", 1, 0.01),
            "percent",
            best="largest",
            note="Share is of the network's strength, the most that any schedule can reach.",
        ),
        Column("trees", "Trees", metric("trees"), NumberFormat("general", 5)),
        Column("mean_tree_height", "Height", metric("mean_tree_height"), NumberFormat("fixed", 2)),
        Column("mean_max_fanout", "Fanout", metric("mean_max_fanout"), NumberFormat("fixed", 2)),
        TIME,
        replace(ALGBW, best="largest", block=ACROSS),
        GAP,
        OWN,
        interval(OWN),
        RUNS,
    ),
)
