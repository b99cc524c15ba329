"""Collectives, each declared once, and demands for them: operation, size, ranks, and the data that they move."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar, Literal

from .errors import InputError, one_of, show_value


@dataclass(frozen=True)
class Pieces:
    """Columns of the equally large pieces of data that a collective moves."""

    groups: tuple[tuple[int, ...], ...]
    #: ``held_by`` and ``needed_by``: per piece, indices in ``groups`` of its holders before, or contributors to its
    #: sum, and of its receivers.
    held_by: Any
    needed_by: Any

    @classmethod
    def of(cls, pairs: Iterable[tuple[Iterable[int], Iterable[int]]]) -> Pieces:
        """Collect pairs of holders and receivers."""
        index: dict[tuple[int, ...], int] = {}
        columns = [[index.setdefault(tuple(sorted(set(group))), len(index)) for group in pair] for pair in pairs]
        return cls(tuple(index), [holders for holders, _ in columns], [receivers for _, receivers in columns])


@dataclass(frozen=True, eq=False)
class Collective:
    """Collective operation; compared by identity."""

    name: str  #: Name on the command line, in files and in records.
    #: From the number of ranks to the pieces of data, as :class:`Pieces` or as pairs of the positions of a piece's
    #: holders before (or contributors to its sum) and of its receivers. A piece that nobody lacks is left out.
    pieces: Callable[[int], Pieces | Iterable[tuple[Iterable[int], Iterable[int]]]]
    summary: str  #: State of the ranks afterwards, in words.
    size: str  #: Buffer that the size refers to, in words.
    #: From the number of ranks to the number of pieces in the size; None is one.
    parts: Callable[[int], int] | None = None
    sums: bool = False  #: If contributions of several ranks to a piece are summed.
    rooted: bool = False  #: If the first rank has a role of its own.
    alike: bool = False  #: If all ranks, or all but the root, are interchangeable.
    #: From the number of ranks to the factor from algbw to busbw, as nccl-tests defines it (its doc/PERFORMANCE.md);
    #: None is 1.
    busbw: Callable[[int], Fraction] | None = None
    reverse: str | None = None  #: Name of the collective that sends the same pieces backwards.
    #: Rank, or ordered pair of ranks, whose entry in a list of sizes is the size of a piece; None is equal sizes. Only
    #: pieces with one holder and no sum can have sizes of their own (:meth:`messages`).
    sized_by: Literal["holder", "receiver", "pair"] | None = None

    ALL_GATHER: ClassVar[Collective]
    REDUCE_SCATTER: ClassVar[Collective]
    ALL_REDUCE: ClassVar[Collective]
    LATE_ALL_REDUCE: ClassVar[Collective]
    ALL_TO_ALL: ClassVar[Collective]
    BROADCAST: ClassVar[Collective]
    REDUCE: ClassVar[Collective]
    GATHER: ClassVar[Collective]
    SCATTER: ClassVar[Collective]
    POINT_TO_POINT: ClassVar[Collective]

    def __repr__(self) -> str:
        return f"Collective({self.name!r})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the short form in IPython and hypothesis, which follow class variables from one to another for ever."""
        printer.text(repr(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return collective_named, (self.name,)

    @cached_property
    def copies(self) -> bool:
        """True if several ranks need a piece."""
        pieces = self.pieces_of(2)
        return any(len(pieces.groups[group]) > 1 for group in pieces.needed_by)

    @property
    def passes(self) -> int:
        """Number of passes over the data: one to add or copy it, one for each where both are needed."""
        return 2 if self.sums and self.copies else 1

    def busbw_factor(self, ranks: int) -> Fraction:
        """Return the factor from algbw to busbw, as nccl-tests defines it (its doc/PERFORMANCE.md)."""
        return self.busbw(ranks) if self.busbw else Fraction(1)

    def pieces_of(self, ranks: int) -> Pieces:
        """Return the columns of the pieces for a number of ranks."""
        pieces = self.pieces(ranks)
        return pieces if isinstance(pieces, Pieces) else Pieces.of(pieces)

    def parts_of(self, ranks: int) -> int:
        """Return the number of pieces in the size."""
        return self.parts(ranks) if self.parts else 1

    def is_message(self, demand: Demand) -> bool:
        """Check if a demand can be a message of this collective, with a size of its own."""
        kind = Collective.POINT_TO_POINT if len(demand.ranks or ()) == 2 else Collective.BROADCAST
        may_broadcast = self.copies or kind is Collective.POINT_TO_POINT
        return self.sized_by is not None and demand.ranks is not None and demand.collective is kind and may_broadcast

    def messages(self, sizes: Sequence[Any], chunks: int, ranks: Sequence[int]) -> tuple[Demand, ...]:
        """Return a message or broadcast for every piece that is not empty.

        ``sizes`` are bytes per position in ``ranks``; row s of pairs has what position s sends to every position.
        """
        pieces, demands = self.pieces_of(len(ranks)), list[Demand]()
        for holder, receivers in zip(pieces.held_by, pieces.needed_by, strict=True):
            source, *others = pieces.groups[holder]
            if self.sums or others:
                raise InputError(f"{self.name} has pieces of several ranks, which cannot have sizes of their own")
            targets = [target for target in pieces.groups[receivers] if target != source]
            row = sizes[targets[0] if self.sized_by == "receiver" else source]
            size = row[targets[0]] if self.sized_by == "pair" else row
            kind = Collective.POINT_TO_POINT if len(pieces.groups[receivers]) == 1 else Collective.BROADCAST
            if size:
                group = tuple(ranks[position] for position in (source, *targets))
                demands.append(Demand(kind, size, chunks, group, part_of=self))
        return tuple(demands)


@dataclass(frozen=True)
class Demand:
    """One collective that an instance requires."""

    collective: Collective
    size_bytes: Fraction  #: Size of the buffer that the collective's ``size`` names.
    chunks: int = 1  #: Number of equal chunks that each rank's part is cut into.
    ranks: tuple[int, ...] | None = None  #: The process group; None is all ranks.
    #: Collective with sizes per rank or pair that this message belongs to; a name, which changes no problem.
    part_of: Collective | None = field(default=None, compare=False)

    def part_bytes(self, npus: int) -> Fraction:
        """Return the bytes of one piece of the collective's data on a network of ``npus`` ranks."""
        return self.size_bytes / self.collective.parts_of(npus if self.ranks is None else len(self.ranks))

    def group(self, npus: int) -> tuple[int, ...]:
        """Return the process group on a network of ``npus`` ranks, a root first."""
        return tuple(range(npus)) if self.ranks is None else self.ranks

    def is_of_all(self, npus: int) -> bool:
        """Check if the process group has all ranks."""
        return self.ranks is None or sorted(self.ranks) == list(range(npus))


_WORD = re.compile(r"[a-z][a-z0-9_]*")  #: A name that can be written on the command line and in files.

_registry: dict[str, Collective] = {}

#: Register what plugin files and installed packages declare, when a name is looked for that is not known yet.
LOADERS: list[Callable[[], object]] = []


def register_collective(collective: Collective) -> Collective:
    """Register a collective in this process under a new name of lowercase letters, digits and underscores."""
    if not _WORD.fullmatch(collective.name):
        text = f"{show_value(collective.name)} is no name of a collective; expected such as ring_shift"
        raise InputError(text)
    if _registry.setdefault(collective.name, collective) is not collective:
        raise InputError(f"{collective.name!r} is the name of another collective")
    return collective


def collectives() -> tuple[Collective, ...]:
    """Return all collectives, those of the package first."""
    for loader in LOADERS:
        loader()
    return tuple(_registry.values())


def collective_names() -> list[str]:
    """Return the names of all collectives, those of the package first."""
    return [collective.name for collective in collectives()]


def collective_named(name: str) -> Collective:
    """Return the collective with a name; raise InputError if there is none."""
    if not isinstance(name, str) or (name not in _registry and name not in collective_names()):
        raise InputError(f"{show_value(name)} is unknown{one_of(str(name), collective_names())}")
    return _registry[name]


def _each_and_all(n: int) -> tuple[tuple[int, ...], ...]:
    return (*((rank,) for rank in range(n)), tuple(range(n)))


def _pairs(n: int) -> Pieces:
    import numpy as np

    source, target = np.divmod(np.arange(n * n), n)
    return Pieces(_each_and_all(n), source[source != target], target[source != target])


def _message(n: int) -> Pieces:
    if n != 2:
        raise InputError("a point-to-point message has two ranks", place="collective.ranks")
    return Pieces(_each_and_all(n), [0], [1])


def _others_share(n: int) -> Fraction:
    return Fraction(n - 1, n)


_all_alike = partial(Collective, alike=True)

Collective.ALL_GATHER = _all_alike(
    "all_gather",
    lambda n: Pieces(_each_and_all(n), range(n), [n] * n),
    summary="every rank has the parts of all",
    size="output buffer of a rank",
    parts=lambda n: n,
    busbw=_others_share,
    reverse="reduce_scatter",
)
Collective.REDUCE_SCATTER = _all_alike(
    "reduce_scatter",
    lambda n: Pieces(_each_and_all(n), [n] * n, range(n)),
    summary="every rank has its part of the sum of all buffers",
    size="input buffer of a rank",
    parts=lambda n: n,
    sums=True,
    busbw=_others_share,
    reverse="all_gather",
)
Collective.ALL_REDUCE = _all_alike(
    "all_reduce",
    lambda n: Pieces(_each_and_all(n), [n], [n]),
    summary="every rank has the sum of all buffers",
    size="buffer of a rank",
    sums=True,
    busbw=lambda n: 2 * _others_share(n),
    reverse="all_reduce",
)
# What is left of an all_reduce once all ranks but the first have reduced and scattered their data: each of them has one
# part of their sum, and the first rank, which is late, has its own contribution to all parts.
Collective.LATE_ALL_REDUCE = _all_alike(
    "late_all_reduce",
    lambda n: Pieces((*((0, rank) for rank in range(1, n)), tuple(range(n))), range(n - 1), [n - 1] * (n - 1)),
    summary="every rank has the sum of all buffers, of which all but the first had one part of theirs",
    size="buffer of a rank",
    parts=lambda n: n - 1,
    sums=True,
    rooted=True,
)
Collective.ALL_TO_ALL = _all_alike(
    "all_to_all",
    _pairs,
    summary="every rank has the part that each other one had for it",
    size="input buffer of a rank",
    parts=lambda n: n,
    busbw=_others_share,
    reverse="all_to_all",
)
Collective.BROADCAST = _all_alike(
    "broadcast",
    lambda n: Pieces(_each_and_all(n), [0], [n]),
    summary="every rank has the buffer of the first",
    size="message",
    rooted=True,
    reverse="reduce",
)
Collective.REDUCE = _all_alike(
    "reduce",
    lambda n: Pieces(_each_and_all(n), [n], [0]),
    summary="the first rank has the sum of all buffers",
    size="message",
    sums=True,
    rooted=True,
    reverse="broadcast",
)
Collective.GATHER = _all_alike(
    "gather",
    lambda n: Pieces(_each_and_all(n), range(1, n), [0] * (n - 1)),
    summary="the first rank has the parts of all",
    size="output buffer of the root",
    parts=lambda n: n,
    rooted=True,
    reverse="scatter",
)
Collective.SCATTER = _all_alike(
    "scatter",
    lambda n: Pieces(_each_and_all(n), [0] * (n - 1), range(1, n)),
    summary="every rank has its part of the buffer of the first",
    size="input buffer of the root",
    parts=lambda n: n,
    rooted=True,
    reverse="gather",
)
Collective.POINT_TO_POINT = _all_alike(
    "point_to_point",
    _message,
    summary="the second of two ranks has the buffer of the first",
    size="message",
    rooted=True,
)
for _built_in in [value for value in vars(Collective).values() if isinstance(value, Collective)]:
    register_collective(_built_in)

# The same with a size per rank or pair. Nccl-tests has none of them, and so no factor to busbw.
_SIZED_BY: dict[str, Literal["holder", "receiver", "pair"]] = {
    "all_to_all": "pair",
    "all_gather": "holder",
    "gather": "holder",
    "scatter": "receiver",
}
for _name, _by in _SIZED_BY.items():
    _summary = f"{_registry[_name].summary}, with a size per {'pair' if _by == 'pair' else 'rank'}"
    _sized: dict[str, Any] = {"size": "all messages", "busbw": None, "reverse": None, "sized_by": _by}
    register_collective(replace(_registry[_name], name=f"{_name}_v", summary=_summary, **_sized))

BUILT_IN = tuple(_registry)  #: Names of the collectives of the package.

#: Holders at the start, receivers at the end, whether contributions are summed.
Condition = tuple[tuple[int, ...], tuple[int, ...], bool]


class RankGroup(tuple[int, ...]):
    """Ranks of a group, as a tuple whose hash is computed once, not again for the data of every rank."""

    _hash: int

    def __hash__(self) -> int:
        if "_hash" not in self.__dict__:
            self._hash = super().__hash__()
        return self._hash


@dataclass(frozen=True, eq=False)
class Conditions:
    """Pre- and postconditions of a demand: the kinds of data that it moves (dissertation, figure 2.1).

    All kinds have the same size, and none occurs twice.
    """

    groups: tuple[tuple[int, ...], ...]  #: Sets of ranks, each sorted.
    #: ``held_by`` and ``needed_by``: shape (kinds,): groups that hold the data at the start, and need it in the end.
    #: Data that nobody lacks is left out.
    held_by: Any
    needed_by: Any
    reduced: bool
    size: Fraction  #: Bytes of the data of each kind.

    @cached_property
    def bytes_of(self) -> Mapping[Condition, Fraction]:
        """Bytes of every kind of data."""
        pairs = zip(self.held_by.tolist(), self.needed_by.tolist(), strict=True)
        return {(self.groups[holders], self.groups[receivers], self.reduced): self.size for holders, receivers in pairs}


def conditions(demand: Demand, npus: int) -> Conditions:
    """Return the conditions of a demand among at least two ranks; the first is the root of a rooted one."""
    import numpy as np

    ranks = demand.group(npus)
    count = len(ranks)
    if count < 2:
        raise InputError("a collective needs at least two ranks", place="collective.ranks")
    pieces = demand.collective.pieces_of(count)
    groups = [tuple(sorted(ranks[position] for position in group)) for group in pieces.groups]
    sets = [RankGroup(group) if len(group) > 1 else group for group in groups]
    holders, receivers = np.asarray(pieces.held_by, dtype=np.int64), np.asarray(pieces.needed_by, dtype=np.int64)
    if list(ranks) != sorted(ranks):  # the order of pieces is that of ranks, not of positions
        order = sorted(range(len(sets)), key=lambda index: (len(sets[index]), sets[index]))
        place = np.argsort(order)
        holders, receivers, sets = place[holders], place[receivers], [sets[index] for index in order]
        by_rank = np.lexsort((receivers, holders))
        holders, receivers = holders[by_rank], receivers[by_rank]
    return Conditions(tuple(sets), holders, receivers, demand.collective.sums, demand.part_bytes(npus))
