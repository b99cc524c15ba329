"""Networks from graphs: of networkx, in files of foreign formats, or of TopoHub (docs/exchange/graphs.md).

A latency that is not said is that of the link's length in fibre, a lower limit: real fibres make detours.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from fractions import Fraction
from math import asin, cos, radians, sin, sqrt
from pathlib import Path
from typing import Any

from ..core.errors import InputError, locate_errors, show_value
from ..core.topology import NodeKind
from ..core.units import UnitKind, exact, parse
from .graphs import MAX_EDGES, MAX_SITES, Graph, Site, SiteLink, check_graph, from_node_link, read_graph
from .machine import checked_instance
from .quantities import quantity

_EARTH_KM = 6371.0088
_FIBRE_KM_PER_S = 200_000
_TRUE, _FALSE = ("True", "true", "1"), ("False", "false", "0")


@dataclass(frozen=True)
class Defaults:
    """Defaults for rates, latencies and kinds of nodes that the file lacks."""

    bandwidth: str | None = None  #: Rate of links without one, in each direction.
    #: ``bandwidth_unit`` and ``latency_unit``: units of numbers that have none, such as ``"Mb/s"`` and ``"us"``.
    bandwidth_unit: str | None = None
    latency: str | None = None  #: Latency of links without one whose length is unknown or not used.
    latency_unit: str | None = None
    #: Whether missing latencies are computed from lengths. If not, and no latency is given here, it is 0 for links
    #: without length, and links with one are rejected.
    lengths: bool = True
    #: Patterns of the names of switches, with ``*`` and ``?`` as in file names. They only forward.
    switches: Sequence[str] = ()


def network_of(graph: Graph, defaults: Defaults) -> dict[str, Any]:
    """Return nodes and links of a graph in the form of an instance file."""
    names = site_names(graph)
    places = {site.key: site.place for site in graph.sites}
    two_ways = {} if graph.directed else {"bidirectional": True}
    links = []
    for edge in graph.edges:
        if edge.one != edge.other:
            with locate_errors(f"link {names[edge.one][:60]}-{names[edge.other][:60]}"):
                rate, latency = rate_of(edge, defaults), latency_of(edge, places, defaults)
            ends = {"source": names[edge.one], "target": names[edge.other]}
            links.append({**ends, "bandwidth": rate, "latency": latency, **two_ways})
    return {"nodes": [_node(site, names[site.key], defaults) for site in graph.sites], "links": links}


def site_names(graph: Graph) -> dict[str, str]:
    """Assign every site a name of its own: its label, with its key where several have the same."""
    count = Counter(site.name for site in graph.sites)
    names = {site.key: site.name if count[site.name] == 1 else f"{site.name} ({site.key})" for site in graph.sites}
    return {key: name[:200] for key, name in names.items()}


def _node(site: Site, name: str, defaults: Defaults) -> dict[str, Any]:
    node: dict[str, Any] = {"name": name}
    fields, role = site.fields, None if site.fields.get("kind") is None else str(site.fields["kind"])
    if role is not None and role not in [kind.value for kind in NodeKind]:
        raise InputError(f"{show_value(role)}; expected compute or switch", place=f"node {name}.kind")
    if any(fnmatchcase(name, pattern) for pattern in defaults.switches):
        return {**node, "kind": "switch", "buffer": "0 B"}
    if (role or str(fields.get("type")).lower()) == NodeKind.SWITCH.value:
        node["kind"] = NodeKind.SWITCH.value
    for flag in ("multicast", "reduces"):
        if (value := fields.get(flag)) is not None:
            if str(value) not in (*_TRUE, *_FALSE):
                raise InputError(f"{show_value(value)}; expected true or false", place=f"node {name}.{flag}")
            node[flag] = str(value) in _TRUE
    if (size := fields.get("buffer_bytes")) is not None:
        node["buffer"] = f"{size} B"
    if (buffer := fields.get("buffer")) is not None:
        node["buffer"] = buffer
    return node


def rate_of(edge: SiteLink, defaults: Defaults) -> str:
    """Rate of a link: as it is said, else the default."""
    rate = quantity(edge.fields, UnitKind.RATE, defaults.bandwidth_unit, defaults.bandwidth)
    if rate is None:
        raise InputError("the link has no rate; expected --bandwidth as a default")
    return rate


def latency_of(edge: SiteLink, places: Mapping[str, tuple[float, float] | None], defaults: Defaults) -> str:
    """Latency of a link: as it is said, else of its length, to the microsecond, else the default."""
    if (text := quantity(edge.fields, UnitKind.TIME, defaults.latency_unit)) is not None:
        return text
    one, other = places[edge.one], places[edge.other]
    km = edge.km
    if km is None and one is not None and other is not None:
        km = great_circle_km(one, other)
    if km is not None and defaults.lengths:
        return f"{round(Fraction(km) / _FIBRE_KM_PER_S * 10**6)} us"
    if defaults.latency is not None:
        parse(defaults.latency, UnitKind.TIME)
        return defaults.latency
    if defaults.lengths:
        raise InputError("its sites have no coordinates; expected --latency for such links")
    if km is not None:
        raise InputError("the link has a length but no latency; expected --latency, such as 'length' or '1 us'")
    return exact(Fraction(0), "s")


def great_circle_km(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Distance on the sphere between two places (latitude, longitude in degrees), by the haversine formula."""
    (north, east), (north2, east2) = ((radians(a), radians(b)) for a, b in (one, other))
    half = sin((north2 - north) / 2) ** 2 + cos(north) * cos(north2) * sin((east2 - east) / 2) ** 2
    return 2 * _EARTH_KM * asin(min(1.0, sqrt(half)))


