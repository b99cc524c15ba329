"""Options of the LIBRA methods, and how those that state the problem change the instance."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from ...core.design import Design, Objective, PartialUse, parse_constraints
from ...core.errors import InputError
from ...core.fields import Money, Rate, Strict
from ...core.instance import Instance
from ...core.workload import TrainingLoop

_NONE = "none"


def _lines(value: object) -> object:
    """Take one text for a list of constraints."""
    return [value] if isinstance(value, str) else value


class DesignOptions(Strict):
    """What is asked of the design; each replaces what the instance says."""

    objective: Objective | None = Field(None, description="perf (iteration time) or perf-per-cost (time times cost).")
    total_bandwidth: Rate | Literal["none"] | None = Field(
        None, description="Bandwidth per NPU over all dimensions, used exactly; 'none' drops the instance's."
    )
    max_total_bandwidth: Rate | Literal["none"] | None = Field(
        None, description="The same as an upper limit; replaces an exact total."
    )
    cost_budget: Money | Literal["none"] | None = Field(
        None, description="Upper limit on the cost of the network (iso-cost: with total_bandwidth=none)."
    )
    constraints: Annotated[list[str] | None, BeforeValidator(_lines)] = Field(
        None, description="Linear constraints such as 'B1 >= B2; B3 <= 50 GB/s'; replace the instance's."
    )
    partial_use: PartialUse | None = Field(
        None, description="Bandwidth of an FC dimension for a group that spans a part of it: full or direct-links."
    )
    loop: TrainingLoop | None = Field(None, description="Training loop of all workloads: no-overlap or tp-dp-overlap.")


class LibraOptions(DesignOptions):
    """Options of ``libra``."""

    gap: Annotated[float, Field(ge=1e-9, le=0.1)] | None = Field(
        None, description="Relative gap to certify: 1e-7 for perf and 1e-6 for perf-per-cost unless given."
    )
    algorithm: Literal["auto", "outer-approximation", "direct"] = Field(
        "auto", description="direct hands the bilinear model to the solver; auto does where the solver can take it."
    )


class CodesignOptions(LibraOptions):
    """Options of ``libra-codesign``."""

    tensor_parallel: list[Annotated[int, Field(ge=1, le=10**9)]] | None = Field(
        None, description="TP degrees to try, such as [8,16,32]; by default every power of two that fits."
    )


def pose(instance: Instance, options: DesignOptions) -> Instance:
    """Fold the options that state the problem into the instance.

    Raises
    ------
    InputError
        If options contradict one another or name a dimension that the network does not have.
    """
    design = instance.design or Design()
    changes: dict[str, Any] = {}
    if options.objective is not None:
        changes["objective"] = options.objective
    if options.total_bandwidth is not None and options.max_total_bandwidth not in (None, _NONE):
        raise InputError("give total_bandwidth (exactly) or max_total_bandwidth (at most), not both", source="-O")
    if options.total_bandwidth is not None:
        changes |= {"total_Bps": _value(options.total_bandwidth), "max_total_Bps": None}
    if options.max_total_bandwidth is not None:
        changes["max_total_Bps"] = _value(options.max_total_bandwidth)
        if changes["max_total_Bps"] is not None:
            changes["total_Bps"] = None
    if options.cost_budget is not None:
        changes["cost_budget_usd"] = _value(options.cost_budget)
    if options.constraints is not None:
        for text in options.constraints:
            try:
                parse_constraints(text, len(instance.fabric.dimensions))
            except InputError as error:
                raise error.at(source="-O constraints") from None
        changes["constraints"] = tuple(options.constraints)
    if options.partial_use is not None:
        changes["partial_use"] = options.partial_use
    posed = instance.with_changes(design=replace(design, **changes))
    if options.loop is None:
        return posed
    return posed.with_changes(
        workloads=tuple(replace(w, loop=options.loop) for w in posed.workloads),
        transformers=tuple(replace(t, loop=options.loop) for t in posed.transformers),
    )


def _value(given: Any) -> Any:
    """Give the quantity, or None for the word."""
    return None if given == _NONE else given
