"""Rejection of models that a solver cannot solve, before the transfer; convexity of quadratic forms.

HiGHS does not check convexity (docs/solvers.md). A form counts as convex when no eigenvalue of Q is below
-``tolerance`` times the largest entry of its block. Only the columns in Q are checked, block by block of columns that
are connected through Q: many small blocks at once by their eigenvalues, larger ones by trying to factor the shifted
block.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from ..core.errors import Unsupported
from ..core.solver import Capability
from .matrix import MatrixModel


def require_capabilities(matrix: MatrixModel, title: str, can: Capability) -> None:
    """Raise an error if a model needs a capability that a solver lacks.

    A quadratic objective together with integer variables needs ``NONCONVEX_QP``. The message names the first reason.
    """
    if matrix.is_mixed_integer and Capability.MIP not in can:
        raise Unsupported(f"{title} supports no integer variables, and the model has {matrix.size.integers}")
    if matrix.quadratic_rows and Capability.QUADRATIC_CONSTRAINTS not in can:
        name = matrix.rows[matrix.quadratic_rows[0].row].name
        raise Unsupported(f"{title} supports no quadratic constraints, and {name} is one: use --solver scip or gurobi")
    if matrix.Q is None or Capability.NONCONVEX_QP in can:
        return
    if Capability.CONVEX_QP not in can:
        raise Unsupported(f"{title} supports no quadratic objective: use --solver scip or gurobi")
    if matrix.is_mixed_integer:
        raise Unsupported(
            f"{title} supports no quadratic objective together with integer variables: use --solver scip or gurobi"
        )
    bad = nonconvex_columns(matrix.Q)
    if bad is not None:
        names = ", ".join(matrix.columns[j].name for j in bad[:3]) + (", ..." if bad.size > 3 else "")
        raise Unsupported(
            f"{title} supports only convex quadratic objectives, and this one is not convex in {names}: "
            "use --solver scip or gurobi"
        )


TOLERANCE = 1e-9
_SMALL = 32
_DENSE = 1500
_BATCH_ENTRIES = 4_000_000


def nonconvex_columns(Q: Any) -> NDArray[Any] | None:
    """Return the columns of a block of a symmetric matrix that is not positive semidefinite; None without one."""
    entries = sp.coo_array(Q)
    variables, where = np.unique(np.concatenate([entries.row, entries.col]), return_inverse=True)
    i, j = where[: entries.nnz], where[entries.nnz :]
    graph = sp.csr_array((np.ones(entries.nnz), (i, j)), shape=(variables.size, variables.size))
    count, block = connected_components(graph, directed=False)
    size = np.bincount(block, minlength=count)
    # A column's place inside its block, found by sorting the columns by block.
    order = np.argsort(block, kind="stable")
    place = np.empty(variables.size, dtype=np.intp)
    place[order] = np.arange(variables.size) - (np.cumsum(size) - size)[block[order]]

    by_block = np.argsort(block[i], kind="stable")
    blocks = _Blocks(
        of_entry=block[i][by_block],
        row=place[i][by_block],
        col=place[j][by_block],
        data=np.asarray(entries.data, dtype=float)[by_block],
        size=size,
    )
    bad = blocks.first_bad()
    return None if bad is None else variables[block == bad]


@dataclass(frozen=True, eq=False)
class _Blocks:
    """Entries of all blocks, sorted by block, with rows and columns numbered inside each block."""

    of_entry: NDArray[Any]
    row: NDArray[Any]
    col: NDArray[Any]
    data: NDArray[np.float64]
    size: NDArray[Any]

    def first_bad(self) -> int | None:
        for k in range(1, _SMALL + 1):
            blocks = np.flatnonzero(self.size == k)
            step = max(1, _BATCH_ENTRIES // k**2)
            for start in range(0, blocks.size, step):
                bad = self._bad_of_equal_size(blocks[start : start + step], k)
                if bad is not None:
                    return bad
        for block in np.flatnonzero(self.size > _SMALL):
            start, end = np.searchsorted(self.of_entry, [block, block + 1])
            entries = (self.data[start:end], (self.row[start:end], self.col[start:end]))
            shape = (int(self.size[block]), int(self.size[block]))
            if not _is_semidefinite(sp.csc_array(entries, shape=shape)):
                return int(block)
        return None

    def _bad_of_equal_size(self, blocks: NDArray[Any], k: int) -> int | None:
        number = np.full(self.size.size, -1)
        number[blocks] = np.arange(blocks.size)
        mine = number[self.of_entry] >= 0
        stack = np.zeros((blocks.size, k, k))
        np.add.at(stack, (number[self.of_entry[mine]], self.row[mine], self.col[mine]), self.data[mine])
        below = np.linalg.eigvalsh(stack)[:, 0] < -TOLERANCE * np.abs(stack).max(axis=(1, 2))
        return int(blocks[int(np.argmax(below))]) if below.any() else None


def _is_semidefinite(Q: Any) -> bool:
    """Check if every eigenvalue is above -shift, by trying to factor Q + shift*I."""
    shift = TOLERANCE * float(np.abs(Q.data).max())
    if (Q.diagonal() < -shift).any():
        return False
    convex = sp.csc_array(Q + shift * sp.eye_array(Q.shape[0]))
    if Q.shape[0] <= _DENSE:
        try:
            np.linalg.cholesky(convex.toarray())
        except np.linalg.LinAlgError:
            return False
        return True
    try:
        # Without off-diagonal pivots L U is L D L', and the signs of U's diagonal are those of the eigenvalues.
        factor = splu(convex, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    except RuntimeError:
        return False
    return bool((factor.U.diagonal() > 0).all() and (factor.perm_r == factor.perm_c).all())
