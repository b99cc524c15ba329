"""Lists of different lengths, concatenated in one array."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_Ints = NDArray[np.int64]


def offsets(lengths: _Ints | Sequence[int]) -> _Ints:
    """Return the offsets of all lists, and the end of the last one."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def ranges(first: _Ints, lengths: _Ints) -> _Ints:
    """Concatenate ranges of consecutive numbers, given by first numbers and lengths."""
    return np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths - first, lengths)
