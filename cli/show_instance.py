"""Tables of an instance, its network and the methods that support it, for the terminal."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from rich.table import Table

from ..core.collective import Collective
from ..core.design import Design
from ..core.errors import InputError
from ..core.experts import Experts
from ..core.fabric import COMPONENTS, CostModel, Fabric, expanded_size
from ..core.instance import Instance
from ..core.network_views import fabric_of, links_of
from ..core.topology import Topology
from ..core.transformer import Transformer
from ..core.units import SIZES, TIMES, UnitKind, amount, show
from ..core.workload import Layer, Workload
from ..instances.edits import machine_at
from ..instances.measures import Bisection, Measures, measure_network
from ..studies.support_matrix import method_refusals
from .display import new_form, new_table

if TYPE_CHECKING:
    from rich.console import RenderableType

_PRICE = "USD/(GB/s)"
_PHASES = {"forward": "forward", "input_gradient": "input gradient", "weight_gradient": "weight gradient"}


def describe_instance(instance: Instance) -> list[RenderableType]:
    """Describe the network of an instance, then its demand."""
    parts: list[RenderableType] = [f"{instance.name}: {instance.description}".rstrip(": ")]
    if instance.source:
        parts.append(f"source: {instance.source}")
    parts.append(f"sha256: {instance.sha256}")
    network = instance.network
    if isinstance(network, Fabric):
        parts.append(f"network: {network}, {network.npus:,} NPUs")
        parts.append(fabric_table(network, instance.cost_model))
    else:
        ranks, switches, links = (f"{len(part):,}" for part in (network.ranks, network.switches, network.links))
        parts.append(f"network: {ranks} NPUs, {switches} switches, {links} directed links")
        parts.append(topology_table(*networks_by_rates(instance, network)))
    for demand in instance.collectives[:1] if instance.demand is not None else ():
        ranks = "all ranks" if demand.ranks is None else f"{len(demand.ranks):,} ranks"
        size = amount(demand.size_bytes, SIZES)
        parts.append(f"collective: {demand.collective.name} of {size}, {demand.chunks:,} chunks per rank, {ranks}")
    parts.extend(transformer_line(transformer) for transformer in instance.transformers)
    for workload in instance.training():
        parts.extend((groups_table(workload, instance.fabric), phases_table(workload)))
    if instance.experts is not None:
        parts.append(experts_line(instance.experts))
    if instance.cost_model is not None:
        parts.append(prices_table(instance.cost_model))
    if instance.design is not None:
        parts.append(design_table(instance.design))
    return parts


def fabric_table(fabric: Fabric, model: CostModel | None) -> Table:
    """Tabulate dimensions, innermost first, with the price that an NPU pays for bandwidth in each."""
    table = new_table("dimensions, innermost first", "dimension", "block", "tier", "in-network reduction", fold=True)
    prices = None if model is None else model.price_per_Bps(fabric)
    if prices is not None:
        table.add_column(f"{_PRICE} per NPU")
    for index, dimension in enumerate(fabric.dimensions):
        price = [] if prices is None else [_price(prices[index])]
        in_network = "yes" if dimension.in_network else "no"
        table.add_row(str(index + 1), str(dimension), dimension.tier, in_network, *price)
    return table


def networks_by_rates(instance: Instance, network: Topology) -> list[Topology]:
    """Return a machine at effective and at its own rates if these differ, else the network alone."""
    try:
        effective = machine_at(instance, "effective")
    except InputError:
        return [network]
    return [network] if effective == network else [effective, network]


def topology_table(*networks: Topology) -> Table:
    """Tabulate links by bandwidth and latency; of two networks, the first has effective rates."""
    rates = ["bandwidth"] if len(networks) == 1 else ["effective", "nominal"]
    table = new_table("links", "number", *rates, "latency", fold=True)
    # By identity first: a fraction is slow to hash, and most links share theirs.
    alike = zip(*(network.links for network in networks), strict=True)
    numbers = [(*(link.bandwidth_Bps for link in links), links[-1].latency_s) for links in alike]
    number_of = {id(number): number for each in numbers for number in each}
    classes: Counter[tuple[Fraction, ...]] = Counter()
    for ids, count in Counter(tuple(map(id, each)) for each in numbers).items():
        classes[tuple(number_of[one] for one in ids)] += count
    for (*bandwidths, latency), number in sorted(classes.items(), reverse=True):
        table.add_row(f"{number:,}", *(show(rate, "GB/s") for rate in bandwidths), amount(latency, TIMES))
    return table


def experts_line(experts: Experts) -> str:
    """Describe experts, their loads and the slots for replicas in one line."""
    loads = [load for layer in experts.loads for load in layer]
    layers = "" if len(experts.loads) == 1 else f" in each of {len(experts.loads):,} layers"
    bound = "" if experts.nodes == 1 else f"; {experts.groups:,} groups, each on one of {experts.nodes:,} nodes"
    return (
        f"experts: {experts.count:,}{layers}, loads from {float(min(loads)):g} to {float(max(loads)):g}; "
        f"{experts.slots:,} slots on each of {experts.gpus:,} GPUs{bound}"
    )


def transformer_line(transformer: Transformer) -> str:
    """Describe the parameters of a transformer in one line."""
    t, m = transformer, transformer.model
    return (
        f"{t.name}: transformer of {m.layers:,} layers, hidden size {m.hidden:,}, sequences of {m.sequence:,}, "
        f"batch {m.batch:,}, HP-({t.tensor_parallel:,}, {t.data_parallel:,}), ZeRO stage {m.zero_stage}, "
        f"values in {m.precision}, {show(m.speed, 'TFLOPS')}"
    )


def groups_table(workload: Workload, fabric: Fabric) -> Table:
    """Tabulate the NPUs that every group spans in each dimension."""
    headings = [f"{i}: {dimension}" for i, dimension in enumerate(fabric.dimensions, start=1)]
    table = new_table(f"{workload.name}: groups (NPUs per dimension)", "group", *headings, fold=True)
    for name, span in workload.groups.items():
        table.add_row(name, *(str(part) for part in span))
    return table


def phases_table(workload: Workload) -> Table:
    """Tabulate computation and bytes of all layers by phase."""
    count = sum(layer.repeat for layer in workload.layers)
    title = f"{workload.name}: layers {count:,}, loop {workload.loop.value}, weight {float(workload.weight):g}"
    table = new_table(title, "phase", "computation", "collective", "group", "times", "bytes", fold=True)
    for phase, heading in _PHASES.items():
        compute = sum((getattr(layer, phase).compute_s * layer.repeat for layer in workload.layers), Fraction(0))
        rows = list(_communication(workload.layers, phase)) or [("none", "", "", "")]
        for index, row in enumerate(rows):
            table.add_row(*((heading, amount(compute, TIMES)) if index == 0 else ("", "")), *row)
    return table


def _communication(layers: Sequence[Layer], phase: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield the collectives of a phase, summed by kind and group."""
    times: dict[tuple[str, str], int] = defaultdict(int)
    size: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
    for layer in layers:
        for communication in getattr(layer, phase).communication:
            key = communication.collective.name, communication.group
            times[key] += layer.repeat
            size[key] += communication.size_bytes * layer.repeat
    for key, number in times.items():
        yield *key, f"{number:,}", amount(size[key], SIZES)


