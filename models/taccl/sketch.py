"""Sketches: allowed edges and their senders, symmetric ranks, switches, number of chunks (docs/methods/taccl.md)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from ...algorithms.schedules.problem import RankEdge
from ...core.errors import InputError, locate_errors, show_value
from ...core.strict_json import parse_json
from ...core.topology import Topology

if TYPE_CHECKING:
    from .formulations.routing import Connections

MAX_LENGTH = 10_000  #: Length of a sketch.
STRATEGIES: Mapping[str, Connections] = {"uc-min": "min", "uc-max": "max"}  #: What ``switch_hyperedge_strategy`` says.

#: What looks like the name of a file, and what is expected in its place.
_FILE = re.compile(r"^@|^\S*\.json$|^[^\s>]*/[^\s>]*$")
_WHOLE = 'expected the whole text of a sketch file, such as -O sketch="$(cat FILE)"'

_RULE = re.compile(r"(avoid|only)\s+(\S{1,100})\s*->\s*(\S{1,100})\Z")
_SHIFT = re.compile(r"shift\s+([1-9][0-9]{0,5})(?:\s+of\s+([1-9][0-9]{0,5}))?\Z")


@dataclass(frozen=True)
class Sketch:
    """Parsed sketch."""

    rules: tuple[tuple[str, str, str], ...] = ()
    #: Shift under which ranks are alike, and the number of consecutive ranks within which it acts.
    shifts: tuple[tuple[int, int], ...] = ()
    box: int | None = None  #: Ranks of a box; None without boxes.
    #: GPUs of a box that send to other boxes, and GPUs there that they send to; None is all.
    relays: frozenset[tuple[int, int]] | None = None
    #: GPUs of its box by which the chunks of a GPU leave it; unlisted ones leave by any.
    senders: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    connections: Connections | None = None  #: Use few (``min``) or many (``max``) edges through switches.
    chunks: int | None = None

    def allowed_edges(
        self, topology: Topology, edges: Iterable[RankEdge], *, backwards: bool = False
    ) -> tuple[RankEdge, ...]:
        """Return the edges that rules and relays allow; rules name the links' own ends where copies run backwards."""
        names, rank = [node.name for node in topology.nodes], ranks_of(topology)

        def is_allowed(edge: RankEdge) -> bool:
            tail, head = (edge.target, edge.source) if backwards else (edge.source, edge.target)
            return self._relays(rank[edge.source], rank[edge.target]) and all(
                not fnmatchcase(names[tail], one) or fnmatchcase(names[head], other) == (word == "only")
                for word, one, other in self.rules
            )

        return tuple(filter(is_allowed, edges))

    def _relays(self, source: int, target: int) -> bool:
        if self.box is None or self.relays is None or source // self.box == target // self.box:
            return True
        return (source % self.box, target % self.box) in self.relays

    def takes(self, source: int, tail: int, head: int) -> bool:
        """Check whether a rank's chunk may go between two ranks: by its senders, never back into its box."""
        if self.box is None or tail // self.box == head // self.box:
            return True
        home = source // self.box
        if head // self.box == home:
            return False
        senders = self.senders.get(source % self.box)
        return tail // self.box != home or senders is None or tail % self.box in senders


def ranks_of(topology: Topology) -> dict[int, int]:
    """Map nodes to their ranks."""
    return {node: rank for rank, node in enumerate(topology.rank_nodes)}


def parse_sketch(text: str, ranks: int) -> Sketch:
    """Parse a sketch."""
    if len(text) > MAX_LENGTH:
        raise InputError(f"{len(text):,} characters; expected at most {MAX_LENGTH:,}", place="sketch")
    if text.lstrip().startswith("{"):
        try:
            data = parse_json(text.encode(), MAX_LENGTH)
        except InputError as error:
            raise InputError(f"{error}; {_WHOLE}", place="sketch") from None
        with locate_errors(place="sketch"):
            return _of_taccl(data, ranks)
    rules: list[tuple[str, str, str]] = []
    shifts: list[tuple[int, int]] = []
    for index, statement in enumerate(filter(None, (part.strip() for part in re.split(r"[;\n]", text)))):
        place = f"sketch[{index}]"
        if (rule := _RULE.match(statement)) is not None:
            rules.append((rule[1], rule[2], rule[3]))
        elif (shift := _SHIFT.match(statement)) is not None:
            shifts.append(_shift(int(shift[1]), int(shift[2] or ranks), ranks, place))
        else:
            expected = _WHOLE if _FILE.search(statement) else "expected avoid A -> B, only A -> B or shift N of M"
            raise InputError(f"{show_value(statement)}; {expected}", place=place)
    return Sketch(tuple(rules), tuple(shifts))


