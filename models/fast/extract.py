"""Schedule of pieces, stage by stage: to the rail, over it, and to the receiver (docs/methods/fast.md)."""

from collections import defaultdict, deque
from collections.abc import Iterator
from fractions import Fraction
from math import lcm

import numpy as np

from ...algorithms.schedules.problem import check_size
from ...core.schedule import Chunks, Ints, StepSchedule, sends_from_lists
from ...core.units import common_unit
from .problem import Exchange, Pieces, rail_matrices

#: Source, target, rail and stage of a part of a message, and its bytes; no rail where it stays in its server.
Part = tuple[int, int, int | None, int, Fraction]

Stage = tuple[tuple[int, ...], Fraction]  #: A permutation and its weight: row i goes to column ``to[i]``.


def parts_of(exchange: Exchange, pieces: Pieces) -> Iterator[Part]:
    """Divide the pieces of every rail among its stages."""
    place = exchange.servers.place
    queues: dict[tuple[int, int, int], deque[tuple[int, int, Fraction]]] = defaultdict(deque)
    for (s, t, g), size in pieces.items():
        queues[g, place[s][0], place[t][0]].append((s, t, size))
    for rail, matrix in enumerate(rail_matrices(exchange, pieces)):
        for stage, (to, weight) in enumerate(stages_of(matrix)):
            for i, j in enumerate(to):
                yield from ((*part[:2], rail, stage, part[2]) for part in _take_bytes(queues[rail, i, j], weight))


def _take_bytes(queue: deque[tuple[int, int, Fraction]], weight: Fraction) -> Iterator[tuple[int, int, Fraction]]:
    """Take ``weight`` bytes from the front of the queue, or all that are left."""
    while queue and weight:
        s, t, size = queue.popleft()
        part = min(size, weight)
        weight -= part
        if size > part:
            queue.appendleft((s, t, size - part))
        yield s, t, part


def schedule_of(exchange: Exchange, pieces: Pieces) -> tuple[StepSchedule, int]:
    """Return the schedule and its stages: k is balanced in step k, sent in the next, then handed on."""
    parts = list(parts_of(exchange, pieces))
    stages = 1 + max((stage for _, _, _, stage, _ in parts), default=-1)
    parts += [(s, t, None, stages, exchange.sizes[s, t]) for s, t in exchange.inside]
    check_size(3 * len(parts) * exchange.chunks)
    rows = [row for index, part in enumerate(parts) for row in _hops(exchange, index, part)]
    each = exchange.chunks
    nodes = exchange.servers.topology.rank_nodes
    expanded = [(index * each + piece, *row) for index, *row in rows for piece in range(each)]
    chunk, step, source, target = (list(column) for column in zip(*expanded, strict=True))
    sends = sends_from_lists(
        chunk,
        [nodes[rank] for rank in source],
        [nodes[rank] for rank in target],
        False,
        [exchange.servers.path(s, t) for s, t in zip(source, target, strict=True)],
    )
    steps = np.array(step, dtype=np.int64)
    return StepSchedule(exchange.instance.sha256, _chunks(exchange, parts), sends, steps), stages


def _hops(exchange: Exchange, index: int, part: Part) -> Iterator[tuple[int, int, int, int]]:
    s, t, rail, stage, _ = part
    if rail is None:
        yield index, stage, s, t
        return
    servers = exchange.servers
    first, second = (servers.members[servers.place[rank][0]][rail] for rank in (s, t))
    if first != s:
        yield index, stage, s, first
    yield index, stage + 1, first, second
    if second != t:
        yield index, stage + 2, second, t


def _chunks(exchange: Exchange, parts: list[Part]) -> Chunks:
    each, sizes = exchange.chunks, [size / exchange.chunks for *_, size in parts]
    unit = common_unit(sizes)
    count = len(parts) * each
    ranks = len(exchange.servers.place)
    return Chunks(
        np.repeat(np.array([int(size / unit) for size in sizes], dtype=np.int64), each),
        unit,
        tuple((rank,) for rank in range(ranks)),
        np.repeat(np.array([s for s, *_ in parts], dtype=np.int64), each),
        np.repeat(np.array([t for _, t, *_ in parts], dtype=np.int64), each),
        np.zeros(count, dtype=np.bool_),
    )


def stages_of(matrix: list[list[Fraction]]) -> list[Stage]:
    """Decompose a nonnegative square matrix into stages of total weight the largest row or column sum.

    They are at most ``N^2 - 2N + 2``.
    """
    scale = lcm(*(value.denominator for row in matrix for value in row))
    rest = pad_matrix(np.array([[int(value * scale) for value in row] for row in matrix], dtype=object))
    stages: list[Stage] = []
    rows = np.arange(len(matrix))
    while rest.any():
        to = widest_matching(rest)
        weight = rest[rows, to].min()
        rest[rows, to] -= weight
        stages.append((tuple(to.tolist()), Fraction(weight, scale)))
    return stages


def pad_matrix(matrix: np.ndarray) -> np.ndarray:
    """Increase entries of the matrix so that all rows and columns have the largest sum."""
    most = max(matrix.sum(axis=0).max(), matrix.sum(axis=1).max())
    rows, columns = most - matrix.sum(axis=1), most - matrix.sum(axis=0)
    full = matrix.copy()
    i = j = 0
    while i < len(full) and j < len(full):
        more = min(rows[i], columns[j])
        full[i, j] += more
        rows[i] -= more
        columns[j] -= more
        i, j = i + (rows[i] == 0), j + (columns[j] == 0 and rows[i] != 0)
    return full


def widest_matching(matrix: np.ndarray) -> Ints:
    """Return a perfect matching with the largest smallest entry; one exists if all sums are equal."""
    values = sorted(set(matrix[matrix > 0].tolist()))
    low, high = 0, len(values) - 1
    best = _matching(matrix >= values[0])
    while low < high:
        middle = (low + high + 1) // 2
        matching = _matching(matrix >= values[middle])
        if (matching >= 0).all():
            best, low = matching, middle
        else:
            high = middle - 1
    return best


def _matching(allowed: np.ndarray) -> Ints:
    """Return the columns of a maximum matching, -1 for unmatched rows."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    return np.asarray(
        maximum_bipartite_matching(csr_array(allowed.astype(np.int8)), perm_type="column"), dtype=np.int64
    )
