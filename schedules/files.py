"""Schedule files: an answer together with the instance it is for, in one JSON object that is enough to check it.

Columns are lists; exact numbers are texts such as ``"1/3"``; the number of links of every path is given instead of
offsets. A name that ends in ``.gz`` is compressed, and one that ends in ``.npz`` has binary columns
(:mod:`cwb.schedules.columns`). The digest of the instance is written too and must match what is read.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from sys import float_info
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from ..core.bounds import Certificate
from ..core.collective import Demand
from ..core.errors import InputError, located, shown
from ..core.files import written
from ..core.instance import Instance, plain
from ..core.orbits import TreeOrbits
from ..core.schedule import Schedule, StepSchedule
from ..core.timing import Timing
from ..core.topology import Topology
from ..core.translated import TranslatedTrees
from ..core.trees import TreePacking
from .columns import read_columns, write_columns
from .file_parts import read_certificate, read_instance, read_orbits, read_sends, read_translated, read_trees
from .strict import MAX_BYTES, Fields, read_json
from .verify.report import Findings
from .verify.sizes import check_sizes
from .verify.trees import check_tree_sizes

SCHEMA = "cwb-schedule/1"

#: Bytes of a file that are looked at to see whether it is a schedule.
_BEGIN = 1000

#: Of files of answers that are no schedule.
ANSWER_SCHEMA = "cwb-answer/1"

#: Pieces of a tree beyond this many are not read.
MOST_PIECES = 2**20

#: Answers that have a file, by their name in it.
KINDS = {
    "step-schedule": StepSchedule,
    "timed-schedule": Schedule,
    "tree-packing": TreePacking,
    "tree-orbits": TreeOrbits,
    "translated-trees": TranslatedTrees,
}

#: An answer that has a file.
Written = StepSchedule | Schedule | TreePacking | TreeOrbits | TranslatedTrees


class ScheduleFile(NamedTuple):
    """What a schedule file says.

    Parameters
    ----------
    instance : Instance
        The problem.
    answer : StepSchedule, Schedule, TreePacking, TreeOrbits or TranslatedTrees
        The schedule.
    certificate : Certificate or None
        What its maker says of the bound.
    extra : mapping of str to object
        Whatever else was written; plain data.
    pieces : int or None
        Number of equal pieces that every tree is cut into, where it was chosen; None of what has no trees.
    """

    instance: Instance
    answer: Written
    certificate: Certificate | None
    extra: Mapping[str, Any]
    pieces: int | None = None


def write_schedule(
    path: Path,
    instance: Instance,
    answer: Written,
    certificate: Certificate | None = None,
    extra: Mapping[str, Any] | None = None,
    pieces: int | None = None,
) -> str:
    """Write a schedule file, whole or not at all.

    Parameters
    ----------
    path : Path
        Where to; compressed if it ends in ``.gz``, with binary columns if in ``.npz``.
    instance : Instance
        A network of nodes and links, and a collective; nothing else.
    answer : StepSchedule, Schedule, TreePacking, TreeOrbits or TranslatedTrees
        Made for this instance.
    certificate : Certificate or None
        Of a bound.
    extra : mapping of str to object
        Plain data to keep with it, such as the method and its options.
    pieces : int, optional
        Number of equal pieces that every tree is cut into; of a packing of trees alone.

    Returns
    -------
    str
        SHA-256 of the file.

    Raises
    ------
    InputError
        If the answer is for another instance, the instance has more than a file can hold, or the file cannot be written.
    """
    if answer.instance_sha256 != instance.sha256:
        raise InputError("the schedule is for another instance", source=str(path))
    if instance.asks_more:
        raise InputError("expected a network and a collective, not a design to be trained on", source=str(path))
    if pieces is not None and not isinstance(answer, TreePacking | TreeOrbits):
        raise InputError("only trees are cut into pieces", source=str(path), place="pieces")
    kind = next(name for name, type_ in KINDS.items() if type(answer) is type_)
    data = {
        "schema": SCHEMA,
        "answer": kind,
        "instance_sha256": instance.sha256,
        "instance": _instance_data(instance),
        **_answer_data(answer),
        **({} if pieces is None else {"pieces": pieces}),
        "certificate": None if certificate is None else certificate.to_json(),
        "extra": dict(extra or {}),
    }
    return write_data(path, data)


def is_schedule(path: Path) -> bool:
    """Whether a file is a schedule, by its suffix ``.npz`` or by what it begins with."""
    if path.suffix == ".npz":
        return path.is_file()
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            return f'"{SCHEMA}"'.encode() in stream.read(_BEGIN)
    except (OSError, EOFError, ValueError):
        return False


def write_data(path: Path, data: dict[str, Any]) -> str:
    """Write plain data, whole or not at all, in the form that the name asks for, and give the file's SHA-256."""
    with located(source=str(path)), written(path) as stream:
        hashed: Any = _Hashed(stream)
        if path.suffix == ".gz":
            with gzip.GzipFile(filename="", fileobj=hashed, mode="wb", mtime=0, compresslevel=6) as compressed:
                _write(compressed, data)
        elif path.suffix == ".npz":
            write_columns(hashed, data)
        else:
            _write(hashed, data)
    return str(hashed.sha256.hexdigest())


