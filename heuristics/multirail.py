"""``blueconnect`` and ``themis``: in which order each chunk passes the dimensions of a fabric.

Sources: dissertation, section 4.2.2; Rashidi et al., "Themis", ISCA 2022, algorithm 1. Orders and the threshold of
``themis``: docs/methods/multirail.md.
"""

from fractions import Fraction
from functools import partial

from ..core.answers import ChunkOrders
from ..core.budget import Budget, require_schedulable
from ..core.collective import Demand
from ..core.errors import Unsupported
from ..core.fabric import WiredFabric
from ..core.instance import Instance
from ..core.network_views import NetworkView
from ..core.outcome import Outcome, Status
from ..core.solver import Solver
from ..core.topology import Topology
from ..models.multirail.method import THEMIS_PAPER, QueueOptions, ThemisOptions, pose, supports_meshes
from ..models.multirail.problem import loads_s, stage_s, wired_fabric_of
from . import heuristic

_MAX_SENDS = 5_000_000  #: Sends up to which orders on a mesh are timed by them.
_THRESHOLD = Fraction(1, 16)  #: The part of a chunk whose time is the threshold.


def run_blueconnect(instance: Instance, solver: Solver, budget: Budget, options: QueueOptions) -> Outcome:
    """Return every chunk the order 1, 2, ..., N (``Method.run``)."""
    _refuse_many(instance)
    order = tuple(range(len(wired_fabric_of(instance).dimensions)))
    return Outcome(Status.FEASIBLE, ChunkOrders((order,) * instance.demands[0].chunks, options.queue))


def run_themis(instance: Instance, solver: Solver, budget: Budget, options: ThemisOptions) -> Outcome:
    """Order the chunks greedily (``Method.run``)."""
    _refuse_many(instance)
    orders = greedy_orders(wired_fabric_of(instance), instance.demands[0])
    return Outcome(Status.FEASIBLE, ChunkOrders(orders, options.queue))


def _refuse_many(instance: Instance) -> None:
    """Reject a mesh on which the orders would be too many sends, by which alone their time is told."""
    if not isinstance(instance.network, Topology):
        return
    fabric, demand = wired_fabric_of(instance), instance.demands[0]
    halves = 2 if max(fabric.sizes) > 3 else 1
    sends = demand.chunks * demand.collective.passes * fabric.npus * (fabric.npus - 1) * halves
    if sends > _MAX_SENDS:
        raise Unsupported(f"{sends:,} sends on the links of a mesh; expected at most {_MAX_SENDS:,}, with fewer chunks")
    require_schedulable(sends, 2 * sends)


def greedy_orders(fabric: WiredFabric, demand: Demand) -> tuple[tuple[int, ...], ...]:
    """Return the order of every chunk."""
    dimensions = range(len(fabric.dimensions))
    size = demand.size_bytes / demand.chunks
    load = [Fraction(0)] * len(dimensions)
    orders: list[tuple[int, ...]] = []
    for _ in range(demand.chunks):
        ranked = tuple(sorted(dimensions, key=lambda d: load[d]))
        least, most = ranked[0], ranked[-1]
        even = load[most] - load[least] < stage_s(fabric, least, size * _THRESHOLD)
        order = tuple(dimensions) if even else ranked
        load = [sum(pair, Fraction(0)) for pair in zip(load, loads_s(fabric, demand, order, size), strict=True)]
        orders.append(order)
    return tuple(orders)


_orders = partial(heuristic, answer_type=ChunkOrders, supports=supports_meshes, networks=NetworkView.FABRIC, pose=pose)

BLUECONNECT = _orders(
    name="blueconnect",
    summary="every chunk through the dimensions from the inside out, and back",
    paper="Cho et al., BlueConnect, SysML 2019; dissertation behind ASTRA-sim 2.0, section 4.2.2",
    options=QueueOptions,
    solve=run_blueconnect,
)

THEMIS = _orders(
    name="themis",
    summary="chunk after chunk in the order that evens out the dimensions' loads",
    paper=THEMIS_PAPER,
    options=ThemisOptions,
    solve=run_themis,
)
