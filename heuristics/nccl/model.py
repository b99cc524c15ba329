"""NCCL's performance model: a latency and a bandwidth for every algorithm and protocol, and what is taken at a size.

Written after ``ncclTopoTuneModel`` and ``ncclTopoGetAlgoTime`` of ``src/graph/tuning.cc``; the versions are those of
:mod:`.constants`. NCCL counts a size as the whole data: the full buffer of an all-gather and a reduce-scatter.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from math import floor, log2
from typing import NamedTuple

from ...core.collective import Collective
from .constants import GENERATIONS, NONE, TREE_CORRECTION, Algorithm, Hardware, Protocol, Triple, Tuning

#: Collectives that NCCL has algorithms for.
COLLECTIVES = (
    Collective.BROADCAST,
    Collective.REDUCE,
    Collective.ALL_GATHER,
    Collective.REDUCE_SCATTER,
    Collective.ALL_REDUCE,
)

#: Collectives that are sends and receives in NCCL, which it does not predict.
EXCHANGES = (Collective.ALL_TO_ALL,)
_HALVES = (Collective.ALL_GATHER, Collective.REDUCE_SCATTER)
_COLLNET = (Algorithm.COLLNET_DIRECT, Algorithm.COLLNET_CHAIN)
_OVER_SWITCHES = (Algorithm.NVLS, Algorithm.NVLS_TREE)

_NET_OVERHEAD_US = {"amd": 2.0}  #: Post of a message between boxes by processor, in us; three times that with Simple.
_MOST_COLLNET_RANKS = 8  #: Most ranks of a box with CollNet.
_MOST_NVLS_RANKS = 32  #: Most ranks of a box with NVLS, but for an all-reduce.


class Graph(NamedTuple):
    """Result of the search for an algorithm.

    ``intra`` and ``inter`` are GB/s of a channel within a box and between boxes; ``through_one_gpu`` is for trees:
    whether all of a box's links between boxes are at one GPU; ``alike`` for rings: whether all channels have one order.
    """

    channels: int
    intra: float
    inter: float
    through_one_gpu: bool = False
    alike: bool = True


@dataclass(frozen=True)
class Machine:
    """A machine in the terms of the model.

    ``ranks`` are GPUs, ``nodes`` boxes. Ring and tree always have a graph. With ``near_nics`` no path from a GPU to its
    NIC leads through a CPU, so that LL128 is safe; ``net_us`` is the latency that the network plugin reports; with
    ``collnet`` the switches between boxes add.
    """

    ranks: int
    nodes: int
    gpu: str
    graphs: Mapping[Algorithm, Graph] = field(default_factory=dict)
    cpu: str = "intel"
    nvlink: bool = True
    near_nics: bool = True
    net_us: float = 0.0
    collnet: bool = False

    @property
    def per_node(self) -> float:
        """GPUs of a box, on average."""
        return self.ranks / self.nodes


class Cost(NamedTuple):
    """Latency in microseconds, and bandwidth of the whole data in GB/s; 0 where an algorithm is not to be had."""

    latency_us: float
    bandwidth_GBps: float


class Pick(NamedTuple):
    """NCCL's choice."""

    algorithm: Algorithm
    protocol: Protocol
    seconds: float


#: A cost for every algorithm and protocol that NCCL has for a collective.
Table = Mapping[tuple[Algorithm, Protocol], Cost]


def table(machine: Machine, tuning: Tuning, collective: Collective) -> dict[tuple[Algorithm, Protocol], Cost]:
    """Predict a collective: one row of the table printed with ``NCCL_DEBUG_SUBSYS=TUNING``."""
    model = _Model(machine, tuning, collective)
    keys = ((a, p) for a in Algorithm if model.has(a) for p in Protocol)
    return {(a, p): Cost(model.latency_us(a, p), model.bandwidth_GBps(a, p)) for a, p in keys}


