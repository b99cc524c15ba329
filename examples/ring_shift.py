"""A collective of one's own: every rank of a ring hands its buffer to the next."""

import cwb

RING_SHIFT = cwb.Collective(
    "ring_shift",
    pieces=lambda ranks: [([rank], [(rank + 1) % ranks]) for rank in range(ranks)],
    summary="every rank has the buffer of the one before it",
    size="buffer of a rank",
)
