"""Common part of all uses of HiGHS: checked options, lossless transfer of models, and MPS or LP files of them."""

from collections.abc import Iterable
from functools import cache
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import highspy
import numpy as np
import scipy.sparse as sp
from highspy import HighsModelStatus as Status
from pyomo.core.base.label import cpxlp_label_from_name

from ..core.errors import CwbError, Unsupported
from ..core.solver import Termination
from ..core.stdout import silent_highs
from .matrix import MatrixModel
from .options import NativeOption, check_option, read_options, rejected_value_error

SMALLEST_COEFFICIENT = 1e-12  #: Coefficients up to this, HiGHS's least ``small_matrix_value``, are treated as zero.

#: A coefficient smaller than this times the largest of its row is a rounding error of cancelled terms.
_ROUNDING = 1e-15

TERMINATIONS = {
    **dict.fromkeys((Status.kOptimal, Status.kModelEmpty), Termination.OPTIMAL),
    Status.kInfeasible: Termination.INFEASIBLE,
    Status.kUnbounded: Termination.UNBOUNDED,
    Status.kUnboundedOrInfeasible: Termination.INFEASIBLE_OR_UNBOUNDED,
    Status.kTimeLimit: Termination.TIME_LIMIT,
    **dict.fromkeys((Status.kSolutionLimit, Status.kIterationLimit), Termination.NODE_LIMIT),
    Status.kInterrupt: Termination.INTERRUPTED,
    # Limits that users set by HiGHS's own options are reported like node limits.
    **dict.fromkeys((Status.kObjectiveBound, Status.kObjectiveTarget), Termination.NODE_LIMIT),
    Status.kUnknown: Termination.NUMERICAL,
}

FEASIBLE = 2  #: HiGHS's number for a feasible point.


def set_option(highs: Any, name: str, value: object) -> None:
    """Set one option of HiGHS; raise InputError if HiGHS rejects it or its value."""
    if highs.setOptionValue(name, value) != highspy.HighsStatus.kOk:
        raise rejected_value_error("HiGHS", name, value, offered_options()[name].allowed_values)


def set_own_option(highs: Any, name: str, value: object) -> None:
    """Check type and range of a user's option by HiGHS's name, and set it or raise InputError."""
    set_option(highs, name, check_option("HiGHS", name, value, offered_options()))


@cache
def offered_options() -> dict[str, NativeOption]:
    """Return the options of HiGHS, from its own descriptions."""
    highs = silent_highs()
    with TemporaryDirectory(prefix="cwb-") as folder:
        path = Path(folder) / "highs.txt"
        highs.writeOptions(str(path))
        return read_options(path.read_text(encoding="utf-8"))


def new_highs(threads: int) -> Any:
    """Start a silent HiGHS."""
    highs = silent_highs()
    set_option(highs, "log_to_console", False)
    set_option(highs, "threads", threads)
    set_option(highs, "small_matrix_value", SMALLEST_COEFFICIENT)
    return highs


def pass_model(highs: Any, matrix: MatrixModel, scale: float) -> None:
    """Transfer a compiled model to HiGHS, with its costs scaled; raise CwbError if HiGHS rejects it."""
    A = matrix.A
    status = highs.passModel(
        len(matrix.columns),
        len(matrix.rows),
        A.nnz,
        int(highspy.MatrixFormat.kRowwise),
        int(highspy.ObjSense.kMinimize),
        matrix.offset * scale,
        matrix.c * scale,
        matrix.lower,
        matrix.upper,
        matrix.row_lower,
        matrix.row_upper,
        A.indptr.astype(np.int32),
        A.indices.astype(np.int32),
        A.data,
        matrix.integer.astype(np.int32),
    )
    if status == highspy.HighsStatus.kError:
        raise CwbError("HiGHS rejects the model: a coefficient or a bound is out of the range that it takes")


def pass_hessian(highs: Any, matrix: MatrixModel, scale: float) -> None:
    """Transfer the quadratic part of the objective of a model that HiGHS already has."""
    if not matrix.rows:
        # HiGHS gives wrong answers to quadratic programs without rows.
        highs.addRow(-inf, inf, 0, np.zeros(0, dtype=np.int32), np.zeros(0))
    triangle = sp.csc_array(sp.tril(matrix.Q * scale))
    triangle.sort_indices()
    highs.passHessian(
        len(matrix.columns),
        triangle.nnz,
        int(highspy.HessianFormat.kTriangular),
        triangle.indptr.astype(np.int32),
        triangle.indices.astype(np.int32),
        triangle.data,
    )


def refuse_lost_coefficients(matrix: MatrixModel) -> None:
    """Reject coefficients that HiGHS would treat as zero, except rounding errors, which may be dropped."""
    small = np.flatnonzero(np.abs(matrix.A.data) <= SMALLEST_COEFFICIENT)
    if not small.size:
        return
    row_of = np.repeat(np.arange(len(matrix.rows)), np.diff(matrix.A.indptr))
    largest = np.zeros(len(matrix.rows))
    np.maximum.at(largest, row_of, np.abs(matrix.A.data))
    for k in small:
        if abs(matrix.A.data[k]) > _ROUNDING * largest[row_of[k]]:
            raise Unsupported(
                f"HiGHS treats coefficients below {SMALLEST_COEFFICIENT:g} as zero, and constraint "
                f"{matrix.rows[row_of[k]].name} has {matrix.A.data[k]:g} for "
                f"{matrix.columns[matrix.A.indices[k]].name}: state the model in other units (us instead of s, GB "
                "instead of bytes)"
            )


_MAX_LABEL = 200  #: Some programs do not read longer names.


def model_text(matrix: MatrixModel, suffix: str) -> bytes:
    """Return the text of a compiled model, in its own sense (min or max) and with unscaled costs.

    ``suffix`` is ``.mps`` or ``.lp``; quadratic constraints are Unsupported.
    """
    if matrix.quadratic_rows:
        raise Unsupported("quadratic constraints cannot be written from arrays")
    highs = new_highs(1)
    pass_model(highs, matrix, matrix.sign)
    if matrix.Q is not None:
        pass_hessian(highs, matrix, matrix.sign)
    if matrix.sign < 0:
        highs.changeObjectiveSense(highspy.ObjSense.kMaximize)
    for j, name in enumerate(_labels(matrix.columns, "x")):
        highs.passColName(j, name)
    for i, name in enumerate(_labels(matrix.rows, "c")):
        highs.passRowName(i, name)
    with TemporaryDirectory(prefix="cwb-") as folder:
        path = Path(folder) / f"model{suffix}"
        if highs.writeModel(str(path)) == highspy.HighsStatus.kError:
            raise CwbError(f"HiGHS cannot write the model as {suffix}")
        return path.read_bytes()


def _labels(components: Iterable[Any], letter: str) -> Iterable[str]:
    """Return unique names that both formats accept."""
    labels: set[str] = set()
    for index, component in enumerate(components):
        label = cpxlp_label_from_name(component.name).replace(" ", "_")
        if label in labels or len(label) > _MAX_LABEL or not label[0].isalpha():
            label = f"{letter}{index}_{label[:_MAX_LABEL]}"
        labels.add(label)
        yield label
