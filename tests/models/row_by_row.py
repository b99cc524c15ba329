"""Models as plain Pyomo declares them, for comparisons with those that are read by arrays."""

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from unittest.mock import patch


@contextmanager
def force_row_by_row() -> Iterator[None]:
    """Call every rule row by row in this block, as Pyomo does."""
    with patch("cwb.core.rows._FEWEST", inf):
        yield
