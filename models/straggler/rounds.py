"""Choice of the sends of an all-reduce after a late rank has arrived, round by round.

Senders and receivers of a round are assignments of least cost. The ranks with *young* chunks, which must double in
every round, have to be distinct; all others have to have the oldest chunks (docs/methods/straggler.md).
"""

from collections.abc import Iterator

import numpy as np

from ...algorithms.graphs.transport import assign_rows
from ...core.schedule import Bools, Floats, Ints

Send = tuple[int, int, int]  #: Chunk, source and target of a send, by positions in the group; the late rank is 0.

#: Cost of what is impossible, gains of sending and receiving a chunk, and more gain for receiving younger ones.
_NEVER, _SENT, _RECEIVED, _YOUNGER = 1e6, 10.0, 1000.0, 20.0

#: Costs of receiving a young chunk for ranks with another one, with the oldest one, or with chunks to exchange.
_SECOND_YOUNG, _OLDEST, _UNSETTLED = 500.0, 50.0, 5.0

#: Most that is added at random to costs of sending and receiving, so that several tries differ.
_NOISE_SENT, _NOISE_RECEIVED = 1e-3, 1e-1

_UNIT = 2**20  #: Costs are whole multiples of one over this.


def fewest_rounds(ranks: int, chunks: int) -> int:
    """Return the lower bound on rounds of whole chunks, ``C - 1 + ceil(log2 n)``."""
    return chunks - 1 + (ranks - 1).bit_length()


