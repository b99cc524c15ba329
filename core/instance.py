"""Instances: a network and a task on it, independent of any method."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import cached_property
from itertools import groupby, islice
from typing import Any, Self

from pydantic import BaseModel

from .budget import ITEMS_PER_CHECK, iterate_in_time
from .collective import Collective, Demand
from .design import Design
from .display import DisplayMixin
from .errors import InputError
from .experts import Experts
from .fabric import CostModel, Fabric
from .timing import RankCosts, Timing
from .topology import Topology
from .trace import Routing
from .transformer import Transformer
from .units import SIZES, amount
from .workload import Workload


@dataclass(frozen=True, repr=False)
class Instance(DisplayMixin):
    """Network and a task on it."""

    name: str
    network: Fabric | Topology  #: A multi-dimensional fabric in building blocks, or an explicit graph.
    demand: Demand | None = None
    also: tuple[Demand, ...] = ()  #: Further collectives at the same time, such as those of other process groups.
    workloads: tuple[Workload, ...] = ()  #: Training workloads of a design, each mapped onto the fabric.
    transformers: tuple[Transformer, ...] = ()  #: Descriptions whose parallelization may still be chosen.
    cost_model: CostModel | None = None
    design: Design | None = None
    timing: Timing | None = None  #: Grid of epochs of the schedules; None for continuous time.
    experts: Experts | None = None
    #: Time that messages and sums cost the nodes, which simulators count; None if nothing.
    rank_costs: RankCosts | None = None
    routing: Routing = Routing.FIXED  #: Paths that the network gives the sends of a schedule.
    description: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        if not self.rank_costs:  # costs of zero are none, so that nothing about the instance differs
            object.__setattr__(self, "rank_costs", None)

    @property
    def is_network_only(self) -> bool:
        """True if there is a network but no collective, workload or experts."""
        return not (self.demands or self.workloads or self.transformers or self.experts)

    @property
    def is_beyond_collectives(self) -> bool:
        """True if it requires a design or a placement of experts."""
        return bool(self.workloads or self.transformers or self.cost_model or self.design or self.experts)

    @property
    def fabric(self) -> Fabric:
        """The network as a fabric; an error if it is an explicit graph."""
        if not isinstance(self.network, Fabric):
            raise InputError("expected a network of dimensions such as RI(4)_SW(32), not a graph", place="network")
        return self.network

    @property
    def topology(self) -> Topology:
        """Network as a graph of nodes and links; raise InputError for a fabric, whose links do not exist yet."""
        if not isinstance(self.network, Topology):
            raise InputError("expected an explicit network of nodes and links, not building blocks", place="network")
        return self.network

    @property
    def demands(self) -> tuple[Demand, ...]:
        """All collectives that run at the same time."""
        return () if self.demand is None else (self.demand, *self.also)

    @cached_property
    def collectives(self) -> tuple[Demand, ...]:
        """All collectives by the user's names; the messages of a v-form count as one collective of their total size."""
        demands: list[Demand] = []
        for whole, parts in groupby(self.demands, lambda demand: demand.part_of):
            some = list(parts)
            if whole is not None:
                ranks = {rank for part in some for rank in part.ranks or ()}
                total = sum((part.size_bytes for part in some), Fraction(0))
                group = None if len(ranks) == self.npus else tuple(sorted(ranks))
                some = [replace(some[0], collective=whole, size_bytes=total, ranks=group)]
            demands += some
        return tuple(demands)

    @property
    def collective_name(self) -> str | None:
        """Name of the first collective; None if there is none."""
        if self.demand is None:
            return None
        return (self.demand.part_of or self.demand.collective).name

    def with_single_demand(self, demand: Demand) -> Self:
        """Return this instance with only one collective."""
        return replace(self, demand=demand, also=())

    @property
    def npus(self) -> int:
        """Number of NPUs (ranks)."""
        return self.network.npus if isinstance(self.network, Fabric) else len(self.network.ranks)

    def training(self) -> tuple[Workload, ...]:
        """Return all training workloads: the given ones and those derived from the transformers."""
        return (*self.workloads, *(t.workload(self.fabric) for t in self.transformers))

    def with_parallelism(self, tensor_parallel: int, data_parallel: int) -> Self:
        """Return this instance with every transformer trained as HP-(TP, DP)."""
        transformers = tuple(t.with_parallelism(tensor_parallel, data_parallel) for t in self.transformers)
        return replace(self, transformers=transformers)

    @cached_property
    def sha256(self) -> str:
        """Digest of all that defines the problem; names and descriptions do not count."""
        labels = ("name", "description", "source")
        problem = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in labels}
        for label in ("timing", "experts", "rank_costs", "routing"):  # digests without them stay as they were
            if problem[label] in (None, Routing.FIXED):
                del problem[label]
        digest = hashlib.sha256()
        for text in _canonical(problem):
            digest.update(text.encode())
        return digest.hexdigest()

    def with_changes(self, **changes: Any) -> Self:
        """Return a copy with some fields replaced."""
        return replace(self, **changes)

    def _facts(self) -> Mapping[str, object]:
        network = self.network._facts() if isinstance(self.network, Topology) else {"network": str(self.network)}
        collectives = [f"{demand.collective.name} of {amount(demand.size_bytes, SIZES)}" for demand in self.collectives]
        models = [each.name for each in self.workloads] + [each.name for each in self.transformers]
        summary = {"collective": ", ".join(collectives[:3]) or None, "workloads": ", ".join(models[:3]) or None}
        return {"name": self.name, **network, **summary}


