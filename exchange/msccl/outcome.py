"""Comparison of a run's final data with the collective's result."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from ...core.collective import Collective
from .findings import KEPT, Findings
from .meaning import ROOTED, Meaning
from .values import Values


class Run(Protocol):
    """Final state of a run in any format."""

    @property
    def ngpus(self) -> int:
        """Number of GPUs."""
        ...

    @property
    def inplace(self) -> bool:
        """True if input and output are the same memory."""
        ...

    @property
    def meaning(self) -> Meaning:
        """Specification of its collective."""
        ...

    @property
    def values(self) -> Values:
        """The data; contributions of ranks beyond those of the GPUs are of earlier calls."""
        ...

    @property
    def memory(self) -> list[dict[int, int]]:
        """Value at every address of every GPU that has been used."""
        ...

    @property
    def bases(self) -> list[dict[str, int]]:
        """Address at which each buffer of every GPU begins."""
        ...

    @property
    def findings(self) -> Findings:
        """Findings to which faults are added."""
        ...


def check_outcome(run: Run) -> int | None:
    """Compare every rank's output with what it needs; what is wrong is added to the findings, rule ``result``.

    Returns
    -------
    int or None
        The root, of a collective that has one. A file does not name it: it is the rank for which most is right.
    """
    root = _root(run) if run.meaning.kind in ROOTED else 0
    sums = [-1] * max(run.meaning.sizes[0], 1)
    for rank in range(run.ngpus):
        _check_rank(run, rank, root, sums)
    return root if run.meaning.kind in ROOTED else None


def _check_rank(run: Run, rank: int, root: int, sums: list[int]) -> None:
    values, memory, base = run.values, run.memory[rank], run.bases[rank]["o"]
    before = run.findings.counts["result"]
    for grain, origin in run.meaning.required_grains(rank, root):
        if run.findings.counts["result"] > before + KEPT:
            return
        found = memory.get(base + grain)
        if found is None and not run.inplace:
            run.findings.add("result", f"output chunk {grain} is never written", f"gpu {rank}")
            continue
        if found is None:  # the input, which is the same memory
            found = values.contribution(rank, base + grain - run.bases[rank]["i"])
        if origin is not None:
            if values.origin(found) != origin:
                text = (
                    f"output chunk {grain} is not chunk {origin[1]} of gpu {origin[0]}, but {_value_text(run, found)}"
                )
                run.findings.add("result", text, f"gpu {rank}")
            continue
        place = run.meaning.place(rank, grain)
        if sums[place] < 0:
            sums[place] = values.of_all(run.ngpus, place)
        if values.fingerprint[found] != sums[place]:
            text = f"output chunk {grain} is not the sum of all chunks {place}: {_sum_error_text(run, found, place)}"
            run.findings.add("result", text, f"gpu {rank}")


def _value_text(run: Run, value: int) -> str:
    """Describe a value in words."""
    origin = run.values.origin(value)
    if origin is None:
        return "a sum"
    return "undefined" if origin[1] < 0 else _contribution_text(run, *origin)


def _contribution_text(run: Run, gpu: int, grain: int) -> str:
    """Describe a contribution in words."""
    return f"chunk {grain} of gpu {gpu % run.ngpus}" + (" of an earlier call" if gpu >= run.ngpus else "")


def _sum_error_text(run: Run, value: int, place: int) -> str:
    """Describe missing, repeated or foreign contributions of a sum."""
    found = run.values.contributions(value)
    for (gpu, grain), times in found.items():
        if grain != place or gpu >= run.ngpus:
            return f"it has {'undefined memory' if grain < 0 else _contribution_text(run, gpu, grain)}"
        if times > 1:
            return f"it has that of gpu {gpu} {times} times"
    missing = [gpu for gpu in range(run.ngpus) if (gpu, place) not in found]
    return f"it lacks that of gpu {missing[0]}" if missing else "it has something else"


def _root(run: Run) -> int:
    """Return the root, as far as the data shows."""
    ranks = range(run.ngpus)
    if run.meaning.kind in (Collective.BROADCAST, Collective.SCATTER):
        first = [run.memory[rank].get(run.bases[rank]["o"]) for rank in ranks]
        origins = Counter(origin[0] for value in first if value is not None and (origin := run.values.origin(value)))
        return origins.most_common(1)[0][0] if origins else 0
    right = {rank: _count_correct(run, rank) for rank in ranks}
    return max(right, key=lambda rank: right[rank])


def _count_correct(run: Run, rank: int) -> int:
    """Count the correct grains at a rank, of the first few that a root needs."""
    count = 0
    for (grain, origin), _ in zip(run.meaning.required_grains(rank, rank), range(64), strict=False):
        found = run.memory[rank].get(run.bases[rank]["o"] + grain)
        if found is None:
            continue
        if origin is None:
            place = run.meaning.place(rank, grain)
            count += run.values.fingerprint[found] == run.values.of_all(run.ngpus, place)
        else:
            count += run.values.origin(found) == origin
    return count
