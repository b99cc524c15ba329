"""Verification of schedules of sends, in steps or in time."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from ...core.instance import Instance
from ...core.schedule import Ints, Schedule, StepSchedule
from .answers import check_answer
from .capacity import check_capacity
from .copies import is_copied_correctly
from .network import Network, broken_paths
from .replay import replay, seen_s, step_order, time_order
from .report import AtSend, Findings, Violation
from .sizes import check_sizes


@check_answer.register
def verify_steps(schedule: StepSchedule, instance: Instance, network: Network, findings: Findings) -> None:
    """Check a schedule in steps; skip checks that depend on numbers out of range."""
    chunks, sends, step = schedule.chunks, schedule.sends, schedule.step
    at_send = check_shape(instance, network, schedule, findings)
    if at_send is not None and not is_copied_correctly(network, chunks, sends, step, step):
        replay(network, chunks, sends, *step_order(step), at_send, findings)


def verify_times(instance: Instance, network: Network, schedule: Schedule, findings: Findings) -> None:
    """Check a timed schedule without a grid; skip checks that depend on numbers out of range."""
    chunks, sends, start_s, end_s = schedule.chunks, schedule.sends, schedule.start_s, schedule.end_s
    at_send = check_shape(instance, network, schedule, findings)
    if at_send is None or findings.add_each(
        "capacity", end_s <= start_s, lambda send: at_send("capacity", "takes no time", send)
    ):
        return
    check_capacity(network, schedule, findings)
    if not is_copied_correctly(network, chunks, sends, seen_s(start_s, end_s), end_s):
        replay(network, chunks, sends, *time_order(start_s, end_s), at_send, findings)


def check_shape(
    instance: Instance, network: Network, schedule: StepSchedule | Schedule, findings: Findings
) -> AtSend | None:
    """Check numbers, sizes and paths; return a maker of violations, None if a number is out of range."""
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
    """Return a function that creates violations with place and time of a send."""
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
    """Return whether all named chunks, nodes, links and ranks exist."""
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
        in_range = group and group[0] >= 0 and group[-1] < len(network.rank_node)
        if not in_range or any(a >= b for a, b in pairwise(group)):
            ok = False
            text = f"group {number} is not a sorted list of ranks below {len(network.rank_node)}, at least one"
            findings.add(Violation("range", text))
    return ok
