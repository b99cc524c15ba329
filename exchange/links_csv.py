"""Links as a table: comma-separated values, or a DataFrame of pandas.

Columns, their units (:mod:`.quantities`) and directions: docs/exchange/graphs.md, "Tables". In a file the first line
names the columns, and there are no others; in a DataFrame there may be, as in those of :func:`cwb.links`.
"""

import csv
from collections.abc import Mapping
from fnmatch import fnmatchcase
from io import StringIO
from pathlib import Path
from typing import Any

from ..core.errors import InputError, locate_errors, show_value
from ..core.files import read_text
from ..core.units import UnitKind
from .graph_network import Defaults
from .machine import checked_instance, relay
from .quantities import is_quantity, quantity

MAX_BYTES = 64 * 2**20
MAX_ROWS, MAX_LINKS = 200_000, 1_000_000
_REQUIRED = ("source", "target")
_COLUMNS = (*_REQUIRED, "bandwidth", "latency", "count", "bidirectional")
_YES_OR_NO = {"true": True, "yes": True, "false": False, "no": False}


def import_links(path: Path, defaults: Defaults, *, name: str | None = None, one_way: bool = False) -> dict[str, Any]:
    """Make an instance of a CSV file of links; its source says if links have both directions."""
    with locate_errors(source=str(path)):
        links = _read(read_text(path, MAX_BYTES), defaults)
        note = _complete_directions(links, one_way=one_way)
        note += f"; latencies of links without one are {defaults.latency}" if defaults.latency else ""
        return _instance(links, defaults, name or path.stem, f"{path.name}, links as comma-separated values{note}")


def _complete_directions(links: list[dict[str, Any]], *, one_way: bool) -> str:
    """Make links without a direction two-way, unless some reverse others; return the choice in words."""
    silent = [link for link in links if "bidirectional" not in link]
    ends = {(link["source"], link["target"]) for link in silent}
    if one_way or any((target, source) in ends for source, target in ends):
        return ", each from source to target" if silent else ""
    for link in silent:
        link["bidirectional"] = True
    return ", each in both directions" if silent else ""


def import_frame(table: Any, defaults: Defaults, name: str) -> dict[str, Any]:
    """Make an instance of a DataFrame of links."""
    missing = [column for column in _REQUIRED if column not in table.columns]
    if missing or not table.columns.is_unique:
        raise InputError(f"columns {show_value([*table.columns])}; expected source and target, each once")
    if len(table) > MAX_ROWS:
        raise InputError(f"{len(table):,} rows; expected at most {MAX_ROWS:,}")
    links = []
    short = table.select_dtypes(["float16", "float32"]).columns
    table = table.astype(dict.fromkeys(short, str)).astype(dict.fromkeys(short, float))
    for number, row in enumerate(table.astype(object).where(table.notna(), None).to_dict("records")):
        with locate_errors(f"row {number}"):
            cells = {str(column): value for column, value in row.items() if value is not None}
            links.append(_link({**cells, **{end: str(cells.get(end, "")) for end in _REQUIRED}}, defaults))
    return _instance(_check_link_count(links), defaults, name, "a table of links")


def _instance(links: list[dict[str, Any]], defaults: Defaults, name: str, source: str) -> dict[str, Any]:
    names = list(dict.fromkeys(end for link in links for end in (link["source"], link["target"])))
    relays = {node for node in names for pattern in defaults.switches if fnmatchcase(node, pattern)}
    nodes = [relay(n) if n in relays else {"name": n} for n in names]
    about = f"{len(names) - len(relays):,} ranks, {len(relays):,} switches, imported from a list of links."
    return checked_instance({"nodes": nodes, "links": links}, name=name, description=about, source=source)


def _read(text: str, defaults: Defaults) -> list[dict[str, Any]]:
    rows = csv.reader(StringIO(text, newline=""), strict=True)
    links: list[dict[str, Any]] = []
    columns: list[str] = []
    try:
        for row in rows:
            cells = [cell.strip() for cell in row]
            if not any(cells) or cells[0].startswith("#"):
                continue
            with locate_errors(f"line {rows.line_num}"):
                if not columns:
                    columns = _header(cells)
                    continue
                if len(cells) != len(columns):
                    raise InputError(f"{len(cells)} cells; expected {len(columns)}")
                if len(links) == MAX_ROWS:
                    raise InputError(f"more than {MAX_ROWS:,} lines")
                links.append(_link(dict(zip(columns, cells, strict=True)), defaults))
    except csv.Error as error:
        raise InputError(f"no comma-separated values: {error}", place=f"line {rows.line_num}") from None
    return _check_link_count(links)


def _check_link_count(links: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if sum(link.get("count", 1) for link in links) > MAX_LINKS:
        raise InputError(f"more than {MAX_LINKS:,} links, including parallel ones")
    if not links:
        raise InputError(f"no links; expected a line of column names, such as {','.join(_COLUMNS[:3])}, and links")
    return links


def _header(cells: list[str]) -> list[str]:
    columns = [cell.lower() if cell.lower() in _COLUMNS else cell for cell in cells]
    unknown = [column for column in columns if column not in _COLUMNS and not is_quantity(column)]
    missing = [column for column in _REQUIRED if column not in columns]
    if unknown or missing or len(set(columns)) < len(columns):
        raise InputError(f"columns {show_value(cells)}; expected source, target and some of {', '.join(_COLUMNS[2:])}")
    return columns


def _link(cells: Mapping[str, Any], defaults: Defaults) -> dict[str, Any]:
    rate = quantity(cells, UnitKind.RATE, defaults.bandwidth_unit, defaults.bandwidth)
    time = quantity(cells, UnitKind.TIME, defaults.latency_unit, defaults.latency)
    if rate is None:
        raise InputError("the link has no bandwidth; expected --bandwidth as a default")
    for end in _REQUIRED:
        if not 0 < len(cells[end]) <= 200:
            raise InputError(f"{show_value(cells[end])}; expected a name of 1 to 200 characters", place=end)
    if cells["source"] == cells["target"]:
        raise InputError(f"a link from {show_value(cells['source'])} to itself")
    link: dict[str, Any] = {**{end: cells[end] for end in _REQUIRED}, "bandwidth": rate}
    if time is not None:
        link["latency"] = time
    if (count := str(cells.get("count", "")).removesuffix(".0")) != "":
        if not count.isdecimal() or not count.isascii() or not 1 <= len(count) <= 4 or int(count) < 1:
            raise InputError(f"{show_value(count)}; expected an integer from 1 to 9,999", place="count")
        link["count"] = int(count)
    if two_ways := str(cells.get("bidirectional", "")).lower():
        if two_ways not in _YES_OR_NO:
            raise InputError(f"{show_value(two_ways)}; expected true, yes, false or no", place="bidirectional")
        link["bidirectional"] = _YES_OR_NO[two_ways]
    return link
