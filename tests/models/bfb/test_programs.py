"""The linear and integer programs against the formula of theorem 19."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from random import Random

import pytest
from cwb import solvers
from cwb.core.budget import Budget
from cwb.harness import registry
from cwb.models.bfb.extract import read, round_parts
from cwb.models.bfb.formulation import build_lp
from cwb.models.bfb.problem import choices_of
from cwb.models.bfb.solve import balance, rounding_bound
from cwb.schedules import verdict_of
from draws import draws
from hypothesis import given
from hypothesis import strategies as st


def solve_lp(topology):
    """LP (1) as the solver leaves it, read as a broadcast."""
    choices = choices_of(topology)
    model = build_lp(choices)
    solvers.get("highs").solve(model, Budget())
    return read(choices, model)


def run(name, instance, **options):
    method = registry.get(name)
    assert method.supports(instance) is None
    return method.run(instance, solvers.get("highs"), Budget(), method.options.model_validate(options))


@pytest.mark.slow
def test_the_linear_program_has_the_value_of_the_formula_on_random_digraphs(random_digraph):
    """On random regular digraphs of degree 1 to 5, with parallel links, T_B of LP (1) and of theorem 19 are the same
    fraction."""
    source = Random(5)  # noqa: S311
    for _ in range(draws(300)):
        topology = random_digraph(source.randint(2, 14), source.randint(1, 5), source)
        exact, program = balance(topology), solve_lp(topology)
        assert program.time == exact.time
        assert program.steps == exact.steps
        assert program.split(program.pieces).bandwidth_time() == exact.time
        assert exact.split(exact.pieces).bandwidth_time() == exact.time


@pytest.mark.parametrize("network", ["circulant(n=15, offsets=[1,4,5])", "torus(3,4)", "mesh(2,4)", "hypercube(3)"])
@pytest.mark.parametrize("kind", ["all_gather", "reduce_scatter", "all_reduce"])
def test_the_linear_program_and_the_formula_make_equally_good_schedules(network, kind, pose):
    """Both methods' schedules are right and have the same T_L and T_B, on regular and other networks."""
    instance = pose(network, kind)
    fast, program = run("bfb", instance), run("bfb-lp", instance)
    for outcome in (fast, program):
        assert verdict_of(instance, outcome.answer, outcome.certificate).violations == ()
    assert {key: fast.metrics[key] for key in ("T_L", "T_B")} == {key: program.metrics[key] for key in ("T_L", "T_B")}
    assert program.size.variables > 0
    assert len(program.reports) == (2 if kind == "all_reduce" else 1)


@pytest.mark.parametrize("chunks", [1, 2, 3, 5])
def test_whole_pieces_cost_what_the_formula_rounded_up_says(chunks, pose, random_digraph):
    """The optimum of program (13) is ceil(P U): that of bfb's shares with P pieces, and at least the relaxation."""
    source = Random(chunks)  # noqa: S311
    for _ in range(5):
        topology = random_digraph(source.randint(4, 9), source.randint(2, 4), source)
        instance, exact = pose(topology, chunks=chunks), balance(topology)
        outcome = run("bfb-chunked", instance)
        loads = [Fraction(ceil(chunks * load), chunks) for load in exact.loads]
        expected = Fraction(exact.graph.degree, len(topology.nodes)) * sum(loads)
        assert Fraction(outcome.metrics["T_B"]) == expected == exact.split(chunks).bandwidth_time()
        assert Fraction(outcome.metrics["T_B_relaxed"]) == exact.time <= expected
        assert outcome.metrics["chunks"] == chunks
        assert verdict_of(instance, outcome.answer).violations == ()


def test_rounding_is_within_theorem_20(pose, random_digraph):
    """Rounding the relaxation gives a right schedule whose T_B is between the optimum and the optimum plus the
    theorem's loss."""
    source = Random(20)  # noqa: S311
    for _ in range(10):
        topology = random_digraph(source.randint(4, 9), source.randint(2, 4), source)
        instance = pose(topology, chunks=2)
        best, outcome = run("bfb-chunked", instance), run("bfb-chunked", instance, solution="rounding")
        optimum, found = Fraction(best.metrics["T_B"]), Fraction(outcome.metrics["T_B"])
        assert optimum <= found <= optimum + Fraction(outcome.metrics["T_B_rounding"])
        assert verdict_of(instance, outcome.answer).violations == ()
    exact = balance(topology)
    d, steps, n = exact.graph.degree, exact.steps, len(topology.nodes)
    assert rounding_bound(exact, 2) == Fraction(d * (d**steps - 1), (d - 1) * 2 * n)


@given(st.lists(st.integers(1, 20), min_size=1, max_size=6), st.integers(1, 50))
def test_parts_are_rounded_up_or_down_to_whole_pieces(weights, pieces):
    """Whole pieces sum to all pieces, and each differs by less than one from its part."""
    parts = [weight / sum(weights) for weight in weights]
    whole = round_parts(parts, pieces)
    assert sum(whole) == pieces
    assert all(abs(count - part * pieces) < 1 + 1e-6 for count, part in zip(whole, parts, strict=True))


def test_a_solver_that_finds_nothing_is_told(pose):
    """A solve that ends without a point gives no answer, and says why it ended."""

    class StoppedSolver:
        name = "stopped"

        def solve(self, model, budget, options=None):
            from cwb.core.solver import SolverResult, Termination

            return SolverResult("stopped", "1", Termination.TIME_LIMIT, False)

    method = registry.get("bfb-lp")
    outcome = method.run(pose("ring(4)"), StoppedSolver(), Budget(), method.options())
    assert (outcome.status.value, outcome.answer, outcome.message) == ("limit", None, "time-limit")
