"""``all-to-all``: all-to-all schedules against the maximum concurrent flow, which bounds them all."""

from __future__ import annotations

from .collective import ALGBW, BUSBW, GAP, OBJECTIVE, OWN, RUNS, TIME, collective_table, interval

SPEC = collective_table(
    "all-to-all",
    "All-to-all against the maximum concurrent flow",
    ("all-to-all-mcf", "teccl-all-to-all"),
    (TIME, interval(TIME), ALGBW, BUSBW, OBJECTIVE, GAP, OWN, interval(OWN), RUNS),
)
