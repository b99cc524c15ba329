"""Results of collectives: what each rank needs, symbolic data of a run, and whether it is what is needed.

A *grain* is one chunk of a file; a *contribution* is a pair (rank, grain of its input). A value is a number;
contributions and sums of two values are values. Two values are the same multiset of contributions if their
fingerprints agree: the sum, modulo a prime, of a number for each contribution that is drawn at random, so that
different multisets agree with probability 2^-61. Which contributions a value has is found only where something is
wrong.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from random import Random

import numpy as np

from ...core.collective import Collective, collective_named
from ...core.schedule import Ints
from .dialects import DIALECTS
from .findings import KEPT, Findings
from .program import Algorithm

#: Collective by its name in files, of any dialect.
KINDS: dict[str, Collective | None] = {
    name: collective_named(kind)
    for dialect in DIALECTS.values()
    for kind, name in dialect.collectives.items()
    if kind != "point_to_point"
} | dict.fromkeys(("custom", "alltoallv", "send", "recv"))

#: Collectives with a root, which a file does not name.
ROOTED = frozenset({Collective.BROADCAST, Collective.REDUCE, Collective.GATHER, Collective.SCATTER})
#: Where each buffer begins in a GPU's memory, when they are different memory.
INPUT, OUTPUT, SCRATCH = 0, 1 << 40, 1 << 41
UNDEFINED = "reads memory that nothing has been written to"


@dataclass(frozen=True)
class Meaning:
    """The buffers of a collective of so many ranks and grains."""

    kind: Collective | None  #: The collective; None where any movement of data is one.
    #: ``ranks`` and ``grains``: GPUs, and chunks that the data is cut into; of a gather and a scatter, one rank's part.
    ranks: int
    grains: int

    @property
    def part(self) -> int:
        """Grains of one rank's part."""
        if self.kind in (Collective.GATHER, Collective.SCATTER):
            return self.grains
        return self.grains // self.ranks

    @property
    def sizes(self) -> tuple[int, int]:
        """Grains of the input and of the output, of the ranks that have them."""
        match self.kind:
            case Collective.ALL_GATHER:
                return self.part, self.grains
            case Collective.REDUCE_SCATTER:
                return self.grains, self.part
            case Collective.GATHER:
                return self.part, self.part * self.ranks
            case Collective.SCATTER:
                return self.part * self.ranks, self.part
            case _:
                return self.grains, self.grains

    def bases(self, rank: int, *, inplace: bool) -> tuple[int, int, int]:
        """Addresses at which a rank's input, output and scratch begin."""
        if not inplace:
            return INPUT, OUTPUT, SCRATCH
        shift = rank * self.part
        if self.kind in (Collective.ALL_GATHER, Collective.GATHER):
            return shift, INPUT, SCRATCH
        if self.kind in (Collective.REDUCE_SCATTER, Collective.SCATTER):
            return INPUT, shift, SCRATCH
        return INPUT, INPUT, SCRATCH

    def required_grains(self, rank: int, root: int) -> tuple[int, tuple[Ints, Ints] | None]:
        """Return how many grains of the output a rank needs: so many, from the first.

        And the contributions that they are copies of, as ranks and grains; None where each is the sum of all ranks'
        grains of the same place, which :meth:`place` gives.
        """
        kind, part = self.kind, self.part
        if kind is None or (kind in (Collective.REDUCE, Collective.GATHER) and rank != root):
            return 0, None
        if kind in (Collective.ALL_REDUCE, Collective.REDUCE, Collective.REDUCE_SCATTER):
            return self.sizes[1], None
        if kind in (Collective.BROADCAST, Collective.SCATTER):
            grains = np.arange(self.sizes[1]) + (rank * part if kind is Collective.SCATTER else 0)
            return len(grains), (np.full(len(grains), root), grains)
        grains = np.tile(np.arange(part) + (rank * part if kind is Collective.ALL_TO_ALL else 0), self.ranks)
        return len(grains), (np.repeat(np.arange(self.ranks), part), grains)

    def place(self, rank: int, grain: int) -> int:
        """Grain of every rank's input that a grain of the output is the sum of."""
        return rank * self.part + grain if self.kind is Collective.REDUCE_SCATTER else grain


