"""``sizes``: time, algbw and busbw of every method over the sizes of a collective, as nccl-tests prints them."""

from __future__ import annotations

from dataclasses import replace

from ..spec import ALONE, TableSpec
from .collective import (
    ALGBW,
    BUSBW,
    COLLECTIVE,
    GAP,
    INSTANCE,
    METHOD,
    OBJECTIVE,
    PROOF,
    QUESTION,
    SIZE,
    SOLVER,
    TIME,
    entries_of,
    interval,
    question_remarks,
)

_KEYS = (INSTANCE, COLLECTIVE, METHOD, SOLVER, QUESTION, PROOF, replace(SIZE, optional=False))

SPEC = TableSpec(
    name="sizes",
    title="Bandwidth over size",
    expects="records of a collective",
    entries=entries_of((), _KEYS),
    keys=_KEYS,
    groups=ALONE,
    columns=(TIME, interval(TIME), ALGBW, BUSBW, OBJECTIVE, GAP),
    notes=(
        "algbw is the full buffer over the time, busbw that times the factor of nccl-tests; "
        "sizes are binary, rates decimal.",
    ),
    block=("instance", "collective", "size_bytes", "question"),
    remarks=question_remarks,
)
