"""Runs as the reports of collectives see them.

What was asked, by which method, by which clock, and what is said of it all together.

A record of a failed run tells less than one with an answer; what it does not say, another run of the same instance
does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from typing import Any

from ..core.record import RunRecord
from .clocks import all_asked
from .marks import mark_of
from .numbers import number
from .records import latest

#: Options that state the problem, for methods where options do: pairs of a prefix of the model's name and the options.
_STATING: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("themis", ("bandwidth", "latency", "chunks")),
    ("blueconnect", ("bandwidth", "latency", "chunks")),
    ("teccl", ("chunks", "chunk_size", "bandwidth", "relays", "buffer", "switches")),
    ("mtree-repair", ("previous", "changes")),
)

#: LIBRA's options all state the problem but these.
_LIBRA, _LIBRA_WAYS = "libra", ("gap", "algorithm")

#: Phases that are not the method's: those of the verifier, compilation that happens once, and the sum of everything.
_NOT_OWN = ("verify", "simulate", "write", "total", "compile")

#: Bytes and seconds beyond this are no measurement.
_LARGEST = 1e18

OWN_SECONDS = "Own time is that of the phases that the method names, without the verifier's and without compilation that happens once."


@dataclass(frozen=True)
class LedgerRun:
    """A record with what the others of a ledger tell of it.

    Parameters
    ----------
    record : RunRecord
        The record.
    clock, measured : str or None
        How the objective counts time, one of :data:`~cwb.reports.clocks.CLOCKS`, and everything that the verifier says
        of what it measures.
    size_bytes : float or None
        Size of the collective.
    ranks : int or None
        Ranks that take part.
    instance : str
        Name of the instance, with the digest's first digits where another problem has the same name, collective and
        size.
    """

    record: RunRecord
    clock: str | None
    measured: str | None
    size_bytes: float | None
    ranks: int | None
    instance: str

    @cached_property
    def problem(self) -> tuple[str, ...]:
        """What the runs of the same problem have in common."""
        record = self.record
        return (
            record.instance_sha256,
            record.collective or "",
            record.objective_unit or "",
            record.sense,
            plain(stated(record)),
        )

    @cached_property
    def network(self) -> tuple[str, ...]:
        """What the runs have in common that move the same data over the same network, in whatever chunks."""
        record = self.record
        changed = {name: value for name, value in stated(record).items() if name != "chunks"}
        return record.instance_sha256, record.collective or "", plain(changed)

    @property
    def question(self) -> str | None:
        """What the objective is the answer to.

        What it measures, and which answers options of an exact method restrict it to.
        """
        restriction = self.record.metrics.get("restricted_to")
        if self.measured is None or not isinstance(restriction, str):
            return self.measured
        return f"{self.measured}; {restriction}"

    @property
    def method(self) -> str:
        """Name of the method with the options that are its own, and those that its solver was given."""
        options = {name: value for name, value in self.record.options.items() if name not in stated(self.record)}
        options |= self.record.solver_options
        return f"{self.record.model} ({shown(options)})" if options else self.record.model

    @property
    def posed(self) -> str:
        """Name of the instance with the options that state the problem."""
        options = stated(self.record)
        return f"{self.instance} ({shown(options)})" if options else self.instance

    @property
    def objective(self) -> float | None:
        """The verifier's number of an answer that passed; None otherwise."""
        return None if mark_of(self.record) is not None else number(self.record.objective)

    @property
    def own_s(self) -> float | None:
        """Seconds of the method itself."""
        return own_seconds(self.record)

    @property
    def completion_s(self) -> float | None:
        """The verifier's completion time of an answer that passed; None otherwise."""
        return None if mark_of(self.record) is not None else number(self.record.metrics.get("completion_time_s"))


