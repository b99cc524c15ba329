"""Expert placement: the published example, all placements of small ones, bounds, and what ends a search."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement
from threading import Event

import cwb
import numpy as np
import pytest
from cwb import solvers
from cwb.core.bounds import SolverBound
from cwb.core.budget import Budget
from cwb.core.experts import Experts
from cwb.core.outcome import Status
from cwb.core.solver import SolverOptions
from cwb.instances import load
from cwb.models.experts.formulation import build, index, slots_of_model
from cwb.models.experts.layer import Layer, LayerPlacement, pair_bound
from cwb.models.experts.method import PlacementOptions, run, solve_layers
from cwb.models.experts.packing import TooManyError, find_placement_below, largest
from hypothesis import given, settings
from hypothesis import strategies as st

#: The example of EPLB, and the placement that its README prints (deepseek-ai/EPLB, d52c72d).
LAYERS = [
    [90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86],
    [20, 107, 104, 64, 19, 197, 187, 157, 172, 86, 16, 27],
]
PRINTED = [[5, 6, 5, 7, 8, 4, 3, 4, 10, 9, 10, 2, 0, 1, 11, 1], [7, 10, 6, 8, 6, 11, 8, 9, 2, 4, 5, 1, 5, 0, 3, 1]]
BOUND = f"experts(gpus=8, slots=2, groups=4, nodes=2, loads={LAYERS})"
FREE = f"experts(gpus=8, slots=2, loads={LAYERS})"


def layer_of(experts: Experts, moves: int = 200) -> Layer:
    return Layer(experts, moves, np.random.default_rng(0), Budget())


@pytest.mark.parametrize(("layer", "load"), [(0, 156), (1, Fraction(359, 2))])
def test_the_published_rule_is_that_of_the_printed_placement(layer, load):
    """The rule has the largest load that the printed placement has, in both layers."""
    experts = load_experts(BOUND).layer(layer)
    slots = list(zip(PRINTED[layer][::2], PRINTED[layer][1::2], strict=True))
    assert largest(experts.loads[0], slots) == load
    assert layer_of(experts).published_placement().load == load


def load_experts(spec: str) -> Experts:
    experts = load(spec).experts
    assert experts is not None
    return experts


@pytest.mark.parametrize(("spec", "loads"), [(BOUND, [151, 179.5]), (FREE, [136, 172])])
def test_the_optimum_of_the_published_example(spec, loads):
    """Both layers are proved optimal with groups on nodes and without, and the verifier recomputes the proof."""
    record = cwb.solve(spec, "expert-placement")
    assert (record.status, record.verified, record.proof) == ("optimal", True, "recomputed")
    assert record.metrics["layer_loads"] == loads
    assert record.bound == record.objective == sum(loads)


@pytest.mark.slow
def test_the_model_of_the_published_example():
    """The declared model proves 151, too, and its placement has that load."""
    experts = index(load(f"experts(gpus=8, slots=2, groups=4, nodes=2, loads={LAYERS[0]})"), None)
    model = build(experts)
    result = solvers.get("highs").solve(model, Budget(), SolverOptions())
    assert result.bound == pytest.approx(151)
    assert largest(experts.loads[0], slots_of_model(model, experts)) == 151


@st.composite
def small(draw: st.DrawFn) -> Experts:
    """A few experts on a few GPUs, with groups on nodes or without."""
    nodes, gpus, slots = draw(st.sampled_from([(1, 2, 2), (1, 3, 2), (1, 2, 3), (1, 4, 1), (2, 2, 2), (2, 4, 2)]))
    groups = nodes * draw(st.integers(1, 2)) if nodes > 1 else 1
    count = groups * draw(st.integers(1, min(5, gpus * slots) // groups))
    loads = draw(st.lists(st.fractions(0, 20, max_denominator=4), min_size=count, max_size=count))
    return Experts((tuple(loads),), gpus, slots, groups, nodes)


def least(experts: Experts) -> Fraction:
    """The optimum, by trying what every GPU may have."""
    loads, best = experts.loads[0], sum(experts.loads[0], Fraction(0)) + 1

    def fill(held: list[tuple[int, ...]]) -> None:
        nonlocal best
        if len(held) < experts.gpus:
            for more in combinations_with_replacement(range(experts.count), experts.slots):
                if not held or held[-1] <= more or experts.node(len(held)) != experts.node(len(held) - 1):
                    fill([*held, more])
            return
        homes = {(experts.group(e), experts.node(g)) for g, gpu in enumerate(held) for e in gpu}
        apart = experts.nodes > 1 and (
            len(homes) > experts.groups
            or any(sum(n == m for _, m in homes) * experts.nodes != experts.groups for _, n in homes)
        )
        if not apart and len({e for gpu in held for e in gpu}) == experts.count:
            best = min(best, largest(loads, held))

    fill([])
    return best


@settings(max_examples=25)
@given(small())
def test_small_instances_are_solved(experts):
    """The search ends with the optimum of trying everything, and proves it."""
    layer = layer_of(experts)
    found = layer.search(layer.published_placement())
    assert found.load == found.bound == largest(experts.loads[0], found.slots)
    assert found.load == least(experts)


@settings(max_examples=4)
@given(st.lists(st.integers(1, 60), min_size=3, max_size=8), st.integers(0, 3))
def test_prices_prove_no_more_than_the_optimum(loads, further):
    """In two slots on every GPU, prices bound the optimum from below, whatever the loads are."""
    further += (len(loads) + further) % 2
    gpus = (len(loads) + further) // 2
    experts = Experts((tuple(map(Fraction, loads)),), gpus, 2)
    layer = layer_of(experts)
    found = layer.search(layer.published_placement())
    bound, prices, _ = pair_bound(experts.loads[0], gpus, Fraction(sum(loads), gpus), found.load + 1)
    assert found.bound == found.load >= bound
    assert prices is None or bound > Fraction(sum(loads), gpus)


def test_loads_of_all_sizes_have_prices():
    """A load that is nearly nothing beside the others adds no rows for numbers of replicas that nobody has."""
    loads = (Fraction(10**12), Fraction(1, 10**9), *(Fraction(10**10 + e) for e in range(30)))
    average = sum(loads) / 64
    assert pair_bound(loads, 64, average, 2 * average)[0] >= average


def test_slots_are_filled_by_trying_all():
    """In three slots: 8+1+1 and 5+3+2 have less than 11, and nothing has less than 10."""
    loads = [Fraction(load) for load in (8, 5, 3, 2, 1, 1)]
    found = find_placement_below(loads, 2, 3, Fraction(11))
    assert found is not None
    assert largest(tuple(loads), found) == 10
    assert find_placement_below(loads, 2, 3, Fraction(10)) is None


def test_too_many_placements_are_not_tried():
    """With many experts and further replicas it is said that there are too many."""
    with pytest.raises(TooManyError):
        find_placement_below([Fraction(1)] * 100, 20, 10, Fraction(7))


def test_two_slots_on_many_gpus():
    """With two slots on each of 48 GPUs prices prove more than the average, within 5 % of what is found."""
    record = cwb.solve("experts(gpus=48, slots=2, experts=86)", "expert-placement", moves=300)
    assert record.verified
    assert record.certificate["prices"][0] is not None
    assert record.metrics["balancedness"] * record.objective < record.bound < record.objective < 1.05 * record.bound


@pytest.mark.slow
def test_the_model_is_solved_where_it_is_asked_for():
    """With search=exact the model begins with what is found, and makes it better."""
    spec = "experts(gpus=3, slots=5, loads=[55, 49, 58, 52, 46, 38, 6])"
    local, exact = (cwb.solve(spec, "expert-placement", search=search) for search in ("local", "exact"))
    assert (exact.status, exact.solver, exact.verified) == ("optimal", "highs", True)
    assert exact.objective == exact.bound < local.objective
    assert exact.objective == pytest.approx(304 / 3)


def test_the_model_attests_what_is_not_proved():
    """Of a layer without a proof the model's bound is the solver's word, and its placement the optimum."""
    instance = load("experts(gpus=2, slots=2, loads=[5, 3, 1])")
    worse = LayerPlacement([[0, 1], [0, 2]], Fraction(11, 2), Fraction(9, 2))
    outcome = solve_layers(instance, [worse], solvers.get("highs"), Budget())
    assert (outcome.status, outcome.objective, outcome.bound) == (Status.OPTIMAL, 5, 5)
    assert isinstance(outcome.certificate, SolverBound)


def test_time_that_is_over_leaves_the_published_rule():
    """Without time for a search, the answer is the published rule's placement of all layers, with a bound."""
    stop = Event()
    stop.set()
    outcome = run(load(BOUND), solvers.get("highs"), Budget(stop=stop), PlacementOptions.model_validate({}))
    assert outcome.objective == 335.5
    assert outcome.bound is not None


def test_the_model_is_of_one_layer():
    """A formulation that is asked for two layers says who takes them."""
    reason = cwb.formulation("expert-placement/slots").supports(load(BOUND))
    assert str(reason) == "it is a model of one layer, and there are 2; expert-placement supports them"


@pytest.mark.parametrize(("gpus", "slots", "others"), [(16, 2, 12), (64, 2, 50), (32, 4, 54)])
def test_one_expert_far_above_all_others_is_as_often_on_every_gpu(gpus, slots, others):
    """Replicas beyond one on every GPU would be on some alone; the slots are of other experts, and the bound is
    near."""
    loads = ", ".join(["1000000", *["7"] * others])
    record = cwb.solve(f"experts(gpus={gpus}, slots={slots}, loads=[{loads}])", "expert-placement")
    assert record.verified
    assert record.gap < 1e-3