def prices_table(model: CostModel) -> Table:
    """Tabulate the price of every component in every tier."""
    components = sorted({component for names in COMPONENTS.values() for component in names})
    table = new_table(f"prices in {_PRICE}", "tier", *components, fold=True)
    for tier, prices in model.prices.items():
        table.add_row(tier, *(_price(prices[c]) if c in prices else "none" for c in components))
    return table


def design_table(design: Design) -> Table:
    """Tabulate objective, budgets and constraints."""
    table = new_form("design", "left", "left")
    table.add_row("objective", design.objective.value)
    if design.total_Bps is not None:
        table.add_row("total bandwidth per NPU", f"= {show(design.total_Bps, 'GB/s')}")
    if design.max_total_Bps is not None:
        table.add_row("total bandwidth per NPU", f"<= {show(design.max_total_Bps, 'GB/s')}")
    if design.cost_budget_usd is not None:
        table.add_row("network cost", f"<= {show(design.cost_budget_usd, 'USD')}")
    for text in design.constraints:
        table.add_row("constraint", text)
    table.add_row("partly used dimensions", design.partial_use.value)
    return table


def _price(value: Fraction) -> str:
    """Format a price with enough digits to distinguish LIBRA's published ones; the heading has the unit."""
    return f"{float(value / UnitKind.PRICE.units[_PRICE]):.9g}"


#: Larger networks are not measured, and of more ranks no method is asked, since some look at every pair of them.
MAX_LINKS, MAX_RANKS = 200_000, 512

#: Collectives that methods are asked for where an instance has none.
_ASKED = (Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.ALL_TO_ALL)


