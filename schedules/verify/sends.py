"""Verification of schedules of sends, in steps or in time."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from ...core.instance import Instance
from ...core.schedule import Ints, Schedule, StepSchedule
from .capacity import check_capacity
from .copies import copied_right
from .network import Network
from .order import seen_s, step_order, time_order
from .paths import broken_paths
from .replay import AtSend, replay
from .report import Findings, Violation
from .sizes import check_sizes


def verify_sends(instance: Instance, network: Network, schedule: StepSchedule | Schedule, findings: Findings) -> None:
    """Check a schedule of sends; what depends on numbers that are out of range is not checked."""
    chunks, sends = schedule.chunks, schedule.sends
    at_send = check_shape(instance, network, schedule, findings)
    if at_send is None:
        return
    if isinstance(schedule, StepSchedule):
        if copied_right(network, chunks, sends, schedule.step, schedule.step):
            return
        read, write = step_order(schedule.step)
    else:
        nothing = schedule.end_s <= schedule.start_s
        if findings.add_each("capacity", nothing, lambda send: at_send("capacity", "takes no time", send)):
            return
        check_capacity(network, schedule, findings)
        if copied_right(network, chunks, sends, seen_s(schedule.start_s, schedule.end_s), schedule.end_s):
            return
        read, write = time_order(schedule.start_s, schedule.end_s)
    replay(network, chunks, sends, read, write, at_send, findings)


def check_shape(
    instance: Instance, network: Network, schedule: StepSchedule | Schedule, findings: Findings
) -> AtSend | None:
    """Check numbers, sizes and paths; give what places violations at a send, None if a number is out of range."""
    chunks, sends = schedule.chunks, schedule.sends
    if not _in_range(network, schedule, findings):
        return None
    check_sizes(instance, chunks, findings)
    at_send = _at_send(network, schedule)
    broken, link = broken_paths(network, sends.source, sends.target, sends.path_offset, sends.path_links)

    def off_path(send: int) -> Violation:
        ends = f"{network.name(int(sends.source[send]))} to {network.name(int(sends.target[send]))}"
        found = at_send("path", f"its path does not lead from {ends}", send)
        return replace(found, link=int(link[send]))

    findings.add_each("path", broken, off_path)
    return at_send


def _at_send(network: Network, schedule: StepSchedule | Schedule) -> AtSend:
    """Make violations that say where and when a send is."""
    sends = schedule.sends

    def make(kind: str, text: str, send: int) -> Violation:
        return Violation(
            kind,
            text,
            rank=network.rank(int(sends.source[send])),
            chunk=int(sends.chunk[send]),
            link=int(sends.path_links[sends.path_offset[send]]),
            step=int(schedule.step[send]) if isinstance(schedule, StepSchedule) else None,
            time_s=float(schedule.start_s[send]) if isinstance(schedule, Schedule) else None,
        )

    return make


def _in_range(network: Network, schedule: StepSchedule | Schedule, findings: Findings) -> bool:
    """Whether every chunk, node, link and rank that is named exists."""
    chunks, sends = schedule.chunks, schedule.sends

    def outside(column: Ints, limit: int) -> Ints:
        if not len(column) or (column.min() >= 0 and column.max() < limit):
            return np.zeros(0, dtype=np.int64)
        return np.flatnonzero((column < 0) | (column >= limit))

    columns = {
        "chunk": (sends.chunk, len(chunks)),
        "node": (sends.source, network.nodes),
        "target node": (sends.target, network.nodes),
        "link": (sends.path_links, network.links),
    }
    ok = True
    for name, (column, limit) in columns.items():
        for index in outside(column, limit)[:1].tolist():
            ok = False
            send = int(sends.hop_send[index]) if name == "link" else index
            text = f"send {send} names {name} {column[index]}, but there are {limit}"
            findings.add(Violation("range", text, chunk=int(sends.chunk[send])))
    for number, group in enumerate(chunks.groups):
        if not (group and group[0] >= 0 and group[-1] < len(network.rank_node) and _increasing(group)):
            ok = False
            text = f"group {number} is not a sorted list of ranks below {len(network.rank_node)}, at least one"
            findings.add(Violation("range", text))
    return ok


def _increasing(group: tuple[int, ...]) -> bool:
    return all(a < b for a, b in pairwise(group))
