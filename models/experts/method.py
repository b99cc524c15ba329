"""Method ``expert-placement`` and its formulation: the published rule, a search, and the declared model on request."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Literal

import numpy as np
from pydantic import Field

from ...core.answers import Placement
from ...core.bounds import Certificate, LeastLoads, SolverBound
from ...core.budget import Budget, Incumbent
from ...core.errors import Refusal
from ...core.fields import Strict
from ...core.formulation import Formulation
from ...core.instance import Instance
from ...core.method import Kind, Method, Metric
from ...core.network_views import NetworkView
from ...core.outcome import Outcome, Status
from ...core.solver import ModelSize, Solver, SolverOptions, SolverResult, Termination
from .layer import Layer, LayerPlacement
from .packing import largest, placement_of

_EXACT = 1e-6  #: Relative gap at which a model is solved to its optimum.
PAPER = "DeepSeek's EPLB (deepseek-ai/EPLB on GitHub): the problem, its rule for nodes and its heuristic"


class PlacementOptions(Strict):
    """Options of ``expert-placement``."""

    search: Literal["published", "local", "exact"] = "local"
    """published is EPLB's rule alone; local makes it better, and tries all placements of a few replicas; exact solves
    expert-placement/slots, too, for layers that are not proved."""
    moves: int = Field(2000, ge=0, le=10_000_000)
    """Random changes that are tried where every GPU has two slots."""


def supports(instance: Instance) -> Refusal | None:
    """Refuse all but experts (``Method.supports``)."""
    if instance.experts is None:
        return Refusal(
            "workload", "it needs an instance with experts, such as experts(gpus=8, slots=2, loads=[90, 132, 40])"
        )
    return None


def supports_layer(instance: Instance) -> Refusal | None:
    """Refuse all but experts of one layer (``Formulation.supports``)."""
    if instance.experts is not None and len(instance.experts.loads) > 1:
        return Refusal(
            "workload",
            f"it is a model of one layer, and there are {len(instance.experts.loads):,}; expert-placement supports "
            "them",
        )
    return supports(instance)


def run(instance: Instance, solver: Solver, budget: Budget, options: PlacementOptions) -> Outcome:
    """Place the experts of every layer (``Method.run``)."""
    experts, random = instance.experts, np.random.default_rng(budget.seed)
    assert experts is not None  # noqa: S101 (it is supported)
    count = len(experts.loads)
    layers = [Layer(experts.layer(layer), options.moves, random, budget) for layer in range(count)]
    with budget.clock.phase("build"):
        placements = [layer.published_placement() for layer in layers]
        report_layers(placements, budget)
        for number, layer in enumerate(layers if options.search != "published" else [], start=1):
            if budget.is_exhausted:
                break
            placements[number - 1] = layer.search(placements[number - 1])
            report_layers(placements, budget)
            budget.progress(f"layer {number:,} of {count:,}: {float(placements[number - 1].load):.9g}")
    if options.search == "exact":
        return solve_layers(instance, placements, solver, budget)
    return layers_outcome(placements, certificate_of(placements), [])


def certificate_of(placements: Sequence[LayerPlacement]) -> LeastLoads:
    """Return the certificate of all layers."""
    return LeastLoads(tuple(each.bound for each in placements), tuple(each.prices for each in placements))


def report_layers(placements: Sequence[LayerPlacement], budget: Budget) -> None:
    """Report the best placements and bounds of all layers."""
    slots, certificate = [each.slots for each in placements], certificate_of(placements)
    load, bound = (float(sum(parts)) for parts in ([each.load for each in placements], certificate.loads))
    budget.tell(Incumbent(load, bound, answer=lambda: placement_of(slots), certificate=certificate))


def layers_outcome(
    placements: Sequence[LayerPlacement], certificate: Certificate, reports: Sequence[SolverResult]
) -> Outcome:
    """Return the outcome of all layers."""
    load, bound = sum(each.load for each in placements), sum(each.bound for each in placements)
    return Outcome(
        Status.OPTIMAL if bound == load else Status.FEASIBLE,
        placement_of(each.slots for each in placements),
        objective=float(load),
        bound=float(bound),
        certificate=certificate,
        reports=tuple(reports),
        size=max((report.size for report in reports), key=lambda size: size.variables, default=ModelSize()),
        metrics={"proved_layers": sum(each.bound == each.load for each in placements)},
    )


def solve_layers(instance: Instance, placements: list[LayerPlacement], solver: Solver, budget: Budget) -> Outcome:
    """Solve the model of every unproved layer, from its known placement; such bounds rest on trust in the solver."""
    from . import formulation

    assert instance.experts is not None  # noqa: S101 (it is supported)
    certificate = certificate_of(placements)
    gap = _EXACT if budget.gap is None else budget.gap
    reports: list[SolverResult] = []
    for layer, placement in enumerate(placements):
        if placement.bound == placement.load or budget.is_exhausted:
            continue
        experts = formulation.index(instance.with_changes(experts=instance.experts.layer(layer)), None)
        with budget.clock.phase("build"):
            model = formulation.build(experts)
            formulation.set_start(model, experts, placement.slots)
            model.T.setub(float(placement.load))
        result = solver.solve(model, budget, SolverOptions(rel_gap=gap, use_start=True))
        reports.append(result)
        if result.has_solution:
            slots = formulation.slots_of_model(model, experts)
            if (load := largest(experts.loads[0], slots)) < placement.load:
                placements[layer] = replace(placement, slots=slots, load=load)
        least = placements[layer].load
        if result.termination is not Termination.OPTIMAL or gap > _EXACT:
            attested = min(Fraction(result.bound or 0), least)
            least = attested if attested > placement.bound * (1 + Fraction(gap)) else placement.bound
        placements[layer] = replace(placements[layer], bound=least)
    is_attested = any(each.bound > bound for each, bound in zip(placements, certificate.loads, strict=True))
    proof = SolverBound(reports[-1].solver, reports[-1].version) if is_attested else certificate_of(placements)
    return layers_outcome(placements, proof, reports)


METHOD = Method(
    name="expert-placement",
    kind=Kind.HEURISTIC,
    summary="replicas of experts on the slots of GPUs, for the least largest load, with a proof where a bound is met",
    paper=PAPER,
    answer_type=Placement,
    options=PlacementOptions,
    solve=run,
    objective_unit=lambda instance: "load",
    supports=supports,
    networks=NetworkView.EITHER,
    metrics={"proved_layers": Metric("layers whose bound is met")},
)

SLOTS = Formulation(
    "expert-placement/slots",
    summary="the least largest load of a GPU, over replicas of experts and their places",
    paper=PAPER,
    equations="not printed; ours",
    index=f"{__package__}.formulation:index",
    build=f"{__package__}.formulation:build",
    extract=f"{__package__}.formulation:extract",
    needs=("integers",),
    supports=supports_layer,
    networks=NetworkView.EITHER,
    objective_unit=lambda instance: "load",
    agrees_with="expert-placement",
)
