"""Task of a network design: objective, budgets, and linear constraints between dimensions.

Constraints are written as in the dissertation (section 4.4.4): ``B1 + B2 = 500 GB/s``, ``B1 >= B2 >= B3``,
``25 GB/s <= B3 <= 150 GB/s``, where ``Bd`` is the bandwidth per NPU in dimension d, counted from 1.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any

from .errors import InputError, show_value
from .units import UnitKind, parse, show


class Objective(Enum):
    """Objective of a bandwidth design (dissertation, section 4.4.5)."""

    PERF = "perf"
    PERF_PER_COST = "perf-per-cost"


class PartialUse(Enum):
    """Bandwidth of a fully connected dimension for a group that spans only a part of it.

    ``FULL`` gives it the dimension's whole bandwidth, as the original does; ``DIRECT_LINKS`` only that of the links
    between its members, (g - 1) of (n - 1).
    """

    FULL = "full"
    DIRECT_LINKS = "direct-links"


class Comparison(Enum):
    """Relation between the two sides of a constraint."""

    AT_MOST = "<="
    AT_LEAST = ">="
    EQUAL = "="

    def excess(self, difference: Any) -> Any:
        """Return by how much a constraint whose sides differ so is missed; at most 0 if it is met."""
        if self is Comparison.EQUAL:
            return abs(difference)
        return difference if self is Comparison.AT_MOST else -difference


@dataclass(frozen=True)
class LinearConstraint:
    """Constraint ``coefficients . B  <comparison>  limit``, with the user's text."""

    coefficients: tuple[Fraction, ...]
    comparison: Comparison
    #: Right-hand side in bytes per second; in dollars for a cost budget, whose coefficients are prices.
    limit: Fraction
    label: str  #: The constraint in the user's words, for messages.


@dataclass(frozen=True)
class Design:
    """Task of a bandwidth design: objective, budgets and constraints."""

    objective: Objective = Objective.PERF  #: Minimize the iteration time, or time multiplied by cost.
    total_Bps: Fraction | None = None  #: Bandwidth per NPU over all dimensions, to be used exactly.
    max_total_Bps: Fraction | None = None  #: The same as an upper limit.
    cost_budget_usd: Fraction | None = None
    #: Linear constraints as text; several may be joined by ``;`` or chained (``B1 >= B2 >= B3``).
    constraints: tuple[str, ...] = ()
    #: Share that a group can use of a fully connected dimension that it spans in part.
    partial_use: PartialUse = PartialUse.FULL

    def linear_constraints(
        self, dimensions: int, prices: Sequence[Fraction] | None = None
    ) -> tuple[LinearConstraint, ...]:
        """Return every budget and constraint as a linear constraint over the bandwidths.

        ``prices`` are dollars of the whole network per byte per second in each dimension; needed for a cost budget.
        """
        ones = (Fraction(1),) * dimensions
        budgets: list[LinearConstraint] = []
        if self.total_Bps is not None:
            label = f"total bandwidth = {show(self.total_Bps, 'GB/s')}"
            budgets.append(LinearConstraint(ones, Comparison.EQUAL, self.total_Bps, label))
        if self.max_total_Bps is not None:
            label = f"total bandwidth <= {show(self.max_total_Bps, 'GB/s')}"
            budgets.append(LinearConstraint(ones, Comparison.AT_MOST, self.max_total_Bps, label))
        if self.cost_budget_usd is not None:
            if prices is None:
                raise InputError("a cost budget needs a cost model", place="design.cost_budget")
            label = f"network cost <= {show(self.cost_budget_usd, 'USD')}"
            budgets.append(LinearConstraint(tuple(prices), Comparison.AT_MOST, self.cost_budget_usd, label))
        for index, text in enumerate(self.constraints):
            try:
                budgets.extend(parse_constraints(text, dimensions))
            except InputError as error:
                raise error.at(place=f"design.constraints[{index}]") from None
        return tuple(budgets)

    def equal_bandwidth_Bps(self, dimensions: int, prices: Sequence[Fraction] | None = None) -> Fraction | None:
        """Return the bandwidth of every dimension under EqualBW, the baseline of all speedups.

        The total is split equally, limited by a cost budget (dissertation, section 4.5.2). Other constraints do not
        bind the baseline, as in the original. None if the design sets neither a total nor a budget.
        """
        limits: list[Fraction] = []
        total = self.total_Bps if self.total_Bps is not None else self.max_total_Bps
        if total is not None:
            limits.append(total / dimensions)
        if self.cost_budget_usd is not None and prices is not None and sum(prices) > 0:
            limits.append(self.cost_budget_usd / sum(prices))
        return min(limits, default=None)


