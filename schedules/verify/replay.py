"""Symbolic replay of a schedule: contributions held of each chunk, compared with the demand.

Steps and times become one integer order. A send reads its chunk at its source and writes to its target; it sees exactly
the writes of a smaller order than its read. Rules of copies and reductions: docs/schedules/verifier.md.
"""

from functools import partial

import numpy as np

from ...core.schedule import Bools, Floats, Ints
from .answers import KEPT, SendFindings, Violation
from .buffers import copied_by_switches, overfull_switches, stays
from .holdings import NOTHING, Block, Members, Sums, blocks
from .network import Network

TOLERANCE = 1e-9  #: Relative difference between two times that is taken for rounding.


def step_order(step: Ints) -> tuple[Ints, Ints]:
    """Order by steps: a send reads before its step and writes after it."""
    if len(step) and int(step.max()) > len(step):
        step = np.unique(step, return_inverse=True)[1]
    return 2 * step, 2 * step + 1


def seen_s(start_s: Floats, end_s: Floats) -> Floats:
    """Return the times before which sends see arrivals.

    An arrival later than the start by rounding counts too: by :data:`TOLERANCE` of the time, but never by half of
    the shortest send, so that every send reads before it writes and no cycle of sends can feed itself. Sends must
    take more than zero time.
    """
    limit = TOLERANCE * start_s
    np.minimum(limit, float((end_s - start_s).min(initial=np.inf)) / 2, out=limit)
    limit += start_s
    np.nextafter(limit, np.inf, out=limit)
    return np.minimum(limit, end_s, out=limit)  # half of the shortest send may be less than a float can tell


def time_order(start_s: Floats, end_s: Floats) -> tuple[Ints, Ints]:
    """Order by times: a send sees what has arrived by its start, see :func:`seen_s`."""
    times = np.concatenate([end_s, seen_s(start_s, end_s)])
    ranks = np.unique(times, return_inverse=True)[1].astype(np.int64)
    return ranks[len(end_s) :], ranks[: len(end_s)]


MAX_ORDER = 2**31  #: Orders beyond this are replaced by their ranks, so that they fit beside the cells of a block.


