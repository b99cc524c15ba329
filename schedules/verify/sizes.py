"""Exact check that the chunks are the data of the demand."""

from collections import defaultdict
from fractions import Fraction

import numpy as np

from ...core.collective import Collective, Condition, Conditions, conditions
from ...core.errors import InputError
from ...core.instance import Instance
from ...core.schedule import Chunks, Ints
from .answers import Findings, Violation


def demanded_bytes(instance: Instance) -> dict[Condition, Fraction]:
    """Return the bytes of every kind of data that an instance demands."""
    if instance.demand is None:
        raise InputError("expected a collective to schedule", place="collective")
    first, *others = (conditions(demand, instance.npus).bytes_of for demand in instance.demands)
    total = dict(first)
    for demand in others:
        for condition, size in demand.items():
            total[condition] = total.get(condition, 0) + size
    return total


def demanded_chunk(instance: Instance) -> Fraction:
    """Return the size of one chunk: a rank's data for one receiver or for all, over the chunks."""
    sizes: set[Fraction] = set()
    for demand in instance.demands:
        pieces = conditions(demand, instance.npus)
        shared = demand.collective is Collective.ALL_REDUCE
        sizes.add(pieces.size / demand.chunks / (len(pieces.groups[pieces.held_by[0]]) if shared else 1))
    if len(sizes) != 1 or 0 in sizes:
        raise InputError("expected chunks of one size", place="collective.chunks")
    return sizes.pop()


def offered_bytes(chunks: Chunks) -> dict[Condition, Fraction]:
    """Return the bytes of every kind of data in the chunks."""
    groups = len(chunks.groups)
    code = (chunks.held_by * groups + chunks.needed_by) * 2 + chunks.reduced
    kinds, where = np.unique(code, return_inverse=True)
    sums = exact_sums(where, chunks.units, len(kinds))
    bytes_of = {units: units * chunks.unit_bytes for units in set(sums)}
    total: dict[Condition, Fraction] = {}
    for code_, units in zip(kinds.tolist(), sums, strict=True):
        pair, reduced = divmod(code_, 2)
        holders, receivers = divmod(pair, groups)
        condition = chunks.groups[holders], chunks.groups[receivers], bool(reduced)
        total[condition] = total[condition] + bytes_of[units] if condition in total else bytes_of[units]
    return total


def exact_sums(where: np.ndarray, values: np.ndarray, count: int) -> list[int]:
    """Sum integers per place, exactly even beyond 64 bits."""
    if not len(values) or max(abs(int(values.min())), abs(int(values.max()))) * len(values) < 2**62:
        return [*_sums(where, values, count).tolist()]
    # Halves of 32 bits, the upper one signed: sums of fewer than 2^31 of either fit into 64 bits.
    high, low = (_sums(where, half, count).tolist() for half in (values >> 32, values & 0xFFFFFFFF))
    return [(a << 32) + b for a, b in zip(high, low, strict=True)]


def _sums(where: np.ndarray, values: np.ndarray, count: int) -> Ints:
    sums = np.zeros(count, dtype=np.int64)
    np.add.at(sums, where, values)
    return sums


def check_sizes(instance: Instance, chunks: Chunks, findings: Findings) -> None:
    """Compare the chunks' sizes with the demand's.

    Copied data that a holder is also said to need equals data that only the others need; data that nobody lacks
    does not count.
    """
    if len(instance.demands) == 1 and chunks_match(conditions(instance.demands[0], instance.npus), chunks):
        return
    demand, offer = demanded_bytes(instance), offered_bytes(chunks)
    for condition in [c for c, size in demand.items() if offer.get(c) == size]:
        del demand[condition], offer[condition]
    for condition, difference in _differences(demand, offer).items():
        own, to, reduced = condition
        text = f"the {'sum' if reduced else 'data'} of {_ranks(own)} for {_ranks(to)} is off by {difference} bytes"
        findings.add(Violation("size", text, rank=own[0]))


def chunks_match(pieces: Conditions, chunks: Chunks) -> bool:
    """Return whether chunks are exactly the kinds of data asked for; by columns, since kinds may be millions."""
    place = {group: index for index, group in enumerate(chunks.groups)}
    if len(place) < len(chunks.groups) or not len(chunks):
        return False
    numbers = np.array([place.get(group, -1) for group in pieces.groups], dtype=np.int64)
    holders, receivers = numbers[pieces.held_by], numbers[pieces.needed_by]
    units = pieces.size / chunks.unit_bytes
    if holders.min() < 0 or receivers.min() < 0 or units.denominator > 1 or (chunks.reduced != pieces.reduced).any():
        return False
    if int(chunks.units.max()) * len(chunks) >= 2**62:
        return False
    kinds, where = np.unique(chunks.held_by * len(place) + chunks.needed_by, return_inverse=True)
    if not np.array_equal(kinds, np.sort(holders * len(place) + receivers)):
        return False
    return bool((_sums(where, chunks.units, len(kinds)) == units.numerator).all())


def _differences(demand: dict[Condition, Fraction], offer: dict[Condition, Fraction]) -> dict[Condition, Fraction]:
    total: dict[Condition, Fraction] = defaultdict(Fraction)
    for sign, table in ((1, offer), (-1, demand)):
        for (holders, receivers, reduced), size in table.items():
            lacking = tuple(sorted(receivers if reduced else set(receivers) - set(holders)))
            if lacking:
                total[holders, lacking, reduced] += sign * size
    return {condition: difference for condition, difference in total.items() if difference}


def _ranks(ranks: tuple[int, ...]) -> str:
    text = ", ".join(map(str, ranks[:3])) + (", …" if len(ranks) > 3 else "")
    return f"rank {text}" if len(ranks) == 1 else f"ranks {text}"