_NUMBER = r"[0-9]{1,20}(?:\.[0-9]{1,20})?|[0-9]{1,20}/0*[1-9][0-9]{0,19}"
_VARIABLE = re.compile(rf"(?:(?P<factor>{_NUMBER})\s*\*?\s*)?[Bb](?P<dimension>[0-9]{{1,2}})\Z")
_RELATION = re.compile(r"(<=|>=|==|=|≤|≥)")
_COMPARISONS = {
    "<=": Comparison.AT_MOST,
    "≤": Comparison.AT_MOST,
    ">=": Comparison.AT_LEAST,
    "≥": Comparison.AT_LEAST,
    "=": Comparison.EQUAL,
    "==": Comparison.EQUAL,
}


def parse_constraints(text: str, dimensions: int) -> tuple[LinearConstraint, ...]:
    """Read linear constraints between the bandwidths of the dimensions.

    Constraints are joined by ``;``. Each is a chain of sums joined by ``<=``, ``>=`` or ``=``; a sum has terms such as
    ``B1``, ``2 B3``, ``1/2*B2`` and ``500 GB/s``, joined by ``+`` or ``-``.
    """
    rows: list[LinearConstraint] = []
    for clause in filter(None, (part.strip() for part in text.split(";"))):
        pieces = _RELATION.split(clause)
        if len(pieces) < 3:
            raise InputError(
                f"constraint {clause!r} has no <=, >= or =; expected such as 'B1 >= B2' or 'B3 <= 50 GB/s'"
            )
        sums = [_parse_sum(piece, clause, dimensions) for piece in pieces[::2]]
        for i, relation in enumerate(pieces[1::2]):
            (left, left_constant), (right, right_constant) = sums[i], sums[i + 1]
            coefficients = tuple(a - b for a, b in zip(left, right, strict=True))
            if not any(coefficients):
                raise InputError(f"constraint {clause!r} has a side without a dimension; expected B1 to B{dimensions}")
            label = f"{pieces[2 * i].strip()} {relation} {pieces[2 * i + 2].strip()}"
            rows.append(LinearConstraint(coefficients, _COMPARISONS[relation], right_constant - left_constant, label))
    if not rows:
        raise InputError(f"{show_value(text)} contains no constraint; expected such as 'B1 >= B2' or 'B3 <= 50 GB/s'")
    return tuple(rows)


def _parse_sum(text: str, rule: str, dimensions: int) -> tuple[list[Fraction], Fraction]:
    """Read one side of a constraint: its coefficients and its constant in bytes per second."""
    coefficients = [Fraction(0)] * dimensions
    constant = Fraction(0)
    # A sign inside an exponent ("1e+3 GB/s") does not separate terms.
    terms = re.split(r"(?<![eE])([+-])", text.strip())
    if terms[0].strip() or len(terms) == 1:
        terms.insert(0, "+")
    else:
        terms.pop(0)  # the text begins with a sign
    for sign_text, raw in zip(terms[::2], terms[1::2], strict=True):
        sign = -1 if sign_text == "-" else 1
        term = raw.strip()
        if match := _VARIABLE.match(term):
            dimension = int(match["dimension"])
            if not 1 <= dimension <= dimensions:
                raise InputError(f"constraint {rule!r} names B{dimension}, but the network has {dimensions} dimensions")
            coefficients[dimension - 1] += sign * Fraction(match["factor"] or 1)
        elif term == "0":
            continue
        else:
            try:
                constant += sign * parse(term, UnitKind.RATE)
            except InputError as error:
                raise InputError(f"constraint {rule!r}: {error.problem}") from None
    return coefficients, constant
