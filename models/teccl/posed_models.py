"""Index sets of the declared models as formulations, with what they prove and the schedules read out of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any

from ...core.effort import require_buildable
from ...core.errors import InputError, Unsupported
from ...core.explanation import network_labels
from ...core.instance import Instance
from ...core.schedule import Schedule
from .all_to_all_extract import exact_flows, flow_schedule
from .all_to_all_problem import BlockGrid, Exchange, ReducedFlows, coarse, points_for, reduce
from .bounds import best_cut, lower_bound
from .epoch_schedule import columns_of, fluid_schedule_of, schedule_of
from .extract import EpochSend, finish, needed_sends, path_flows, sends_of_model
from .formulations import all_to_all, astar, lp, milp
from .formulations.astar import RoundIndexSets, RoundState, remaining, round_index_sets
from .formulations.lp import LpIndexSets
from .index_sets import COLUMN_S, IndexSets, index_sets
from .problem import EpochProblem, epoch_problem
from .round_start import SHORT
from .solve_all_to_all import exchange_of
from .solve_milp import require_room, restriction

if TYPE_CHECKING:
    from .options import AllToAllModelOptions, AstarModelOptions, LpModelOptions, MilpModelOptions

#: A part of the demands that is less than all of them by more than this is less for certain.
SURE = 1e-6


@dataclass(frozen=True, eq=False)
class EpochModel:
    """A model of K epochs.

    Parameters
    ----------
    instance : Instance
        As it is posed.
    problem : EpochProblem
        It on its grid.
    epochs : int
        K.
    least : int
        Epochs that distances and cuts prove to be needed.
    """

    instance: Instance
    problem: EpochProblem
    epochs: int
    least: int

    def seconds(self, epochs: int) -> float:
        """Length of so many epochs."""
        return float(self.problem.seconds(epochs))


@dataclass(frozen=True, eq=False)
class MilpModel(EpochModel):
    """The general form of K epochs: its index sets, and what is sought."""

    sets: IndexSets
    objective: str
    weights: tuple[Fraction, ...]


@dataclass(frozen=True, eq=False)
class LpModel(EpochModel):
    """The linear program of K epochs: its index sets, what is sought, and whether room counts more than it need."""

    sets: LpIndexSets
    objective: str
    strict: bool


@dataclass(frozen=True, eq=False)
class RoundModel(EpochModel):
    """The first round of the A* technique: its index sets, gamma, and the most epochs of a schedule."""

    sets: RoundIndexSets
    gamma: float
    most: int | None


@dataclass(frozen=True, eq=False)
class AllToAllModel(EpochModel):
    """The linear program of an all-to-all in K epochs, on blocks and classes of flows."""

    exchange: Exchange
    grid: BlockGrid
    reduced: ReducedFlows


def _enough(given: int | None, default: int, least: int) -> int:
    """K.

    Raises
    ------
    InputError
        If it is given and is too small for distances and cuts alone.
    """
    if given is not None and given < least:
        raise InputError(f"{given} are too few: {least} are needed at least", source="-O", place="epochs")
    return default if given is None else given


def milp_model(instance: Instance, options: MilpModelOptions) -> MilpModel:
    """The general form of the epochs that are given, or of twice those that are needed at least (``Formulation.index``).

    Of fewer epochs than cuts prove to be needed it has no solution; ``cwb solve --explain`` says why.
    """
    problem = epoch_problem(instance)
    least = max(1, lower_bound(problem)[0], problem.diameter)
    epochs = options.epochs or 2 * least
    all_count = options.buffer_counts == "all"
    if all_count:
        require_room(problem)
    sets = index_sets(problem, epochs, hyper_edges=options.switches == "hyper-edges", all_count=all_count)
    require_buildable(sets.columns, f"{epochs} epochs", COLUMN_S)
    weights = tuple(Fraction(weight) for weight in options.priorities or ())
    return MilpModel(instance, problem, epochs, least, sets, options.objective, weights)


def build_milp(index: MilpModel) -> Any:
    """Model ``teccl-milp`` (``Formulation.build``)."""
    return milp.build(index.sets, index.objective, index.weights)


def milp_labels(index: MilpModel) -> Mapping[str, Callable[[Any], str]]:
    """Names of nodes, ways, links and the chunks' sources (``Formulation.labels``)."""
    topology, sources = index.problem.topology, [commodity.source for commodity in index.problem.commodities]
    nodes = range(len(topology.nodes))
    ways = [(arc.source, arc.target) for arc in index.sets.arcs]
    return network_labels(topology, n=nodes, d=nodes, a=ways, link=topology.link_ends, q=sources, p=sources)


def milp_is_bound(index: MilpModel) -> bool:
    """Whether the model rules nothing out that the instance allows (``Formulation.bounds``)."""
    return not restriction(index.problem, index.sets)


def milp_value(index: MilpModel, objective: float) -> float | None:
    """Time of a number of epochs in which something has not arrived; of the paper's objective nothing is known (``Formulation.value``)."""
    return index.seconds(ceil(objective - SURE)) if index.objective == "late" else None


def milp_schedule(model: Any, index: MilpModel) -> Schedule:
    """Schedule of a solved model (``Formulation.extract``)."""
    return schedule_of(index.problem, index.instance, columns_of(sends_of_model(index.sets, model)))


