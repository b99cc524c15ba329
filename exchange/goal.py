"""Schedules as GOAL text, which LogGOPSim and packet-level simulators (ATLAHS with htsim or ns-3) run.

Every rank has operations with labels: ``send 1024b to 3 tag 0``, ``recv 1024b from 3 tag 0`` and ``calc 100`` (ns), and lines
``l3 requires l1``. An operation begins when all that it requires has ended; there are no times of its own, so that what
the simulated network does decides when things happen.

* What goes over switches is one message from rank to rank; what other ranks pass on is one for each of them.
* A send requires what its rank has received of the chunk before, in the order of the schedule. Where that are several
  contributions of a sum, a ``calc`` of no time joins them, so that the text grows with the schedule and not faster.
* Every message from one rank to another has a tag of its own.
* Sizes are whole bytes, rounded up.
* Adding takes no time unless a rate is given.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil

from .msccl.flow import Flow, Transfer


@dataclass
class _Rank:
    """Operations of a rank, and what it has received of each chunk: orders, labels, and joins by their number."""

    lines: list[str] = field(default_factory=list)
    count: int = 0
    orders: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    labels: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    joins: dict[int, list[tuple[int, str]]] = field(default_factory=lambda: defaultdict(list))

    def add(self, operation: str, *required: str) -> str:
        """Add an operation and what it requires; return its label."""
        self.count += 1
        label = f"l{self.count}"
        self.lines.append(f"{label}: {operation}")
        self.lines += [f"{label} requires {other}" for other in required]
        return label

    def received(self, chunk: int, before: int) -> tuple[str, ...]:
        """What joins all that was received of a chunk before a time, if anything was."""
        number = bisect_left(self.orders[chunk], before)
        joins, labels = self.joins[chunk], self.labels[chunk]
        done, label = joins[-1] if joins else (0, "")
        if number == done:
            return (label,) if number else ()
        fresh = labels[done:number]
        required = [label, *fresh] if done else fresh
        label = required[0] if len(required) == 1 else self.add("calc 0", *required)
        joins.append((number, label))
        return (label,)


def goal_text(flow: Flow, reduce_Bps: Fraction | None = None) -> str:
    """Write a schedule as GOAL text.

    Parameters
    ----------
    flow : Flow
        What ranks send one another.
    reduce_Bps : Fraction or None
        How fast a rank adds, in bytes per second; no time by default.
    """
    ranks = [_Rank() for _ in range(flow.ranks)]
    tags: dict[tuple[int, int], int] = defaultdict(int)
    sizes = [max(1, ceil(piece.grains * flow.grain_bytes)) for piece in flow.chunks]
    events: list[tuple[int, int, Transfer]] = [(t.read, 0, t) for t in flow.transfers]
    events += [(t.write, 1, t) for t in flow.transfers]
    sent: dict[Transfer, list[int]] = defaultdict(list)
    for order, arrives, transfer in sorted(events, key=lambda event: event[:2]):
        size, way = sizes[transfer.chunk], transfer.way
        if not arrives:
            tag = _tag(tags, way[0], way[1])
            first = ranks[way[0]]
            first.add(f"send {size}b to {way[1]} tag {tag}", *first.received(transfer.chunk, transfer.read))
            sent[transfer].append(tag)
            continue
        tag = sent[transfer].pop(0)
        for source, here, there in zip(way, way[1:], way[2:], strict=False):
            passed = ranks[here].add(f"recv {size}b from {source} tag {tag}")
            tag = _tag(tags, here, there)
            ranks[here].add(f"send {size}b to {there} tag {tag}", passed)
        last = ranks[way[-1]]
        label = last.add(f"recv {size}b from {way[-2]} tag {tag}")
        if transfer.reduce and reduce_Bps is not None:
            label = last.add(f"calc {ceil(size * 10**9 / reduce_Bps)}", label)
        last.orders[transfer.chunk].append(order)
        last.labels[transfer.chunk].append(label)
    parts = [f"num_ranks {flow.ranks}\n"]
    for number, rank in enumerate(ranks):
        parts.append("\n".join([f"\nrank {number} {{", *rank.lines, "}\n"]))
    return "".join(parts)


def _tag(tags: dict[tuple[int, int], int], source: int, target: int) -> int:
    """A tag that no other message between two ranks has."""
    tags[source, target] += 1
    return tags[source, target] - 1
