"""Graphs in foreign formats: sites with places, and links with attributes.

GraphML and GML of the Internet Topology Zoo have ``label``, ``Latitude``, ``Longitude`` and ``LinkSpeedRaw`` in bits/s;
SNDlib's own XML coordinates (x east, y north) and the capacity of the installed module; node-link JSON of networkx and
TopoHub ``pos`` (east, north) or latitude and longitude, and ``dist`` in km. Names of rates and times, switches and the
order of links: docs/exchange/graphs.md. Sizes are limited before and after parsing, as is the depth of XML and GML.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import Any

from ..core.errors import InputError, show_value
from ..core.files import read_text
from ..core.strict_json import parse_json
from .quantities import OF_MODULE
from .xml import MAX_ELEMENTS, Element, local_name, outermost_elements, parse_xml, texts

MAX_BYTES = 32 * 2**20
MAX_SITES, MAX_EDGES = 20_000, 200_000
_MAX_DEPTH = 32
_MAX_KEYS = 10_000
_LATITUDE, _LONGITUDE = ("Latitude", "latitude", "lat"), ("Longitude", "longitude", "lon", "long", "lng")


@dataclass(frozen=True)
class Site:
    """A node of the graph."""

    key: str
    name: str
    place: tuple[float, float] | None  #: Latitude and longitude in degrees.
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SiteLink:
    """A link; in both directions unless its graph is directed."""

    one: str
    other: str
    km: float | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Graph:
    """Sites and links; in a directed graph, links from the first site to the other one alone."""

    name: str
    sites: tuple[Site, ...]
    edges: tuple[SiteLink, ...]
    directed: bool = False


def read_graph(path: Path) -> Graph:
    """Read a graph by the ending of its file's name."""
    readers: dict[str, Callable[[str, str], Graph]] = {
        ".graphml": _graphml,
        ".gml": _gml,
        ".xml": _sndlib,
        ".json": lambda text, name: from_node_link(parse_json(text.encode(), _MAX_KEYS), name),
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"its name ends in {show_value(path.suffix)}; expected {', '.join(readers)}")
    return check_graph(reader(read_text(path, MAX_BYTES), path.stem))


def check_graph(graph: Graph) -> Graph:
    """Reject graphs that have no link, or links of sites that do not exist."""
    keys = {site.key for site in graph.sites}
    if len(keys) < len(graph.sites):
        raise InputError("two nodes have the same id")
    for edge in graph.edges:
        for end in (edge.one, edge.other):
            if end not in keys:
                raise InputError(f"a link ends at {show_value(end)}, which is no node")
    if not graph.edges:
        raise InputError("no links; expected a graph with some")
    return graph


def from_node_link(data: Any, name: str) -> Graph:
    """Read node-link data."""
    if not isinstance(data, dict) or not isinstance(data.get("nodes"), list):
        raise InputError("expected an object with nodes and edges (or links)")
    links = data.get("edges", data.get("links"))
    if not isinstance(links, list):
        raise InputError("missing, but required", place="edges")
    about = data.get("graph")
    title = about.get("name") if isinstance(about, dict) else None
    graph = _graph(title if isinstance(title, str) and title else name, data["nodes"], "nodes", links, "edges")
    directed = data.get("directed", False)
    if not isinstance(directed, bool):
        raise InputError(f"{show_value(directed)}; expected true or false", place="directed")
    return replace(graph, directed=directed)


def _graph(name: str, nodes: Sequence[Any], node_place: str, links: Sequence[Any], link_place: str) -> Graph:
    """Make sites and links of their fields, unless they are too many."""
    if len(nodes) > MAX_SITES or len(links) > MAX_EDGES:
        text = f"{len(nodes):,} sites and {len(links):,} links; expected at most {MAX_SITES:,} and {MAX_EDGES:,}"
        raise InputError(text)
    sites = tuple(_node(entry, f"{node_place}[{i}]") for i, entry in enumerate(nodes))
    edges = [_edge(entry, f"{link_place}[{i}]") for i, entry in enumerate(links)]
    numbers = {str(edge.fields.get("link")): edge for edge in edges}
    if all(str(number) in numbers for number in range(len(edges))):
        edges = [numbers[str(number)] for number in range(len(edges))]
    return Graph(name, sites, tuple(edges))


def _node(entry: Any, place: str) -> Site:
    if not isinstance(entry, dict) or not isinstance(entry.get("id"), str | int):
        raise InputError("expected a node with id", place=place)
    labels = (entry.get("label"), entry.get("name"), entry["id"])
    name = next((label for label in labels if isinstance(label, str | int) and label), entry["id"])
    position = None
    if isinstance(entry.get("pos"), list) and len(entry["pos"]) == 2:
        position = _place(entry["pos"][1], entry["pos"][0], place)
    else:
        ends = ([entry[name] for name in names if entry.get(name) is not None] for names in (_LATITUDE, _LONGITUDE))
        latitude, longitude = (next(iter(values), None) for values in ends)
        if latitude is not None and longitude is not None:
            position = _place(latitude, longitude, place)
    return Site(str(entry["id"]), str(name), position, entry)