def import_graph(graph: Any, defaults: Defaults, name: str | None = None) -> dict[str, Any]:
    """Convert a graph to the data of an instance file.

    Graphs are of any of networkx's four classes. An undirected edge becomes a link in each direction, and parallel
    edges stay separate links.
    """
    if len(graph) > MAX_SITES or graph.number_of_edges() > MAX_EDGES:
        raise InputError(f"expected at most {MAX_SITES:,} nodes and {MAX_EDGES:,} links")
    return import_data(node_link(graph), defaults, name)


def import_data(data: dict[str, Any], defaults: Defaults, name: str | None = None) -> dict[str, Any]:
    """Convert node-link data to the data of an instance file; see :func:`import_graph`."""
    return _graph_instance(check_graph(from_node_link(data, "graph")), defaults, name)


def import_file(path: Path, defaults: Defaults, name: str | None = None) -> dict[str, Any]:
    """Convert a graph in a file to the data of an instance file; see :func:`import_graph`."""
    with locate_errors(source=str(path)):
        return _graph_instance(read_graph(path), defaults, name)


def _graph_instance(graph: Graph, defaults: Defaults, name: str | None) -> dict[str, Any]:
    network = network_of(graph, defaults)
    about = f"{len(network['nodes']):,} nodes and {len(network['links']):,} links."
    return checked_instance(network, name=name or graph.name, description=about, source="a graph")


def node_link(graph: Any) -> dict[str, Any]:
    """Return the node-link data of a graph, with nodes of any type named by their text."""
    import networkx as nx

    data: dict[str, Any] = nx.node_link_data(graph, edges="edges")
    for node in data["nodes"]:
        node["id"] = str(node["id"])
    for edge in data["edges"]:
        edge |= {"source": str(edge["source"]), "target": str(edge["target"])}
    return data


TOPOHUB = "topohub:"  #: Where TopoHub's networks are asked for, such as ``topohub:sndlib/germany50``.


def import_wan(source: str, defaults: Defaults, name: str | None = None) -> dict[str, Any]:
    """Make an instance of a file of a graph (:mod:`.graphs`), or of a network of TopoHub: ``topohub:`` and a name."""
    with locate_errors(source=source[:200]):
        graph = read_topohub(source.removeprefix(TOPOHUB)) if source.startswith(TOPOHUB) else read_graph(Path(source))
        network = network_of(graph, defaults)
    title = name or "-".join(graph.name.split()).lower() or "wan"
    about = f"{graph.name}: {len(network['nodes']):,} sites and {len(network['links']):,} links, imported."
    origin = source if source.startswith(TOPOHUB) else Path(source).name
    origin = f"{origin}; latencies that it does not say are distances over 200,000 km/s"
    with locate_errors(source="the imported instance"):
        return checked_instance(network, name=title, description=about, source=origin)


def read_topohub(name: str) -> Graph:
    """Ask TopoHub for a network."""
    try:
        import topohub  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise InputError("TopoHub is not installed; pip install 'cwb[topohub]'") from None
    if any(part in ("", ".", "..") for part in name.split("/")):
        raise InputError("expected a name such as topohub:sndlib/germany50")
    try:
        data = topohub.get(name)
    except (KeyError, OSError):
        raise InputError("TopoHub has no such network; expected a name such as topohub:sndlib/germany50") from None
    return check_graph(from_node_link(data, name.replace("/", "-")))
