"""Interactive page of a schedule in one file, without network access or libraries."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import Any

import numpy as np

from ...core.schedule import Floats, Ints
from ...core.text import markup, printable
from ...core.trace import Trace
from .look import COLOURS
from .schedule_gantt import Bars, assign_lanes, busiest
from .schedule_view import Traffic, loads

#: Bars that a page has at most.
HOPS = 50_000

#: Links and rows of the heat map that it has at most.
LINKS, NODES = 2_000, 256


def page(traffic: Traffic, trace: Trace, most: int = HOPS) -> bytes:
    """Make the page.

    The file is the same for the same schedule.

    Parameters
    ----------
    trace : Trace
        Start and end of every hop.
    most : int
        Bars to show at most; beyond, neighbours on a link are merged, and the page says so.
    """
    links = max(1, min(LINKS, most // 2))
    bars = busiest(traffic, trace, links)
    rows, lanes, together = _bars(traffic, trace, bars, most)
    found = loads(traffic.topology, traffic.link_bytes, NODES)
    used = loads(traffic.topology, traffic.link_utilization, NODES, np.maximum)
    source, target = np.nonzero(~np.isnan(found.matrix))
    names = traffic.topology.nodes
    notes = []
    if len(bars.links) == links < (total := int((traffic.link_bytes > 0).sum())):
        notes.append(f"The Gantt chart has the {links:,} busiest of {total:,} used links.")
    if together > 1:
        notes.append(
            f"{len(bars.hop):,} hops are too many for a page: a bar stands for up to {together:,} on its link."
        )
    if found.block > 1:
        notes.append(f"A cell of the heat map is the largest of {found.block} x {found.block} pairs of nodes.")
    data = {
        "mode": trace.mode.value,
        "completion": _digits(trace.completion_s),
        "lanes": lanes,
        "what": list(traffic.colour_keys),
        "colours": list(COLOURS),
        "nodes": [printable(node.name) for node in names],
        "links": [[*traffic.topology.link_ends[link], _digits(float(trace.link_busy_s[link]))] for link in bars.links],
        "names": [printable(traffic.link_names[link]) for link in bars.links],
        "bars": rows,
        "order": found.nodes.tolist(),
        "block": found.block,
        "size": len(found.matrix),
        "cells": {
            "source": source.tolist(),
            "target": target.tolist(),
            "bytes": [_digits(v) for v in found.matrix[source, target].tolist()],
            "used": [_digits(v) for v in used.matrix[source, target].tolist()],
        },
    }
    parts = {
        "TITLE": markup(printable(traffic.title)),
        "NOTES": "".join(f'<p class="note">{markup(note)}</p>' for note in notes),
        "DATA": _embed_json(data),
        "SCRIPT": files(__package__).joinpath("schedule.js").read_text("utf-8"),
    }
    # In one pass, so that nothing filled in is taken for a mark.
    frame = files(__package__).joinpath("schedule.html").read_text("utf-8")
    text = re.sub("@([A-Z]+)@", lambda mark: parts[mark[1]], frame)
    return text.encode("utf-8", "backslashreplace")


def _embed_json(data: Any) -> str:
    """Serialize data so that no text in it can end the surrounding element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")


def _digits(value: float) -> float:
    """Round to the digits that are visible."""
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
    columns["lane"], lanes = assign_lanes(columns["row"], columns["start"], columns["end"], len(bars.links))
    plain: dict[str, list[Any]] = {}
    for name, column in columns.items():
        values = column.tolist()
        plain[name] = [_digits(v) for v in values] if column.dtype.kind == "f" else values
    return plain, lanes.tolist(), together


def _by_bar(what: np.ufunc, column: Floats, first: Ints) -> Floats:
    """Reduce the values of every bar's hops to one."""
    return np.asarray(what.reduceat(column, first) if len(first) else column, dtype=np.float64)
