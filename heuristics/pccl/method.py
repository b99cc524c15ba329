"""``pccl``: the method, its options, and which instances it is for.

Each condition of the option ``conditions`` (section 6.4.1) becomes a broadcast or a message among the instance's
collectives, so that the verifier sees the same problem.
"""

from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field

from ...core.collective import Collective, Demand, conditions
from ...core.errors import NO_COLLECTIVE, InputError, Refusal, show_value
from ...core.fields import Strict
from ...core.instance import Instance
from ...core.method import Kind, Method, Metric
from ...core.refusals import refuse_unfit
from ...core.schedule import Schedule
from ...core.timing import Semantics, Timing
from ...core.topology import NodeKind, Topology
from ...core.units import UnitKind as Quantity
from ...core.units import parse

MAX_CONDITIONS = 100_000  #: Most conditions that are read.


class PcclOptions(Strict):
    """Options of ``pccl``."""

    orders: Literal["portfolio", "paper"] = "portfolio"
    """portfolio tries orders and kinds of paths, then ruin and recreate; paper the longest path first."""
    others: bool = Field(True, description="True if a portfolio begins with the answers of other methods.")
    restarts: int = Field(4, ge=0, le=1000, description="Rounds of attempts beyond the first one.")
    steps: Annotated[int, Field(ge=0, le=10**9)] = 400_000
    """Rough limit on the searched paths of chunks; the first attempt is always made."""
    bound: Literal["auto", "cut", "flow"] = "auto"
    """cut bounds by sets of nodes and distances; flow also by the maximum concurrent flow; auto does so where it is
    small and the others are not nearly met."""
    conditions: str = Field("", max_length=10_000_000)
    """Conditions in addition to the instance's collectives, such as '0->1,2: 1 MiB; 3->0: 512 KiB': who has a chunk,
    and who needs it."""


def supports(instance: Instance) -> Refusal | None:
    """Return why an instance does not fit, if it does not (``Method.supports``)."""
    if instance.timing is not None:  # given by the instance; pose adds one of steps later
        return Refusal("timing", "it schedules in seconds, not on a grid of epochs")
    reason = refuse_unfit(instance, such_as="mesh(4,4)")
    return None if reason is NO_COLLECTIVE and instance.experts is None else reason  # options may have conditions


def pose(instance: Instance, options: PcclOptions) -> Instance:
    """Add the options' conditions; where all chunks take equally long, count time in steps (``Method.pose``)."""
    problem = with_conditions(instance, options.conditions)
    step = step_of(problem)
    return problem if step is None else problem.with_changes(timing=Timing(Semantics.CIRCUIT, step))


def step_of(instance: Instance) -> Fraction | None:
    """Return the time of a chunk on every link; None if times differ, or there is latency or a switch."""
    topology = instance.network
    if not isinstance(topology, Topology) or topology.switches or any(link.latency_s for link in topology.links):
        return None
    rates = {link.bandwidth_Bps for link in topology.links}
    sizes = {size for demand in instance.demands for size in _chunk_sizes(demand, instance.npus)}
    return sizes.pop() / rates.pop() if len(rates) == len(sizes) == 1 else None


def _chunk_sizes(demand: Demand, npus: int) -> set[Fraction]:
    if demand.collective in (Collective.ALL_TO_ALL, Collective.ALL_REDUCE):
        return {demand.size_bytes / len(demand.group(npus)) / demand.chunks}
    return {size / demand.chunks for size in conditions(demand, npus).bytes_of.values()}


def with_conditions(instance: Instance, text: str) -> Instance:
    """Add conditions to the collectives of an instance with an explicit network.

    Conditions are separated by semicolons; an empty text changes nothing. Each needs one holder, receivers and a size.
    """
    parts = [part for part in text.split(";") if part.strip()]
    topology = instance.network
    if not parts or not isinstance(topology, Topology):
        return instance
    if len(parts) > MAX_CONDITIONS:
        raise InputError(f"{len(parts):,} conditions; expected at most {MAX_CONDITIONS:,}", place="conditions")
    ranks = {topology.nodes[node].name: rank for rank, node in enumerate(topology.rank_nodes)}
    extra = tuple(_demand_of(topology, ranks, part, index) for index, part in enumerate(parts))
    demands = (*instance.demands, *extra)
    return instance.with_changes(demand=demands[0], also=demands[1:])


def _demand_of(topology: Topology, ranks: dict[str, int], text: str, index: int) -> Demand:
    place = f"conditions[{index}]"
    ends, colon, size = text.rpartition(":")
    holders, arrow, receivers = ends.partition("->")
    quote = show_value(text.strip())
    if not (colon and arrow):
        raise InputError(f"{quote}; expected such as '0->1,2: 1 MiB'", place=place)
    sources = _ranks_named(topology, ranks, holders, place)
    if (count := len(sources)) != 1:
        what = f"{count} nodes hold the chunk {quote}; expected one" if count else f"no node holds the chunk {quote}"
        raise InputError(what, place=place)
    targets = [rank for rank in dict.fromkeys(_ranks_named(topology, ranks, receivers, place)) if rank != sources[0]]
    if not targets:
        raise InputError(f"no other node needs the chunk {quote}", place=place)
    try:
        size_bytes = Fraction(parse(size.strip(), Quantity.SIZE))
    except InputError as error:
        raise error.at(place=place) from None
    kind = Collective.POINT_TO_POINT if len(targets) == 1 else Collective.BROADCAST
    return Demand(kind, size_bytes, ranks=(sources[0], *targets))


def _ranks_named(topology: Topology, ranks: dict[str, int], names: str, place: str) -> list[int]:
    numbers: list[int] = []
    for name in filter(None, (part.strip() for part in names.split(","))):
        if name not in ranks:
            node = topology.node_index.get(name)
            switch = node is not None and topology.nodes[node].kind is NodeKind.SWITCH
            what = "a switch" if switch else "no node"
            raise InputError(f"{show_value(name)} is {what}; expected a compute node", place=place)
        numbers.append(ranks[name])
    return numbers


METHOD = Method(
    name="pccl",
    kind=Kind.HEURISTIC,
    summary="paths for every condition over free links: any collective, any process groups",
    paper="Won, Software-Hardware Optimizations for Efficient Collective Communications, "
    "dissertation, Georgia Tech, 2025, chapter 6",
    answer_type=Schedule,
    options=PcclOptions,
    solve=f"{__package__}.solve:run",
    supports=supports,
    pose=pose,
    metrics={
        "found_by": Metric("what found the best paths (of an all-reduce, for sums, then copies), or another method"),
        "attempts": Metric("orders that were tried"),
        "sends": Metric("sends: one for each link of a path, or for each path through switches that cannot store"),
        "network_bound_s": Metric("what the certificate proves before it is rounded up to whole steps", "s"),
    },
)