def meaning_of(algorithm: Algorithm) -> Meaning:
    """Return the specification of an algorithm's collective; an unknown one is any movement of data."""
    return Meaning(KINDS.get(algorithm.coll), algorithm.ngpus, algorithm.nchunksperloop)


_PRIME = 2**127 - 1
_MOST = 2**16  #: Contributions of a value that are counted for a message.


class Values:
    """All values of a run."""

    def __init__(self) -> None:
        self.fingerprint: list[int] = []
        self.left: list[int] = []
        self.right: list[int] = []
        self._number: dict[tuple[int, int], int] = {}
        self._random = Random(1).getrandbits  # noqa: S311 (nobody has to be kept from guessing)

    def extend(self, left: Iterable[int], right: Iterable[int]) -> None:
        """Add values: contributions, which have -1 less their rank at the left, and sums."""
        for first, second in zip(left, right, strict=True):
            if first < 0:
                self.contribution(~first, second)
            else:
                self.sum(first, second)

    def contribution(self, rank: int, grain: int) -> int:
        """Return the initial value of a rank's input grain."""
        value = self._number.setdefault((rank, grain), len(self.fingerprint))
        if value == len(self.fingerprint):
            self.fingerprint.append(self._random(126))
            self.left.append(~rank)
            self.right.append(grain)
        return value

    def sum(self, first: int, second: int) -> int:
        """Return the sum of two values."""
        self.fingerprint.append((self.fingerprint[first] + self.fingerprint[second]) % _PRIME)
        self.left.append(first)
        self.right.append(second)
        return len(self.fingerprint) - 1

    def of_all(self, ranks: int, grain: int) -> int:
        """Fingerprint of the sum of all ranks' grains of this place."""
        return sum(self.fingerprint[self.contribution(rank, grain)] for rank in range(ranks)) % _PRIME

    def contributions(self, value: int) -> Counter[tuple[int, int]]:
        """Count the contributions of a value; of a very large value only some."""
        count: Counter[tuple[int, int]] = Counter()
        rest = [value]
        while rest and count.total() < _MOST:
            some = rest.pop()
            if self.left[some] < 0:
                count[~self.left[some], self.right[some]] += 1
            else:
                rest += [self.left[some], self.right[some]]
        return count

    def any_contribution(self, value: int) -> tuple[int, int]:
        """Return one of the contributions of a value."""
        while self.left[value] >= 0:
            value = self.left[value]
        return ~self.left[value], self.right[value]

    def origin(self, value: int) -> tuple[int, int] | None:
        """Return the contribution that a value is a copy of; None for a sum."""
        return (~self.left[value], self.right[value]) if self.left[value] < 0 else None


class Run:
    """A program of any format while it runs, and after its end."""

    def __init__(self, meaning: Meaning, *, inplace: bool) -> None:
        self.meaning, self.inplace, self.ngpus = meaning, inplace, meaning.ranks
        #: Contributions of earlier calls have ranks of their own, beyond those of the GPUs.
        self.values, self.findings, self.ended = Values(), Findings(), True
        ranks = range(meaning.ranks)
        #: Of every GPU the value at every address that has been used, and first address and size of each buffer.
        self.memory: list[dict[int, int]] = [{} for _ in ranks]
        self.bases = [dict(zip("ios", meaning.bases(rank, inplace=inplace), strict=True)) for rank in ranks]
        self.sizes = [dict(zip("ios", (*meaning.sizes, 0), strict=True)) for _ in ranks]

    def first_read(self, gpu: int, address: int, rank: int, place: Callable[[], str]) -> int:
        """Return the value of memory that nothing has been written to: an input, as a contribution of a rank."""
        grain = address - self.bases[gpu]["i"]
        if not 0 <= grain < self.sizes[gpu]["i"]:
            self.findings.add("undefined", UNDEFINED, place())
            grain = -1
        value = self.memory[gpu][address] = self.values.contribution(rank, grain)
        return value