def describe_network(instance: Instance) -> Table | None:
    """Tabulate measures of a network and the methods that support it; None for designs and large networks."""
    network = instance.network
    if instance.is_beyond_collectives:
        return None
    if (expanded_size(network)[1] if isinstance(network, Fabric) else len(network.links)) > MAX_LINKS:
        return None
    topology = links_of(network)
    table = new_form("network", "left", "left")
    if isinstance(network, Fabric):
        table.add_row("links", f"{len(topology.links):,} directed links as a graph of {len(topology.nodes):,} nodes")
    elif (fabric := fabric_of(network)) is not None:
        rates = ", ".join(show(rate, "GB/s") for rate in fabric.bandwidth_Bps)
        table.add_row("dimensions", f"{fabric}, per NPU {rates}")
    for name, text in measures(measure_network(topology), topology):
        table.add_row(name, text)
    for kind, names in support_matrix(instance).items() if len(topology.ranks) <= MAX_RANKS else ():
        table.add_row(f"methods for {kind}", f"{len(names)}: {', '.join(names)}")
    if len(topology.ranks) > MAX_RANKS:
        table.add_row("methods", f"not asked, since there are more than {MAX_RANKS} ranks; see 'cwb list models --for'")
    return table


def measures(facts: Measures, topology: Topology) -> list[tuple[str, str]]:
    """Return name and text of each measure."""
    links = (
        "no path between some ranks"
        if facts.diameter is None
        else f"{facts.diameter} link{'s' * (facts.diameter != 1)}"
    )
    remark = "" if facts.all_sources or facts.diameter is None else ", at least: not from all ranks"
    rows = [("diameter", links + remark), ("bisection", _bisection(facts.bisection))]
    rows.append(("degree", f"{_count_text(facts.degrees, 'rank')} links out"))
    if facts.radixes:
        rows.append(("switches", f"{_count_text(facts.radixes, 'switch')} links out"))
    rates = Counter({show(rate, "GB/s"): count for rate, count in facts.rates_Bps.items()})
    rows.append(("out of a rank", _count_text(rates, "rank")))
    rows.append(("asymmetric", _asymmetric(facts, topology)))
    return rows


def support_matrix(instance: Instance) -> dict[str, list[str]]:
    """Return the methods that support an instance by collective; by several collectives if it has none."""
    from ..instances.demand import with_demand

    cases = [instance] if instance.demand is not None else [with_demand(instance, k.name, None, None) for k in _ASKED]
    return {
        each.collective_name or "": [method.name for method, reason in method_refusals(each) if reason is None]
        for each in cases
    }


def _bisection(cut: Bisection | None) -> str:
    if cut is None:
        return "not computed: the network is large"
    high = show(cut.high_Bps, "GB/s")
    if cut.exact:
        return f"{high}, exact: {cut.how}"
    if not cut.low_Bps:
        return f"at most {high}: {cut.how}"
    return f"between {show(cut.low_Bps, 'GB/s')}, a bound, and {high}, {cut.how}"


def _count_text(counts: Counter[int] | Counter[str], what: str) -> str:
    """Format values with their counts; a single value without, more than four as a range."""
    shares = sorted(counts.items(), key=lambda share: Fraction(str(share[0]).split()[0]))
    if len(shares) == 1:
        return str(shares[0][0])
    if len(shares) > 4:
        return f"{shares[0][0]} to {shares[-1][0]}"
    plural = {"rank": "ranks", "switch": "switches"}[what]
    return ", ".join(f"{value} ({count:,} {what if count == 1 else plural})" for value, count in shares)


def _asymmetric(facts: Measures, topology: Topology) -> str:
    notes: list[str] = []
    if facts.unequal:
        (a, b), count = facts.unequal[0], len(facts.unequal)
        notes.append(f"{count:,} pairs with less bandwidth back than there, such as {a} to {b}")
    if facts.uneven:
        notes.append(f"{len(facts.uneven):,} ranks receive more or less than they send, such as {facts.uneven[0]}")
    if len(facts.rates_Bps) > 1 or len(facts.degrees) > 1:
        rates_Bps: dict[str, Fraction] = defaultdict(Fraction)
        for link in topology.links:
            rates_Bps[link.source] += link.bandwidth_Bps
        notes.append(f"ranks differ in their links, such as {min(topology.ranks, key=rates_Bps.__getitem__)}")
    return "; ".join(notes) or "nothing: links are the same both ways, and ranks have as many and as fast ones"
