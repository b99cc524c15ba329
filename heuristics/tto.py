"""TTO, three tree overlap: three spanning trees of a 2D mesh, whose sums go up while earlier ones come down.

Laskar et al., HPCA 2024, as far as other texts describe it. No two neighbours are joined by more than two of the trees,
so that in every two steps a link has room for all that goes up or down over it. Trees, their existence, time and own
choices: docs/methods/tto.md.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from ..algorithms.schedules.pipelined_trees import TreeEdge, tree_all_reduce
from ..core.budget import Budget
from ..core.collective import Collective
from ..core.errors import Refusal, Unsupported
from ..core.fields import Strict
from ..core.instance import Instance
from ..core.method import Metric
from ..core.outcome import Outcome
from ..core.refusals import refuse_unfit
from ..core.schedule import Schedule
from ..core.solver import Solver
from ..core.topology import Topology
from . import heuristic
from .textbook.lattice import find_lattice

SMALLEST = 3  #: Sides from which on there are three trees.
PERIOD = 2  #: Steps after which the next piece follows.


def mesh_sides(topology: Topology) -> tuple[int, int] | None:
    """Return rows and columns of a mesh numbered row by row; None for other networks."""
    lattice = find_lattice(topology)
    if lattice is None or len(lattice.sizes) > 2 or len(set(topology.link_ends)) != len(topology.links):
        return None
    if any(closed and size > 2 for size, closed in zip(lattice.sizes, lattice.closed, strict=True)):
        return None
    columns, rows = (*lattice.sizes, 1, 1)[:2]
    return rows, columns


def three_trees(topology: Topology, rows: int, columns: int, *, edge_roots: bool) -> list[list[TreeEdge]]:
    """Return the edges of the trees, those of a parent before those of its children.

    The mesh is numbered row by row. Roots are at its edge if ``edge_roots``, otherwise anywhere, where they give a tree
    of least height.
    """
    import networkx as nx

    middle = columns // 2
    nodes = range(rows * columns)
    across = {(n, n + 1) for n in nodes if (n + 1) % columns}
    along = {(n, n + columns) for n in nodes[:-columns]}
    spine = {(a, b) for a, b in along if a % columns == middle}
    last = (rows - 1) * columns
    hem = {(a, b) for a, b in across if (b < columns and b <= middle) or (a >= last and a - last >= middle)}
    link = {ends: index for index, ends in enumerate(topology.link_ends)}
    trees = []
    for pairs in (across | spine, along | hem, (across | along) - spine - hem):
        tree = nx.from_edgelist(sorted(pairs))
        edge = [n for n in nodes if n // columns in (0, rows - 1) or n % columns in (0, columns - 1)]
        heights: Any = nx.eccentricity(tree, edge if edge_roots else nodes)
        root = min(heights, key=heights.get)
        trees.append([TreeEdge(n, up, (link[n, up],), (link[up, n],)) for up, n in nx.bfs_edges(tree, root)])
    return trees


class TtoOptions(Strict):
    """Options of ``tto``."""

    pieces: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Pieces of each tree's third; by default the collective's chunks, or the best number if 1."""
    roots: Literal["edge", "any"] = "edge"
    """Place of the trees' roots: at the edge of the mesh, as published, or anywhere."""


def supports(instance: Instance) -> Refusal | None:
    """Return the reason why an instance does not fit, if any (``Method.supports``)."""
    unfit = refuse_unfit(instance, (Collective.ALL_REDUCE,), such_as="mesh(4,4)", single=True, of_all=True)
    if unfit is not None:
        return unfit
    sides = mesh_sides(instance.topology)
    text = ""
    if sides is None:
        text = "the network is not a 2D mesh with its ranks numbered row by row; expected one such as mesh(4,4)"
    elif min(sides) < SMALLEST:
        text = f"a mesh of {sides[0]} x {sides[1]} has no room for three trees; expected at least "
        text += f"{SMALLEST} x {SMALLEST}"
    return Refusal("network", text) if text else None


def run(instance: Instance, solver: Solver, budget: Budget, options: TtoOptions) -> Outcome:
    """Build the trees and send the pieces (``Method.run``)."""
    topology = instance.topology
    sides = mesh_sides(topology)
    if sides is None:
        raise Unsupported("expected a mesh")
    with budget.clock.phase("build"):
        trees = three_trees(topology, *sides, edge_roots=options.roots == "edge")
        return tree_all_reduce(instance, topology, trees, [1] * len(topology.links), PERIOD, options.pieces)


METHOD = heuristic(
    name="tto",
    summary="three trees on a 2D mesh, sums going up while earlier ones come down",
    paper="Laskar et al., Enhancing Collective Communication in MCM Accelerators for Deep Learning Training, HPCA 2024",
    answer_type=Schedule,
    options=TtoOptions,
    solve=run,
    supports=supports,
    metrics={
        "pieces": Metric("pieces of each tree's third of the data, K"),
        "piece_steps": Metric("steps that a piece takes through the trees, L"),
    },
)