def runs_of(records: Iterable[RunRecord]) -> list[LedgerRun]:
    """Take of every run the latest record, and tell of each what the ledger as a whole knows."""
    found = list(latest(records, identity, lambda record: record).values())
    found.sort(key=lambda record: (record.instance, record.model, identity(record)))
    sizes = _shared(found, _size_bytes)
    ranks = _shared(found, _ranks)
    same: dict[tuple[str, str | None, float | None], set[str]] = {}
    for record in found:
        same.setdefault((record.instance, record.collective, sizes.get(_asked(record))), set()).add(
            record.instance_sha256
        )
    runs: list[LedgerRun] = []
    for record, asked in zip(found, all_asked(found), strict=True):
        size = sizes.get(_asked(record))
        n = ranks.get(_asked(record))
        alone = len(same[record.instance, record.collective, size]) == 1
        name = record.instance if alone else f"{record.instance} #{record.instance_sha256[:6]}"
        runs.append(LedgerRun(record, asked.clock, asked.question, size, None if n is None else round(n), name))
    return runs


def sizes_bytes(records: Sequence[RunRecord]) -> list[float | None]:
    """Bytes of each record's collective; a run without an answer has those of another run of the same instance."""
    sizes = _shared(records, _size_bytes)
    return [sizes.get(_asked(record)) for record in records]


def identity(record: RunRecord) -> tuple[str, ...]:
    """Return what makes two records two runs; a run that was made again, also by another version, is the same run."""
    return (
        record.model,
        record.instance,
        record.instance_sha256,
        record.collective or "",
        record.solver or "",
        plain(record.options),
        plain(record.solver_options),
        str(record.seed),
        str(record.threads),
    )


def stated(record: RunRecord) -> dict[str, Any]:
    """Options that state the problem."""
    if record.model.startswith(_LIBRA):
        return {name: value for name, value in record.options.items() if name not in _LIBRA_WAYS}
    for prefix, names in _STATING:
        if record.model.startswith(prefix):
            return {name: record.options[name] for name in names if name in record.options}
    return {}


def own_seconds(record: RunRecord) -> float | None:
    """Sum the phases that are the method's own.

    None where it names none: the rest of the total is mostly that of loading programs.
    """
    own = [s for name, value in record.seconds.items() if name not in _NOT_OWN and (s := number(value)) is not None]
    own = [seconds for seconds in own if 0 <= seconds < _LARGEST]
    return fsum(own) if own else None


def shown(options: Mapping[str, Any]) -> str:
    """Write options for readers."""
    return ", ".join(f"{name}={value if isinstance(value, str) else plain(value)}" for name, value in options.items())


def plain(value: Any) -> str:
    """Write data the same way whatever the order of its keys."""
    return json.dumps(value, sort_keys=True, default=str, ensure_ascii=False)


def _asked(record: RunRecord) -> tuple[str, str | None]:
    return (record.instance_sha256, record.collective)


def _shared(
    records: Sequence[RunRecord], tell: Callable[[RunRecord], float | None]
) -> dict[tuple[str, str | None], float]:
    """What the records of the same instance agree on."""
    told: dict[tuple[str, str | None], set[float]] = {}
    for record in records:
        if (value := tell(record)) is not None:
            told.setdefault(_asked(record), set()).add(value)
    return {asked: values.pop() for asked, values in told.items() if len(values) == 1}


def _size_bytes(record: RunRecord) -> float | None:
    """Bytes that were asked for; of older records bandwidth times time, of which rounding is taken away."""
    if (known := number(record.size_bytes)) is not None:
        return known
    for prefix in _MEASURES:
        time = "completion_time_s" if not prefix else f"{prefix}time_s"
        algbw, seconds = number(record.metrics.get(f"{prefix}algbw_GBps")), number(record.metrics.get(time))
        if algbw is not None and seconds is not None:
            size = algbw * seconds * 1e9
            return float(round(size)) if 1 <= size < _LARGEST else None
    return None


def _ranks(record: RunRecord) -> float | None:
    """Ranks that take part, from the factor between the two bandwidths."""
    for prefix in _MEASURES:
        algbw, busbw = (number(record.metrics.get(f"{prefix}{name}_GBps")) for name in ("algbw", "busbw"))
        if algbw and busbw and record.collective in _RANKED:
            factor = busbw / algbw / _RANKED[record.collective]
            return float(round(1 / (1 - factor))) if 0 < factor < 1 - 1e-9 else None
    return None


#: Beginnings of the names of a time and its two bandwidths: of the completion time, and of the flow where there is
#: none.
_MEASURES = ("", "flow_")

#: Collectives whose factor tells the ranks: it is this times (n - 1) / n.
_RANKED = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "all_to_all": 1}