class _Hashed:
    """A stream that is written to, and the digest of what was written: a pipe cannot be read again."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self.flush = stream, stream.flush
        self.sha256 = sha256()

    def write(self, part: bytes) -> int:
        self.sha256.update(part)
        return self._stream.write(part)


def _write(stream: _Hashed | gzip.GzipFile, data: Any) -> None:
    size = 0
    for piece in _pieces(data):
        size += stream.write(piece.encode())
        if size > MAX_BYTES:
            raise InputError(f"more than {MAX_BYTES:,} bytes of text; no reader takes it")


def _pieces(value: Any) -> Iterator[str]:
    """Write JSON piece by piece, so that no column is in memory as a text at once."""
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
    if not isinstance(topology, Topology) or demand is None:
        raise InputError("expected a network of nodes and links, and a collective", place="instance")
    limits = [node.buffer_bytes for node in topology.nodes]
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
                "source": [a for a, _ in topology.link_ends],
                "target": [b for _, b in topology.link_ends],
                "bandwidth_Bps": [str(link.bandwidth_Bps) for link in topology.links],
                "latency_s": [str(link.latency_s) for link in topology.links],
            },
        },
        "collective": _demand_data(demand),
        "also": [_demand_data(further) for further in instance.also],
        **({} if instance.timing is None else {"timing": _timing_data(instance.timing)}),
    }


def _timing_data(timing: Timing) -> dict[str, Any]:
    return {**plain(timing), "fluid": int(timing.fluid)}


def _demand_data(demand: Demand) -> dict[str, Any]:
    return {
        "kind": demand.collective.value,
        "size_bytes": str(demand.size_bytes),
        "chunks": demand.chunks,
        "ranks": None if demand.ranks is None else list(demand.ranks),
    }


def _answer_data(answer: Written) -> dict[str, Any]:
    if isinstance(answer, TreePacking):
        return _tree_data(answer)
    if isinstance(answer, TreeOrbits):
        moved = {
            "order": [translation.order for translation in answer.translations],
            "image": np.concatenate([translation.image for translation in answer.translations]),
        }
        return {**_tree_data(answer.trees), "translations": moved}
    return _translated_data(answer) if isinstance(answer, TranslatedTrees) else _send_data(answer)


def _translated_data(answer: TranslatedTrees) -> dict[str, Any]:
    columns = {name: getattr(answer, name) for name in ("copy", "parent", "child", "step")}
    return {"trees": {"kind": answer.kind.value, "sizes": list(answer.sizes), **columns}}


def _send_data(answer: StepSchedule | Schedule) -> dict[str, Any]:
    chunks, sends = answer.chunks, answer.sends
    when: dict[str, Any] = {"start_s": answer.start_s, "end_s": answer.end_s} if isinstance(answer, Schedule) else {}
    return {
        "chunks": {
            "unit_bytes": str(chunks.unit_bytes),
            "units": chunks.units,
            "groups": [list(group) for group in chunks.groups],
            "held_by": chunks.held_by,
            "needed_by": chunks.needed_by,
            "reduced": chunks.reduced.astype(np.int64),
        },
        "sends": {
            "chunk": sends.chunk,
            "source": sends.source,
            "target": sends.target,
            "reduce": sends.reduce.astype(np.int64),
            "hops": sends.hops,
            "path_links": sends.path_links,
            **({"step": answer.step} if isinstance(answer, StepSchedule) else when),
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
    """A packing of trees as the object ``trees`` of a schedule file, in plain data."""
    data: dict[str, Any] = listed(_tree_data(packing)["trees"])
    return data


def listed(value: Any) -> Any:
    """Data with lists for arrays."""
    if isinstance(value, dict):
        return {key: listed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [listed(item) for item in value]
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
    """Read a schedule file.

    Parameters
    ----------
    path : Path
        The file.
    others : sequence of str
        Schemas that the caller reads as well, to be named in the error where the file has none of them.

    Raises
    ------
    InputError
        If it cannot be read, is cut off, or something in it is wrong: names the file, the place, the value and what was
        expected. What the schedule does is not checked here, but the sizes of its chunks must add up to the demand.
    """
    with located(source=str(path)):
        data = read_columns(path) if path.suffix == ".npz" else read_json(path)
        if isinstance(data, dict) and data.get("schema") == ANSWER_SCHEMA:
            raise InputError(f"an answer of which no sends are kept ({ANSWER_SCHEMA}); expected a schedule ({SCHEMA})")
        file = Fields(data)
        file.word("schema", [SCHEMA, *others])
        kind = file.word("answer", list(KINDS))
        instance, topology = read_instance(file.fields("instance"))
        digest = file.word("instance_sha256")
        if digest != instance.sha256:
            raise InputError(
                f"{digest[:12]}… is not the digest of the instance in the file, {instance.sha256[:12]}…",
                place="instance_sha256",
            )
        findings = Findings()
        answer: Written
        if kind == "tree-packing":
            answer = read_trees(file.fields("trees"), digest, topology)
            check_tree_sizes(instance, answer, findings)
        elif kind == "tree-orbits":
            answer = read_orbits(file, digest, topology)
        elif kind == "translated-trees":
            answer = read_translated(file.fields("trees"), digest, len(topology.ranks))
        else:
            answer = read_sends(file, digest, topology, timed=kind == "timed-schedule")
            check_sizes(instance, answer.chunks, findings)
        if findings.violations:
            place = "trees.units" if kind == "tree-packing" else "chunks.units"
            raise InputError(findings.violations[0].message, place=place)
        certificate = read_certificate(file.fields("certificate")) if file.has("certificate") else None
        extra = listed(file.take("extra")) if file.has("extra") else {}
        _check_extra(extra)
        of_trees = kind in ("tree-packing", "tree-orbits")
        pieces = file.integer("pieces", 1, MOST_PIECES + 1) if of_trees and file.has("pieces") else None
        file.done()
        return ScheduleFile(instance, answer, certificate, extra, pieces)


def _check_extra(extra: Any) -> None:
    """Reject what is no object, or whose claimed bound is no number of seconds."""
    Fields(extra, "extra")
    bound = extra.get("bound_s")
    if bound is not None and (type(bound) not in (int, float) or not abs(bound) <= float_info.max):
        raise InputError(f"{shown(bound)} is wrong; expected seconds or null", place="extra.bound_s")