class ChunkSpread:
    """Ranks that have the full sum of each chunk, while rounds are chosen; none at first."""

    def __init__(self, ranks: int, chunks: int, seed: int) -> None:
        self.ranks = ranks  #: Number of ranks, the late one included.
        self.chunks = chunks  #: Chunks of each rank but the late one.
        count = (ranks - 1) * chunks
        self.complete: Bools = np.zeros((count, ranks), dtype=np.bool_)  #: True where a rank has the chunk's full sum.
        self.holders: Ints = np.zeros(count, dtype=np.int64)  #: Number of ranks with the full sum of each chunk.
        self.age: Ints = np.full(count, -1, dtype=np.int64)  #: Rounds since each chunk was exchanged; -1 before.
        self.random = np.random.default_rng(seed)
        self.rounds = 0  #: Number of rounds chosen so far.

    @property
    def is_done(self) -> bool:
        """True if every rank has every chunk."""
        return bool((self.holders == self.ranks).all())

    @property
    def doublings(self) -> int:
        """Rounds in which a chunk reaches all ranks if its holders double, ``ceil(log2 n)``."""
        return (self.ranks - 1).bit_length()

    @property
    def oldest_young(self) -> int:
        """Largest age at which all holders of a chunk must send it: the age of young chunks."""
        q = self.doublings
        return q - 1 if 4 * self.ranks >= 3 * 2**q else q - 2

    def next_round(self) -> list[Send]:
        """Choose and apply the sends of the next round."""
        lacks = (self.age < 0).reshape(self.ranks - 1, self.chunks).any(axis=1)
        waiting = np.concatenate([[False], lacks])  # ranks with chunks that the late rank has not exchanged
        active = np.flatnonzero((self.age >= 0) & (self.holders < self.ranks))
        senders, partner = self._senders(active, waiting)
        receivers = self._receivers(active, senders, waiting, partner)
        sends = [
            (chunk, source, target)
            for chunk in active.tolist()
            for source, target in zip(senders[chunk], receivers[chunk], strict=False)
        ]
        for chunk, _, target in sends:
            self.complete[chunk, target] = True
            self.holders[chunk] += 1
        self.age[self.age >= 0] += 1
        if partner:
            chunk = (partner - 1) * self.chunks
            chunk += int(np.flatnonzero(self.age[chunk : chunk + self.chunks] < 0)[0])
            self.complete[chunk, [0, partner]], self.holders[chunk], self.age[chunk] = True, 2, 1
            sends += [(chunk, 0, partner), (chunk, partner, 0)]
        self.rounds += 1
        return sends

    def _senders(self, active: Ints, waiting: Bools) -> tuple[dict[int, list[int]], int]:
        """Choose the senders of each chunk and the late rank's partner; 0 is none."""
        late_is_free = not waiting.any()
        has = self.holders[active] - self.complete[active, 0]
        # Once it is free, the late rank spreads the last chunk.
        helps = late_is_free & (self.age[active] == self.age.min(where=self.age >= 0, initial=self.rounds))
        room = np.minimum(self.ranks - 1, 2 * has + helps) - has
        cost = np.zeros((self.ranks, len(active) + 2))  # of each chunk, of an exchange, and of neither
        worth = _SENT + np.maximum(0, self.doublings - self.age[active])
        cost[:, :-2] = np.where(self.complete[active].T, -worth, _NEVER)
        if not late_is_free:
            cost[0, :-2] = _NEVER
            cost[:, -2] = np.where(waiting, -_NEVER / 10, _NEVER)
        partner, senders = 0, {chunk: list[int]() for chunk in active.tolist()}
        for rank, which in self._assign_ranks(cost, [*room.tolist(), 1], _NOISE_SENT):
            if which < len(active):
                senders[int(active[which])].append(rank)
            elif not late_is_free:
                partner = rank
        return senders, partner

    def _receivers(
        self, active: Ints, senders: dict[int, list[int]], waiting: Bools, partner: int
    ) -> dict[int, list[int]]:
        becomes = self.age[active] + 1
        young: Bools = np.logical_or.reduce(self.complete[active[becomes <= self.oldest_young]], axis=0)
        cost = np.zeros((self.ranks, len(active) + 1))  # of each chunk, and of none
        for column, chunk in enumerate(active.tolist()):
            cost[:, column] = self._receiving_costs(chunk, young, waiting)
        next_one = self._next_partner(active, young, waiting, partner)
        if next_one:
            cost[next_one, :-1][self.age[active] < self.oldest_young] = _NEVER
        cost[0, :-1] = _NEVER
        if partner:
            cost[partner, :-1] = _NEVER
        receivers = {chunk: list[int]() for chunk in active.tolist()}
        for rank, which in self._assign_ranks(
            cost, [len(senders[chunk]) for chunk in active.tolist()], _NOISE_RECEIVED
        ):
            receivers[int(active[which])].append(rank)
        return receivers

    def _receiving_costs(self, chunk: int, young: Bools, waiting: Bools) -> Floats:
        early = max(0, self.doublings - int(self.age[chunk]))
        cost = np.full(self.ranks, -_RECEIVED - _YOUNGER * early)
        if self.age[chunk] < self.oldest_young:
            cost += _SECOND_YOUNG * young + _UNSETTLED * early * waiting
            if self.rounds < self.doublings:  # those with the first chunk are to be free when it is the oldest
                cost += _OLDEST * self.complete[self.age.argmax()]
        else:
            cost += _OLDEST * young
        cost[self.complete[chunk]] = _NEVER
        return cost

    def _next_partner(self, active: Ints, young: Bools, waiting: Bools, partner: int) -> int:
        """Choose the late rank's next partner: without a young chunk, and able to receive an old one if possible."""
        candidates = waiting & ~young
        candidates[partner] &= self.chunks > 1
        if not candidates.any():
            return 0
        old = active[self.age[active] >= self.doublings - 1]
        lacks = ~self.complete[old].all(axis=0) if len(old) else np.zeros(self.ranks, dtype=np.bool_)
        return int((candidates * (1 + lacks + self.random.random(self.ranks) / 2)).argmax())

    def _assign_ranks(self, cost: Floats, room: list[int], noise: float) -> Iterator[tuple[int, int]]:
        """Yield each rank and its class, within the room of classes, at least cost; ranks without one are left out."""
        noisy = cost + noise * self.random.random(cost.shape)
        rest = max(0, self.ranks - sum(room))
        classes = assign_rows(np.rint(noisy * _UNIT).astype(np.int64), np.array([*room, rest], dtype=np.int64))
        return ((rank, which) for rank, which in enumerate(classes.tolist()) if cost[rank, which] < 0)
