"""Wide-area networks of foreign files, or of TopoHub, as instances.

Rates from the file or one for all, latencies from the distance.

The latency of a link is its length over 200,000 km/s, light in fibre; the length is the file's, or the great circle
between its two sites. It is a lower limit: real fibres make detours. Links from a site to itself are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import asin, cos, radians, sin, sqrt
from pathlib import Path
from typing import Any

from ..core.errors import InputError, located
from ..core.fields import validated
from ..core.units import UnitKind, exact, parse
from ..instances.build import build_instance
from ..instances.loader import find_workload, network_from_text
from ..instances.schema import InstanceFile
from .graphs import Graph, Site, SiteLink, checked, from_node_link, read_graph

_EARTH_KM = 6371.0088
_FIBRE_KM_PER_S = 200_000

#: Where TopoHub's networks are asked for, such as ``topohub:sndlib/germany50``.
TOPOHUB = "topohub:"


@dataclass(frozen=True)
class Defaults:
    """What the file does not say.

    Parameters
    ----------
    bandwidth : str or None
        Rate of links without one, in each direction.
    capacity_unit : str or None
        Unit of capacities that have none, such as ``"Mb/s"``.
    latency : str or None
        Latency of links whose length is not known.
    """

    bandwidth: str | None = None
    capacity_unit: str | None = None
    latency: str | None = None


def import_wan(source: str, defaults: Defaults, name: str | None = None) -> dict[str, Any]:
    """Make an instance of a file or of a network of TopoHub.

    Parameters
    ----------
    source : str
        A file in one of the formats of :mod:`.graphs`, or ``topohub:`` and a name.
    defaults : Defaults
        What the file does not say.
    name : str or None
        Name of the instance; by default the graph's.

    Returns
    -------
    dict
        What the instance file says, checked by building it.

    Raises
    ------
    InputError
        If the file is wrong, or a link has no rate or no latency; names the file and the place.
    """
    with located(source=source[:200]):
        graph = read_topohub(source.removeprefix(TOPOHUB)) if source.startswith(TOPOHUB) else read_graph(Path(source))
        names = site_names(graph)
        places = {site.key: site.place for site in graph.sites}
        two_ways = {} if graph.directed else {"bidirectional": True}
        links = []
        for index, edge in enumerate(graph.edges):
            if edge.one != edge.other:
                with located(f"edges[{index}]"):
                    rate, latency = rate_of(edge, defaults), latency_of(edge, places, defaults)
                ends = {"source": names[edge.one], "target": names[edge.other]}
                links.append({**ends, "bandwidth": rate, "latency": latency, **two_ways})
    title = name or "-".join(graph.name.split()).lower() or "wan"
    data: dict[str, Any] = {
        "schema": "cwb-instance/1",
        "name": title,
        "description": f"{graph.name}: {len(graph.sites):,} sites and {len(links):,} links, imported.",
        "source": f"{Path(source).name if not source.startswith(TOPOHUB) else source}; latencies are distances over 200,000 km/s",
        "network": {"nodes": [{"name": names[site.key]} for site in graph.sites], "links": links},
    }
    with located(source="the imported instance"):
        file = validated(lambda: InstanceFile.model_validate(data))
        build_instance(file, title, find_workload, network_from_text)
    return data


def read_topohub(name: str) -> Graph:
    """Ask TopoHub for a network.

    Raises
    ------
    InputError
        If TopoHub is not installed, or does not have it.
    """
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
    return checked(from_node_link(data, name.replace("/", "-")))


def site_names(graph: Graph) -> dict[str, str]:
    """Assign every site a name of its own: its label, with its key where several have the same."""
    count = Counter(site.name for site in graph.sites)

    def name(site: Site) -> str:
        return (site.name if count[site.name] == 1 else f"{site.name} ({site.key})")[:200]

    return {site.key: name(site) for site in graph.sites}


def rate_of(edge: SiteLink, defaults: Defaults) -> str:
    """Rate of a link: the file's as it is written there, in bits per second or in the given unit, else the default."""
    if edge.bits_per_s:
        return exact(Fraction(repr(edge.bits_per_s)), "b/s")
    if edge.capacity and defaults.capacity_unit is not None:
        return exact(Fraction(repr(edge.capacity)), defaults.capacity_unit)
    if defaults.bandwidth is None:
        raise InputError("the link has no rate; expected --bandwidth for those without")
    parse(defaults.bandwidth, UnitKind.RATE, allow_zero=False)
    return defaults.bandwidth


def latency_of(edge: SiteLink, places: Mapping[str, tuple[float, float] | None], defaults: Defaults) -> str:
    """Latency of a link, to the microsecond."""
    one, other = places[edge.one], places[edge.other]
    km = edge.km
    if km is None and one is not None and other is not None:
        km = great_circle_km(one, other)
    if km is not None:
        return f"{round(Fraction(km) / _FIBRE_KM_PER_S * 10**6)} us"
    if defaults.latency is None:
        raise InputError("its sites have no coordinates; expected --latency for such links")
    parse(defaults.latency, UnitKind.TIME)
    return defaults.latency


def great_circle_km(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Distance on the sphere between two places (latitude, longitude in degrees), by the haversine formula."""
    (north, east), (north2, east2) = ((radians(a), radians(b)) for a, b in (one, other))
    half = sin((north2 - north) / 2) ** 2 + cos(north) * cos(north2) * sin((east2 - east) / 2) ** 2
    return 2 * _EARTH_KM * asin(min(1.0, sqrt(half)))
