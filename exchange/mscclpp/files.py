"""Plans as JSON: the fields that the executor reads, in bounds; everything else is left out."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from ...core.errors import InputError, locate_errors, show_value
from ...core.files import read_whole
from ...core.strict_json import parse_json
from .plan import SWITCH, Block, Buffer, Channel, Gpu, Op, Plan, Remote

#: Files, values of one, keys of an object, GPUs, and numbers beyond this are not read.
MAX_BYTES = 2**28
MAX_VALUES = 2**23
MAX_KEYS = 64
MAX_GPUS = 2**14
MAX_NUMBER = 2**31
MAX_OBJECTS = 2**20  #: Objects that are no operations and no buffers; each takes more memory than those.
#: What is looked at of a file to see whether it is a plan.
_BEGIN = 2**16
T = TypeVar("T")
_KEYS = (b'"collective"', b'"gpus"')


def is_plan(path: Path) -> bool:
    """Return whether a file is a plan and no schedule, by its beginning, or else its end."""
    try:
        with path.open("rb") as stream:
            raw = stream.read(_BEGIN)
            stream.seek(0, 2)
            stream.seek(max(stream.tell() - _BEGIN, 0))
            raw += b" " + stream.read(_BEGIN)
    except OSError:
        return False
    return (
        raw.lstrip()[:1] == b"{"
        and all(key in raw for key in _KEYS)
        and re.search(rb'"(schema|answer)"', raw[:_BEGIN]) is None
    )


def read_plan(path: Path) -> Plan:
    """Read a file."""
    with locate_errors(source=str(path)):
        return parse_plan(read_whole(path, MAX_BYTES, "a plan"))


def parse_plan(raw: bytes) -> Plan:
    """Read the text of a file; see :func:`read_plan`."""
    data = parse_json(raw, MAX_KEYS, MAX_VALUES, _ObjectBuilder().convert)
    if not isinstance(data, dict):
        raise InputError("expected an object with the keys name, collective, protocol, inplace and gpus")
    notes: dict[str, None] = {}
    gpus = _list(data, "gpus")
    if not 1 <= len(gpus) <= MAX_GPUS:
        raise InputError(f"{len(gpus):,} GPUs; expected 1 to {MAX_GPUS:,}", place="gpus")
    return Plan(
        _text(data, "name"),
        _text(data, "collective"),
        _text(data, "protocol"),
        _flag(data, "inplace"),
        _each(data, "gpus", lambda one: _gpu(one, notes)),
        _flag(data, "reuse_resources", default=False),
        _flag(data, "use_double_scratch_buffer", default=False),
        _whole(data, "num_threads_per_block", 1024),
        _whole(data, "buffer_alignment", 16),
        _whole(data, "min_message_size", 0, 2**64),
        _whole(data, "max_message_size", 2**64 - 1, 2**64),
        tuple(notes),
    )


class _ObjectBuilder:
    """Makes operations and buffers of objects as they are read, which take less memory."""

    def __init__(self) -> None:
        self.others = 0
        self.operations: dict[Op, Op] = {}

    def convert(self, data: dict[str, Any]) -> Any:
        """Return an operation, a buffer of one, or the object as it is."""
        if "index" in data:
            return _buffer(data)
        if "name" in data and "gpus" not in data:
            op = _op(data)
            return op if op.src or op.ops else self.operations.setdefault(op, op)
        self.others += 1
        if self.others > MAX_OBJECTS:
            raise InputError(f"more than {MAX_OBJECTS:,} objects beside operations and buffers")
        return data


def _buffer(data: dict[str, Any]) -> Buffer:
    return Buffer(
        _whole(data, "index"),
        _whole(data, "size"),
        _text(data, "type", ""),
        _whole(data, "buffer_id", -1),
        _whole(data, "switch_channel_id", -1),
    )


def _op(data: dict[str, Any]) -> Op:
    name = _text(data, "name")
    try:
        return Op(name) if len(data) == 1 else _op_of(name, data)
    except InputError as error:
        raise error.at(place=f"operation {name[:30]}") from None


def _op_of(name: str, data: dict[str, Any]) -> Op:
    """Return an operation with more than a name; missing fields are skipped."""
    part, parts, unit, chunks = 0, 1, 0, 0
    if "tbg_info" in data:
        info = _object(data["tbg_info"])
        part, parts = _whole(info, "tb_id"), _whole(info, "tbg_size")
    if "iter_context" in data:
        info = _object(data["iter_context"])
        unit, chunks = _whole(info, "unit_size"), _whole(info, "num_chunks")
    return Op(
        name,
        _all(data, "src_buff", Buffer) if "src_buff" in data else (),
        _all(data, "dst_buff", Buffer) if "dst_buff" in data else (),
        _text(data, "channel_type", ""),
        _numbers(data, "channel_ids") if "channel_ids" in data else (),
        part,
        parts,
        _whole(data, "barrier_id", -1),
        _whole(data, "num_threadblocks", 0),
        _numbers(data, "semaphore_ids") if "semaphore_ids" in data else (),
        unit,
        chunks,
        _all(data, "ops", Op) if "ops" in data else (),
    )


def _gpu(data: dict[str, Any], notes: dict[str, None]) -> Gpu:
    blocks = _each(data, "threadblocks", _block)
    channels = _each(data, "channels", lambda one: _channel(one, notes))
    remote = _each(data, "remote_buffers", _remote, required=False)
    values = _each(data, "semaphores", lambda one: _whole(one, "init_value"), required=False)
    names = ("id", "input_chunks", "output_chunks", "scratch_chunks")
    rank, before, after, scratch = (_whole(data, name) for name in names)
    return Gpu(rank, before, after, scratch, blocks, channels, remote, values)


def _remote(data: dict[str, Any]) -> Remote:
    over = _list(data, "access_channel_types")
    if any(not isinstance(one, str) for one in over):
        raise InputError("expected texts", place="access_channel_types")
    return Remote(_whole(data, "rank"), _text(data, "type"), tuple(over))


def _channel(data: dict[str, Any], notes: dict[str, None]) -> Channel:
    kind = _text(data, "channel_type")
    if kind != SWITCH:
        return Channel(kind, _numbers(data, "connected_to"))
    if "buffer_type" not in data and "buff" in data:
        notes["a switch channel has buff, which is buffer_type today: rejected"] = None
        data = {**data, "buffer_type": data["buff"]}
    groups = tuple(_numbers(_object(one), "ranks") for one in _list(data, "rank_groups"))
    return Channel(SWITCH, (), _text(data, "buffer_type"), groups)


def _block(data: dict[str, Any]) -> Block:
    channels = _by_kind(_list(data, "channels"), "channel_type", "channel_ids")
    remote = _by_kind(_list(data, "remote_buffer_refs", required=False), "access_channel_type", "remote_buffer_ids")
    return Block(_whole(data, "id"), _all(data, "ops", Op), channels, remote)


def _by_kind(items: list[Any], kind: str, ids: str) -> dict[str, tuple[int, ...]]:
    numbers: dict[str, tuple[int, ...]] = {}
    for one in map(_object, items):
        name = _text(one, kind)
        numbers[name] = numbers.get(name, ()) + _numbers(one, ids)
    return numbers


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"expected an object, not {_value_text(value)}")
    return value


def _value_text(value: Any) -> str:
    return "an operation" if isinstance(value, Op) else "a buffer" if isinstance(value, Buffer) else show_value(value)


def _each(
    data: dict[str, Any], name: str, make: Callable[[dict[str, Any]], T], *, required: bool = True
) -> tuple[T, ...]:
    items: list[T] = []
    for place, one in enumerate(_list(data, name, required=required)):
        with locate_errors(f"{name}[{place}]"):
            items.append(make(_object(one)))
    return tuple(items)


def _list(data: dict[str, Any], name: str, *, required: bool = True) -> list[Any]:
    value = data.get(name) if required else data.get(name, [])
    if not isinstance(value, list):
        raise InputError("is missing" if name not in data else "expected a list", place=name)
    return value


def _all(data: dict[str, Any], name: str, kind: type) -> tuple[Any, ...]:
    items = _list(data, name)
    for place, one in enumerate(items):
        if not isinstance(one, kind):
            what = "an operation, which has a name" if kind is Op else "a buffer, which has an index and a size"
            raise InputError(f"expected {what}", place=f"{name}[{place}]")
    return tuple(items)


def _numbers(data: dict[str, Any], name: str) -> tuple[int, ...]:
    items = _list(data, name)
    for place, one in enumerate(items):
        _check(one, MAX_NUMBER, f"{name}[{place}]")
    return tuple(items)


def _text(data: dict[str, Any], name: str, default: str | None = None) -> str:
    return _value_of_type(data, name, default, str, "a text")


def _flag(data: dict[str, Any], name: str, *, default: bool | None = None) -> bool:
    return _value_of_type(data, name, default, bool, "true or false")


def _value_of_type(data: dict[str, Any], name: str, default: T | None, kind: type[T], what: str) -> T:
    value = data.get(name, default)
    if not isinstance(value, kind):
        raise InputError("is missing" if name not in data else f"expected {what}, not {_value_text(value)}", place=name)
    return value


def _whole(data: dict[str, Any], name: str, default: int | None = None, most: int = MAX_NUMBER) -> int:
    if name not in data and default is not None:
        return default
    if name not in data:
        raise InputError("is missing", place=name)
    return _check(data[name], most, name)


def _check(value: Any, most: int, place: str) -> int:
    """Return a number within the executor's limit; only initial semaphores may be negative."""
    if type(value) is not int or not -(2**31) <= value < most:
        raise InputError(f"expected an integer below {most:,}, not {_value_text(value)}", place=place)
    return value


