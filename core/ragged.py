"""Lists of different lengths, one after the other in one array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .schedule import Ints


def offsets(lengths: Ints | Sequence[int]) -> Ints:
    """Where each list begins, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def ranges(first: Ints, lengths: Ints) -> Ints:
    """The numbers that follow each first one, itself included: as many as its length says, list after list."""
    return np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths - first, lengths)
