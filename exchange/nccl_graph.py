"""Graphs that NCCL writes (``NCCL_GRAPH_DUMP_FILE``): the channels of its rings and trees.

A ``channel`` lists the GPUs that it visits (``dev``, hexadecimal), between the NICs where it enters and leaves a box.
Every channel of a graph uses ``speedintra`` GB/s within a box and ``speedinter`` between boxes, all at the same time:
what the network that is made of them has is what NCCL has found, and the machine may have more.

A ring (``pattern`` 4) goes around once, in one direction. Of trees (1, 2, 3), a channel is a chain that is used in both
directions. NVLS and CollNet (5, 6) say nothing of links.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

from ..core.errors import InputError, locate_errors, show_value
from ..core.files import read_text
from .box import Box, Cable, Role, merge_cables
from .link_rates import GB
from .xml import Element, parse_xml

MAX_BYTES = 4 * 2**20
MAX_CHANNELS, MAX_VISITS = 256, 2048

_SPEED = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,12})?\Z")
_RING, _CHAINS = "4", ("1", "2", "3")


def graph_box(root: Element, wanted: int) -> Box:
    """Read the ``graphs`` of a graph file.

    Parameters
    ----------
    wanted : int
        The ``id`` of the graph: 0 are the rings, 1 the trees.
    """
    graphs = {graph.get("id", ""): graph for graph in root if graph.tag == "graph"}
    graph = graphs.get(str(wanted))
    if graph is None:
        raise InputError(f"no graph has the id {wanted}; expected one of {', '.join(graphs)[:80]}", source="--graph")
    with locate_errors(f"graph {wanted}"):
        pattern = graph.get("pattern", "")
        if pattern not in (_RING, *_CHAINS):
            raise InputError(f"{show_value(pattern)} is no ring or tree; expected from 1 to 4", place="pattern")
        inside, outside = (_speed(graph, key) for key in ("speedintra", "speedinter"))
        channels = [child for child in graph if child.tag == "channel"]
        if not 0 < len(channels) <= MAX_CHANNELS:
            raise InputError(f"{len(channels)} channels; expected from 1 to {MAX_CHANNELS}")
        gpus: set[int] = set()
        nics: dict[str, Fraction | None] = {}
        cables: list[Cable] = []
        for index, channel in enumerate(channels):
            with locate_errors(f"channel[{index}]"):
                visited = [_visit(child) for child in channel]
                if len(visited) > MAX_VISITS:
                    raise InputError(f"{len(visited):,} GPUs; expected at most {MAX_VISITS:,}")
                cables += _channel(visited, inside, outside, ring=pattern == _RING)
                gpus |= {number for kind, number in visited if kind == "gpu"}
                nics |= {f"net{number}": None for kind, number in visited if kind == "net"}
    links = merge_cables(cables)
    ports = {nic: sum((c.rate_Bps for c in links if c.target == nic), Fraction(0)) or None for nic in nics}
    return Box(tuple(f"gpu{n}" for n in sorted(gpus)), dict.fromkeys(nics, Role.NIC), links, ports, chosen=True)


def ring_channels(path: Path) -> tuple[list[list[int]], tuple[float, float]]:
    """Read the rings of a graph file, as the method ``nccl`` takes them.

    Returns
    -------
    tuple
        For every channel the places of the box's GPUs, counted from the smallest number, in the order of the ring; and
        GB/s of a channel within a box and between boxes.
    """
    with locate_errors(source=str(path)):
        root = parse_xml(read_text(path, MAX_BYTES), "graphs")
        graph_box(root, 0)  # checks all of it
        graph = next(graph for graph in root if graph.tag == "graph" and graph.get("id", "") == "0")
        if graph.get("pattern", "") != _RING:
            raise InputError(f"{show_value(graph.get('pattern', ''))} is no ring; expected 4", place="graph 0.pattern")
        visits = [[_visit(child) for child in channel] for channel in graph if channel.tag == "channel"]
        orders = [[number for kind, number in visited if kind == "gpu"] for visited in visits]
        place = {number: index for index, number in enumerate(sorted(set(orders[0])))}
        if any(sorted(order) != sorted(place) for order in orders):
            raise InputError("its channels do not visit the same GPUs once each", place="graph 0")
        inside, outside = (float(_speed(graph, key) / GB) for key in ("speedintra", "speedinter"))
        return [[place[number] for number in order] for order in orders], (inside, outside)


def _channel(visited: Sequence[tuple[str, int]], inside: Fraction, outside: Fraction, *, ring: bool) -> list[Cable]:
    names = [f"{kind}{number}" for kind, number in visited]
    pairs = list(pairwise(names))
    if ring and len(names) > 1 and visited[0][0] == "gpu":
        pairs.append((names[-1], names[0]))
    if not ring:
        pairs += [(b, a) for a, b in pairs]
    cables: list[Cable] = []
    for one, other in pairs:
        outer = one.startswith("net") or other.startswith("net")
        if one == other:
            raise InputError(f"{one} follows itself")
        cables.append(Cable(one, other, outside if outer else inside, pcie=outer))
    return cables


def _visit(element: Element) -> tuple[str, int]:
    dev = element.get("dev", "")
    if element.tag not in ("gpu", "net") or not re.match(r"(?:0x)?[0-9a-fA-F]{1,8}\Z", dev):
        text = f"{show_value(element.tag)} with dev {show_value(dev)}; expected gpu or net with a hexadecimal number"
        raise InputError(text)
    return element.tag, int(dev, 16)


def _speed(graph: Element, key: str) -> Fraction:
    text = graph.get(key, "")
    if not _SPEED.match(text) or not Fraction(text):
        raise InputError(f"{show_value(text)}; expected a number of GB/s above 0", place=key)
    return Fraction(text) * GB
