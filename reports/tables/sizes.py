"""``sizes``: time, algbw and busbw of every method over the sizes of a collective, as nccl-tests prints them."""

from __future__ import annotations

from dataclasses import replace

from ..spec import ALONE, TableSpec
from .collective import (
    ALGBW,
    BUSBW,
    CLOCK,
    COLLECTIVE,
    GAP,
    INSTANCE,
    METHOD,
    PROOF,
    SIZE,
    SOLVER,
    TIME,
    clock_remarks,
    entries_of,
    interval,
)

_KEYS = (INSTANCE, COLLECTIVE, METHOD, SOLVER, CLOCK, PROOF, replace(SIZE, optional=False))

SPEC = TableSpec(
    name="sizes",
    title="Bandwidth over size",
    expects="records of a collective",
    entries=entries_of((), _KEYS),
    keys=_KEYS,
    groups=ALONE,
    columns=(TIME, interval(TIME), ALGBW, BUSBW, GAP),
    notes=(
        "algbw is the full buffer over the time, busbw that times the factor of nccl-tests; "
        "sizes are binary, rates decimal.",
    ),
    block=("instance", "collective", "size_bytes", "clock"),
    remarks=clock_remarks(_KEYS),
)
