"""Models whose rules are called once for all rows are the models that they are row by row."""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo
import pytest
from cwb.core.rows import array_rows
from cwb.harness import registry
from cwb.solvers.matrix import compile_matrix
from formulation_exams import INSTANCES
from row_by_row import force_row_by_row

#: Formulations with constraints that are read by arrays on one of these instances at least.
BY_ARRAYS = {
    "mcf/flow",
    "mcf/classes",
    "forestcoll/optimum",
    "forestcoll/max-flow",
    "forestcoll/allreduce",
    "mtree/selection",
    "mtree/rates",
    "mtree/repair",
    "teccl/milp",
    "teccl/lp",
    "teccl/astar",
    "teccl/all-to-all",
    "fast/rails",
    "wan/selection",
}


@pytest.mark.parametrize("name", INSTANCES)
def test_a_model_by_arrays_is_the_model_row_by_row(name, tmp_path):
    """The matrix, the sides, the bounds and the LP file are the same, whichever way the rules are called."""
    declared = registry.formulation(name)
    by_arrays = False
    for case in INSTANCES[name]:
        posed, options = declared.validate_and_pose(case.make_instance(), case.options)
        index = declared.index(posed, options)
        fast = declared.build(index)
        with force_row_by_row():
            slow = declared.build(index)
        by_arrays |= any(array_rows(c) is not None for c in fast.component_objects(pyo.Constraint))
        assert not any(array_rows(c) for c in slow.component_objects(pyo.Constraint))
        same_matrix(compile_matrix(fast), compile_matrix(slow))
        files = [tmp_path / f"{number}.lp" for number in range(2)]
        for model, file in zip((fast, slow), files, strict=True):
            model.write(str(file), io_options={"symbolic_solver_labels": True})
        texts = [file.read_text().replace(".0\n", "\n").replace(".0 ", " ") for file in files]
        assert texts[0] == texts[1]
    assert by_arrays == (name in BY_ARRAYS)


def same_matrix(fast, slow):
    """Two models are the same, number by number and name by name."""
    assert [v.name for v in fast.columns] == [v.name for v in slow.columns]
    assert [c.name for c in fast.rows] == [c.name for c in slow.rows]
    for part in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(fast.A, part), getattr(slow.A, part))
    for part in ("c", "row_lower", "row_upper", "lower", "upper", "integer"):
        np.testing.assert_array_equal(getattr(fast, part), getattr(slow, part))
    assert (fast.sign, fast.offset) == (slow.sign, slow.offset)
