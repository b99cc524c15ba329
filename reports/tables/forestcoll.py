"""``forestcoll``: forests against Blink, MultiTree, rings and double binary trees (ForestColl, figures 10 to 14)."""

from __future__ import annotations

from ..numbers import NumberFormat
from ..spec import Column
from .collective import ALGBW, BUSBW, GAP, OBJECTIVE, OWN, RUNS, TIME, collective_table, interval, metric

SPEC = collective_table(
    "forestcoll",
    "ForestColl against other trees and rings",
    ("forestcoll*",),
    (
        TIME,
        interval(TIME),
        ALGBW,
        BUSBW,
        Column("pieces", "Pieces", metric("pieces"), NumberFormat("general", 5), optional=True),
        Column("trees", "Trees", metric("trees"), NumberFormat("general", 6), optional=True),
        Column("max_height", "Height", metric("max_height"), NumberFormat("general", 4), optional=True),
        OBJECTIVE,
        GAP,
        OWN,
        interval(OWN),
        RUNS,
    ),
)
