"""Interactive page of a schedule in one file, without network access or libraries."""

import json
import re
from importlib.resources import files
from typing import Any

import numpy as np

from ...core.schedule import Floats, Ints
from ...core.text import escape_html, escape_unprintable
from ...core.topology import Topology
from ...core.trace import Trace
from .look import COLOURS
from .network_layout import layout_with_tiers
from .schedule_time import Bars, assign_lanes, busiest
from .schedule_traffic import Traffic, loads

HOPS = 50_000  #: Bars that a page has at most.

#: Ranks that are drawn one by one, beyond by boxes; nodes and links that a drawing has at most.
_DRAWN_RANKS, _DRAWN_NODES, _DRAWN_LINKS = 256, 4096, 12_000

LINKS, NODES = 2_000, 256  #: Links and rows of the heat map that it has at most.


def page(traffic: Traffic, trace: Trace, bound_s: float | None = None, most: int = HOPS) -> bytes:
    """Make the page: the network with moving chunks, a Gantt chart of the links, heat maps of their loads.

    The file is the same for the same schedule. ``bound_s`` is a proved lower bound on the completion time. Of more bars
    than ``most``, neighbours on a link are merged, and the page says so.
    """
    links = max(1, min(LINKS, most // 2))
    bars = busiest(traffic, trace, links)
    rows, lanes, together = _bars(traffic, trace, bars, most)
    load = loads(traffic.topology, traffic.link_bytes, NODES)
    utilization = loads(traffic.topology, traffic.link_utilization, NODES, np.maximum)
    source, target = np.nonzero(~np.isnan(load.matrix))
    names = traffic.topology.nodes
    notes = []
    if len(bars.links) == links < (total := int((traffic.link_bytes > 0).sum())):
        notes.append(f"The Gantt chart has the {links:,} busiest of {total:,} used links.")
    if together > 1:
        notes.append(
            f"{len(bars.hop):,} hops are too many for a page: a bar stands for up to {together:,} on its link."
        )
    if load.block > 1:
        notes.append(f"A cell of the heat map is the largest of {load.block} x {load.block} pairs of nodes.")
    player = _player(traffic.topology, bars)
    if player is None:
        notes.append("The network is too large to be drawn.")
    data = {
        "player": player,
        "bound": bound_s,
        "mode": trace.mode.value,
        "completion": _digits(trace.completion_s),
        "lanes": lanes,
        "what": list(traffic.colour_keys),
        "colours": list(COLOURS),
        "nodes": [escape_unprintable(node.name) for node in names],
        "links": [[*traffic.topology.link_ends[link], _digits(float(trace.link_busy_s[link]))] for link in bars.links],
        "names": [escape_unprintable(traffic.link_names[link]) for link in bars.links],
        "bars": rows,
        "order": load.nodes.tolist(),
        "block": load.block,
        "size": len(load.matrix),
        "cells": {
            "source": source.tolist(),
            "target": target.tolist(),
            "bytes": [_digits(v) for v in load.matrix[source, target].tolist()],
            "used": [_digits(v) for v in utilization.matrix[source, target].tolist()],
        },
    }
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)  # no text in it may end the surrounding element
    parts = {
        "TITLE": escape_html(escape_unprintable(traffic.title)),
        "NOTES": "".join(f'<p class="note">{escape_html(note)}</p>' for note in notes),
        "DATA": text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e"),
        "SCRIPT": script(),
    }
    # In one pass, so that nothing filled in is taken for a mark.
    frame = files("cwb.reports.plots").joinpath("schedule.html").read_text("utf-8")
    text = re.sub("@([A-Z]+)@", lambda mark: parts[mark[1]], frame)
    return text.encode("utf-8", "backslashreplace")


def script() -> str:
    """Return the script of every page."""
    return "".join(
        files("cwb.reports.plots").joinpath(name).read_text("utf-8") for name in ("schedule.js", "player.js")
    )


def _player(topology: Topology, bars: Bars) -> dict[str, Any] | None:
    """Place the nodes, or boxes where ranks are many; None if both are too many to be looked at."""
    count = len(topology.nodes)
    if count > _DRAWN_NODES:
        return None
    where = layout_with_tiers(topology)
    unit, names = list(range(count)), [node.name for node in topology.nodes]
    members = [[node] for node in range(count)]
    if len(topology.ranks) > _DRAWN_RANKS and len(where.boxes) > 1:
        inside = {node: index for index, nodes in enumerate(where.boxes.values()) for node in nodes}
        outside = [node for node in range(count) if node not in inside]
        members = [*map(list, where.boxes.values()), *([node] for node in outside)]
        names = [*(name.strip() for name in where.boxes), *(topology.nodes[node].name for node in outside)]
        unit = [0] * count
        for index, nodes in enumerate(members):
            for node in nodes:
                unit[node] = index
    ranks = set(topology.rank_nodes)
    busy_ends = {topology.link_ends[link] for link in bars.links}
    ends = set(topology.link_ends) if len(topology.links) <= _DRAWN_LINKS else busy_ends
    return {
        "at": [
            [_digits(float(v)) for v in np.mean([where.places[node] for node in nodes], axis=0)] for nodes in members
        ],
        "unit": unit,
        "names": [escape_unprintable(name) for name in names],
        "square": [ranks.isdisjoint(nodes) for nodes in members],
        "pairs": sorted(
            {(min(pair), max(pair)) for a, b in ends if (pair := (unit[a], unit[b])) and pair[0] != pair[1]}
        ),
    }


def _digits(value: float) -> float:
    return float(f"{value:.9g}")


def _bars(traffic: Traffic, trace: Trace, bars: Bars, most: int) -> tuple[dict[str, list[Any]], list[int], int]:
    """Return columns of bars by row and time, lanes per row, and hops per bar."""
    order = np.lexsort((bars.hop, trace.hop_start_s[bars.hop], bars.row))
    hop, row = bars.hop[order], bars.row[order]
    room = max(1, most - len(bars.links))
    together = 1 if len(hop) <= most else -(-len(hop) // room)
    begins = np.flatnonzero(np.diff(row, prepend=-1))
    within = np.arange(len(hop)) - np.repeat(begins, np.diff(begins, append=len(hop)))
    first = np.flatnonzero(within % together == 0)
    send = traffic.hop_send[hop]
    start, end = trace.hop_start_s[hop], trace.hop_end_s[hop]
    columns: dict[str, Ints | Floats] = {
        "row": row[first],
        "count": np.diff(first, append=len(hop)),
        "chunk": traffic.sends.chunk[send][first],
        "send": send[first],
        "from": traffic.sends.source[send][first],
        "to": traffic.sends.target[send][first],
        "bytes": _by_bar(np.add, traffic.chunk_bytes[traffic.sends.chunk[send]], first),
        "start": start[first],
        "end": _by_bar(np.maximum, end, first),
        "busy": _by_bar(np.add, end - start, first),
    }
    if traffic.step is not None:
        columns["step"] = traffic.step[send][first]
    if traffic.root is not None:
        columns["root"] = traffic.root[send][first]
    columns["lane"], lanes = assign_lanes(columns["row"], columns["start"], columns["end"], len(bars.links))
    plain: dict[str, list[Any]] = {}
    for name, column in columns.items():
        values = column.tolist()
        plain[name] = [_digits(v) for v in values] if column.dtype.kind == "f" else values
    return plain, lanes.tolist(), together


def _by_bar(what: np.ufunc, column: Floats, first: Ints) -> Floats:
    return np.asarray(what.reduceat(column, first) if len(first) else column, dtype=np.float64)
