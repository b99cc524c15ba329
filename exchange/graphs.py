"""Graphs of wide-area networks in foreign formats: sites, links between them, and where the sites are.

======================  ============================================================================================
GraphML (``.graphml``)  as the Internet Topology Zoo has it: ``label``, ``Latitude``, ``Longitude``, ``LinkSpeedRaw`` in bits/s
GML (``.gml``)          the same attributes
XML (``.xml``)          SNDlib's own: coordinates (x east, y north) and the capacity of the installed module
JSON (``.json``)        node-link data, as networkx and TopoHub write it: ``pos`` (east, north) or latitude and longitude, ``dist`` in km
======================  ============================================================================================

XML is read by the standard library, from text that was decoded here and has no document type: without one there are no
entities to expand and no other files to load. Sizes are limited before and after parsing, and GML may not be nested
deeply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from ..core.errors import InputError, shown
from .text import read_text

MAX_BYTES = 32 * 2**20
MAX_SITES, MAX_EDGES = 20_000, 200_000
_MAX_DEPTH = 32

_LATITUDE, _LONGITUDE = ("Latitude", "latitude", "lat"), ("Longitude", "longitude", "lon", "long", "lng")


@dataclass(frozen=True)
class Site:
    """A node of the graph.

    Parameters
    ----------
    key : str
        What links call it.
    name : str
        Its label.
    place : tuple of float or None
        Latitude and longitude in degrees.
    """

    key: str
    name: str
    place: tuple[float, float] | None


@dataclass(frozen=True)
class SiteLink:
    """A link in both directions.

    Parameters
    ----------
    one, other : str
        Keys of its sites.
    bits_per_s : float or None
        Its speed, where the file has it in bits per second.
    capacity : float or None
        Its capacity in a unit that the file does not say.
    km : float or None
        Its length, where the file has it.
    """

    one: str
    other: str
    bits_per_s: float | None = None
    capacity: float | None = None
    km: float | None = None


@dataclass(frozen=True)
class Graph:
    """Sites and links."""

    name: str
    sites: tuple[Site, ...]
    edges: tuple[SiteLink, ...]


def read_graph(path: Path) -> Graph:
    """Read a graph by the ending of its file's name.

    Raises
    ------
    InputError
        If the file cannot be read or is wrong; the caller names it.
    """
    readers = {".graphml": _graphml, ".gml": _gml, ".xml": _sndlib, ".json": _json_text}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"its name ends in {shown(path.suffix)}; expected {', '.join(readers)}")
    return checked(reader(read_text(path, MAX_BYTES), path.stem))


def checked(graph: Graph) -> Graph:
    """Refuse graphs that are too large, have no link, or links of sites that do not exist."""
    if len(graph.sites) > MAX_SITES or len(graph.edges) > MAX_EDGES:
        raise InputError(
            f"{len(graph.sites):,} sites and {len(graph.edges):,} links; expected at most {MAX_SITES:,} and {MAX_EDGES:,}"
        )
    keys = {site.key for site in graph.sites}
    if len(keys) < len(graph.sites):
        raise InputError("two nodes have the same id")
    for edge in graph.edges:
        for end in (edge.one, edge.other):
            if end not in keys:
                raise InputError(f"a link ends at {shown(end)}, which is no node")
    if not graph.edges:
        raise InputError("no links; expected a graph with some")
    return graph


def from_node_link(data: Any, name: str) -> Graph:
    """Read node-link data.

    Raises
    ------
    InputError
        If it is none.
    """
    if not isinstance(data, dict) or not isinstance(data.get("nodes"), list):
        raise InputError("expected an object with nodes and edges (or links)")
    links = data.get("edges", data.get("links"))
    if not isinstance(links, list):
        raise InputError("missing, but required", place="edges")
    sites = [_node(entry, f"nodes[{i}]", "id") for i, entry in enumerate(data["nodes"])]
    edges = [_edge(entry, f"edges[{i}]") for i, entry in enumerate(links)]
    about = data.get("graph")
    title = about.get("name") if isinstance(about, dict) else None
    return Graph(str(title or name), tuple(sites), tuple(edges))


def _json_text(text: str, name: str) -> Graph:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {str(error)[:80]}") from None
    return from_node_link(data, name)


def _node(entry: Any, place: str, key: str) -> Site:
    if not isinstance(entry, dict) or not isinstance(entry.get(key), str | int):
        raise InputError(f"expected a node with {key}", place=place)
    name = entry.get("label") or entry.get("name") or entry[key]
    found = None
    if isinstance(entry.get("pos"), list) and len(entry["pos"]) == 2:
        found = _place(entry["pos"][1], entry["pos"][0], place)
    else:
        latitude, longitude = (_first(entry, names) for names in (_LATITUDE, _LONGITUDE))
        if latitude is not None and longitude is not None:
            found = _place(latitude, longitude, place)
    return Site(str(entry[key]), str(name), found)


def _edge(entry: Any, place: str) -> SiteLink:
    if not isinstance(entry, dict) or not all(isinstance(entry.get(end), str | int) for end in ("source", "target")):
        raise InputError("expected a link with source and target", place=place)
    speed, capacity, km = (_number(entry.get(field), place) for field in ("LinkSpeedRaw", "capacity", "dist"))
    return SiteLink(str(entry["source"]), str(entry["target"]), speed, capacity, km)


def _first(entry: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((entry[name] for name in names if entry.get(name) is not None), None)


def _number(value: Any, place: str) -> float | None:
    """Read a number that may be missing."""
    if value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not isfinite(number) or number < 0:
        raise InputError(f"{shown(value)} is wrong; expected a number of at least 0", place=place)
    return number


def _place(latitude: Any, longitude: Any, place: str) -> tuple[float, float]:
    try:
        north, east = float(latitude), float(longitude)
    except (TypeError, ValueError):
        north = east = float("nan")
    if not (abs(north) <= 90 and abs(east) <= 360):
        raise InputError(f"{shown((latitude, longitude))} is no latitude and longitude in degrees", place=place)
    return north, east


def _xml(text: str) -> ElementTree.Element:
    """Parse XML without document types, and so without entities."""
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise InputError("has a document type or an entity, which are not read; expected plain XML")
    try:
        return ElementTree.fromstring(text)  # noqa: S314 (no document type: nothing to expand)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise InputError(f"not XML: {str(error)[:80]}") from None


def _local(element: ElementTree.Element) -> str:
    """Name of an element without its namespace."""
    return element.tag.rpartition("}")[2]


def _all(root: ElementTree.Element, name: str) -> Iterator[ElementTree.Element]:
    return (element for element in root.iter() if _local(element) == name)


def _graphml(text: str, name: str) -> Graph:
    root = _xml(text)
    if _local(root) != "graphml":
        raise InputError(f"its root is {shown(_local(root))}; expected graphml")
    title = {key.get("id"): key.get("attr.name") or "" for key in _all(root, "key")}

    def fields(element: ElementTree.Element) -> dict[str, Any]:
        data = {title.get(d.get("key"), ""): d.text for d in element if _local(d) == "data"}
        return {**data, **element.attrib}

    sites = [_node(fields(node), f"node[{i}]", "id") for i, node in enumerate(_all(root, "node"))]
    edges = [_edge(fields(edge), f"edge[{i}]") for i, edge in enumerate(_all(root, "edge"))]
    return Graph(name, tuple(sites), tuple(edges))


def _sndlib(text: str, name: str) -> Graph:
    root = _xml(text)
    if _local(root) != "network":
        raise InputError(f"its root is {shown(_local(root))}; expected SNDlib's network")
    sites: list[Site] = []
    edges: list[SiteLink] = []
    geographical = any(nodes.get("coordinatesType") == "geographical" for nodes in _all(root, "nodes"))
    for i, node in enumerate(_all(root, "node")):
        x, y = (next((e.text for e in _all(node, axis)), None) for axis in ("x", "y"))
        data = {"id": node.get("id"), **({"lat": y, "lon": x} if geographical else {})}
        sites.append(_node(data, f"node[{i}]", "id"))
    for i, link in enumerate(_all(root, "link")):
        found = {part: next((e.text for e in _all(link, part)), None) for part in ("source", "target", "capacity")}
        edges.append(_edge(found, f"link[{i}]"))
    return Graph(name, tuple(sites), tuple(edges))


_TOKEN = re.compile(r'\s*(?:#[^\n]*\n\s*)*(?:"([^"]*)"|([^\s\[\]"]+)|([\[\]]))')

_Entries = list[tuple[str, Any]]


def _gml(text: str, name: str) -> Graph:
    entries = _gml_entries(text)
    graph = next((value for key, value in entries if key == "graph" and isinstance(value, list)), None)
    if graph is None:
        raise InputError("expected 'graph [' in a GML file")
    nodes, links = ([value for key, value in graph if key == what] for what in ("node", "edge"))
    sites = [_node(_fields(entry), f"node[{i}]", "id") for i, entry in enumerate(nodes)]
    edges = [_edge(_fields(entry), f"edge[{i}]") for i, entry in enumerate(links)]
    return Graph(name, tuple(sites), tuple(edges))


def _fields(entry: Any) -> Any:
    """Fields of a list; of one that stands twice the last."""
    return dict(entry) if isinstance(entry, list) else entry


def _gml_entries(text: str) -> _Entries:
    """Parse keys followed by values; a value is a number, a text, or a list of further keys."""
    stack: list[_Entries] = [[]]
    key: str | None = None
    position = 0
    while (match := _TOKEN.match(text, position)) is not None:
        position = match.end()
        quoted, bare, mark = match.groups()
        if mark == "]":
            if key is not None or len(stack) == 1:
                raise InputError(f"unexpected ']' at character {position:,}")
            stack.pop()
        elif key is None:
            if bare is None:
                raise InputError(f"expected a key at character {position:,}")
            key = bare
        elif mark == "[":
            if len(stack) > _MAX_DEPTH:
                raise InputError(f"lists are nested deeper than {_MAX_DEPTH}")
            fresh: _Entries = []
            stack[-1].append((key, fresh))
            stack.append(fresh)
            key = None
        else:
            stack[-1].append((key, bare if quoted is None else quoted))
            key = None
    if len(stack) > 1 or key is not None or text[position:].strip():
        raise InputError(f"the text ends, or is no GML, at character {position:,}")
    return stack[0]
