"""``bfb``: breadth-first broadcasts against textbook schedules: steps, bandwidth time, completion (BFB, section 6)."""

from __future__ import annotations

from ..numbers import NumberFormat
from ..spec import Column
from .collective import BUSBW, GAP, OBJECTIVE, OWN, RUNS, TIME, collective_table, interval, metric

SPEC = collective_table(
    "bfb",
    "BFB against other schedules",
    ("bfb*",),
    (
        Column("T_L", "T_L", metric("T_L"), NumberFormat("general", 5), "steps", optional=True),
        Column(
            "T_B",
            "T_B",
            metric("T_B"),
            NumberFormat("fixed", 4),
            "M/B",
            optional=True,
            note="T_L and T_B are known of BFB's own schedules: steps, and bandwidth time in units of the data over "
            "the bandwidth of a node.",
        ),
        TIME,
        interval(TIME),
        BUSBW,
        OBJECTIVE,
        GAP,
        OWN,
        interval(OWN),
        RUNS,
    ),
)
