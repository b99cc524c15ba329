"""Networks and schedules as DataFrames of pandas, with units in the names of columns, and as graphs of networkx.

Rates and times in graphs are exact numbers. A number that is not whole is a float if the float's decimal text equals
it, and a :class:`~fractions.Fraction` otherwise; reading the graph restores the same number.
"""

from fractions import Fraction
from typing import Any

import numpy as np

from ..core.answers import Answer
from ..core.equal_steps import TranslatedTrees
from ..core.errors import InputError
from ..core.instance import Instance
from ..core.schedule import Floats, Schedule, Sends, StepSchedule
from ..core.step_orbits import StepOrbits
from ..core.topology import NodeKind, Topology
from ..core.trees import Forest, TreeOrbits, TreePacking
from ..schedules.completion import completion_if_any
from ..schedules.simulate.network import wires
from ..schedules.trees import tree_sends
from ..schedules.verify.answers import write_out


def links_frame(topology: Topology) -> Any:
    """Return a row for every link: its position, its ends, and rate and latency rounded to floats."""
    import pandas as pd

    links = topology.links
    return pd.DataFrame(
        {
            "link": np.arange(len(links)),
            "source": [link.source for link in links],
            "target": [link.target for link in links],
            "bandwidth_GBps": [float(link.bandwidth_Bps / 10**9) for link in links],
            "latency_us": [float(link.latency_s * 10**6) for link in links],
        }
    )


def loads_frame(answer: Answer, instance: Instance | None = None) -> Any:
    """Return a row for every link with its load.

    Columns are ``link``, ``sends`` and ``load_bytes``; with the instance those of :func:`links_frame`, ``busy_s``, and
    ``utilization``, the busy share of the completion time: NaN without a completion time. Without it links are numbers,
    up to the last one in use.
    """
    import pandas as pd

    sends, sizes, _ = _send_columns(answer, instance)
    _check_network(sends, instance)
    links = len(instance.topology.links) if instance else 0
    counts = np.bincount(sends.path_links, minlength=links)
    load = np.bincount(sends.path_links, np.repeat(sizes, sends.hops), links)
    if instance is None:
        return pd.DataFrame({"link": np.arange(len(counts)), "sends": counts, "load_bytes": load})
    table = links_frame(instance.topology).assign(sends=counts, load_bytes=load)
    completion = completion_if_any(instance, answer)
    busy_s = load / wires(instance.topology).bandwidth_Bps
    return table.assign(busy_s=busy_s, utilization=busy_s / (completion.seconds or np.nan))


def sends_frame(answer: Answer, instance: Instance | None = None) -> Any:
    """Return a row for every send of a schedule, or for every edge of trees.

    Columns are ``send``, its position, ``source``, ``target``, ``chunk`` or ``tree``, ``size_bytes`` (rounded to a
    float), ``reduce``, whether the target adds it up, ``step``, or ``start_s`` and ``end_s``, and ``path``, the links.
    Without the instance nodes are positions, those of trees ranks.
    """
    import pandas as pd

    sends, sizes, more = _send_columns(answer, instance)
    _check_network(sends, instance)
    nodes = None if instance is None else np.array([node.name for node in instance.topology.nodes], dtype=object)
    ends = {"source": sends.source, "target": sends.target}
    ends = ends if nodes is None else {name: nodes[column] for name, column in ends.items()}
    links = [tuple(path) for path in map(np.ndarray.tolist, np.split(sends.path_links, sends.path_offset[1:-1]))]
    what = {"tree" if isinstance(answer, Forest) else "chunk": sends.chunk, "size_bytes": sizes}
    columns = {"send": np.arange(len(sends)), **ends, **what, "reduce": sends.reduce, **more}
    return pd.DataFrame(columns).assign(path=links[: len(sends)])


def _check_network(sends: Sends, instance: Instance | None) -> None:
    if instance is None or not len(sends):
        return
    network = instance.topology
    sizes = {"nodes": int(max(sends.source.max(), sends.target.max())) + 1, "links": int(sends.path_links.max()) + 1}
    for what, count in (("nodes", len(network.nodes)), ("links", len(network.links))):
        if sizes[what] > count:
            text = f"the schedule uses {sizes[what]:,} {what}, {instance.name[:60]!r} has {count:,}"
            raise InputError(f"{text}; expected its own instance", source="instance")


def _send_columns(answer: Answer, instance: Instance | None) -> tuple[Sends, Floats, dict[str, Any]]:
    """Return the sends of an answer, their bytes, and their times."""
    if isinstance(answer, StepOrbits | TreeOrbits | TranslatedTrees):
        if instance is None:
            raise InputError("sends or trees that stand for others need their instance; expected it, or the record")
        answer = write_out(answer, instance)
    if isinstance(answer, TreePacking):
        sends, sizes, level = tree_sends(None if instance is None else instance.topology, answer, 1)
        return sends, sizes[sends.chunk], {"step": level}
    if isinstance(answer, StepSchedule):
        return answer.sends, answer.chunks.sizes_bytes[answer.sends.chunk], {"step": answer.step}
    if isinstance(answer, Schedule):
        times = {"start_s": answer.start_s, "end_s": answer.end_s}
        return answer.sends, answer.chunks.sizes_bytes[answer.sends.chunk], times
    raise InputError(f"{type(answer).__name__} has no sends; expected a schedule or a packing of trees")


def network_graph(topology: Topology, name: str) -> Any:
    """Convert a network to a ``networkx.MultiDiGraph``.

    Nodes are in the same order, with ``kind``, and ``rank`` of ranks; of switches ``multicast`` and ``reduces``, and
    ``buffer_bytes`` of nodes with a limited buffer. Edges have ``link``, which is their key too, ``bandwidth_Bps`` and
    ``latency_s``.
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
            fields["buffer_bytes"] = plain_number(node.buffer_bytes)
        graph.add_node(node.name, **fields)
    for index, link in enumerate(topology.links):
        rate, time = plain_number(link.bandwidth_Bps), plain_number(link.latency_s)
        graph.add_edge(link.source, link.target, index, link=index, bandwidth_Bps=rate, latency_s=time)
    return graph


def schedule_graph(answer: Answer, instance: Instance | None = None) -> Any:
    """Convert a schedule or a packing of trees to a ``networkx.MultiDiGraph``, an edge for every send.

    Edges have the columns of :func:`sends_frame`; the send is their key too. The instance adds all nodes, by their
    names; without it there are only those in use, by their numbers.
    """
    import networkx as nx

    table = sends_frame(answer, instance)
    edges = nx.from_pandas_edgelist(
        table.assign(number=table["send"]),
        edge_attr=[*table.columns.drop(["source", "target"])],
        create_using=nx.MultiDiGraph,
        edge_key="number",
    )
    if instance is None:
        return edges
    graph = network_graph(instance.topology, instance.name)
    graph.remove_edges_from(list(graph.edges))
    graph.add_edges_from(edges.edges(keys=True, data=True))
    return graph


def plain_number(value: Fraction) -> int | float | Fraction:
    """Convert a fraction to an equal int or float, if there is one; a float counts as its decimal text."""
    if value.denominator == 1:
        return value.numerator
    near = float(value)
    return near if Fraction(repr(near)) == value else value
