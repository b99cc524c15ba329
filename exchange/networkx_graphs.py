"""Conversions from networkx graphs to instances, and from networks and schedules to networkx graphs.

Rates and times of networks are exact numbers. A number that is not whole is a float if the float's decimal text equals
it, and a :class:`~fractions.Fraction` otherwise; reading restores the same number.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

from ..core.answers import Answer
from ..core.errors import InputError, locate_errors
from ..core.instance import Instance
from ..core.topology import NodeKind, Topology
from .frames import sends_frame
from .graph_network import Defaults
from .graph_network import network_of as network_data
from .graphs import MAX_EDGES, MAX_SITES, Graph, check_graph, from_node_link, read_graph
from .machine import checked_instance


def import_graph(graph: Any, defaults: Defaults, name: str | None = None) -> dict[str, Any]:
    """Convert a graph to the data of an instance file.

    Parameters
    ----------
    graph : networkx.Graph
        A graph of any of the four classes. An undirected edge becomes a link in each direction, and parallel edges
        stay separate links.
    defaults : Defaults
        Bandwidth, latency and the like for links without these attributes.
    name : str, optional
        Name of the instance; by default the graph's, else ``graph``.

    Raises
    ------
    InputError
        If the graph is too large or an attribute is invalid; the message names the node or the link.
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
    network = network_data(graph, defaults)
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


def network_graph(topology: Topology, name: str) -> Any:
    """Convert a network to a ``networkx.MultiDiGraph``.

    Returns
    -------
    networkx.MultiDiGraph
        Nodes in the same order, with ``kind``, and ``rank`` of ranks; of switches ``multicast`` and ``reduces``, and
        ``buffer_bytes`` of nodes with a limited buffer. Edges with ``link``, which is their key too, ``bandwidth_Bps``
        and ``latency_s``.
    """
    import networkx as nx

    graph = nx.MultiDiGraph(name=name)
    ranks = {node: rank for rank, node in enumerate(topology.rank_nodes)}
    for index, node in enumerate(topology.nodes):
        fields: dict[str, Any] = {"kind": node.kind.value}
        if node.kind is NodeKind.SWITCH:
            fields |= {"multicast": node.multicast, "reduces": node.reduces}
        else:
            fields["rank"] = ranks[index]
        if node.buffer_bytes is not None:
            fields["buffer_bytes"] = number(node.buffer_bytes)
        graph.add_node(node.name, **fields)
    for index, link in enumerate(topology.links):
        rate, time = number(link.bandwidth_Bps), number(link.latency_s)
        graph.add_edge(link.source, link.target, index, link=index, bandwidth_Bps=rate, latency_s=time)
    return graph


def schedule_graph(answer: Answer, instance: Instance | None = None) -> Any:
    """Convert a schedule or a packing of trees to a ``networkx.MultiDiGraph``, an edge for every send.

    Parameters
    ----------
    answer : Answer
        A schedule or a packing of trees.
    instance : Instance, optional
        The problem: adds all nodes, by their names; otherwise only those in use, by their numbers.

    Returns
    -------
    networkx.MultiDiGraph
        Edges have the columns of :func:`~cwb.exchange.frames.sends_frame`; the send is their key too.
    """
    import networkx as nx

    table = sends_frame(answer, instance)
    sent = nx.from_pandas_edgelist(
        table.assign(number=table["send"]),
        edge_attr=[*table.columns.drop(["source", "target"])],
        create_using=nx.MultiDiGraph,
        edge_key="number",
    )
    if instance is None:
        return sent
    graph = network_graph(instance.topology, instance.name)
    graph.remove_edges_from(list(graph.edges))
    graph.add_edges_from(sent.edges(keys=True, data=True))
    return graph


def number(value: Fraction) -> int | float | Fraction:
    """Convert a fraction to an equal int or float, if there is one; a float counts as its decimal text."""
    if value.denominator == 1:
        return value.numerator
    near = float(value)
    return near if Fraction(repr(near)) == value else value