def _shift(by: int, size: int, ranks: int, place: str) -> tuple[int, int]:
    if ranks % size or size % by or by == size:
        text = f"shift {by} of {size}; expected a proper divisor of a divisor of the {ranks} ranks"
        raise InputError(text, place=place)
    return by, size


def _of_taccl(data: Any, ranks: int) -> Sketch:
    """Parse a sketch file of TACCL: an object with nnodes and its other parts."""
    boxes = data.get("nnodes")
    _expect(type(boxes) is int and boxes >= 1 and not ranks % boxes, boxes, f"a divisor of the {ranks} ranks", "nnodes")
    box = ranks // boxes
    parts = {name: data.get(name, {}) for name in ("intranode_sketch", "internode_sketch", "hyperparameters")}
    for name, part in parts.items():
        _expect(isinstance(part, dict), part, "an object", name)
    inside, between, hyper = parts.values()
    strategies = inside.get("switch_hyperedge_strategy", [])
    are_words = isinstance(strategies, list) and all(isinstance(word, str) for word in strategies)
    _expect(are_words, strategies, "a list", "intranode_sketch.switch_hyperedge_strategy")
    offsets = data.get("symmetry_offsets", [])
    are_pairs = isinstance(offsets, list) and all(_are_numbers(pair, 1, ranks) and len(pair) == 2 for pair in offsets)
    _expect(are_pairs, offsets, "pairs of an offset and a size", "symmetry_offsets")
    chunks = hyper.get("input_chunkup", 1)
    _expect(_are_numbers([chunks], 1, 10_000), chunks, "a number of chunks", "hyperparameters.input_chunkup")
    receivers = between.get("internode_conn", "fully-connected")
    if receivers == "direct-map":
        receivers = {str(gpu): [gpu] for gpu in range(box)}
    relays = [] if receivers == "fully-connected" else _pairs(receivers, box, "internode_conn")
    senders: dict[int, tuple[int, ...]] = {}
    for sender, gpu in _pairs(between.get("gpus_to_sender_rev_map", {}), box, "gpus_to_sender_rev_map"):
        senders[gpu] = (*senders.get(gpu, ()), sender)
    return Sketch(
        shifts=tuple(_shift(by, size, ranks, "symmetry_offsets") for by, size in offsets),
        box=box,
        relays=None if receivers == "fully-connected" else frozenset(relays),
        senders=senders,
        connections=STRATEGIES.get(strategies[0]) if strategies else None,
        chunks=chunks,
    )


def _expect(is_right: bool, value: Any, expected: str, place: str) -> None:
    if not is_right:
        raise InputError(f"{show_value(value)}; expected {expected}", place=place)


def _are_numbers(values: Any, least: int, most: int) -> bool:
    return isinstance(values, list) and all(type(value) is int and least <= value <= most for value in values)


def _pairs(lists: Any, box: int, name: str) -> list[tuple[int, int]]:
    """List the pairs of a mapping of a GPU to GPUs."""
    place = f"internode_sketch.{name}"
    _expect(isinstance(lists, dict), lists, "lists of GPUs by GPU", place)
    for key, gpus in lists.items():
        if not re.match(r"[0-9]{1,5}\Z", key) or int(key) >= box or not _are_numbers(gpus, 0, box - 1):
            raise InputError(f"{show_value(key)}: {show_value(gpus)}; expected GPUs from 0 to {box - 1}", place=place)
    return [(int(key), gpu) for key, gpus in lists.items() for gpu in gpus]


def shortest_ways(topology: Topology, edges: Sequence[RankEdge], source: int, targets: Sequence[int]) -> frozenset[int]:
    """Return the nodes on paths of fewest edges; TACCL routes a chunk through no other."""
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_edges_from((edge.source, edge.target) for edge in edges)
    graph.add_nodes_from(topology.rank_nodes)
    away = nx.single_source_shortest_path_length(graph, source)
    useful = {target for target in targets if target in away}
    for node in sorted(away, key=lambda n: -away[n]):
        if node not in useful and any(n in useful and away[n] == away[node] + 1 for n in graph.successors(node)):
            useful.add(node)
    return frozenset(useful | {source})
