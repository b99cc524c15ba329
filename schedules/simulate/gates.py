"""Gates: sends of one chunk from one node at one level wait for the same arrivals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...core.errors import InputError
from ...core.ragged import offsets, ranges
from ...core.schedule import Floats, Ints
from .transfers import Transfers


@dataclass(eq=False)
class Gates:
    """State of all gates during a simulation.

    Parameters
    ----------
    fed_by : array of int
        For each send, the gate that its arrival feeds, or -1.
    following : array of int
        For each gate, the next one of the same slot, which waits for it, or -1.
    missing : array of int
        For each gate, the number of outstanding arrivals and gates.
    opens_s : array of float
        For each gate, the time of its latest arrival.
    members, member_offset : array of int
        Sends that wait for each gate.
    """

    fed_by: Ints
    following: Ints
    missing: Ints
    opens_s: Floats
    members: Ints
    member_offset: Ints

    def at_start(self) -> Ints:
        """Return the sends that wait for nothing, in order."""
        return np.sort(self._open(np.flatnonzero(self.missing == 0))[0])

    def arrive(self, sends: Ints, times_s: Floats) -> tuple[Ints, Floats]:
        """Count arrivals; return the sends they release, with their times."""
        gates = self.fed_by[sends]
        feeding = gates >= 0
        gates = gates[feeding]
        np.maximum.at(self.opens_s, gates, times_s[feeding])
        np.subtract.at(self.missing, gates, 1)
        gates = np.unique(gates)
        return self._open(gates[self.missing[gates] == 0])

    def require_all_open(self) -> None:
        """Reject schedules with cyclic waiting of sends that take no time."""
        if (waiting := np.flatnonzero(self.missing)).size:
            send = int(self.members[self.member_offset[waiting[0]]])
            raise InputError("waits for itself through sends of zero duration", place=f"sends[{send}]")

    def _open(self, gates: Ints) -> tuple[Ints, Floats]:
        """Open gates, and all later ones that wait for nothing else; return their members."""
        opened = [gates]
        while len(gates):
            behind = self.following[gates]
            gates, behind = gates[behind >= 0], behind[behind >= 0]
            self.opens_s[behind] = np.maximum(self.opens_s[behind], self.opens_s[gates])
            self.missing[behind] -= 1
            gates = behind[self.missing[behind] == 0]
            opened.append(gates)
        gates = np.concatenate(opened)
        first = self.member_offset[gates]
        counts = self.member_offset[gates + 1] - first
        return self.members[ranges(first, counts)], np.repeat(self.opens_s[gates], counts)


def gates_of(transfers: Transfers) -> Gates:
    """Find the gates of all sends."""
    levels = int(max(transfers.leaves.max(initial=0), transfers.arrives.max(initial=0))) + 1
    keys, waits = np.unique(transfers.waits_at * levels + transfers.leaves, return_inverse=True)
    slot = keys // levels
    fed_by = np.searchsorted(keys, transfers.feeds * levels + transfers.arrives)
    inside = fed_by < len(keys)
    inside[inside] = slot[fed_by[inside]] == transfers.feeds[inside]
    fed_by = np.where(inside, fed_by, -1)
    chained = slot[1:] == slot[:-1]
    missing = np.bincount(fed_by[inside], minlength=len(keys))
    missing[1:] += chained
    following = np.full(len(keys), -1)
    following[:-1][chained] = np.flatnonzero(chained) + 1
    counts = np.bincount(waits, minlength=len(keys))
    offset = offsets(counts)
    return Gates(fed_by, following, missing, np.zeros(len(keys)), np.argsort(waits, kind="stable"), offset)