def _edge(entry: Any, place: str) -> SiteLink:
    if not isinstance(entry, dict) or not all(isinstance(entry.get(end), str | int) for end in ("source", "target")):
        raise InputError("expected a link with source and target", place=place)
    return SiteLink(str(entry["source"]), str(entry["target"]), _number(entry.get("dist"), place), entry)


def _number(value: Any, place: str) -> float | None:
    if value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if not isfinite(number) or number < 0:
        raise InputError(f"{show_value(value)} is wrong; expected a number of at least 0", place=place)
    return number


def _place(latitude: Any, longitude: Any, place: str) -> tuple[float, float]:
    try:
        north, east = float(latitude), float(longitude)
    except (TypeError, ValueError, OverflowError):
        north = east = float("nan")
    if not (abs(north) <= 90 and abs(east) <= 360):
        raise InputError(f"{show_value((latitude, longitude))} is no latitude and longitude in degrees", place=place)
    return north, east


def _graphml(text: str, name: str) -> Graph:
    root = parse_xml(text, "graphml")
    elements: dict[str, list[Element]] = {"graph": [], "key": [], "node": [], "edge": []}
    for element in root.iter():
        if (kind := local_name(element)) in elements:
            elements[kind].append(element)
    title = {key.get("id"): key.get("attr.name") or "" for key in elements["key"]}

    def fields(element: Element) -> dict[str, Any]:
        data = {title.get(d.get("key"), ""): d.text for d in element if local_name(d) == "data"}
        return {**data, **element.attrib}

    nodes, edges = ([fields(element) for element in elements[kind]] for kind in ("node", "edge"))
    directed = any(graph.get("edgedefault") == "directed" for graph in elements["graph"])
    for index, edge in enumerate(elements["edge"]):
        if (value := edge.get("directed")) is not None and value != ("true" if directed else "false"):
            text = f"{show_value(value)}, unlike the graph; expected links of one kind"
            raise InputError(text, place=f"edge[{index}].directed")
    return replace(_graph(name, nodes, "node", edges, "edge"), directed=directed)


def _sndlib(text: str, name: str) -> Graph:
    root = parse_xml(text, "network")
    geographical = any(nodes.get("coordinatesType") == "geographical" for nodes in outermost_elements(root, "nodes"))
    nodes: list[dict[str, Any]] = []
    links: list[dict[str, Any]] = []
    for part in outermost_elements(root, "node", "link"):
        values = texts(part)
        if local_name(part) == "node":
            place = {"lat": values.get("y"), "lon": values.get("x")} if geographical else {}
            nodes.append({"id": part.get("id"), **place})
        else:
            ends = {end: values.get(end) for end in ("source", "target")}
            links.append({**ends, OF_MODULE: values.get("capacity")})
    return _graph(name, nodes, "node", links, "link")


#: What stands between two tokens: space and comments up to the end of their line.
_BETWEEN = re.compile(r"(?:\s++|#[^\n]*+)*+")
_TOKEN = re.compile(r'"([^"]*)"|([^\s\[\]"]+)|([\[\]])')
_Entries = list[tuple[str, Any]]


def _gml(text: str, name: str) -> Graph:
    entries = _gml_entries(text)
    graph = next((value for key, value in entries if key == "graph" and isinstance(value, list)), None)
    if graph is None:
        raise InputError("expected 'graph [' in a GML file")
    nodes, links = ([value for key, value in graph if key == what] for what in ("node", "edge"))
    nodes, links = ([dict(entry) if isinstance(entry, list) else entry for entry in some] for some in (nodes, links))
    return replace(_graph(name, nodes, "node", links, "edge"), directed=("directed", "1") in graph)


def _gml_entries(text: str) -> _Entries:
    """Parse keys followed by values; a value is a number, a text, or a list of further keys."""
    stack: list[_Entries] = [[]]
    key: str | None = None
    count = 0
    position = _after_space(text, 0)
    while (match := _TOKEN.match(text, position)) is not None:
        position = _after_space(text, match.end())
        quoted, bare, mark = match.groups()
        if mark == "]":
            if key is not None or len(stack) == 1:
                raise InputError(f"unexpected ']' at character {position:,}")
            stack.pop()
        elif key is None:
            if bare is None:
                raise InputError(f"expected a key at character {position:,}")
            key, count = bare, count + 1
            if count > MAX_ELEMENTS:
                raise InputError(f"more than {MAX_ELEMENTS:,} keys")
        else:
            if len(stack) > _MAX_DEPTH and mark:
                raise InputError(f"lists are nested deeper than {_MAX_DEPTH}")
            value: Any = [] if mark else bare if quoted is None else quoted
            stack[-1].append((key, value))
            stack += [value] if mark else []
            key = None
    if len(stack) > 1 or key is not None or position < len(text):
        raise InputError(f"the text ends, or is no GML, at character {position:,}")
    return stack[0]


def _after_space(text: str, position: int) -> int:
    between = _BETWEEN.match(text, position)
    return position if between is None else between.end()
