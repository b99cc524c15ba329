"""Fast check that copied data reaches all who need it: one compiled pass over millions of sends.

It accepts only schedules without findings; for others :mod:`.replay` finds the violations, if there are any.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.kernel import kernel, worth_compiling
from ...core.schedule import Chunks, Floats, Ints, Sends
from ..cells import Batches
from .holdings import Members
from .network import Network


def is_copied_correctly(
    network: Network, chunks: Chunks, sends: Sends, read: Ints | Floats, write: Ints | Floats
) -> bool:
    """Return whether all sends read held data, all copies are used, and all needs are met.

    Also False if there are few sends, sums, or switches that forward chunks. Sends read their source and write to their
    target at non-negative times of one numeric type: one sees every write of a smaller number than its read.
    """
    if not worth_compiling(len(sends)) or chunks.reduced.any() or sends.reduce.any():
        return False
    if network.buffer_bytes or (network.node_rank < 0)[sends.source].any() or write.min() < 0:
        return False
    members, batches = Members.of(chunks, network), Batches.of(sends, len(chunks), network.nodes)
    timed = write.dtype.kind == "f"
    never = np.inf if timed else np.iinfo(np.int32).max
    if write.max() >= never:
        return False
    since = np.full(batches.cells, never, dtype=np.float64 if timed else np.int32)
    groups = chunks.held_by, chunks.needed_by, members.offset, members.nodes
    ends = sends.chunk, sends.source, sends.target
    return bool(_is_right(batches.columns, groups, ends, (read, write), since))


@kernel
def _is_right(batches: Any, groups: Any, ends: Any, times: Any, since: Any) -> bool:
    """Check batch by batch; ``since`` is each cell's arrival, -1 from the start, its maximum for never.

    ``groups`` are held_by, needed_by, offset and members of all groups, ``ends`` chunk, source and target of sends.
    ``cells``, as the other loops take them, are the strides of chunk and node and the number of the batch's first cell.
    """
    per_chunk, per_node, first_chunk, first_send, order = batches
    held_by, needed_by, offset, members = groups
    chunk, _, target = ends
    needed = needed_by, offset, members
    never, used = since[0], np.zeros(len(since), dtype=np.bool_)
    for batch in range(len(first_chunk) - 1):
        base, chunks = first_chunk[batch] * per_chunk, range(first_chunk[batch], first_chunk[batch + 1])
        places = range(first_send[batch], first_send[batch + 1])
        cells = per_chunk, per_node, base
        for c in chunks:
            for place in range(offset[held_by[c]], offset[held_by[c] + 1]):
                since[c * per_chunk + members[place] * per_node - base] = -1
        if not _apply_sends(cells, places, order, ends, times, since, never):
            return False
        brought = _count_deliveries(cells, chunks, needed, since, never)
        passed_on = brought < len(places)
        if brought < 0 or (passed_on and not _all_used(cells, chunks, places, order, needed, ends, used)):
            return False
        if batch + 2 == len(first_chunk):
            break
        for place in places:  # the table is made what it was
            send = order[place] if len(order) else place
            cell = chunk[send] * per_chunk + target[send] * per_node - base
            since[cell], used[cell] = never, False
        for c in chunks:
            for place in range(offset[held_by[c]], offset[held_by[c] + 1]):
                cell = c * per_chunk + members[place] * per_node - base
                since[cell], used[cell] = never, False
    return True


@kernel
def _count_deliveries(cells: Any, chunks: Any, needed: Any, since: Any, never: Any) -> int:
    """Return the number of needed cells that sends fill; -1 if one finally lacks its chunk."""
    per_chunk, per_node, base = cells
    needed_by, offset, members = needed
    count, first = 0, chunks.start
    while first < chunks.stop:
        last = first + 1
        while per_chunk < per_node and last < chunks.stop and needed_by[last] == needed_by[first]:
            last += 1  # chunks of a node lie side by side
        for place in range(offset[needed_by[first]], offset[needed_by[first] + 1]):
            for c in range(first, last):
                at = since[c * per_chunk + members[place] * per_node - base]
                if at == never:
                    return -1
                count += at >= 0
        first = last
    return count


@kernel
def _all_used(cells: Any, chunks: Any, places: Any, order: Any, needed: Any, ends: Any, used: Any) -> bool:
    per_chunk, per_node, base = cells
    needed_by, offset, members = needed
    chunk, source, target = ends
    for place in places:
        send = order[place] if len(order) else place
        used[chunk[send] * per_chunk + source[send] * per_node - base] = True
    for c in chunks:
        for place in range(offset[needed_by[c]], offset[needed_by[c] + 1]):
            used[c * per_chunk + members[place] * per_node - base] = True
    useless = 0
    for place in places:
        send = order[place] if len(order) else place
        useless += not used[chunk[send] * per_chunk + target[send] * per_node - base]
    return useless == 0


@kernel
def _apply_sends(cells: Any, places: Any, order: Any, ends: Any, times: Any, since: Any, never: Any) -> bool:
    per_chunk, per_node, base = cells
    chunk, source, target = ends
    read, write = times
    for place in places:
        send = order[place] if len(order) else place
        cell = chunk[send] * per_chunk + target[send] * per_node - base
        if since[cell] != never:
            return False
        since[cell] = write[send]
    for place in places:
        send = order[place] if len(order) else place
        cell = chunk[send] * per_chunk + source[send] * per_node - base
        if since[cell] >= read[send]:
            return False
    return True