def seconds(
    machine: Machine, tuning: Tuning, costs: Table, at: tuple[Algorithm, Protocol], size: float
) -> float | None:
    """Predict the time of one algorithm and protocol at a size in bytes; None if unavailable.

    An all-reduce is recognized by its trees, which no other collective has.
    """
    latency_us, rate = costs[at]
    if rate <= 0:
        return None
    algorithm, protocol = at
    power = floor(log2(size / 64)) if size >= 64 else 0 if tuning.version < (2, 23) else -1
    slow = algorithm is Algorithm.TREE or (
        algorithm is Algorithm.NVLS_TREE
        and tuning.version >= (2, 29)
        and machine.gpu == "blackwell"
        and machine.cpu in ("intel", "amd")
    )
    correction = TREE_CORRECTION[protocol]
    if tuning.measured is not None:
        parts = tuning.measured["correction"][algorithm.value][list(Protocol).index(protocol)]
        varies = algorithm is Algorithm.TREE or machine.nodes > 1
        rate *= parts[min(max(power, 0), len(parts) - 1)] if varies else 1
        return latency_us * 1e-6 + size / (rate * 1e9)
    if slow and 0 <= power < len(correction) - (algorithm is Algorithm.TREE):  # the last one is not for trees
        rate *= correction[power]
    if at == (Algorithm.RING, Protocol.SIMPLE) and _plateau(machine, tuning, costs, size):
        old = "hopper" if tuning.version < (2, 18) else "ampere"
        latency_us *= 1.9 if _older(machine.gpu, old) else 1.4
    return latency_us * 1e-6 + size / (rate * 1e9)


def choose(machine: Machine, tuning: Tuning, costs: Table, size: float) -> Pick | None:
    """Return NCCL's choice at a size: the first of the least times; None without any."""
    times = ((at, seconds(machine, tuning, costs, at, size)) for at in costs)
    picks = [Pick(*at, time) for at, time in times if time is not None]
    return min(picks, key=lambda pick: pick.seconds, default=None)


def measured_protocol(machine: Machine, tuning: Tuning, kind: Collective, size: float) -> Protocol | None:
    """Return the protocol that RCCL takes by a rank's bytes, whatever the predicted times; None if these decide."""
    tables, own = tuning.measured, size if kind is Collective.ALL_REDUCE else size / machine.ranks
    if tables is not None and machine.nodes == 1 and own <= tables["ll_in_a_box"].get(kind.name, 0):
        return Protocol.LL
    if tables is None or machine.nodes == 1 or kind.name not in tables["ranges"]:
        return None
    most, least_ll128, most_ll128 = tables["ranges"][kind.name]
    if kind is Collective.ALL_REDUCE and machine.nodes > 2:
        most_ll128 *= 3.8
    if least_ll128 < own <= most_ll128 and machine.near_nics:
        return Protocol.LL128
    return Protocol.LL if own <= most else Protocol.SIMPLE


def without(costs: Table, algorithms: Iterable[Algorithm], protocols: Iterable[Protocol]) -> Table:
    """Return the table restricted to algorithms and protocols, as by ``NCCL_ALGO`` and ``NCCL_PROTO``."""
    usable = set(product(algorithms, protocols))
    return {at: cost if at in usable else Cost(cost.latency_us, 0.0) for at, cost in costs.items()}


def _older(gpu: str, other: str) -> bool:
    return GENERATIONS.index(gpu) < GENERATIONS.index(other)


def _plateau(machine: Machine, tuning: Tuning, costs: Table, size: float) -> bool:
    """Return True if a ring's messages are long enough to raise its latency: between boxes, and in one of Blackwell.

    An all-gather and a reduce-scatter are recognized by PAT.
    """
    new = tuning.version >= (2, 31) and machine.gpu == "blackwell" and machine.nvlink
    algorithm = Algorithm.TREE if machine.nodes > 1 else Algorithm.PAT
    if (algorithm, Protocol.SIMPLE) not in costs or not (machine.nodes > 1 or new):
        return False
    if tuning.version < (2, 18):
        return size >= machine.ranks / 16 * 65536
    channels = 2 * machine.graphs[Algorithm.RING].channels
    return size // (channels * machine.ranks) >= 64


