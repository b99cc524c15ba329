"""Wide-area networks of foreign files, or of TopoHub, as instances; latencies come from the distance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..core.errors import InputError, locate_errors
from .graph_network import Defaults, network_of
from .graphs import Graph, check_graph, from_node_link, read_graph
from .machine import checked_instance

#: Where TopoHub's networks are asked for, such as ``topohub:sndlib/germany50``.
TOPOHUB = "topohub:"


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
    with locate_errors(source=source[:200]):
        graph = read_topohub(source.removeprefix(TOPOHUB)) if source.startswith(TOPOHUB) else read_graph(Path(source))
        network = network_of(graph, defaults)
    title = name or "-".join(graph.name.split()).lower() or "wan"
    about = f"{graph.name}: {len(network['nodes']):,} sites and {len(network['links']):,} links, imported."
    told = source if source.startswith(TOPOHUB) else Path(source).name
    told = f"{told}; latencies that it does not say are distances over 200,000 km/s"
    with locate_errors(source="the imported instance"):
        return checked_instance(network, name=title, description=about, source=told)


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
    return check_graph(from_node_link(data, name.replace("/", "-")))
