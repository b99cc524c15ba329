"""``forestcoll``: forests of trees against Blink, MultiTree, rings and double binary trees (ForestColl, figures 10 to 14)."""

from __future__ import annotations

from ..numbers import NumberFormat
from ..spec import Column
from .collective import ALGBW, BUSBW, GAP, OWN, RUNS, TIME, collective_table, interval, metric

SPEC = collective_table(
    "forestcoll",
    "ForestColl against other trees and rings",
    ("forestcoll*",),
    (
        TIME,
        interval(TIME),
        ALGBW,
        BUSBW,
        Column(
            "completion_time_s",
            "In pieces",
            metric("completion_time_s"),
            NumberFormat("general", 5, 1e-6),
            "us",
            note="In pieces: the completion time with latency, of trees the best pipeline of pieces.",
        ),
        Column("trees", "Trees", metric("trees"), NumberFormat("fixed", 0), optional=True),
        Column("max_height", "Height", metric("max_height"), NumberFormat("fixed", 0), optional=True),
        GAP,
        OWN,
        interval(OWN),
        RUNS,
    ),
)