def _canonical(problem: Mapping[str, Any]) -> Iterator[str]:
    """Yield a problem as JSON with sorted keys and without spaces, in parts."""
    between = "{"
    for name, value in sorted(problem.items()):
        yield f'{between}"{name}":'
        yield from _canonical_topology(value) if type(value) is Topology else [_json(plain(value))]
        between = ","
    yield "}"


def _canonical_topology(topology: Topology) -> Iterator[str]:
    """Yield a network in the same format, without plain data in between, which takes minutes for millions of links."""
    size = len(topology.nodes)
    names = {node.name: _json(node.name) for node in iterate_in_time(topology.nodes, size, "names in its digest")}
    number: dict[int, str] = {}  # by identity: most links share their quantities, and a fraction is slow to hash

    def exact(value: Fraction | bool | None) -> str:
        if (text := number.get(id(value))) is None:
            text = number[id(value)] = _json(plain(value))
        return text

    kinds = [
        f'{{"bandwidth_Bps":{exact(link.bandwidth_Bps)},"latency_s":{exact(link.latency_s)},"source":'
        for link in topology.kind_links
    ]
    links = (
        f'{kinds[kind]}{names[link.source]},"target":{names[link.target]}}}'
        for kind, link in zip(topology.link_kinds, topology.links, strict=True)
    )
    nodes = (
        f'{{"buffer_bytes":{exact(node.buffer_bytes)},"kind":"{node.kind.value}",'
        f'"multicast":{exact(node.multicast)},"name":{names[node.name]}{_REDUCES if node.reduces else ""}}}'
        for node in topology.nodes
    )
    yield '{"links":['
    yield from _join_parts(iterate_in_time(links, len(topology.links), "links in its digest"))
    yield '],"nodes":['
    yield from _join_parts(iterate_in_time(nodes, size, "nodes in its digest"))
    yield "]}"


_REDUCES = ',"reduces":true'  #: Field in the digest of a switch that adds; it is left out for all other nodes.


def _join_parts(items: Iterator[str]) -> Iterator[str]:
    before = ""
    while some := tuple(islice(items, ITEMS_PER_CHECK)):
        yield before + ",".join(some)
        before = ","


#: Canonical JSON encoder: digests are taken of its output.
_json = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode

#: Types that are plain already; most values of a large network have one of them.
_PLAIN = frozenset({str, int, float, bool, type(None)})


def plain(value: Any) -> Any:  # noqa: PLR0911 (one for each kind)
    """Convert a value to plain JSON data; exact fractions become strings such as ``"1/3"``.

    Fields that do not count in comparisons are left out.
    """
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Collective):
        return value.name
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value) if f.compare}
    if isinstance(value, BaseModel):
        return plain(dict(value))
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value
