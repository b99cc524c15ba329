"""Files of NCCL: graphs that it found, results of nccl-tests and rccl-tests, and choices for it by size.

In a graph (``NCCL_GRAPH_DUMP_FILE``), a channel lists the GPUs that it visits, between the NICs where it enters and
leaves a box. All channels are used at the same time: their network is what NCCL has found, and the machine may have
more. A ring (``pattern`` 4) goes around once; of trees (1, 2, 3), a channel is a chain that is used in both directions.
NVLS and CollNet (5, 6) say nothing of links.

A line of nccl-tests is ``size count type redop root time algbw busbw #wrong``, the last four twice, out of place and in
place; older versions have no ``root`` (``src/util.cu`` and ``src/common.cu`` of NVIDIA/nccl-tests a0b82b2). The plugin
(NVIDIA/nccl 5067397, ``plugins/tuner/example``) silently replaces words that it does not know.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..core.collective import Collective
from ..core.errors import InputError, locate_errors, show_value
from ..core.files import read_text
from .box import Box, Cable, Role, merge_cables
from .link_rates import GB
from .xml import Element, parse_xml

MAX_GRAPH_BYTES = 4 * 2**20
MAX_CHANNELS, MAX_VISITS = 256, 2048
_SPEED = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,12})?\Z")
_RING, _CHAINS = "4", ("1", "2", "3")


def graph_box(root: Element, graph_id: int) -> Box:
    """Read a graph of a graph file by its ``id``: 0 are the rings, 1 the trees."""
    graphs = {graph.get("id", ""): graph for graph in root if graph.tag == "graph"}
    graph = graphs.get(str(graph_id))
    if graph is None:
        raise InputError(f"no graph has the id {graph_id}; expected one of {', '.join(graphs)[:80]}", source="--graph")
    with locate_errors(f"graph {graph_id}"):
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
                visits = [_visit(child) for child in channel]
                if len(visits) > MAX_VISITS:
                    raise InputError(f"{len(visits):,} GPUs; expected at most {MAX_VISITS:,}")
                cables += _channel(visits, inside, outside, ring=pattern == _RING)
                gpus |= {number for kind, number in visits if kind == "gpu"}
                nics |= {f"net{number}": None for kind, number in visits if kind == "net"}
    links = merge_cables(cables)
    ports = {nic: sum((c.rate_Bps for c in links if c.target == nic), Fraction(0)) or None for nic in nics}
    return Box(tuple(f"gpu{n}" for n in sorted(gpus)), dict.fromkeys(nics, Role.NIC), links, ports, assigns_nics=True)


def ring_channels(path: Path) -> tuple[list[list[int]], tuple[float, float]]:
    """Read the rings of a graph file, as the method ``nccl`` takes them.

    Return for every channel the places of the box's GPUs, counted from the smallest number, in the order of the ring;
    and GB/s of a channel within a box and between boxes.
    """
    with locate_errors(source=str(path)):
        root = parse_xml(read_text(path, MAX_GRAPH_BYTES), "graphs")
        graph_box(root, 0)  # checks all of it
        graph = next(graph for graph in root if graph.tag == "graph" and graph.get("id", "") == "0")
        if graph.get("pattern", "") != _RING:
            raise InputError(f"{show_value(graph.get('pattern', ''))} is no ring; expected 4", place="graph 0.pattern")
        visits = [[_visit(child) for child in channel] for channel in graph if channel.tag == "channel"]
        orders = [[number for kind, number in way if kind == "gpu"] for way in visits]
        place = {number: index for index, number in enumerate(sorted(set(orders[0])))}
        if any(sorted(order) != sorted(place) for order in orders):
            raise InputError("its channels do not visit the same GPUs once each", place="graph 0")
        inside, outside = (float(_speed(graph, key) / GB) for key in ("speedintra", "speedinter"))
        return [[place[number] for number in order] for order in orders], (inside, outside)


def _channel(visits: Sequence[tuple[str, int]], inside: Fraction, outside: Fraction, *, ring: bool) -> list[Cable]:
    names = [f"{kind}{number}" for kind, number in visits]
    pairs = list(pairwise(names))
    if ring and len(names) > 1 and visits[0][0] == "gpu":
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


MAX_BYTES = 16 * 2**20
MAX_SAMPLES, MAX_LINE = 10_000, 1000  #: Times of a file at most, and letters of a line with some.
_SIZES, _LEAST_US, _MOST_US = 2**60, 1e-3, 1e12  #: Bytes and microseconds of a time that is one; zero stands for none.

#: Programs by the collective that they measure; sizes of the others mean something else.
PROGRAMS = {
    "all_reduce": Collective.ALL_REDUCE,
    "all_gather": Collective.ALL_GATHER,
    "reduce_scatter": Collective.REDUCE_SCATTER,
    "broadcast": Collective.BROADCAST,
    "reduce": Collective.REDUCE,
    "alltoall": Collective.ALL_TO_ALL,
}

_PROGRAM = re.compile(r"\b(all_reduce|all_gather|reduce_scatter|broadcast|reduce|alltoall)_perf")
_TYPE = r"(?:u?int(?:8|32|64)?|half|float|double|bfloat16|fp?8_?e\w+|f8e\w+|float8_?e\w+)"
_LINE = re.compile(rf"(?<![\w.])([0-9]+)\s+[0-9]+\s+{_TYPE}\s+(?:[a-z]\w*\s+)?((?:[-+.\w/]+\s*)+)")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?\Z")
_HALF = 4  #: Columns of one half of a line: time, two bandwidths, errors.
_RANK = re.compile(r"\bRank\s{1,9}([0-9]{1,9})\s{1,9}(?:Group\s{1,9}[0-9]{1,9}\s{1,9})?Pid\s")
_CHANNEL = re.compile(
    r" Channel ([0-9/]{1,9}) : ([0-9]{1,7})\[\w{1,9}\] -> ([0-9]{1,7})\[\w{1,9}\] \[(send|receive)\]"
    r" via NET/([\w ]{1,40})/([0-9]{1,4})(?:\([0-9]{1,7}\))?(/GDRDMA)?"
)
_LIBRARY = re.compile(r"nccl-library=([0-9]{1,9})|NCCL version ([0-9]+\.[0-9]+\.[0-9]+)")


@dataclass(frozen=True)
class Sample:
    """One time."""

    size: int
    seconds: float
    in_place: bool


@dataclass(frozen=True)
class Measurements:
    """Measurements in a file."""

    samples: tuple[Sample, ...]  #: Samples in the order of the file; those of no bytes or no time are left out.
    collective: Collective | None
    ranks: int | None
    version: str
    findings: tuple[str, ...] = ()  #: Causes of low rates that lines of ``NCCL_DEBUG=INFO`` name, as sentences.


def read_measured(path: Path) -> Measurements:
    """Read a file of either kind."""
    with locate_errors(source=str(path)):
        text = read_text(path, MAX_BYTES)
        results = _from_json(text) if text.lstrip().startswith("{") else _from_text(text)
        if not results.samples:
            raise InputError("no line with a size and times; expected the output of nccl-tests, or its -J file")
        if len(results.samples) > MAX_SAMPLES:
            raise InputError(f"{len(results.samples):,} times; expected at most {MAX_SAMPLES:,}")
        return results


def _from_text(text: str) -> Measurements:
    samples: list[Sample] = []
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) <= MAX_LINE and (row := _LINE.search(line)) is not None:
            with locate_errors(f"line {number}"):
                samples += _samples(int(row[1]), row[2].split())
    ranks = {int(number) for number in _RANK.findall(text)}
    match = _LIBRARY.search(text)
    version = "" if match is None else match[2] or _version_text(int(match[1]))
    return Measurements(tuple(samples), _collective(text), len(ranks) or None, version, tuple(_findings(text)))


def _findings(text: str) -> Iterator[str]:
    """Yield the causes of low rates in lines of ``NCCL_DEBUG=INFO`` (``src/transport`` of NCCL 2.30.7)."""
    if "NVLS multicast support is not available" in text:
        yield "The log says that NVLink SHARP is not available."
    if " via SHM/" in text:
        yield "GPUs of a box exchange data over memory of the CPU (SHM), not over NVLink."
    nics: dict[tuple[str, ...], dict[str, str]] = {}
    directly, names = set[bool](), set[str]()
    for *ends, side, name, nic, direct in _CHANNEL.findall(text):
        nics.setdefault(tuple(ends), {})[side] = nic
        directly.add(bool(direct))
        names.add(name)
    if senders := {one["send"] for one in nics.values() if "send" in one}:
        yield f"Boxes send over {len(senders)} {'NIC' if len(senders) == 1 else 'NICs'} ({', '.join(sorted(names))})."
        if False in directly:
            yield "Data between boxes passes through memory of the CPU (no GPUDirect RDMA)."
    if count := sum(len(one) == 2 and one["send"] != one["receive"] for one in nics.values()):
        yield f"{count} of {len(nics)} connections cross rails: they leave and enter over NICs of different numbers."


def _samples(size: int, words: Sequence[str]) -> Iterator[Sample]:
    """Yield the times of a line from the words after type and operator; a root adds one word."""
    has_root = len(words) > 2 * _HALF or len(words) == _HALF + 1
    halves = words[int(has_root) :]
    for place in range(2):
        time = halves[place * _HALF] if len(halves) >= (place + 1) * _HALF else ""
        if _NUMBER.match(time):
            yield from _sample(size, float(time), place == 1)


def _sample(size: int, microseconds: float, in_place: bool) -> Iterator[Sample]:
    if not 0 <= size <= _SIZES:
        raise InputError(f"{show_value(size)}; expected a size of at most 2^60 bytes")
    if microseconds != 0 and not _LEAST_US <= microseconds <= _MOST_US:
        raise InputError(f"{microseconds:g} us; expected a time from {_LEAST_US:g} to {_MOST_US:g} us")
    if size > 0 and microseconds > 0:
        yield Sample(size, microseconds * 1e-6, in_place)


def _collective(text: str) -> Collective | None:
    names = set(_PROGRAM.findall(text))
    return PROGRAMS[names.pop()] if len(names) == 1 else None


def _version_text(code: int) -> str:
    return f"{code // 10000}.{code % 10000 // 100}.{code % 100}" if code >= 10000 else ""


def _from_json(text: str) -> Measurements:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError("not JSON") from None
    results = data.get("results") if isinstance(data, dict) else None
    if not isinstance(results, list):
        raise InputError(f"{show_value(results)}; expected a list", place="results")
    samples = [sample for index, result in enumerate(results) for sample in _of_result(result, f"results[{index}]")]
    args = data.get("args")
    program = _collective(" ".join(map(str, args[:1]))) if isinstance(args, list) else None
    config = data.get("config")
    rows = data.get("ranks", config.get("ranks") if isinstance(config, dict) else None)
    entries = rows if isinstance(rows, list) else []
    ranks = {show_value(one.get("rank")) for one in entries if isinstance(one, dict)}
    code = data.get("nccl_version")
    version = _version_text(code) if isinstance(code, int) else ""
    return Measurements(tuple(samples), program, len(ranks) or None, version)


def _of_result(result: Any, place: str) -> Iterator[Sample]:
    if not isinstance(result, dict) or not isinstance(size := result.get("size"), int):
        raise InputError("expected an object with a size", place=place)
    for key in ("out_of_place", "in_place"):
        half = result.get(key)
        if isinstance(half, Mapping):
            time = half.get("time")
            if isinstance(time, bool) or not isinstance(time, (int, float)) or not 0 <= time <= _MOST_US:
                raise InputError(f"{show_value(time)}; expected microseconds", place=f"{place}.{key}.time")
            with locate_errors(f"{place}.{key}"):
                yield from _sample(size, time, key == "in_place")


#: Names of the collectives that can be tuned.
TUNED: Mapping[Collective, str] = {
    Collective.ALL_REDUCE: "allreduce",
    Collective.ALL_GATHER: "allgather",
    Collective.REDUCE_SCATTER: "reducescatter",
    Collective.BROADCAST: "broadcast",
    Collective.REDUCE: "reduce",
}


def tuner_text(kind: Collective, spans: Sequence[tuple[int, int, str, str]], ranks: int) -> str:
    """Write the tuner's file of spans: first and last size in bytes, and NCCL's algorithm and protocol.

    0 channels are NCCL's own number: where the file says -1, NVIDIA's example plugin gives a call one channel.
    """
    head = "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks\n"
    lines = [
        f"{TUNED[kind]},{first},{last},{algorithm.replace('-', '_')},{protocol},0,-1,{ranks}\n"
        for first, last, algorithm, protocol in spans
    ]
    return "".join([head, *lines])


def selection_text(kind: Collective, spans: Sequence[tuple[int, int, str, str]]) -> str:
    """Write the same spans with ``algSelection`` of an ``ncclCollConfig_t``: whole names, as prefixes select more.

    They are those of ``src/config/algorithm_registry.cc`` in NCCL 2.31.2, such as ``NVLSTREE_SIMPLE``.
    """
    lines = [
        f"{TUNED[kind]},{first},{last},"
        f"{algorithm.replace('nvls-', 'nvls').replace('-', '_').upper()}_{protocol.upper()}\n"
        for first, last, algorithm, protocol in spans
    ]
    return "".join(["collective_type,min_bytes,max_bytes,algSelection\n", *lines])
