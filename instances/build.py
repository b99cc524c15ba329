"""From what a file says to the vocabulary: every part is made and checked against the others here."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import prod
from pathlib import Path

from ..core.budget import iterate_in_time
from ..core.collective import Demand, collective_named
from ..core.design import Design, parse_constraints
from ..core.errors import InputError, locate_errors
from ..core.experts import Experts
from ..core.fabric import Block, CostModel, Fabric, WiredFabric, parse_fabric
from ..core.instance import Instance
from ..core.timing import RankCosts
from ..core.topology import Link, Node, NodeKind, Topology
from ..core.trace import Routing
from ..core.transformer import DP, EDP, EP, PP, TP, Transformer
from ..core.units import UnitKind, parse
from ..core.workload import Communication, Layer, Phase, Span, Workload, check_span, map_groups
from . import schema
from .demand import sized_messages
from .experts import read_loads

FindWorkload = Callable[[str], schema.WorkloadFile]  #: Finds the workload that a name or path means.
#: Makes a network from building-block notation or a generator expression.
MakeNetwork = Callable[[str], Fabric | Topology]

#: Cost models that instances can name: the low end of every entry of the dissertation's table 4.1. A pod is the unit
#: for scale-out, so nodes and packages need no NIC; chiplets are always linked directly, so that no switch can be
#: bought there.
COST_MODELS = {
    "table-4.1": {
        "inter-chiplet": {"link": "2 USD/(GiB/s)"},
        "inter-package": {"link": "4 USD/(GiB/s)", "switch": "13 USD/(GiB/s)", "nic": "0 USD/(GiB/s)"},
        "inter-node": {"link": "4 USD/(GiB/s)", "switch": "13 USD/(GiB/s)", "nic": "0 USD/(GiB/s)"},
        "inter-pod": {"link": "7.8 USD/(GiB/s)", "switch": "18 USD/(GiB/s)", "nic": "31.6 USD/(GiB/s)"},
    }
}


def build_instance(
    file: schema.InstanceFile, name: str, find: FindWorkload, make: MakeNetwork, folder: Path | None = None
) -> Instance:
    """Build an instance from its validated file.

    ``find``: finds a workload by name or path. ``folder``: folder of files with loads; by default the current one.
    """
    with locate_errors("network"):
        if isinstance(spec := file.network, str):
            network = make(spec)
        else:
            network = _build_fabric(spec) if isinstance(spec, schema.FabricFile) else build_topology(spec)
    workloads: list[Workload] = []
    transformers: list[Transformer] = []
    for index, training in enumerate(file.workloads):
        with locate_errors(f"workloads[{index}]"):
            if training.transformer is not None:
                transformers.append(_build_transformer(training, training.transformer, _fabric(network)))
            else:
                workloads.append(_build_workload(training, _fabric(network), find))
    cost_model = None
    if file.cost_model is not None:
        with locate_errors("cost_model"):
            fabric = _fabric(network)
        cost_model = _build_cost_model(file.cost_model)
        cost_model.price_per_Bps(fabric)  # rejects a missing entry now, not in the middle of a run
    design = None
    if file.design is not None:
        with locate_errors("design"):
            design = _build_design(file.design, _fabric(network))
    npus = network.npus if isinstance(network, Fabric) else len(network.ranks)
    experts = None
    if file.experts is not None:
        with locate_errors("experts"):
            rows = file.experts.loads
            loads = read_loads((folder or Path()) / rows) if isinstance(rows, str) else tuple(map(tuple, rows))
            experts = Experts(loads, npus, file.experts.slots, file.experts.groups, file.experts.nodes)
    demands: list[Demand] = []
    if file.collective is not None:
        with locate_errors("collective"):
            demands += _build_demands(file.collective, npus)
    for index, further in enumerate(file.also):
        with locate_errors(f"also[{index}]"):
            if not demands:
                raise InputError("given without a first collective")
            demands += _build_demands(further, npus)
    if file.routing is not Routing.FIXED and not isinstance(network, Topology):
        raise InputError("routing needs a network of nodes and links", place="network")
    return Instance(
        name=file.name or name,
        network=network,
        demand=demands[0] if demands else None,
        also=tuple(demands[1:]),
        workloads=tuple(workloads),
        transformers=tuple(transformers),
        cost_model=cost_model,
        design=design,
        experts=experts,
        rank_costs=_build_rank_costs(file, network),
        routing=file.routing,
        description=file.description,
        source=file.source,
    )


def _fabric(network: Fabric | Topology) -> Fabric:
    if not isinstance(network, Fabric):
        raise InputError("this needs a network of dimensions such as RI(4)_SW(32), not a graph")
    return network


def _build_fabric(file: schema.FabricFile) -> Fabric:
    with locate_errors("dimensions"):
        fabric = parse_fabric(file.dimensions, tuple(file.tiers) if file.tiers else None)
    if file.npus is not None and file.npus != fabric.npus:
        raise InputError(f"{file.npus:,} NPUs, but {fabric} multiplies to {fabric.npus:,}", place="npus")
    if file.in_network is not None:
        fabric = fabric.with_in_network(_reducing_switches(file.in_network, fabric))
    if file.bandwidth is None:
        if file.latency is not None:
            raise InputError("given without the bandwidth of the dimensions", place="latency")
        return fabric
    latency = file.latency or [Fraction(0)] * len(fabric.dimensions)
    return WiredFabric(fabric.dimensions, tuple(file.bandwidth), tuple(latency))


def _reducing_switches(flags: list[bool], fabric: Fabric) -> frozenset[int]:
    if len(flags) != len(fabric.dimensions):
        raise InputError(f"expected an entry for each of the {len(fabric.dimensions)} dimensions", place="in_network")
    for index, (reduces, dimension) in enumerate(zip(flags, fabric.dimensions, strict=True)):
        if reduces and dimension.block is not Block.SWITCH:
            raise InputError(f"{dimension} has no switch that could reduce", place=f"in_network[{index}]")
    return frozenset(i for i, reduces in enumerate(flags) if reduces)


def build_topology(file: schema.TopologyFile) -> Topology:
    """Make an explicit network; the number of links is bounded before they are made."""
    if sum(link.count * (2 if link.bidirectional else 1) for link in file.links) > schema.MAX_LINKS:
        raise InputError(f"more than {schema.MAX_LINKS:,} links", place="links")
    links: list[Link] = []
    for link in iterate_in_time(file.links, len(file.links), "entries of links"):
        ends = [(link.source, link.target), (link.target, link.source)][: 2 if link.bidirectional else 1]
        links.extend(Link(s, t, link.bandwidth, link.latency) for s, t in ends for _ in range(link.count))
    if all(node.kind is NodeKind.SWITCH for node in file.nodes):
        raise InputError("no compute node among them", place="nodes")
    for index, node in enumerate(file.nodes):
        if node.buffer is not None and node.kind is NodeKind.COMPUTE:
            text = f"a limit on the compute node {node.name!r}; expected none, or a switch"
            raise InputError(text, place=f"nodes[{index}].buffer")
        if node.reduces and node.kind is NodeKind.COMPUTE:
            text = f"true for the compute node {node.name!r}, which adds anyway; expected false, or a switch"
            raise InputError(text, place=f"nodes[{index}].reduces")
    nodes = tuple(Node(n.name, n.kind, n.multicast, n.buffer, n.reduces) for n in file.nodes)
    return Topology(nodes, tuple(links))


def _build_demands(file: schema.DemandFile | schema.SizedDemandFile, npus: int) -> tuple[Demand, ...]:
    """Make the demand for a collective among some of the ranks, or the messages of one with sizes."""
    ranks = None if file.ranks is None else tuple(file.ranks)
    if ranks is not None:
        if len(set(ranks)) != len(ranks):
            raise InputError("a rank is named twice", place="ranks")
        if not ranks or max(ranks) >= npus:
            wrong = f"no rank {max(ranks)}, since only compute nodes are ranks" if ranks else "no ranks"
            raise InputError(f"{wrong}; expected ranks from 0 to {npus - 1}", place="ranks")
    if isinstance(file, schema.SizedDemandFile):
        with locate_errors("sizes"):
            return sized_messages(file.kind, file.sizes, file.chunks, tuple(range(npus)) if ranks is None else ranks)
    return (Demand(file.kind, file.size, file.chunks, ranks),)


def _build_rank_costs(file: schema.InstanceFile, network: Fabric | Topology) -> RankCosts | None:
    rate = file.reduce_rate
    rates = rate if isinstance(rate, schema.ReduceRateFile) else schema.ReduceRateFile(compute=rate)
    costs = RankCosts(file.rank_overhead, rates.compute, rates.switch, file.reduce_while_receiving)
    if costs and not isinstance(network, Topology):
        raise InputError("costs of ranks need a network of nodes and links", place="network")
    return costs or None


def _build_workload(file: schema.TrainingFile, fabric: Fabric, find: FindWorkload) -> Workload:
    base = None
    if file.use is not None:
        with locate_errors("use"):
            base = find(file.use)
    if file.groups is not None:
        with locate_errors("groups"):
            groups = _build_groups(file.groups, fabric)
    elif base is not None:
        with locate_errors("use"):
            degrees, over = default_degrees(base, fabric.npus)
            groups = join_spans(map_groups(fabric, degrees) if degrees else {}, over, fabric.sizes)
    else:
        raise InputError("missing, but the layers name groups", place="groups")
    if base is not None:
        layers = layers_of(base, {each: prod(span) for each, span in groups.items()}, fabric.npus)
    else:
        layers = tuple(map(_build_layer, file.layers or ()))
    for index, layer in enumerate(layers):
        for phase in (layer.forward, layer.input_gradient, layer.weight_gradient):
            for communication in phase.communication:
                if communication.group not in groups:
                    raise InputError(
                        f"layer {layer.name!r} names group {communication.group!r}; the groups are {', '.join(groups)}",
                        place=f"layers[{index}]",
                    )
    return Workload(file.name or (base.name if base else "workload"), layers, groups, file.loop, Fraction(file.weight))


def _build_groups(groups: dict[str, int | list[int]], fabric: Fabric) -> dict[str, Span]:
    """Span of every group: written out per dimension, or mapped from degrees."""
    degrees = {name: size for name, size in groups.items() if isinstance(size, int)}
    if len(degrees) == len(groups):
        return map_groups(fabric, degrees)
    if degrees:
        raise InputError("expected either degrees or spans for all groups, not both")
    spans = {name: tuple(size) for name, size in groups.items() if isinstance(size, list)}
    for name, span in spans.items():
        with locate_errors(name):
            check_span(span, fabric)
    return spans


def join_spans(spans: dict[str, Span], over: Mapping[str, Sequence[str] | None], everything: Span) -> dict[str, Span]:
    """Add the spans of groups over several others, or over everything (None)."""
    for name, parts in over.items():
        spans[name] = everything if parts is None else tuple(map(prod, zip(*(spans[p] for p in parts), strict=True)))
    return spans


def default_degrees(file: schema.WorkloadFile, npus: int) -> tuple[dict[str, int], dict[str, tuple[str, ...] | None]]:
    """Degrees of nested groups, innermost first, and groups over several of them, or over all NPUs (None).

    TP is innermost and the pipeline outermost; DP takes the rest. With experts, DP is EP inside and EDP outside.
    """
    if file.tensor_parallel == "all":
        return {}, {"tp": None, "dp": None}
    tp, pp = file.tensor_parallel, file.pipeline_parallel
    if npus % (tp * pp):
        stages = f" in {pp} stages" if pp > 1 else ""
        raise InputError(f"TP-{tp}{stages} of {file.name} does not divide the {npus:,} NPUs")
    dp = npus // (tp * pp)
    outer = {"pp": pp} if pp > 1 else {}
    if file.expert_parallel == 1:
        return {"tp": tp, "dp": dp, **outer}, {}
    ep = dp if file.expert_parallel == "all" else file.expert_parallel
    if dp % ep:
        raise InputError(f"EP-{ep} of {file.name} does not divide DP-{dp}")
    return {"tp": tp, "ep": ep, "edp": dp // ep, **outer}, {"dp": ("ep", "edp")}


def layers_of(file: schema.WorkloadFile, sizes: Mapping[str, int], npus: int | None = None) -> tuple[Layer, ...]:
    """Make the layers of a workload, those of a transformer for groups of some sizes that cover all NPUs once."""
    if file.transformer is None:
        return tuple(map(_build_layer, file.layers))
    tp, dp, pp, ep, edp = (sizes.get(name, 1) for name in (TP, DP, PP, EP, EDP))
    if npus is not None and tp * dp * pp != npus:
        text = f"tp={tp} x dp={dp} x pp={pp} is {tp * dp * pp:,} NPUs; expected all {npus:,}, each once"
        raise InputError(text, place="groups")
    if npus is not None and ep > 1 and ep * edp != dp:
        raise InputError(f"ep={ep} x edp={edp} is {ep * edp:,} NPUs; expected those of dp={dp}", place="groups")
    with locate_errors("transformer"):
        return file.transformer.derive_layers(sizes)


def _build_layer(file: schema.LayerFile) -> Layer:
    return Layer(
        file.name,
        _build_phase(file.forward),
        _build_phase(file.input_gradient),
        _build_phase(file.weight_gradient),
        file.repeat,
    )


def _build_phase(file: schema.PhaseFile) -> Phase:
    return Phase(
        file.compute, tuple(Communication(collective_named(c.collective), c.size, c.group) for c in file.communication)
    )


def _build_transformer(training: schema.TrainingFile, file: schema.TransformerFile, fabric: Fabric) -> Transformer:
    if training.groups is not None:
        raise InputError("a transformer has degrees instead of groups", place="groups")
    with locate_errors("transformer"):
        data_parallel = file.data_parallel
        if data_parallel is None:
            if fabric.npus % file.tensor_parallel:
                raise InputError(
                    f"TP-{file.tensor_parallel} does not divide the {fabric.npus:,} NPUs", place="tensor_parallel"
                )
            data_parallel = fabric.npus // file.tensor_parallel
        name, weight = training.name or "transformer", Fraction(training.weight)
        transformer = Transformer(name, file, file.tensor_parallel, data_parallel, training.loop, weight)
        transformer.workload(fabric)  # rejects degrees that do not fit
    return transformer


def _build_cost_model(file: str | dict[str, schema.PricesFile]) -> CostModel:
    if isinstance(file, str):
        prices = {
            tier: {c: parse(p, UnitKind.PRICE) for c, p in tiers.items()} for tier, tiers in COST_MODELS[file].items()
        }
        return CostModel(prices)
    return CostModel(
        {tier: {component: price for component, price in prices if price is not None} for tier, prices in file.items()}
    )


def _build_design(file: schema.DesignFile, fabric: Fabric) -> Design:
    """Make the design; its constraints are read against the dimensions now, so that a wrong one is found at once."""
    for index, text in enumerate(file.constraints):
        with locate_errors(f"constraints[{index}]"):
            parse_constraints(text, len(fabric.dimensions))
    return Design(
        file.objective,
        file.total_bandwidth,
        file.max_total_bandwidth,
        file.cost_budget,
        tuple(file.constraints),
        file.partial_use,
    )