def check_outcome(run: Run) -> int | None:
    """Compare every rank's output at the end with what it needs; add what is wrong to the findings, rule ``result``.

    Return the root, of a collective that has one. A file does not name it: it is the rank for which most is right.
    """
    if not run.ended:
        return None
    root = _root(run) if run.meaning.kind in ROOTED else 0
    sums = cache(partial(run.values.of_all, run.ngpus))
    left, right = (np.array([*column, -1], dtype=np.int64) for column in (run.values.left, run.values.right))
    for rank in range(run.ngpus):
        _check_rank(run, rank, root, sums, (np.where(left < 0, ~left, -1), right))
    return root if run.meaning.kind in ROOTED else None


def _check_rank(run: Run, rank: int, root: int, sums: Callable[[int], int], origins: tuple[Ints, Ints]) -> None:
    values, base, get = run.values, run.bases[rank], run.memory[rank].get
    count, copies = run.meaning.required_grains(rank, root)
    output = [get(address, -1) for address in range(base["o"], base["o"] + count)]

    def value_of(grain: int) -> int:
        if output[grain] < 0 and run.inplace:  # the input, which is the same memory
            return values.contribution(rank, base["o"] + grain - base["i"])
        return output[grain]

    def is_wrong(grain: int) -> bool:
        return (value := value_of(grain)) < 0 or values.fingerprint[value] != sums(run.meaning.place(rank, grain))

    wrong: Iterable[int] = filter(is_wrong, range(count))
    if copies is not None:
        ranks, grains = (column[output] for column in origins)
        if run.inplace:
            missing = np.flatnonzero(np.array(output, dtype=np.int64) < 0)
            ranks[missing], grains[missing] = rank, missing + base["o"] - base["i"]
        wrong = np.flatnonzero((ranks != copies[0]) | (grains != copies[1])).tolist()
    for grain in islice(wrong, KEPT + 1):
        value = value_of(grain)
        if value < 0:
            text = f"output chunk {grain} is never written"
        elif copies is None:
            place = run.meaning.place(rank, grain)
            text = f"output chunk {grain} is not the sum of all chunks {place}: {_sum_error_text(run, value, place)}"
        else:
            origin = values.origin(value)
            what = "a sum" if origin is None else _contribution_text(run, *origin)
            text = f"output chunk {grain} is not chunk {copies[1][grain]} of gpu {copies[0][grain]}, but {what}"
        run.findings.add("result", text, f"gpu {rank}")


def _contribution_text(run: Run, gpu: int, grain: int) -> str:
    earlier = " of an earlier call" if gpu >= run.ngpus else ""
    return "undefined memory" if grain < 0 else f"chunk {grain} of gpu {gpu % run.ngpus}{earlier}"


def _sum_error_text(run: Run, value: int, place: int) -> str:
    count = run.values.contributions(value)
    for (gpu, grain), times in count.items():
        if grain != place or gpu >= run.ngpus:
            return f"it has {_contribution_text(run, gpu, grain)}"
        if times > 1:
            return f"it has that of gpu {gpu} {times} times"
    missing = [gpu for gpu in range(run.ngpus) if (gpu, place) not in count]
    return f"it lacks that of gpu {missing[0]}" if missing else "it has something else"


def _root(run: Run) -> int:
    ranks = range(run.ngpus)
    if run.meaning.kind in (Collective.BROADCAST, Collective.SCATTER):
        first = [run.memory[rank].get(run.bases[rank]["o"]) for rank in ranks]
        origins = Counter(origin[0] for value in first if value is not None and (origin := run.values.origin(value)))
        return origins.most_common(1)[0][0] if origins else 0
    right = {rank: _count_correct(run, rank) for rank in ranks}
    return max(right, key=lambda rank: right[rank])


def _count_correct(run: Run, rank: int) -> int:
    """Count the correct grains at a rank, of the first few that a root needs."""
    correct, values = 0, run.values
    count, copies = run.meaning.required_grains(rank, rank)
    for grain in range(min(count, 64)):
        value = run.memory[rank].get(run.bases[rank]["o"] + grain)
        if value is None:
            continue
        if copies is None:
            correct += values.fingerprint[value] == values.of_all(run.ngpus, run.meaning.place(rank, grain))
        else:
            correct += values.origin(value) == (copies[0][grain], copies[1][grain])
    return correct
