"""``teccl``: TE-CCL's models and search against SCCL, TACCL and shortest paths.

Epochs, time, bandwidth, solver time (TE-CCL, tables 3 to 8).
"""

from __future__ import annotations

from ..numbers import NumberFormat
from ..spec import Column
from .collective import ALGBW, GAP, OBJECTIVE, OWN, RUNS, TIME, collective_table, interval, metric

SPEC = collective_table(
    "teccl",
    "TE-CCL against other synthesizers",
    ("teccl*",),
    (
        Column("epochs", "Epochs", metric("epochs"), NumberFormat("general", 6), optional=True),
        Column(
            "epoch_duration_s",
            "Epoch",
            metric("epoch_duration_s"),
            NumberFormat("general", 4, 1e-6),
            "us",
            optional=True,
        ),
        TIME,
        interval(TIME),
        ALGBW,
        OBJECTIVE,
        GAP,
        OWN,
        interval(OWN),
        RUNS,
    ),
    notes=("algbw is the full buffer over the time; the objective is the epochs times their length.",),
)
