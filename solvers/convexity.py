"""Whether a quadratic form is convex.

HiGHS does not ask: given an indefinite form it returns a wrong optimum and calls it optimal (min x*y on
[-1, 1]^2 is -1, HiGHS says 0). So the adapter asks here first.

A form counts as convex when no eigenvalue of Q is below -``tolerance`` times the largest entry of its block. Only
the columns that Q touches are looked at, block by block of columns that are connected through Q: many small blocks
at once by their eigenvalues, larger ones by trying to factor the shifted block.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

TOLERANCE = 1e-9
_SMALL = 32
_DENSE = 1500
_BATCH_ENTRIES = 4_000_000


def nonconvex_columns(Q: Any, tolerance: float = TOLERANCE) -> NDArray[np.intp] | None:
    """Find the columns of a block of a symmetric matrix that is not positive semidefinite.

    Parameters
    ----------
    Q : (m, m) sparse array
        Symmetric; the form is 1/2 x' Q x, to be minimized.
    tolerance : float, optional
        How far below zero an eigenvalue may be, relative to the largest entry of its block.

    Returns
    -------
    (k,) array of int or None
        Columns of one block that is not convex; None if the form is convex.
    """
    entries = sp.coo_array(Q)
    touched, where = np.unique(np.concatenate([entries.row, entries.col]), return_inverse=True)
    i, j = where[: entries.nnz], where[entries.nnz :]
    shape = (touched.size, touched.size)
    count, block = connected_components(sp.csr_array((np.ones(entries.nnz), (i, j)), shape=shape), directed=False)
    size = np.bincount(block, minlength=count)
    # Local index of a column inside its block, by sorting the columns by block.
    order = np.argsort(block, kind="stable")
    first = np.concatenate([[0], np.cumsum(size)[:-1]])
    local = np.empty(touched.size, dtype=np.intp)
    local[order] = np.arange(touched.size) - first[block[order]]

    bad = _bad_block(block, size, i, j, local, np.asarray(entries.data, dtype=float), tolerance)
    return None if bad is None else touched[block == bad]


def _bad_block(
    block: NDArray[np.intp],
    size: NDArray[np.intp],
    i: NDArray[np.intp],
    j: NDArray[np.intp],
    local: NDArray[np.intp],
    data: NDArray[np.float64],
    tolerance: float,
) -> int | None:
    entry_block = block[i]
    for k in range(1, _SMALL + 1):
        blocks = np.flatnonzero(size == k)
        step = max(1, _BATCH_ENTRIES // k**2)
        for start in range(0, blocks.size, step):
            batch = blocks[start : start + step]
            place = np.full(size.size, -1)
            place[batch] = np.arange(batch.size)
            mine = place[entry_block] >= 0
            stack = np.zeros((batch.size, k, k))
            np.add.at(stack, (place[entry_block[mine]], local[i[mine]], local[j[mine]]), data[mine])
            least = np.linalg.eigvalsh(stack)[:, 0]
            below = least < -tolerance * np.abs(stack).max(axis=(1, 2))
            if below.any():
                return int(batch[int(np.argmax(below))])
    for b in np.flatnonzero(size > _SMALL):
        mine = entry_block == b
        shape = (int(size[b]), int(size[b]))
        if not _is_semidefinite(sp.csc_array((data[mine], (local[i[mine]], local[j[mine]])), shape=shape), tolerance):
            return int(b)
    return None


def _is_semidefinite(Q: Any, tolerance: float) -> bool:
    """Try to factor Q + shift*I; that works if and only if every eigenvalue is above -shift."""
    shift = tolerance * float(np.abs(Q.data).max())
    if (Q.diagonal() < -shift).any():
        return False
    shifted = sp.csc_array(Q + shift * sp.eye_array(Q.shape[0]))
    if Q.shape[0] <= _DENSE:
        try:
            np.linalg.cholesky(shifted.toarray())
        except np.linalg.LinAlgError:
            return False
        return True
    try:
        # Without off-diagonal pivots L U is L D L', and the signs of U's diagonal are those of the eigenvalues.
        factor = splu(shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    except RuntimeError:
        return False
    return bool((factor.U.diagonal() > 0).all() and (factor.perm_r == factor.perm_c).all())