def lp_model(instance: Instance, options: LpModelOptions) -> LpModel:
    """The linear program of the epochs that are given, or of those that are needed at least (``Formulation.index``)."""
    problem = epoch_problem(instance)
    if any(problem.holds):
        raise Unsupported("a switch that can store a limited amount is in teccl/milp alone")
    least = max(1, lower_bound(problem)[0])
    epochs = _enough(options.epochs, max(least, problem.diameter), least)
    sets, strict = LpIndexSets(problem, epochs), any(limit is not None for limit in problem.room)
    require_buildable(sets.columns, f"{epochs} epochs")
    return LpModel(instance, problem, epochs, least, sets, options.objective, strict)


def build_lp(index: LpModel) -> Any:
    """Model ``teccl-lp`` (``Formulation.build``)."""
    return lp.build(index.sets, index.objective)


def lp_is_bound(index: LpModel) -> bool:
    """Whether that a part cannot be met says that the instance cannot be (``Formulation.bounds``)."""
    return not index.strict and index.objective == "makespan"


def lp_value(index: LpModel, objective: float) -> float | None:
    """Time that is needed if no larger part of the demands can be met in K epochs (``Formulation.value``)."""
    return _needed(index, objective)


def _needed(index: EpochModel, part: float) -> float | None:
    """One epoch more than K if a part is lacking, else K if no fewer can do; None if fewer may."""
    if part < 1 - SURE:
        return index.seconds(index.epochs + 1)
    return index.seconds(index.epochs) if index.epochs == index.least else None


def lp_schedule(model: Any, index: LpModel) -> Schedule | None:
    """Schedule of a solved model, None if it does not meet all demands (``Formulation.extract``)."""
    if model.part.value < 1 - 1e-9:
        return None
    values = [{key: v.value for key, v in each.items() if v.value > 0} for each in (model.F, model.B, model.R)]
    return fluid_schedule_of(index.problem, index.instance, path_flows(index.sets, *values))


def round_model(instance: Instance, options: AstarModelOptions) -> RoundModel:
    """A round that begins with what the sources have (``Formulation.index``)."""
    problem = epoch_problem(instance)
    if any(problem.holds):
        raise Unsupported("a switch that can store a limited amount is in teccl/milp alone")
    epochs = options.round_epochs or max(SHORT, *(link.delay for link in problem.links))
    state = RoundState(frozenset((q, c.source) for q, c in enumerate(problem.commodities)))
    sets = round_index_sets(problem, epochs, state)
    require_buildable(sets.columns, f"a round of {epochs} epochs", COLUMN_S)
    return RoundModel(instance, problem, epochs, 1, sets, options.gamma, options.epochs)


def build_round(index: RoundModel) -> Any:
    """Model ``teccl-astar`` (``Formulation.build``)."""
    return astar.build(index.sets, index.gamma)


def round_schedule(model: Any, index: RoundModel) -> Schedule | None:
    """Schedule of the round, None if something is still lacking after it (``Formulation.extract``)."""
    chosen = [key for key in index.sets.sends if model.F[key].value > 0.5]
    sends = [EpochSend(k, q, index.sets.arcs[a].links) for q, a, k in chosen]
    after = index.sets.state.moved(index.problem, sends, index.epochs)
    if any(commodity.targets for commodity in remaining(index.problem, after).commodities):
        return None
    needed = needed_sends(index.problem, sends)
    if index.most is not None and finish(index.problem, needed) > index.most:
        return None
    return schedule_of(index.problem, index.instance, columns_of(needed))


def all_to_all_model(instance: Instance, options: AllToAllModelOptions) -> AllToAllModel:
    """The epochs that are given, or those that are needed at least, in blocks (``Formulation.index``)."""
    problem = epoch_problem(instance)
    exchange = exchange_of(problem, instance)
    least = best_cut(exchange)[0]
    epochs = _enough(options.epochs, least, least)
    grid = coarse(exchange, epochs, options.blocks or epochs, options.side)
    reduced = reduce(points_for(exchange, options.side))
    flows, balances, _ = reduced.classes.sizes
    require_buildable((flows + balances) * grid.blocks, f"{grid.blocks} blocks of epochs")
    return AllToAllModel(instance, problem, epochs, least, exchange, grid, reduced)


def build_all_to_all(index: AllToAllModel) -> Any:
    """Model ``teccl-all-to-all`` (``Formulation.build``)."""
    return all_to_all.build(index.exchange, index.grid, index.reduced)


def all_to_all_value(index: AllToAllModel, objective: float) -> float | None:
    """Time that is needed if no larger part can be delivered (``Formulation.value``).

    A restriction may deliver less than can be, unless its blocks are epochs and all nodes store.
    """
    exact = index.grid.blocks == index.epochs and all(index.exchange.stores)
    if index.grid.side == "restrict" and not exact and objective < 1 - SURE:
        return None
    return _needed(index, objective)


def all_to_all_schedule(model: Any, index: AllToAllModel) -> Schedule | None:
    """Schedule of a restriction that delivers all, None if its flows are none exactly (``Formulation.extract``)."""
    if index.grid.side == "relax" or model.part.value < 1 - SURE:
        return None
    values = {key: variable.value for key, variable in model.F.items()}
    flows = exact_flows(index.exchange, index.grid, index.reduced, values)
    return None if flows is None else flow_schedule(index.instance, flows)
