"""Convex forms are told from others, whatever their size and shape."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from cwb.solvers import support
from cwb.solvers.support import nonconvex_columns
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hn


@given(hn.arrays(float, st.tuples(st.integers(1, 5), st.integers(1, 6)), elements=st.floats(-3, 3, width=32)))
def test_gram_matrices_are_convex(factor: np.ndarray) -> None:
    """F'F is positive semidefinite, also where it is singular."""
    assert nonconvex_columns(sp.csc_array(factor.T @ factor)) is None


@given(
    hn.arrays(float, st.tuples(st.integers(1, 4), st.integers(2, 6)), elements=st.floats(-3, 3, width=32)),
    st.integers(0, 10),
)
def test_one_negative_direction_is_found(factor: np.ndarray, place: int) -> None:
    """F'F minus enough in one direction is not."""
    Q = factor.T @ factor
    direction = np.zeros(len(Q))
    direction[place % len(Q)] = 1.0
    Q -= (1.0 + Q[place % len(Q), place % len(Q)]) * np.outer(direction, direction)
    assert nonconvex_columns(sp.csc_array(Q)) is not None


def test_the_block_is_named() -> None:
    """Of two blocks the one that is not convex is given, with the columns of the whole form."""
    Q = np.zeros((9, 9))
    Q[1, 1] = Q[4, 4] = 2.0
    Q[3, 7] = Q[7, 3] = 1.0
    assert nonconvex_columns(sp.csc_array(Q)).tolist() == [3, 7]


@pytest.mark.parametrize("shift", [0.0, -1e-3])
@pytest.mark.parametrize("path", ["eigenvalues", "dense factor", "sparse factor"])
def test_every_path_agrees(shift: float, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain, which is convex, and the same chain moved a little below zero, by each of the three methods."""
    small, dense = {"eigenvalues": (99, 99), "dense factor": (1, 99), "sparse factor": (1, 1)}[path]
    monkeypatch.setattr(support, "_SMALL", small)
    monkeypatch.setattr(support, "_DENSE", dense)
    n = 40
    chain = sp.diags_array([-np.ones(n - 1), np.full(n, 2.0), -np.ones(n - 1)], offsets=[-1, 0, 1]).toarray()
    chain[0, 0] = chain[-1, -1] = 1.0
    assert (nonconvex_columns(sp.csc_array(chain + shift * np.eye(n))) is None) == (shift == 0.0)


def test_large_separable_forms_are_cheap() -> None:
    """A form of 1e5 blocks and one long chain is verified without a matrix of that size."""
    n = 100_000
    Q = sp.block_diag(
        [
            sp.diags_array(np.ones(n)),
            sp.diags_array([-np.ones(4999), np.full(5000, 2.0), -np.ones(4999)], offsets=[-1, 0, 1]),
        ],
        format="csc",
    )
    assert nonconvex_columns(Q) is None
    Q[n // 2, n // 2] = -1.0
    assert nonconvex_columns(Q).tolist() == [n // 2]


def test_scale_does_not_matter() -> None:
    """A block of tiny numbers is verified by its own size, not by that of another block."""
    Q = np.diag([1e12, 1e-12, -1e-12])
    assert nonconvex_columns(sp.csc_array(Q)).tolist() == [2]