def json_text(plan: Plan) -> Iterator[str]:
    """Write a plan, a thread block on each line."""
    head = {
        "name": plan.name,
        "collective": plan.collective,
        "protocol": plan.protocol,
        "inplace": plan.inplace,
        "reuse_resources": plan.reuse,
        "num_threads_per_block": plan.threads,
        "use_double_scratch_buffer": plan.double_scratch,
        "buffer_alignment": plan.alignment,
        "min_message_size": plan.min_bytes,
        "max_message_size": plan.max_bytes,
    }
    yield json.dumps(head)[:-1] + ', "gpus": [\n'
    for place, gpu in enumerate(plan.gpus):
        data = {
            "id": gpu.id,
            "input_chunks": gpu.input,
            "output_chunks": gpu.output,
            "scratch_chunks": gpu.scratch,
            "channels": [_channel_json(one) for one in gpu.channels],
            "remote_buffers": [
                {"rank": one.rank, "type": one.type, "access_channel_types": one.over} for one in gpu.remote
            ],
            "semaphores": [{"init_value": value} for value in gpu.semaphores],
        }
        yield json.dumps(data)[:-1] + ', "threadblocks": [\n'
        for number, block in enumerate(gpu.blocks):
            yield json.dumps(_block_json(block)) + (",\n" if number + 1 < len(gpu.blocks) else "\n")
        yield "]}" + (",\n" if place + 1 < len(plan.gpus) else "\n")
    yield "]}\n"


