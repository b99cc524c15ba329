"""Conversion of a graph to a network: names, rates and latencies of its links.

A latency that is not said is that of the link's length over 200,000 km/s, light in fibre; the length is the graph's, or
the great circle between its two sites. It is a lower limit: real fibres make detours. Links from a site to itself are
left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from fractions import Fraction
from math import asin, cos, radians, sin, sqrt
from typing import Any

from ..core.errors import InputError, locate_errors, show_value
from ..core.topology import NodeKind
from ..core.units import UnitKind, exact, parse
from .graphs import Graph, Site, SiteLink
from .quantities import quantity

_EARTH_KM = 6371.0088
_FIBRE_KM_PER_S = 200_000

_TRUE, _FALSE = ("True", "true", "1"), ("False", "false", "0")


@dataclass(frozen=True)
class Defaults:
    """Defaults for rates, latencies and kinds of nodes that the file lacks.

    Parameters
    ----------
    bandwidth : str or None
        Rate of links without one, in each direction.
    bandwidth_unit, latency_unit : str or None
        Units of numbers that have none, such as ``"Mb/s"`` and ``"us"``.
    latency : str or None
        Latency of links without one whose length is unknown or not used.
    lengths : bool
        Whether missing latencies are computed from lengths. If not, and no latency is given here, it is 0 for links
        without length, and links with one are rejected.
    switches : sequence of str
        Patterns of the names of switches, with ``*`` and ``?`` as in file names. They only forward.
    """

    bandwidth: str | None = None
    bandwidth_unit: str | None = None
    latency: str | None = None
    latency_unit: str | None = None
    lengths: bool = True
    switches: Sequence[str] = ()


def network_of(graph: Graph, defaults: Defaults) -> dict[str, Any]:
    """Return nodes and links of a graph in the form of an instance file.

    Raises
    ------
    InputError
        If a link has no rate or latency, or an ambiguous one; names the place.
    """
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

    def name(site: Site) -> str:
        return (site.name if count[site.name] == 1 else f"{site.name} ({site.key})")[:200]

    return {site.key: name(site) for site in graph.sites}


def _node(site: Site, name: str, defaults: Defaults) -> dict[str, Any]:
    """Return a rank, or a switch with its capabilities."""
    node: dict[str, Any] = {"name": name}
    fields, said = site.fields, None if site.fields.get("kind") is None else str(site.fields["kind"])
    if said is not None and said not in [kind.value for kind in NodeKind]:
        raise InputError(f"{show_value(said)}; expected compute or switch", place=f"node {name}.kind")
    if any(fnmatchcase(name, pattern) for pattern in defaults.switches):
        return {**node, "kind": "switch", "buffer": "0 B"}
    if (said or str(fields.get("type")).lower()) == NodeKind.SWITCH.value:
        node["kind"] = NodeKind.SWITCH.value
    for flag in ("multicast", "reduces"):
        if (value := fields.get(flag)) is not None:
            if str(value) not in (*_TRUE, *_FALSE):
                raise InputError(f"{show_value(value)}; expected true or false", place=f"node {name}.{flag}")
            node[flag] = str(value) in _TRUE
    if (held := fields.get("buffer_bytes")) is not None:
        node["buffer"] = f"{held} B"
    if (buffer := fields.get("buffer")) is not None:
        node["buffer"] = buffer
    return node


def rate_of(edge: SiteLink, defaults: Defaults) -> str:
    """Rate of a link: as it is said, else the default."""
    said = quantity(edge.fields, UnitKind.RATE, defaults.bandwidth_unit, defaults.bandwidth)
    if said is None:
        raise InputError("the link has no rate; expected --bandwidth as a default")
    return said


def latency_of(edge: SiteLink, places: Mapping[str, tuple[float, float] | None], defaults: Defaults) -> str:
    """Latency of a link: as it is said, else of its length, to the microsecond, else the default."""
    if (said := quantity(edge.fields, UnitKind.TIME, defaults.latency_unit)) is not None:
        return said
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
