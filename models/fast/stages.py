"""Decomposition of a matrix, padded to equal row and column sums, into permutations (Birkhoff, von Neumann)."""

from __future__ import annotations

from fractions import Fraction
from math import lcm

import numpy as np

from ...core.schedule import Ints

#: A permutation and its weight: row i goes to column ``to[i]``.
Stage = tuple[tuple[int, ...], Fraction]


def stages_of(matrix: list[list[Fraction]]) -> list[Stage]:
    """Decompose into at most ``N^2 - 2N + 2`` stages of total weight the largest row or column sum.

    Parameters
    ----------
    matrix : list of list of Fraction
        Square matrix of nonnegative entries.
    """
    scale = lcm(*(value.denominator for row in matrix for value in row))
    left = pad_matrix(np.array([[int(value * scale) for value in row] for row in matrix], dtype=object))
    stages: list[Stage] = []
    rows = np.arange(len(matrix))
    while left.any():
        to = widest_matching(left)
        weight = left[rows, to].min()
        left[rows, to] -= weight
        stages.append((tuple(to.tolist()), Fraction(weight, scale)))
    return stages


def pad_matrix(matrix: np.ndarray) -> np.ndarray:
    """Increase entries of the matrix so that all rows and columns have the largest sum."""
    most = max(matrix.sum(axis=0).max(), matrix.sum(axis=1).max())
    rows, columns = most - matrix.sum(axis=1), most - matrix.sum(axis=0)
    full = matrix.copy()
    i = j = 0
    while i < len(full) and j < len(full):
        added = min(rows[i], columns[j])
        full[i, j] += added
        rows[i] -= added
        columns[j] -= added
        i, j = i + (rows[i] == 0), j + (columns[j] == 0 and rows[i] != 0)
    return full


def widest_matching(matrix: np.ndarray) -> Ints:
    """Return a perfect matching with the largest smallest entry; one exists if all sums are equal."""
    values = sorted(set(matrix[matrix > 0].tolist()))
    low, high = 0, len(values) - 1
    best = _matching(matrix >= values[0])
    while low < high:
        middle = (low + high + 1) // 2
        found = _matching(matrix >= values[middle])
        if (found >= 0).all():
            best, low = found, middle
        else:
            high = middle - 1
    return best


def _matching(allowed: np.ndarray) -> Ints:
    """Return the columns of a maximum matching, -1 for unmatched rows."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    return np.asarray(
        maximum_bipartite_matching(csr_array(allowed.astype(np.int8)), perm_type="column"), dtype=np.int64
    )
