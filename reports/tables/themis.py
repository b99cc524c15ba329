"""``themis``: chunks over the dimensions of a fabric, Themis against BlueConnect (dissertation, chapter 3)."""

from __future__ import annotations

from .collective import ALGBW, BUSBW, GAP, OBJECTIVE, OWN, RUNS, TIME, collective_table, interval

SPEC = collective_table(
    "themis",
    "Themis against BlueConnect",
    ("themis*", "blueconnect"),
    (TIME, ALGBW, BUSBW, OBJECTIVE, GAP, OWN, interval(OWN), RUNS),
)
