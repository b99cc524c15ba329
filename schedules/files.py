"""Schedule files: one JSON object with an answer and its instance, enough to verify it.

Columns are lists; exact numbers are texts such as ``"1/3"``; paths are given by their numbers of links instead of
offsets. Files named ``.gz`` are compressed, files named ``.npz`` have binary columns
(:mod:`cwb.schedules.strict`). The digest of the instance is stored too and is checked on reading.
"""

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from sys import float_info
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from ..core.bounds import Certificate
from ..core.collective import Demand
from ..core.equal_steps import TranslatedTrees
from ..core.errors import InputError, locate_errors, show_value
from ..core.files import open_atomic
from ..core.instance import Instance, plain
from ..core.json_stream import LazyColumn
from ..core.schedule import Chunks, Schedule, Sends, StepSchedule
from ..core.step_orbits import StepOrbits
from ..core.strict_json import check_kind
from ..core.topology import Topology
from ..core.trace import Routing
from ..core.trees import Forest, Translation, TreeOrbits, TreePacking
from .file_parts import READERS, read_certificate, read_instance
from .strict import MAX_BYTES, Fields, read_columns, read_json, write_columns

SCHEMA = "cwb-schedule/1"
#: An answer that has a file.
Written = StepSchedule | StepOrbits | Schedule | TreePacking | TreeOrbits | TranslatedTrees

_BEGIN = 1000  #: Bytes of a file that are looked at to see whether it is a schedule.
ANSWER_SCHEMA = "cwb-answer/1"  #: Of files of answers that are no schedule.
MOST_PIECES = 2**20  #: Pieces of a tree beyond this many are not read.


class ScheduleFile(NamedTuple):
    """Contents of a schedule file."""

    instance: Instance
    answer: Written
    certificate: Certificate | None
    extra: Mapping[str, Any]
    pieces: int | None = None


def write_schedule(
    path: Path | str,
    instance: Instance,
    answer: Written,
    certificate: Certificate | None = None,
    extra: Mapping[str, Any] | None = None,
    pieces: int | None = None,
) -> str:
    """Write a schedule file atomically, compressed if ``.gz``, with binary columns if ``.npz``; return its SHA-256."""
    path = Path(path)
    with locate_errors(source=str(path)):
        content = _content(answer)
    if answer.instance_sha256 != instance.sha256:
        raise InputError("the schedule is for another instance", source=str(path))
    if instance.is_beyond_collectives:
        raise InputError("expected a network and a collective, not a bandwidth design", source=str(path))
    if pieces is not None and not isinstance(answer, Forest):
        raise InputError("only trees are divided into pieces", source=str(path), place="pieces")
    data = {
        "schema": SCHEMA,
        "answer": content.pop("answer"),
        "instance_sha256": instance.sha256,
        "instance": _instance_data(instance),
        **content,
        **({} if pieces is None else {"pieces": pieces}),
        "certificate": None if certificate is None else certificate.to_json(),
        "extra": dict(extra or {}),
    }
    return write_data(path, data)


def is_schedule(path: Path) -> bool:
    """Return whether a file is a schedule, by its suffix ``.npz`` or its first characters."""
    return path.is_file() if path.suffix == ".npz" else begins_with(path, SCHEMA)


def begins_with(path: Path, schema: str) -> bool:
    """Return whether the first characters of a JSON file name a schema."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            return f'"{schema}"'.encode() in stream.read(_BEGIN)
    except (OSError, EOFError, ValueError, zlib.error):
        return False


def write_data(path: Path, data: dict[str, Any]) -> str:
    """Write plain data atomically in the form that the suffix implies; return the file's SHA-256."""
    with locate_errors(source=str(path)), open_atomic(path) as stream:
        hashed: Any = _HashingStream(stream)
        if path.suffix == ".gz":
            with gzip.GzipFile(filename="", fileobj=hashed, mode="wb", mtime=0, compresslevel=6) as compressed:
                _write(compressed, data)
        elif path.suffix == ".npz":
            write_columns(hashed, data)
        else:
            _write(hashed, data)
    return str(hashed.sha256.hexdigest())


