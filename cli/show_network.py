"""Measures of a network and the methods that support it, as a table for the terminal."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from rich.table import Table

from ..core.collective import Collective
from ..core.fabric import Fabric, expanded_size
from ..core.instance import Instance
from ..core.network_views import fabric_of, links_of
from ..core.topology import Topology
from ..core.units import show
from ..instances.measures import Bisection, Measures, measure_network
from ..studies.support_matrix import method_refusals

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
    topology = links_of(network) if isinstance(network, Fabric) else network
    table = Table(show_header=False, title="network", title_justify="left")
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


def measures(found: Measures, topology: Topology) -> list[tuple[str, str]]:
    """Return name and text of each measure."""
    links = (
        "no path between some ranks"
        if found.diameter is None
        else f"{found.diameter} link{'s' * (found.diameter != 1)}"
    )
    sampled = "" if found.all_sources or found.diameter is None else ", at least: not from all ranks"
    rows = [("diameter", links + sampled), ("bisection", _bisection(found.bisection))]
    rows.append(("degree", f"{_count_text(found.degrees, 'rank')} links out"))
    if found.radixes:
        rows.append(("switches", f"{_count_text(found.radixes, 'switch')} links out"))
    rates = Counter({show(rate, "GB/s"): count for rate, count in found.rates_Bps.items()})
    rows.append(("out of a rank", _count_text(rates, "rank")))
    rows.append(("asymmetric", _asymmetric(found, topology)))
    return rows


def support_matrix(instance: Instance) -> dict[str, list[str]]:
    """Return the methods that support an instance by collective; by several collectives if it has none."""
    from ..instances.demand import with_demand

    posed = [instance] if instance.demand is not None else [with_demand(instance, k.name, None, None) for k in _ASKED]
    return {
        each.collective_name or "": [method.name for method, reason in method_refusals(each) if reason is None]
        for each in posed
    }


def _bisection(found: Bisection | None) -> str:
    if found is None:
        return "not computed: the network is large"
    high = show(found.high_Bps, "GB/s")
    if found.exact:
        return f"{high}, exact: {found.how}"
    if not found.low_Bps:
        return f"at most {high}: {found.how}"
    return f"between {show(found.low_Bps, 'GB/s')}, a bound, and {high}, {found.how}"


def _count_text(found: Counter[int] | Counter[str], what: str) -> str:
    """Format values with their counts; a single value without, more than four as a range."""
    shares = sorted(found.items(), key=lambda share: Fraction(str(share[0]).split()[0]))
    if len(shares) == 1:
        return str(shares[0][0])
    if len(shares) > 4:
        return f"{shares[0][0]} to {shares[-1][0]}"
    plural = {"rank": "ranks", "switch": "switches"}[what]
    return ", ".join(f"{value} ({count:,} {what if count == 1 else plural})" for value, count in shares)


def _asymmetric(found: Measures, topology: Topology) -> str:
    told: list[str] = []
    if found.unequal:
        (a, b), count = found.unequal[0], len(found.unequal)
        told.append(f"{count:,} pairs with less bandwidth back than there, such as {a} to {b}")
    if found.uneven:
        told.append(f"{len(found.uneven):,} ranks receive more or less than they send, such as {found.uneven[0]}")
    if len(found.rates_Bps) > 1 or len(found.degrees) > 1:
        least = min(found.rates_Bps)
        few = next((name for name in topology.ranks if _rate(topology, name) == least), "")
        told.append(f"ranks differ in their links, such as {few}")
    return "; ".join(told) or "nothing: links are the same both ways, and ranks have as many and as fast ones"


def _rate(topology: Topology, name: str) -> Fraction:
    return sum((link.bandwidth_Bps for link in topology.links if link.source == name), Fraction(0))
