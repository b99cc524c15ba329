"""Fast check that copied data reaches all who need it: one compiled pass over a table of cells.

A cell is a chunk at a node; :func:`numbered_slots` makes such a table for the simulators of millions of sends.
It accepts only schedules without findings; for others :mod:`.replay` finds the violations, if there are any.
"""

from typing import Any

import numpy as np

from ...core.kernel import kernel, worth_compiling
from ...core.schedule import Floats, Ints, Sends, offsets
from .answers import SendFindings
from .holdings import Members


def is_copied_correctly(at: SendFindings, read: Ints | Floats, write: Ints | Floats) -> bool:
    """Return whether all sends read held data, all copies are used, and all needs are met.

    Also False if there are few sends, sums, or switches that forward chunks. Sends read their source and write to their
    target at non-negative times of one numeric type: one sees every write of a smaller number than its read.
    """
    network, chunks, sends = at.network, at.schedule.chunks, at.schedule.sends
    if not worth_compiling(len(sends)) or chunks.reduced.any() or sends.reduce.any():
        return False
    # A copy at a switch is of no use unless the switch sends it on, so that buffers of switches hold nothing here.
    if (network.node_rank < 0)[sends.source].any() or write.min() < 0:
        return False
    members = Members.of(chunks, network)
    layout, cells, order = divide_into_batches(sends, len(chunks), network.nodes)
    timed = write.dtype.kind == "f"
    never = np.inf if timed else np.iinfo(np.int32).max
    if write.max() >= never:
        return False
    since = np.full(cells, never, dtype=np.float64 if timed else np.int32)
    ends = sends.chunk[order], sends.source[order], sends.target[order]
    groups = chunks.held_by, chunks.needed_by, members.offset, members.nodes
    return bool(_is_right(layout, groups, ends, (read[order], write[order]), since))


@kernel
def _is_right(layout: Any, groups: Any, ends: Any, times: Any, since: Any) -> bool:
    """Check batch by batch; ``since`` is each cell's arrival, -1 from the start, its maximum for never.

    ``groups`` are held_by, needed_by, offset and members of all groups, ``ends`` chunk, source and target of sends.
    ``cells``, as the other loops take them, are the strides of chunk and node and the number of the batch's first cell.
    """
    per_chunk, per_node, first_chunk, first_send = layout
    held_by, needed_by, offset, members = groups
    chunk, _, target = ends
    receivers = needed_by, offset, members
    never, use = since[0], np.zeros(len(since), dtype=np.bool_)
    for batch in range(len(first_chunk) - 1):
        base, chunks = first_chunk[batch] * per_chunk, range(first_chunk[batch], first_chunk[batch + 1])
        sends, cells = range(first_send[batch], first_send[batch + 1]), (per_chunk, per_node, base)
        for c in chunks:
            for place in range(offset[held_by[c]], offset[held_by[c] + 1]):
                since[c * per_chunk + members[place] * per_node - base] = -1
        if not _apply_sends(cells, sends, ends, times, since, never):
            return False
        count = _count_deliveries(cells, chunks, receivers, since, never)
        passed_on = count < len(sends)
        if count < 0 or (passed_on and not _all_used(cells, chunks, sends, receivers, ends, use)):
            return False
        if batch + 2 == len(first_chunk):
            break
        for send in sends:  # the table is made what it was
            cell = chunk[send] * per_chunk + target[send] * per_node - base
            since[cell], use[cell] = never, False
        for c in chunks:
            for place in range(offset[held_by[c]], offset[held_by[c] + 1]):
                cell = c * per_chunk + members[place] * per_node - base
                since[cell], use[cell] = never, False
    return True


@kernel
def _count_deliveries(cells: Any, chunks: Any, receivers: Any, since: Any, never: Any) -> int:
    """Return the number of needed cells that sends fill; -1 if one finally lacks its chunk."""
    per_chunk, per_node, base = cells
    needed_by, offset, members = receivers
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
def _all_used(cells: Any, chunks: Any, sends: Any, receivers: Any, ends: Any, use: Any) -> bool:
    per_chunk, per_node, base = cells
    needed_by, offset, members = receivers
    chunk, source, target = ends
    for send in sends:
        use[chunk[send] * per_chunk + source[send] * per_node - base] = True
    for c in chunks:
        for place in range(offset[needed_by[c]], offset[needed_by[c] + 1]):
            use[c * per_chunk + members[place] * per_node - base] = True
    useless = 0
    for send in sends:
        useless += not use[chunk[send] * per_chunk + target[send] * per_node - base]
    return useless == 0


