"""Placement layer by layer: the published rule, a search, and the declared model on request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from ...core.bounds import Certificate, LeastLoads, SolverBound
from ...core.budget import Budget, Incumbent
from ...core.experts import Experts
from ...core.instance import Instance
from ...core.outcome import Outcome, Status
from ...core.solver import ModelSize, Solver, SolverOptions, SolverResult, Termination
from .layer import Layer, LayerPlacement
from .method import PlacementOptions
from .problem import experts_of, index, largest, slots_of_model, to_answer

_EXACT = 1e-6  #: Relative gap at which a model is solved to its optimum.


def run(instance: Instance, solver: Solver, budget: Budget, options: PlacementOptions) -> Outcome:
    """Place the experts of every layer (``Method.run``)."""
    experts, random = experts_of(instance), np.random.default_rng(budget.seed)
    count = len(experts.loads)
    layers = [Layer(experts.layer(layer), options.moves, random, budget) for layer in range(count)]
    with budget.clock.phase("build"):
        found = [layer.published_placement() for layer in layers]
        report_layers(found, budget)
        for number, layer in enumerate(layers if options.search != "published" else [], start=1):
            if budget.is_exhausted:
                break
            found[number - 1] = layer.search(found[number - 1])
            report_layers(found, budget)
            budget.progress(f"layer {number:,} of {count:,}: {float(found[number - 1].load):.9g}")
    if options.search == "exact":
        return solve_layers(instance, found, solver, budget)
    return layers_outcome(found, certificate_of(found))


def certificate_of(found: Sequence[LayerPlacement]) -> LeastLoads:
    """Return the certificate of all layers."""
    return LeastLoads(tuple(each.bound for each in found), tuple(each.prices for each in found))


def report_layers(found: Sequence[LayerPlacement], budget: Budget) -> None:
    """Report the best placements and bounds of all layers."""
    slots, certificate = [each.slots for each in found], certificate_of(found)
    load, bound = (float(sum(parts)) for parts in ([each.load for each in found], certificate.loads))
    budget.tell(Incumbent(load, bound, answer=lambda: to_answer(slots), certificate=certificate))


def layers_outcome(
    found: Sequence[LayerPlacement], certificate: Certificate, reports: tuple[SolverResult, ...] = ()
) -> Outcome:
    """Return the outcome of all layers."""
    load, bound = sum(each.load for each in found), sum(each.bound for each in found)
    return Outcome(
        Status.OPTIMAL if bound == load else Status.FEASIBLE,
        to_answer(each.slots for each in found),
        objective=float(load),
        bound=float(bound),
        certificate=certificate,
        reports=reports,
        size=max((report.size for report in reports), key=lambda size: size.variables, default=ModelSize()),
        metrics={"proved_layers": sum(each.bound == each.load for each in found)},
    )


def solve_layers(instance: Instance, found: list[LayerPlacement], solver: Solver, budget: Budget) -> Outcome:
    """Solve the model of every unproved layer, from its known placement."""
    experts, certificate = experts_of(instance), certificate_of(found)
    reports: list[SolverResult] = []
    for layer, known in enumerate(found):
        if known.bound == known.load or budget.is_exhausted:
            continue
        found[layer], result = solve_layer(instance.with_changes(experts=experts.layer(layer)), known, solver, budget)
        reports.append(result)
    attested = any(each.bound > bound for each, bound in zip(found, certificate.loads, strict=True))
    proof = SolverBound(reports[-1].solver, reports[-1].version) if attested else certificate_of(found)
    return layers_outcome(found, proof, tuple(reports))


def solve_layer(
    instance: Instance, known: LayerPlacement, solver: Solver, budget: Budget
) -> tuple[LayerPlacement, SolverResult]:
    """Solve the model of one layer; its bound rests on trust in the solver."""
    from .formulation import build

    experts = index(instance, None)
    with budget.clock.phase("build"):
        model = build(experts)
        set_start(model, experts, known)
        model.T.setub(float(known.load))
    gap = _EXACT if budget.gap is None else budget.gap
    result = solver.solve(model, budget, SolverOptions(rel_gap=gap, use_start=True))
    best = known
    if result.has_solution:
        slots = slots_of_model(model, experts)
        load = largest(experts.loads[0], slots)
        best = replace(best, slots=slots, load=load) if load < best.load else best
    if result.termination is Termination.OPTIMAL and gap <= _EXACT:
        return replace(best, bound=best.load), result
    attested = min(Fraction(result.bound or 0), best.load)
    better = attested > best.bound * (1 + Fraction(gap))
    return replace(best, bound=attested) if better else best, result


def set_start(model: Any, experts: Experts, known: LayerPlacement) -> None:
    """Set the model's variables to a placement."""
    count: dict[int, int] = {}
    for gpu in known.slots:
        for e in gpu:
            count[e] = count.get(e, 0) + 1
    for e, k in model.x:
        model.x[e, k] = int(count[e] == k)
    for e, k, g in model.y:
        model.y[e, k, g] = known.slots[g].count(e) if count[e] == k else 0
    home = {experts.group(e): experts.node(g) for g, gpu in enumerate(known.slots) for e in gpu}
    for p, n in model.z:
        model.z[p, n] = int(home[p] == n)
    model.T = float(known.load)
