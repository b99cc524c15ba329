"""TE-CCL's MILP with its extensions, A*, the linear program, and the linear program of the all_to_all on blocks of
epochs."""

from __future__ import annotations

import runpy
from fractions import Fraction
from pathlib import Path

from cwb.models.teccl.all_to_all_problem import BlockGrid, BlockProgram, Exchange, points_for, reduce
from cwb.models.teccl.formulations import all_to_all as all_to_all_model
from cwb.models.teccl.formulations import astar as astar_model
from cwb.models.teccl.formulations import lp as lp_model
from cwb.models.teccl.formulations import milp as milp_model
from cwb.models.teccl.index_sets import index_sets
from cwb.models.teccl.problem import epoch_problem
from grids import network, on_grid, with_room, with_switch

PAIR = network(2, [(0, 1, 1, 0), (1, 0, 1, 0)])
LINE = network(3, [(0, 1, 1, 0), (1, 0, 1, 0), (1, 2, 1, 0), (2, 1, 1, 0)])
FAT = network(3, [(0, 3, 2, 0), (3, 1, 1, 0), (3, 2, 1, 0)], (3,), multicast=False)

#: Ranks 0 and 1 with a link each way, and a switch 2 from 0 to 1; delays of 1, and of 2 into the switch.
EXCHANGE = Exchange(
    (True, True, False), (0, 1), (0, 1, 0, 2), (1, 0, 2, 1), (1, 1, 2, 1), tuple(map(Fraction, (1, 1, 2, "1/2")))
)


def milp(instance, epochs, objective="paper", **options):
    """The MILP of an instance within so many epochs."""
    return milp_model.build(index_sets(epoch_problem(instance), epochs, objective=objective, **options))


def one_source(**switch):
    """A broadcast of one chunk from rank 0 over the switch."""
    return on_grid(with_switch(**switch), "broadcast")


def astar():
    """A round of two epochs."""
    problem = epoch_problem(one_source())
    return astar_model.build(astar_model.round_index_sets(problem, 2, astar_model.RoundState(frozenset([(0, 0)]))))


def few_sends():
    """The example of a variant with a constraint of its own."""
    example = runpy.run_path(str(Path(__file__).parents[3] / "examples" / "teccl_variants.py"))
    return example["FEW_SENDS"].build(index_sets(epoch_problem(one_source()), 3, objective="late"))


def lp(objective="makespan"):
    """The linear program of a scatter on ranks that have room for one chunk of others."""
    problem = epoch_problem(with_room(on_grid(with_switch(), "scatter", fluid=True), 1))
    return lp_model.build(lp_model.LpIndexSets(problem, 4, objective))


def alltoall(side="restrict"):
    """Blocks of one, two and one epochs."""
    reduced = reduce(points_for(EXCHANGE, side))
    return all_to_all_model.build(BlockProgram(EXCHANGE, BlockGrid((0, 1, 3, 4), side), reduced))


def shortest():
    """Return the model of the shortest schedule, after the largest delivery."""
    model = alltoall()
    all_to_all_model.shortest(model)
    return model


ENDS = ["capacity", "buffers", "destination"]
KEPT = [*ENDS, "flow_conservation"]
COPIED = [*KEPT, "passing_on"]
ALLTOALL = ["balance", "switch", "capacity", "delivery"]

MODELS = {
    "milp_{}": (
        lambda: milp(one_source(), 3),
        ["capacity", "buffers", "flow_conservation", "passing_on", "destination"],
    ),
    "late_{}": (lambda: milp(one_source(), 3, objective="late"), ["not_arrived"], COPIED),
    "variant_{}": (few_sends, ["few_sends"], [*COPIED, "not_arrived"]),
    "window_{}": (
        lambda: milp(on_grid(PAIR, "scatter", chunks=2, epoch_us=Fraction(1, 2)), 5),
        ["capacity"],
        ["buffers", "destination"],
    ),
    "no_copy_{}": (lambda: milp(one_source(multicast=False), 3), ["passing_on_once"], KEPT),
    "stores_{}": (lambda: milp(one_source(multicast=False, buffer=None), 4), ["flow_conservation_once"], KEPT),
    "sum_{}": (lambda: milp(on_grid(PAIR, "all_reduce"), 3), ["ready"], KEPT),
    "added_{}": (
        lambda: milp(on_grid(LINE, "reduce", 2), 3),
        ["capacity", "added_up"],
        ["buffers", "destination", "flow_conservation"],
    ),
    "copies_{}": (
        lambda: milp(on_grid(FAT, "broadcast", 2), 2),
        ["capacity", "passing_on_once"],
        ["buffers", "destination"],
    ),
    "limited_{}": (
        lambda: milp(with_room(on_grid(with_switch(), "scatter"), 1), 4),
        ["buffers", "limited_buffers", "removal"],
        ["capacity", "destination", "flow_conservation", "passing_on"],
    ),
    "pass_{}": (
        lambda: milp(with_room(on_grid(LINE, "broadcast"), 0), 3),
        ["arrival"],
        ["destination", "passing_on"],
    ),
    "small_switch_{}": (
        lambda: milp(one_source(multicast=False, buffer=Fraction(1000)), 4),
        ["limited_buffers"],
        [*KEPT, "flow_conservation_once"],
    ),
    "hyper_{}": (
        lambda: milp(one_source(multicast=False), 4, hyper_edges=True),
        ["capacity", "hyper_edge_limit"],
        ["buffers", "destination", "flow_conservation"],
    ),
    "astar_{}": (
        astar,
        ["buffers", "passing_on", "on_the_way", "assignment"],
        ["capacity", "flow_conservation"],
    ),
    "lp_{}": (lp, ["capacity", "flow_conservation", "destination", "limited_buffers"]),
    "lp_paper_{}": (lambda: lp("paper"), ["destination"], ["capacity", "flow_conservation", "limited_buffers"]),
    "alltoall/restrict_{}": (alltoall, ALLTOALL),
    "alltoall/relax_{}": (lambda: alltoall("relax"), ALLTOALL),
}
OBJECTIVES = {"alltoall/objective": alltoall, "alltoall/shortest": shortest}