def replay(at: SendFindings, read: Ints, write: Ints, leave: Ints | None = None) -> None:
    """Check every send and the final content of every rank, block by block, by the orders of reads and writes.

    From the orders ``leave`` on, data sent out of a limited switch frees its room, and data that is not forwarded later
    takes none; by default room is freed after the read.
    """
    network, findings, chunks, sends = at.network, at.findings, at.schedule.chunks, at.schedule.sends
    members = Members.of(chunks, network)
    stay_rows: list[Ints] = []
    if len(write) and int(write.max()) > MAX_ORDER:
        orders = [read, write, *([] if leave is None else [leave])]
        _, ranked = np.unique(np.stack(orders), return_inverse=True)
        read, write, *after = ranked.astype(np.int64).reshape(len(orders), -1)
        leave = after[0] if after else None
    for block in blocks(chunks, sends, read, write, network):
        rows, nodes = members.pairs(chunks.needed_by[block.first_chunk : block.first_chunk + block.rows])
        cells = rows * block.nodes + nodes  # cells that must hold their chunk in the end
        final = block.version(cells, block.end)
        _check_reads(block, at)
        lacking = cells[(final == NOTHING) & ~block.reduced[cells // block.nodes]]
        findings.add_each("missing", lacking, partial(_lacks, block, network, "it"))
        if block.reduced.any():
            _check_sums(block, cells, final, at)
        for index in copied_by_switches(block, network)[: KEPT + 1].tolist():
            send = int(block.send[index])
            name = network.name(int(sends.source[send]))
            at.add("multicast", f"switch {name} sends a chunk on twice, but has no multicast", send)
        if network.buffer_bytes:
            stay_rows.append(stays(block, network, chunks, leave))
        _warn_useless(block, final, at)
    for switch, send in overfull_switches(stay_rows, network, chunks).items():
        limit = network.buffer_bytes[switch]
        at.add("buffer", f"switch {network.name(switch)} holds more than its {limit} bytes", send)


def _check_reads(block: Block, at: SendFindings) -> None:
    network, findings = at.network, at.findings

    def not_held(index: int) -> Violation:
        text = f"{network.name(int(block.source[index]) % block.nodes)} does not hold it yet"
        return at.at("not-held", text, int(block.send[index]))

    def cannot_add(index: int) -> Violation:
        name = network.name(int(block.cell[index]) % block.nodes)
        return at.at("buffer", f"switch {name} cannot store, and so cannot add", int(block.send[index]))

    missing = np.flatnonzero(block.payload == NOTHING)
    findings.add_each("not-held", missing[np.argsort(block.read[missing], kind="stable")], not_held)
    findings.add_each("buffer", (block.base_version != NOTHING) & ~network.adds[block.cell % block.nodes], cannot_add)
    summed = block.send[block.adds & ~block.sums]
    at.add_each("not-a-sum", summed, "is reduced, though the chunk is data to be copied")


def _lacks(block: Block, network: Network, what: str, cell: int) -> Violation:
    row, node = divmod(cell, block.nodes)
    text = f"{network.name(node)} needs {what} and does not get it"
    return Violation("missing", text, rank=network.rank(node), chunk=block.first_chunk + row)


def _check_sums(block: Block, targets: Ints, final: Ints, at: SendFindings) -> None:
    sums, findings = Sums.of(block), at.findings
    _check_instants(block, sums, at)
    of_sums = block.reduced[targets // block.nodes]
    cells, roots = targets[of_sums], sums.resolve(final[of_sums])
    rows = cells // block.nodes
    row_of = np.full(block.writes + len(block.initial) + 1, NOTHING, dtype=np.int64)  # a root belongs to one chunk
    row_of[roots] = rows
    distinct = np.flatnonzero(row_of[:-1] != NOTHING)
    holders = block.initial.reshape(block.rows, block.nodes).sum(axis=1)
    good = np.zeros(len(row_of), dtype=np.bool_)
    good[distinct] = sums.are_complete(distinct, holders[row_of[distinct]])
    good[NOTHING] = False
    bad = np.flatnonzero(~good[roots])
    for index in bad[:KEPT].tolist():
        row = int(rows[index])
        owners = np.flatnonzero(block.initial[row * block.nodes : (row + 1) * block.nodes]).tolist()
        violation = _wrong_sum(block, sums, int(cells[index]), int(roots[index]), owners, at.network)
        if violation is not None:
            findings.add(violation)
    if len(bad) > KEPT:
        findings.counts["missing"] += len(bad) - KEPT


def _wrong_sum(block: Block, sums: Sums, cell: int, root: int, owners: list[int], network: Network) -> Violation | None:
    """Report a contribution that is missing or counted twice; None if there is none."""
    row, node = divmod(cell, block.nodes)
    counts = sums.contributions(root)
    twice = [part for part, times in counts.items() if times > 1]
    if not twice:
        absent = [part for part in owners if part not in counts]
        if not absent:
            return None  # parts that were never held, which has been reported
        more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
        return _lacks(block, network, f"the contribution of {network.name(absent[0])}{more}", cell)
    text = f"{network.name(node)} ends with the contribution of {network.name(twice[0])} {counts[twice[0]]} times"
    return Violation("twice", text, rank=network.rank(node), chunk=block.first_chunk + row)


def _check_instants(block: Block, sums: Sums, at: SendFindings) -> None:
    """Check that no copy to a sum coincides with another write of different content."""
    index = np.arange(block.writes)
    same: Bools = np.zeros(block.writes, dtype=np.bool_)
    same[1:] = block.keys[1:] == block.keys[:-1]
    pair = index[same & block.sums]
    either = ~block.adds[pair] | ~block.adds[pair - 1]
    for second in pair[either].tolist():
        first = second - 1
        both = not block.adds[first] and not block.adds[second]
        if both and (
            sums.left[first] == sums.left[second]
            or sums.contributions(int(sums.left[first])) == sums.contributions(int(sums.left[second]))
        ):
            continue
        at.add("order", "overwrites a sum at the instant at which another send writes to it", int(block.send[second]))


def _warn_useless(block: Block, final: Ints, at: SendFindings) -> None:
    """Warn of sends of data present already, or neither needed nor forwarded, except to ranks with a buffer limit."""
    useful = np.zeros(block.writes, dtype=np.bool_)
    for versions in (block.payload, block.base_version, final):
        useful[versions[(versions >= 0) & (versions < block.writes)]] = True
    useless = block.send[~useful & ~at.network.has_limit[block.cell % block.nodes]]
    text = "brings what is there already, or what nobody needs"
    at.findings.warn_each("useless", useless, lambda send: at.at("useless", text, send))