@kernel
def _apply_sends(cells: Any, sends: Any, ends: Any, times: Any, since: Any, never: Any) -> bool:
    per_chunk, per_node, base = cells
    chunk, source, target = ends
    read, write = times
    for send in sends:
        cell = chunk[send] * per_chunk + target[send] * per_node - base
        if since[cell] != never:
            return False
        since[cell] = write[send]
    early = 0
    for send in sends:
        early += since[chunk[send] * per_chunk + source[send] * per_node - base] >= read[send]
    return early == 0


_SAMPLE = 2**16  #: Sends that are looked at for the order of cells.
_CELLS = 4  #: Cells for every send up to which one table of all cells is smaller than what else is kept of the sends.


def strides(sends: Sends, chunks: int, nodes: int) -> tuple[int, int]:
    """Return strides of chunk and node in a cell's number: cells that sends visit in turn should be adjacent."""
    together = np.count_nonzero(np.diff(sends.target[:_SAMPLE]) == 0)
    return (1, chunks) if 2 * together > min(len(sends), _SAMPLE) else (nodes, 1)


Layout = tuple[int, int, Ints, Ints]  #: Strides of chunk and node in a batch; its first chunk and its first send.


def divide_into_batches(sends: Sends, chunks: int, nodes: int) -> tuple[Layout, int, Any]:
    """Divide chunks into batches that share a table of cells, several where one table would be too large.

    Return the layout (strides count chunks from 0 in their batch; the other two columns have an end as well), the
    number of cells of the largest batch, and the index of the sends batch by batch.
    """
    if chunks * nodes <= _CELLS * len(sends):
        whole = np.array([0, chunks]), np.array([0, len(sends)])
        return (*strides(sends, chunks, nodes), *whole), chunks * nodes, slice(None)
    in_order = (sends.chunk[1:] >= sends.chunk[:-1]).all()
    first_send = offsets(np.bincount(sends.chunk, minlength=chunks))
    order = slice(None) if in_order else np.argsort(sends.chunk, kind="stable")
    return (nodes, 1, np.arange(chunks + 1), first_send), nodes, order


def numbered_slots(sends: Sends, chunks: int, nodes: int) -> tuple[Any, Any, int]:
    """Assign numbers to the cells that sends write to.

    Return, for every send, the number of its chunk's cell at the source (-1 if nothing is written there) and at the
    target; and the count of numbered cells.
    """
    kind = np.int32 if len(sends) < 2**31 else np.int64
    layout, cells, order = divide_into_batches(sends, chunks, nodes)
    waits, feeds = np.empty(len(sends), dtype=kind), np.empty(len(sends), dtype=kind)
    ends, table = (sends.chunk[order], sends.source[order], sends.target[order]), np.full(cells, -1, dtype=kind)
    count = _number(layout, ends, table, waits, feeds)
    if not isinstance(order, slice):
        waits[order], feeds[order] = waits.copy(), feeds.copy()
    return waits, feeds, int(count)


@kernel
def _number(layout: Any, ends: Any, table: Any, waits: Any, feeds: Any) -> int:
    """Assign numbers to the written cells batch by batch; return their count."""
    per_chunk, per_node, first_chunk, first_send = layout
    chunk, source, target = ends
    count = 0
    for batch in range(len(first_chunk) - 1):
        base, sends = first_chunk[batch] * per_chunk, range(first_send[batch], first_send[batch + 1])
        for send in sends:
            cell = chunk[send] * per_chunk + target[send] * per_node - base
            if table[cell] < 0:
                table[cell] = count
                count += 1
            feeds[send] = table[cell]
        for send in sends:
            waits[send] = table[chunk[send] * per_chunk + source[send] * per_node - base]
        for send in sends:
            table[chunk[send] * per_chunk + target[send] * per_node - base] = -1
    return count
