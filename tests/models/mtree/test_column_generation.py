"""Column generation: what an interruption leaves."""

from __future__ import annotations

from fractions import Fraction

import cwb
from cwb import solvers
from cwb.algorithms.trees.bounds import strength
from cwb.algorithms.trees.network import to_wan
from cwb.algorithms.trees.trees import excess, widest_tree
from cwb.core.budget import Budget
from cwb.core.solver import Termination
from cwb.models.mtree import column_generation


def test_an_interruption_keeps_the_rates(monkeypatch):
    """If a run is stopped between two linear programs, the rates of the last one that was solved are the answer, and
    fit."""
    wan = to_wan(cwb.load("equinix_size(0.5, 0)").with_changes(demand=cwb.load("gscale").demand))
    limit, budget, rounds = wan.latencies(Fraction(1, 4)), Budget(), []
    cheap = column_generation.ColumnGeneration.price

    def interrupt_generation(generation):
        found = cheap(generation)
        rounds.append(len(found))
        if len(rounds) == 3:
            budget.stop.set()
        return found

    monkeypatch.setattr(column_generation.ColumnGeneration, "price", interrupt_generation)
    _, widest = widest_tree(wan, limit)
    limits = wan, limit, None, 0, strength(wan).rate, widest[None, :]
    relaxation = column_generation.ColumnGeneration(*limits, solvers.get("highs"), budget, exact=False).run()
    assert len(rounds) == 3
    assert relaxation.reports[-1].termination is not Termination.OPTIMAL
    assert len(relaxation.rated.rates) > 1
    assert excess(wan, relaxation.rated.trees, relaxation.rated.rates) <= 1
    assert relaxation.rated.total <= relaxation.bound