def _channel_json(channel: Channel) -> dict[str, Any]:
    if channel.type != SWITCH:
        return {"channel_type": channel.type, "connected_to": list(channel.peers)}
    groups = [{"size": len(ranks), "ranks": list(ranks)} for ranks in channel.groups]
    return {"channel_type": SWITCH, "buffer_type": channel.buffer, "rank_groups": groups}


def _block_json(block: Block) -> dict[str, Any]:
    channels = [{"channel_type": kind, "channel_ids": list(ids)} for kind, ids in block.channels.items()]
    refs = [{"access_channel_type": kind, "remote_buffer_ids": list(ids)} for kind, ids in block.remote.items()]
    return {"id": block.id, "ops": [_op_json(op) for op in block.ops], "channels": channels, "remote_buffer_refs": refs}


def _op_json(op: Op) -> dict[str, Any]:
    data: dict[str, Any] = {"name": op.name}
    if op.channel_type:
        data["channel_type"] = op.channel_type
    if op.channels:
        data["channel_ids"] = list(op.channels)
    if op.src:
        data["src_buff"] = [_buffer_json(one) for one in op.src]
    if op.dst:
        data["dst_buff"] = [_buffer_json(one) for one in op.dst]
    if op.parts != 1 or op.part != 0:
        data["tbg_info"] = {"tb_id": op.part, "tbg_size": op.parts}
    if op.barrier >= 0:
        data |= {"barrier_id": op.barrier, "num_threadblocks": op.blocks}
    if op.semaphores:
        data["semaphore_ids"] = list(op.semaphores)
    if op.name == "pipeline":
        data["iter_context"] = {"unit_size": op.unit_bytes, "num_chunks": op.chunks}
        data["ops"] = [_op_json(one) for one in op.ops]
    return data


def _buffer_json(one: Buffer) -> dict[str, Any]:
    where: dict[str, Any] = {"type": one.type} if one.type else {}
    if one.remote >= 0:
        where["buffer_id"] = one.remote
    if one.switch >= 0:
        where["switch_channel_id"] = one.switch
    return where | {"index": one.first, "size": one.size}
