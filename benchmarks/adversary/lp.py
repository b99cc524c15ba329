"""Linear and mixed-integer programs by a solver that is called here directly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

import highspy
import numpy as np


@dataclass
class Program:
    """A program that is written row by row; it minimizes."""

    cost: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    integer: list[bool] = field(default_factory=list)
    rows: list[tuple[Mapping[int, float], float, float]] = field(default_factory=list)

    def variable(self, cost: float = 0.0, low: float = 0.0, high: float = inf, *, integer: bool = False) -> int:
        """Add a variable; give its number."""
        self.cost.append(cost)
        self.low.append(low)
        self.high.append(high)
        self.integer.append(integer)
        return len(self.cost) - 1

    def row(self, terms: Mapping[int, float], low: float = -inf, high: float = inf) -> None:
        """Add a constraint."""
        self.rows.append((terms, low, high))

    def solve(self) -> tuple[float, Sequence[float]] | None:
        """Optimum and values; None where there is no answer."""
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("threads", 1)
        solver.setOptionValue("mip_rel_gap", 0.0)
        solver.setOptionValue("mip_abs_gap", 0.0)
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(self.cost), len(self.rows)
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = (
            np.array(values, dtype=np.float64) for values in (self.cost, self.low, self.high)
        )
        lp.row_lower_ = np.array([row[1] for row in self.rows], dtype=np.float64)
        lp.row_upper_ = np.array([row[2] for row in self.rows], dtype=np.float64)
        entries = [sorted(row[0].items()) for row in self.rows]
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.cumsum([0, *map(len, entries)]).astype(np.int32)
        lp.a_matrix_.index_ = np.array([i for row in entries for i, _ in row], dtype=np.int32)
        lp.a_matrix_.value_ = np.array([v for row in entries for _, v in row], dtype=np.float64)
        if any(self.integer):
            kinds = highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous
            lp.integrality_ = [kinds[0] if each else kinds[1] for each in self.integer]
        solver.passModel(lp)
        solver.run()
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        return solver.getInfo().objective_function_value, list(solver.getSolution().col_value)