class _Model:
    """One row of the table."""

    def __init__(self, machine: Machine, tuning: Tuning, collective: Collective) -> None:
        self.machine, self.tuning, self.collective = machine, tuning, collective
        self.version = tuning.version
        ranks = machine.ranks
        reduces = collective is Collective.ALL_REDUCE
        self.reduces = reduces
        self.steps = 2 * (ranks - 1) if reduces else ranks - 1 if collective in _HALVES else ranks
        self.column = min(machine.nodes, 3) - 1
        processor = "ampere" if machine.cpu == "amd" else "volta"
        self.ll_max = tuning.ll_max.get(machine.gpu if machine.nodes == 1 else processor, NONE)[self.column]
        self.hardware = Hardware.NVLINK if machine.nvlink and machine.per_node > 1 else Hardware.PCI

    def has(self, algorithm: Algorithm) -> bool:
        """Return whether NCCL has the algorithm for the collective."""
        if algorithm not in self.machine.graphs:
            return False
        if self.version < (2, 17):
            return algorithm is Algorithm.RING or (
                self.reduces and algorithm in (Algorithm.TREE, Algorithm.COLLNET_DIRECT)
            )
        if self.reduces:
            return algorithm is not Algorithm.PAT
        if self.collective in _HALVES:
            direct = algorithm is Algorithm.COLLNET_DIRECT
            return direct or algorithm in (Algorithm.RING, Algorithm.NVLS, Algorithm.PAT)
        return algorithm is Algorithm.RING

    def _of(self, rows: Mapping[str, Triple]) -> float:
        return rows[self.machine.gpu][self.column]

    def bandwidth_GBps(self, algorithm: Algorithm, protocol: Protocol) -> float:
        """Bandwidth of the whole data; 0 where the algorithm is not to be had."""
        if not self._is_enabled(algorithm, protocol):
            return 0.0
        graph = self.machine.graphs[algorithm]
        rate = graph.channels * self._of_channel(graph, algorithm)
        if self.version < (2, 14) and self.machine.gpu == "ampere":
            rate = min(rate, 235.0)
        if (tables := self.tuning.measured) is not None:
            part: float = tables["ratio"][self.machine.nodes > 2].get(algorithm.value, NONE)[
                list(Protocol).index(protocol)
            ]
            no_tree = self.machine.nodes == 1 and not tables["simple_trees_in_a_box"]
            if no_tree and (algorithm, protocol) == (Algorithm.TREE, Protocol.SIMPLE):
                return 0.0
            return rate * part * self._share(algorithm)
        match algorithm:
            case Algorithm.RING:
                rate = self._ring(rate, graph, protocol)
            case Algorithm.TREE:
                rate = self._tree(rate, graph, protocol)
            case Algorithm.NVLS | Algorithm.NVLS_TREE:
                rate = graph.channels * self._over_switches(graph, algorithm)
            case Algorithm.COLLNET_DIRECT:
                rate = self._direct(rate, graph)
            case Algorithm.PAT:
                rate *= self.tuning.pat
        return rate * self._share(algorithm)

    def _of_channel(self, graph: Graph, algorithm: Algorithm) -> float:
        """GB/s of a channel in the graph."""
        new, blackwell = self.version >= (2, 31), self.machine.gpu == "blackwell"
        if new and (algorithm is Algorithm.PAT or (blackwell and algorithm is Algorithm.TREE)):
            return min(graph.intra, graph.inter)
        near = self.machine.nodes <= (1 if new and blackwell and algorithm is Algorithm.RING else 2)
        return graph.intra if near or algorithm in _COLLNET else graph.inter

    def _ring(self, rate: float, graph: Graph, protocol: Protocol) -> float:
        if protocol is Protocol.LL:
            twice = self.machine.nodes > 1 or self.reduces or self.collective is Collective.REDUCE
            part = 0.5 if self.version >= (2, 21) else 1 / 4 if twice else 1 / 3
            return min(self.ll_max, rate * part)
        if protocol is Protocol.LL128:
            part = 0.7 if self.machine.per_node < 2 and self.version < (2, 23) else 0.92
            return min(rate * part, graph.channels * self._of(self.tuning.ring_ll128_max))
        return rate

    def _tree(self, rate: float, graph: Graph, protocol: Protocol) -> float:
        rate = min(rate * 0.92, graph.channels * self._of(self.tuning.tree_max))
        if protocol is Protocol.LL:
            rate = min(rate / 3.8, self.ll_max)
        if protocol is Protocol.LL128:
            part = 7 / 9 if self.machine.nodes == 1 else 120 / 128
            rate = min(rate * part, graph.channels * self._of(self.tuning.tree_ll128_max))
        return rate * 0.85 if graph.through_one_gpu and self.version >= (2, 18, 3) else rate

    def _over_switches(self, graph: Graph, algorithm: Algorithm) -> float:
        """GB/s of a channel of NVLS."""
        tree, nodes = algorithm is Algorithm.NVLS_TREE, self.machine.nodes
        if self.version >= (2, 28):
            if graph.channels < 2:
                return 0.0
            inside = graph.intra * self.tuning.nvls_efficiency[self.machine.gpu] * (graph.channels - 1) / graph.channels
            inside *= 2 if self.reduces else 1 - 1 / self.machine.per_node
            outside = graph.inter * (2 if tree and nodes <= 2 else 1)
            return min(inside, outside, self._of(self.tuning.nvls_tree_max)) if tree else min(inside, outside)
        if tree:
            return min(graph.intra, graph.inter if nodes <= 2 else graph.inter / 2)
        if self.reduces or self.version < (2, 27):
            return min(graph.intra, graph.inter)
        return min(graph.intra * (1 - 1 / self.machine.per_node), graph.inter * 0.9)

    def _direct(self, rate: float, graph: Graph) -> float:
        if self.version < (2, 14):
            return rate
        per_node = self.machine.per_node
        if self.collective in _HALVES:
            if self.version >= (2, 27):
                return per_node * min(graph.intra, graph.inter * 0.9)
            full = (per_node - 1) / 7
            return per_node * graph.intra * (full * 0.85 + (1 - full) * 0.95)
        factor = per_node / graph.channels
        factor -= (factor - 1) / 2
        return rate / factor * (1.0 if _older(self.machine.gpu, "hopper") else 0.85)

    def _share(self, algorithm: Algorithm) -> float:
        """Return the bytes of the whole data per byte on the wires in the model."""
        flat = Algorithm.COLLNET_DIRECT if self.version < (2, 23) else None
        if self.collective in _HALVES and algorithm is not Algorithm.RING and flat in (None, algorithm):
            return 1.0
        if algorithm is Algorithm.RING or (algorithm in _OVER_SWITCHES and self.version >= (2, 28)):
            return self.machine.ranks / self.steps
        return 5 / 6 if algorithm in _OVER_SWITCHES else 0.5

    def _is_enabled(self, algorithm: Algorithm, protocol: Protocol) -> bool:
        machine = self.machine
        if algorithm not in (Algorithm.RING, Algorithm.TREE):
            return protocol is Protocol.SIMPLE and self._is_offered(algorithm)
        safe = (machine.near_nics or machine.nodes == 1) and (machine.nvlink or machine.per_node == 1)
        return protocol is not Protocol.LL128 or safe

    def _is_offered(self, algorithm: Algorithm) -> bool:
        """Return whether the machine meets the needs of an algorithm other than rings and trees."""
        machine = self.machine
        if algorithm in _COLLNET:
            return machine.collnet and machine.per_node <= _MOST_COLLNET_RANKS
        if algorithm is Algorithm.PAT:
            return self.tuning.pat > 0 and machine.nodes == machine.ranks
        if not self.reduces and machine.per_node > _MOST_NVLS_RANKS:
            return False
        if algorithm is Algorithm.NVLS_TREE:
            return machine.nodes > 1
        return machine.nodes == 1 or machine.collnet

    def latency_us(self, algorithm: Algorithm, protocol: Protocol) -> float:
        """Latency of a call and its hops."""
        column = list(Protocol).index(protocol)
        has_pat = column == 2 and self.tuning.pat > 0 and self.machine.nodes == self.machine.ranks
        if (algorithm in _OVER_SWITCHES and column < 2) or (algorithm is Algorithm.PAT and not has_pat):
            return 0.0  # not even looked at
        base = self.tuning.base_us.get(algorithm, NONE)[column]
        inside = self.tuning.hop_us[self.hardware].get(algorithm, NONE)[column]
        outside = self._outside_us(algorithm, column)
        peers, depth = self.machine.ranks // self.machine.nodes - 1, floor(log2(self.machine.nodes))
        match algorithm:
            case Algorithm.RING:
                hops = self._ring_us(column, inside, outside)
            case Algorithm.TREE:
                slow = 1.8 if self.version < (2, 18) and self.machine.nodes > 1 and column == 0 else 1.0
                hops = 2 * (peers * inside * slow + depth * outside)
            case Algorithm.COLLNET_DIRECT:
                serial = 0.5 if self.version < (2, 19) else 0.4
                hops = 2 * (min(1, peers) * inside + peers * serial) + outside
            case Algorithm.COLLNET_CHAIN:
                hops = 2 * peers * inside + outside
            case Algorithm.NVLS:
                hops = inside + (outside if self.machine.nodes > 1 else 0.0)
            case Algorithm.NVLS_TREE:
                hops = inside + 2 * depth * outside
            case Algorithm.PAT:
                hops = depth * outside / 3.5 + self.machine.ranks * 2.8
        return base + hops

    def _outside_us(self, algorithm: Algorithm, column: int) -> float:
        """Return the cost of a hop between boxes; the last one of Simple flushes, too."""
        exposed = self.machine.per_node == 1 and self.version >= (2, 23)
        new = self.version >= (2, 31)
        of = Algorithm.TREE if exposed and (algorithm is Algorithm.RING or not new) else algorithm
        hop = self.tuning.hop_us[Hardware.NET].get(of, NONE)[column]
        flushes = column == 2 and not (new and algorithm is Algorithm.PAT)
        return hop + self.machine.net_us * (2 if flushes else 1) if self.version >= (2, 18) else hop

    def _ring_us(self, column: int, inside: float, outside: float) -> float:
        nodes, old = self.machine.nodes, self.version < (2, 18)
        if self.collective not in (*_HALVES, Collective.ALL_REDUCE):
            hops = self.tuning.hop_us[self.hardware if nodes == 1 else Hardware.NET]
            if self.machine.graphs[Algorithm.RING].alike:
                return hops[Algorithm.RING][column]
            return self.steps * hops[Algorithm.TREE if column == 2 else Algorithm.RING][column]
        if nodes == 1:
            between = 0
        elif self.reduces:
            between = 2 * (nodes - 1) if old or self.version >= (2, 23) else 2 * nodes
        else:
            between = nodes - 1
        if nodes > 1 and old and column == 0:
            inside *= 1.8
        if nodes > 1 and not old:
            inside = max(inside, _NET_OVERHEAD_US.get(self.machine.cpu, 1.0) * (3 if column == 2 else 1))
        return (self.steps - between) * inside + between * outside