class _HashingStream:
    """An output stream that hashes what is written, since a pipe cannot be read again."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self.flush = stream, stream.flush
        self.sha256 = sha256()

    def write(self, part: bytes) -> int:
        self.sha256.update(part)
        return self._stream.write(part)


def _write(stream: _HashingStream | gzip.GzipFile, data: Any) -> None:
    size = 0
    for piece in _pieces(data):
        size += stream.write(piece.encode())
        if size > MAX_BYTES:
            raise InputError(f"more than {MAX_BYTES:,} bytes of text, which no reader accepts")


def _pieces(value: Any) -> Iterator[str]:
    """Yield JSON in pieces, so that no whole column is in memory as text."""
    if isinstance(value, dict):
        for index, (key, item) in enumerate(value.items()):
            yield f"{', ' if index else '{'}{json.dumps(key)}: "
            yield from _pieces(item)
        yield "}" if value else "{}"
    elif isinstance(value, np.ndarray):
        for begin in range(0, len(value), 2**16):
            text = json.dumps(value[begin : begin + 2**16].tolist(), separators=(",", ":"), allow_nan=False)
            yield f"{',' if begin else '['}{text[1:-1]}"
        yield "]" if len(value) else "[]"
    else:
        yield json.dumps(value, allow_nan=False)


def _instance_data(instance: Instance) -> dict[str, Any]:
    topology, demand = instance.network, instance.demand
    timing, costs = instance.timing, instance.rank_costs
    if not isinstance(topology, Topology) or demand is None:
        raise InputError("expected a network of nodes and links, and a collective", place="instance")
    limits = [node.buffer_bytes for node in topology.nodes]
    (tail, head), kinds = topology.end_arrays, topology.link_kinds
    rates, latencies = (
        [str(getattr(link, name)) for link in topology.kind_links] for name in ("bandwidth_Bps", "latency_s")
    )
    reduces = [int(node.reduces) for node in topology.nodes]
    return {
        "name": instance.name,
        "network": {
            "nodes": {
                "name": [node.name for node in topology.nodes],
                "kind": [node.kind.value for node in topology.nodes],
                "multicast": [int(node.multicast) for node in topology.nodes],
                "buffer_bytes": [None if limit is None else str(limit) for limit in limits],
                **({"reduces": reduces} if any(reduces) else {}),
            },
            "links": {
                "source": tail,
                "target": head,
                "bandwidth_Bps": [rates[kind] for kind in kinds],
                "latency_s": [latencies[kind] for kind in kinds],
            },
        },
        "collective": _demand_data(demand),
        "also": [_demand_data(further) for further in instance.also],
        **({} if timing is None else {"timing": {**plain(timing), "fluid": int(timing.fluid)}}),
        **({} if costs is None else {"rank_costs": {**plain(costs), "while_receiving": int(costs.while_receiving)}}),
        **({} if instance.routing is Routing.FIXED else {"routing": instance.routing.value}),
    }


def _demand_data(demand: Demand) -> dict[str, Any]:
    return {
        "kind": demand.collective.name,
        "size_bytes": str(demand.size_bytes),
        "chunks": demand.chunks,
        "ranks": None if demand.ranks is None else list(demand.ranks),
        **({} if demand.part_of is None else {"part_of": demand.part_of.name}),
    }


def _content(answer: Written) -> dict[str, Any]:
    match answer:
        case TreePacking():
            return {"answer": "tree-packing", **_tree_data(answer)}
        case TreeOrbits():
            return {"answer": "tree-orbits", **_tree_data(answer.trees), **_translation_data(answer.translations)}
        case StepOrbits(base=base):
            sends = _send_data(base.chunks, base.sends, step=base.step)
            return {"answer": "step-orbits", **sends, **_translation_data(answer.translations)}
        case TranslatedTrees():
            columns = {name: getattr(answer, name) for name in ("copy", "parent", "child", "step")}
            trees = {"kind": answer.kind.value, "sizes": list(answer.sizes), **columns}
            return {"answer": "translated-trees", "trees": trees}
        case StepSchedule():
            return {"answer": "step-schedule", **_send_data(answer.chunks, answer.sends, step=answer.step)}
        case Schedule():
            times = {"start_s": answer.start_s, "end_s": answer.end_s}
            return {"answer": "timed-schedule", **_send_data(answer.chunks, answer.sends, **times)}
        case _:
            raise InputError(f"{show_value(type(answer).__name__)}; expected a schedule or trees")


def _translation_data(translations: Sequence[Translation]) -> dict[str, Any]:
    order = [translation.order for translation in translations]
    image = [np.zeros(0, dtype=np.int64), *(translation.image for translation in translations)]
    return {"translations": {"order": order, "image": np.concatenate(image)}}


def _send_data(chunks: Chunks, sends: Sends, **when: Any) -> dict[str, Any]:
    return {
        "chunks": {
            "unit_bytes": str(chunks.unit_bytes),
            "units": chunks.units,
            "groups": [list(group) for group in chunks.groups],
            **{name: getattr(chunks, name) for name in ("held_by", "needed_by")},
            "reduced": chunks.reduced.astype(np.int64),
        },
        "sends": {
            **{name: getattr(sends, name) for name in ("chunk", "source", "target")},
            "reduce": sends.reduce.astype(np.int64),
            "hops": sends.hops,
            "path_links": sends.path_links,
            **when,
        },
    }


def _tree_data(packing: TreePacking) -> dict[str, Any]:
    shared = {
        "kind": packing.kind.value,
        "unit_bytes": str(packing.unit_bytes),
        "root": packing.root,
        "units": packing.units,
        **_edge_data(packing),
    }
    if packing.reduction is not None:
        shared["reduction"] = _edge_data(packing.reduction)
    return {"trees": shared}


def forest_data(packing: TreePacking) -> dict[str, Any]:
    """Return a tree packing as plain data, the object ``trees`` of a schedule file."""
    data: dict[str, Any] = to_lists(_tree_data(packing)["trees"])
    return data


def to_lists(value: Any) -> Any:
    """Return data with arrays converted to lists."""
    if isinstance(value, dict):
        return {key: to_lists(item) for key, item in value.items()}
    if isinstance(value, list):
        return [to_lists(item) for item in value]
    if isinstance(value, LazyColumn):
        value = value.read()
    return value.tolist() if isinstance(value, np.ndarray) else value


def _edge_data(packing: TreePacking) -> dict[str, Any]:
    return {
        "edges": np.diff(packing.edge_offset),
        "parent": packing.parent,
        "child": packing.child,
        "hops": np.diff(packing.path_offset),
        "path_links": packing.path_links,
    }


def read_schedule(path: Path, *, others: Sequence[str] = ()) -> ScheduleFile:
    """Read a schedule file without verifying it; the error about an unknown schema names ``others`` too."""
    with locate_errors(source=str(path)):
        data = read_columns(path) if path.suffix == ".npz" else read_json(path)
        if isinstance(data, dict) and data.get("schema") == ANSWER_SCHEMA:
            raise InputError(f"an answer of which no sends are kept ({ANSWER_SCHEMA}); expected a schedule ({SCHEMA})")
        check_kind(data, SCHEMA, *others)
        file = Fields(data)
        file.word("schema", [SCHEMA, *others])
        kind = file.word("answer", list(READERS))
        instance, topology = read_instance(file.fields("instance"))
        digest = file.word("instance_sha256")
        if digest != instance.sha256:
            text = f"{digest[:12]}… is not the digest of the instance in the file, {instance.sha256[:12]}…"
            raise InputError(text, place="instance_sha256")
        answer = READERS[kind](file, instance, topology)
        certificate = read_certificate(file.fields("certificate")) if file.has("certificate") else None
        extra = to_lists(file.take("extra")) if file.has("extra") else {}
        Fields(extra, "extra")  # rejects what is no object
        bound = extra.get("bound_s")
        if bound is not None and (type(bound) not in (int, float) or not abs(bound) <= float_info.max):
            raise InputError(f"{show_value(bound)} is wrong; expected seconds or null", place="extra.bound_s")
        cut = isinstance(answer, Forest) and file.has("pieces")
        pieces = file.integer("pieces", 1, MOST_PIECES + 1) if cut else None
        file.reject_unread()
        return ScheduleFile(instance, answer, certificate, extra, pieces)
