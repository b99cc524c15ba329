"""Plans as JSON, with every field that the executor reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from .plan import SWITCH, Block, Buffer, Channel, Gpu, Op, Plan


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
        yield from _gpu(gpu)
        yield ",\n" if place + 1 < len(plan.gpus) else "\n"
    yield "]}\n"


def _gpu(gpu: Gpu) -> Iterator[str]:
    head = {
        "id": gpu.id,
        "input_chunks": gpu.input,
        "output_chunks": gpu.output,
        "scratch_chunks": gpu.scratch,
        "channels": [_channel(one) for one in gpu.channels],
        "remote_buffers": [
            {"rank": one.rank, "type": one.type, "access_channel_types": list(one.over)} for one in gpu.remote
        ],
        "semaphores": [{"init_value": value} for value in gpu.semaphores],
    }
    yield json.dumps(head)[:-1] + ', "threadblocks": [\n'
    for place, block in enumerate(gpu.blocks):
        yield json.dumps(_block(block)) + (",\n" if place + 1 < len(gpu.blocks) else "\n")
    yield "]}"


def _channel(channel: Channel) -> dict[str, Any]:
    if channel.type != SWITCH:
        return {"channel_type": channel.type, "connected_to": list(channel.peers)}
    groups = [{"size": len(ranks), "ranks": list(ranks)} for ranks in channel.groups]
    return {"channel_type": SWITCH, "buffer_type": channel.buffer, "rank_groups": groups}


def _block(block: Block) -> dict[str, Any]:
    channels = [{"channel_type": kind, "channel_ids": list(ids)} for kind, ids in block.channels.items()]
    refs = [{"access_channel_type": kind, "remote_buffer_ids": list(ids)} for kind, ids in block.remote.items()]
    return {"id": block.id, "ops": [_op(op) for op in block.ops], "channels": channels, "remote_buffer_refs": refs}


def _op(op: Op) -> dict[str, Any]:
    """Return the JSON of an operation without empty fields."""
    data: dict[str, Any] = {"name": op.name}
    if op.channel_type:
        data["channel_type"] = op.channel_type
    if op.channels:
        data["channel_ids"] = list(op.channels)
    if op.src:
        data["src_buff"] = [_buffer(one) for one in op.src]
    if op.dst:
        data["dst_buff"] = [_buffer(one) for one in op.dst]
    if op.parts != 1 or op.part != 0:
        data["tbg_info"] = {"tb_id": op.part, "tbg_size": op.parts}
    if op.barrier >= 0:
        data |= {"barrier_id": op.barrier, "num_threadblocks": op.blocks}
    if op.semaphores:
        data["semaphore_ids"] = list(op.semaphores)
    if op.name == "pipeline":
        data["iter_context"] = {"unit_size": op.unit_bytes, "num_chunks": op.chunks}
        data["ops"] = [_op(one) for one in op.ops]
    return data


def _buffer(one: Buffer) -> dict[str, Any]:
    where: dict[str, Any] = {"type": one.type} if one.type else {}
    if one.remote >= 0:
        where["buffer_id"] = one.remote
    if one.switch >= 0:
        where["switch_channel_id"] = one.switch
    return where | {"index": one.first, "size": one.size}
