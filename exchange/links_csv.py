"""Links as comma-separated values, one in each line.

The first line names the columns, in any order: ``source`` and ``target``; ``bandwidth``, such as ``25 GB/s``, and
``latency``, which one value for all can replace; ``count`` of parallel links; ``bidirectional``, ``true`` or ``false``.
A link has one direction unless it says otherwise. Nodes are ranks in the order in which they are named first, except
those whose names match a pattern of switches.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from io import StringIO
from pathlib import Path
from typing import Any

from ..core.errors import InputError, located, shown
from ..core.units import UnitKind, parse
from .machine import checked_instance
from .text import read_text

MAX_BYTES = 64 * 2**20
MAX_ROWS, MAX_LINKS = 200_000, 1_000_000
_REQUIRED = ("source", "target")
_COLUMNS = (*_REQUIRED, "bandwidth", "latency", "count", "bidirectional")


def import_links(
    path: Path,
    *,
    switches: Sequence[str] = (),
    bandwidth: str | None = None,
    latency: str | None = None,
    name: str | None = None,
) -> dict[str, Any]:
    """Make an instance of a list of links.

    Parameters
    ----------
    path : Path
        The file.
    switches : sequence of str
        Patterns of the names of switches, with ``*`` and ``?`` as in file names. They only pass on.
    bandwidth, latency : str or None
        Of links without one.
    name : str or None
        Name of the instance; by default the file's.

    Raises
    ------
    InputError
        If the file is wrong; names the line.
    """
    with located(source=str(path)):
        links = _read(read_text(path, MAX_BYTES), bandwidth, latency)
        names = list(dict.fromkeys(end for link in links for end in (link["source"], link["target"])))
        relays = {node for node in names for pattern in switches if fnmatchcase(node, pattern)}
        nodes = [{"name": n, **({"kind": "switch", "buffer": "0 B"} if n in relays else {})} for n in names]
        said = f"; latencies of links without one are {latency}" if latency else ""
        about = f"{len(names) - len(relays):,} ranks, {len(relays):,} switches, imported from a list of links."
        told = f"{path.name}, links as comma-separated values{said}"
        network = {"nodes": nodes, "links": links}
        return checked_instance(network, name=name or path.stem, description=about, source=told)


def _read(text: str, bandwidth: str | None, latency: str | None) -> list[dict[str, Any]]:
    rows = csv.reader(StringIO(text, newline=""), strict=True)
    links: list[dict[str, Any]] = []
    columns: list[str] = []
    try:
        for row in rows:
            cells = [cell.strip() for cell in row]
            if not any(cells) or cells[0].startswith("#"):
                continue
            with located(f"line {rows.line_num}"):
                if not columns:
                    columns = _header(cells)
                    continue
                if len(cells) != len(columns):
                    raise InputError(f"{len(cells)} cells; expected {len(columns)}")
                if len(links) == MAX_ROWS:
                    raise InputError(f"more than {MAX_ROWS:,} lines")
                links.append(_link(dict(zip(columns, cells, strict=True)), bandwidth, latency))
    except csv.Error as error:
        raise InputError(f"no comma-separated values: {error}", place=f"line {rows.line_num}") from None
    if sum(link.get("count", 1) for link in links) > MAX_LINKS:
        raise InputError(f"more than {MAX_LINKS:,} links, parallel ones counted")
    if not links:
        raise InputError(f"no links; expected a line of column names, such as {','.join(_COLUMNS[:3])}, and links")
    return links


def _header(cells: list[str]) -> list[str]:
    columns = [cell.lower() for cell in cells]
    unknown = [column for column in columns if column not in _COLUMNS]
    missing = [column for column in _REQUIRED if column not in columns]
    if unknown or missing or len(set(columns)) < len(columns):
        raise InputError(f"columns {shown(cells)}; expected source, target and some of {', '.join(_COLUMNS[2:])}")
    return columns


def _link(cells: Mapping[str, str], bandwidth: str | None, latency: str | None) -> dict[str, Any]:
    """One link as an instance file has it."""
    rate, time = cells.get("bandwidth") or bandwidth, cells.get("latency") or latency
    if rate is None:
        raise InputError("the link has no bandwidth; expected --bandwidth for those without")
    for end in _REQUIRED:
        if not 0 < len(cells[end]) <= 200:
            raise InputError(f"{shown(cells[end])}; expected a name of 1 to 200 characters", place=end)
    if cells["source"] == cells["target"]:
        raise InputError(f"a link from {shown(cells['source'])} to itself")
    with located("bandwidth"):
        parse(rate, UnitKind.RATE, allow_zero=False)
    link: dict[str, Any] = {**{end: cells[end] for end in _REQUIRED}, "bandwidth": rate}
    if time is not None:
        with located("latency"):
            parse(time, UnitKind.TIME)
        link["latency"] = time
    if count := cells.get("count"):
        if not count.isdecimal() or not count.isascii() or not 1 <= len(count) <= 4 or int(count) < 1:
            raise InputError(f"{shown(count)}; expected an integer from 1 to 9,999", place="count")
        link["count"] = int(count)
    if two_ways := cells.get("bidirectional"):
        if two_ways.lower() not in ("true", "false"):
            raise InputError(f"{shown(two_ways)}; expected true or false", place="bidirectional")
        link["bidirectional"] = two_ways.lower() == "true"
    return link
