"""MPS or LP files of compiled models, written by HiGHS with Pyomo's names of rows and columns."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import highspy
from pyomo.core.base.label import cpxlp_label_from_name

from ..core.errors import CwbError, Unsupported
from .highs_common import new_highs, pass_hessian, pass_model
from .matrix import MatrixModel

#: Longer names are not read by every program.
_LONGEST = 200


def model_text(matrix: MatrixModel, suffix: str) -> bytes:
    """Return the text of a compiled model, in its own sense and without the scale of costs.

    Parameters
    ----------
    matrix : MatrixModel
        The model, without quadratic constraints.
    suffix : str
        Suffix of the file format, ``.mps`` or ``.lp``.
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
    taken: set[str] = set()
    for index, component in enumerate(components):
        label = cpxlp_label_from_name(component.name).replace(" ", "_")
        if label in taken or len(label) > _LONGEST or not label[0].isalpha():
            label = f"{letter}{index}_{label[:_LONGEST]}"
        taken.add(label)
        yield label
