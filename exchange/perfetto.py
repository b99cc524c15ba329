"""A simulated schedule in the Trace Event Format, for chrome://tracing, Perfetto and the like."""

import json
from bisect import bisect_right
from collections.abc import Iterator

import numpy as np

from ..core.answers import Answer
from ..core.grouping import group_by_key
from ..core.instance import Instance
from ..core.schedule import Ints, Sends
from ..core.trace import Trace
from ..schedules.simulate.transfers import sends_of


def chrome_trace(instance: Instance, answer: Answer, trace: Trace, *, pieces: int | Ints = 1) -> Iterator[str]:
    """Write a trace as one JSON object, line by line.

    Every hop is a complete event (``ph`` X) in microseconds; its process is the rank that sends, its thread the link.
    Switches are processes behind the ranks. Arrows (``ph`` s and f) lead from the hop with which a chunk came last to
    the hop that forwards it.
    """
    topology = instance.topology
    sends, chunk_bytes = sends_of(instance, answer, pieces=pieces)
    process = {node: rank for rank, node in enumerate(topology.rank_nodes)}
    for node in range(len(topology.nodes)):
        process.setdefault(node, len(process))
    yield '{"displayTimeUnit": "ns", "traceEvents": [\n'
    for node, number in process.items():
        yield _metadata_event("process_name", topology.nodes[node].name, pid=number) + ",\n"
    pids = [process[source] for source, _ in topology.link_ends]
    for index, wire in enumerate(topology.links):
        yield _metadata_event("thread_name", f"{wire.source} -> {wire.target}", pid=pids[index], tid=index) + ",\n"
    start, length = trace.hop_start_s * 1e6, (trace.hop_end_s - trace.hop_start_s) * 1e6
    for row in np.argsort(trace.hop_start_s, kind="stable").tolist():
        link, send = int(sends.path_links[row]), int(sends.hop_send[row])
        chunk = int(sends.chunk[send])
        details = {"send": send, "chunk": chunk, "bytes": float(chunk_bytes[chunk])}
        when = {"ts": float(start[row]), "dur": float(length[row]), "pid": pids[link], "tid": link}
        yield json.dumps({"name": f"chunk {chunk}", "ph": "X", **when, "args": details}) + ",\n"
    for number, rows in enumerate(_forwarding_pairs(sends, trace)):
        for phase, row in zip("sf", rows, strict=True):
            link = int(sends.path_links[row])
            when = {"ts": float(start[row] + length[row] / 2), "pid": pids[link], "tid": link}
            arrow = {"name": "data", "cat": "data", "ph": phase, "id": number, **when}
            yield json.dumps(arrow | ({"bp": "e"} if phase == "f" else {})) + ",\n"
    completion = {"name": "completed", "ph": "i", "s": "g", "ts": trace.completion_s * 1e6, "pid": 0, "tid": 0}
    yield json.dumps(completion) + "\n]}\n"


def _metadata_event(what: str, name: str, **numbers: int) -> str:
    return json.dumps({"name": what, "ph": "M", **numbers, "args": {"name": name}})


def _forwarding_pairs(sends: Sends, trace: Trace) -> Iterator[tuple[int, int]]:
    """Yield pairs of hops: consecutive ones of a send, and its chunk's last arrival before its first hop."""
    order = np.argsort(trace.end_s, kind="stable").tolist()
    arrivals = group_by_key(((int(sends.chunk[send]), int(sends.target[send])), send) for send in order)
    end_s, rounding_s = trace.end_s.tolist(), 1e-12 * trace.completion_s
    for send, begin_s in enumerate(trace.start_s.tolist()):
        first, behind = int(sends.path_offset[send]), int(sends.path_offset[send + 1])
        earlier = arrivals.get((int(sends.chunk[send]), int(sends.source[send])), [])
        count = bisect_right(earlier, begin_s + rounding_s, key=end_s.__getitem__)
        if count:
            yield int(sends.path_offset[earlier[count - 1] + 1]) - 1, first
        yield from ((row - 1, row) for row in range(first + 1, behind))
