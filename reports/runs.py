"""Runs on collectives, prepared for reports, and facets by which a page filters them.

Facts that a failed run's record lacks are taken from another run of the same instance.
"""

import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from typing import Any, TypeVar

from ..core.grouping import group_by_key
from ..core.record import RunRecord
from .numbers import mark_of, natural, number
from .objective_types import questions_of

T = TypeVar("T")

#: Options that state the problem, for methods where options do: pairs of a prefix of the model's name and the options.
_STATING: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("themis", ("bandwidth", "latency", "chunks")),
    ("blueconnect", ("bandwidth", "latency", "chunks")),
    ("teccl", ("chunks", "chunk_size", "bandwidth", "relays", "buffer", "switches")),
    ("mtree-repair", ("previous", "changes")),
)

_LIBRA, _LIBRA_WAYS = "libra", ("gap", "algorithm")  #: LIBRA's options all state the problem but these.

#: Phases that are not the method's: verification, bounds of others, compilation that happens once, and the total.
_NOT_OWN = ("verify", "simulate", "bounds", "write", "total", "compile")

_LARGEST = 1e18  #: Bytes and seconds beyond this are no measurement.

OWN_SECONDS = (
    "Own time is that of the phases that the method names, without the verifier's and without compilation that happens "
    "once."
)


@dataclass(frozen=True)
class LedgerRun:
    """A record with facts from the other records of its ledger."""

    record: RunRecord
    #: Time model of the objective, one of :data:`~cwb.reports.objective_types.CLOCKS`, and the verifier's whole
    #: objective type
    clock: str | None
    measured: str | None
    size_bytes: float | None
    ranks: int | None
    #: Name of the instance, with the digest's first digits where another problem has the same name, collective and size
    instance: str

    @cached_property
    def problem(self) -> tuple[str, ...]:
        """Key of the runs of the same problem."""
        record = self.record
        return (
            record.instance_sha256,
            record.collective or "",
            record.objective_unit or "",
            record.sense,
            canonical_json(problem_options(record)),
        )

    @cached_property
    def network(self) -> tuple[str, ...]:
        """Key of the runs that move the same data over the same network, in whatever chunks."""
        record = self.record
        options = {name: value for name, value in problem_options(record).items() if name != "chunks"}
        return record.instance_sha256, record.collective or "", canonical_json(options)

    @property
    def question(self) -> str | None:
        """Objective type with the options of an exact method that restrict its answers."""
        restriction = self.record.metrics.get("restricted_to")
        if self.measured is None or not isinstance(restriction, str):
            return self.measured
        return f"{self.measured}; {restriction}"

    @property
    def method(self) -> str:
        """Name of the method with its own options and those of its solver."""
        of_problem = problem_options(self.record)
        options = {name: value for name, value in self.record.options.items() if name not in of_problem}
        options |= self.record.solver_options
        return f"{self.record.model} ({options_text(options)})" if options else self.record.model

    @property
    def problem_name(self) -> str:
        """Name of the instance with the options that state the problem."""
        options = problem_options(self.record)
        return f"{self.instance} ({options_text(options)})" if options else self.instance

    @property
    def objective(self) -> float | None:
        """The verifier's objective of a verified answer; None otherwise."""
        return None if mark_of(self.record) is not None else number(self.record.objective)

    @property
    def own_s(self) -> float | None:
        """Seconds of the method itself."""
        return own_seconds(self.record)

    @property
    def completion_s(self) -> float | None:
        """The verifier's completion time of a verified answer; None otherwise."""
        return None if mark_of(self.record) is not None else number(self.record.metrics.get("completion_time_s"))


def runs_of(records: Iterable[RunRecord]) -> list[LedgerRun]:
    """Return the latest record of every run, completed by facts from the whole ledger."""
    recent = list(latest(records, identity, lambda record: record).values())
    recent.sort(key=lambda record: (record.instance, record.model, identity(record)))
    sizes = _agreed_values(recent, _size_bytes)
    ranks = _agreed_values(recent, _ranks)
    same: dict[tuple[str, str | None, float | None], set[str]] = {}
    for record in recent:
        same.setdefault((record.instance, record.collective, sizes.get(_problem_key(record))), set()).add(
            record.instance_sha256
        )
    runs: list[LedgerRun] = []
    for record, objective in zip(recent, questions_of(recent), strict=True):
        size = sizes.get(_problem_key(record))
        n = ranks.get(_problem_key(record))
        alone = len(same[record.instance, record.collective, size]) == 1
        name = record.instance if alone else f"{record.instance} #{record.instance_sha256[:6]}"
        runs.append(LedgerRun(record, objective.clock, objective.question, size, None if n is None else round(n), name))
    return runs


def sizes_bytes(records: Sequence[RunRecord]) -> list[float | None]:
    """Return the bytes of each record's collective, if needed from another run of the same instance."""
    sizes = _agreed_values(records, _size_bytes)
    return [sizes.get(_problem_key(record)) for record in records]


def latest(items: Iterable[T], key: Callable[[T], Hashable], record: Callable[[T], RunRecord]) -> dict[Hashable, T]:
    """Keep the latest record of every cell; of equal start times the last one read."""
    newest: dict[Hashable, T] = {}
    for item in items:
        cell = key(item)
        if cell not in newest or record(item).started_at >= record(newest[cell]).started_at:
            newest[cell] = item
    return newest


def identity(record: RunRecord) -> tuple[str, ...]:
    """Return the identity of a run: repeated runs, also by another version, share it."""
    return (
        record.model,
        record.instance,
        record.instance_sha256,
        record.collective or "",
        record.solver or "",
        canonical_json(record.options),
        canonical_json(record.solver_options),
        str(record.seed),
        str(record.threads),
    )


def problem_options(record: RunRecord) -> dict[str, Any]:
    """Return the options that state the problem."""
    if record.model.startswith(_LIBRA):
        return {name: value for name, value in record.options.items() if name not in _LIBRA_WAYS}
    for prefix, names in _STATING:
        if record.model.startswith(prefix):
            return {name: record.options[name] for name in names if name in record.options}
    return {}


def own_seconds(record: RunRecord) -> float | None:
    """Return the sum of the method's own phases; None without phases, as the rest is mostly loading of programs."""
    own = [s for name, value in record.seconds.items() if name not in _NOT_OWN and (s := number(value)) is not None]
    own = [seconds for seconds in own if 0 <= seconds < _LARGEST]
    return fsum(own) if own else None


def options_text(options: Mapping[str, Any]) -> str:
    """Format options for readers."""
    return ", ".join(
        f"{name}={value if isinstance(value, str) else canonical_json(value)}" for name, value in options.items()
    )


def canonical_json(value: Any) -> str:
    """Serialize data independently of the order of its keys."""
    return json.dumps(value, sort_keys=True, default=str, ensure_ascii=False)


def _problem_key(record: RunRecord) -> tuple[str, str | None]:
    return (record.instance_sha256, record.collective)


def _agreed_values(
    records: Sequence[RunRecord], tell: Callable[[RunRecord], float | None]
) -> dict[tuple[str, str | None], float]:
    """Return the value on which all records of an instance agree."""
    pairs = ((_problem_key(record), tell(record)) for record in records)
    by_problem = group_by_key((problem, value) for problem, value in pairs if value is not None)
    return {problem: values[0] for problem, values in by_problem.items() if len(set(values)) == 1}


def _size_bytes(record: RunRecord) -> float | None:
    """Return the requested bytes; for older records bandwidth times time without rounding noise."""
    if (size := number(record.size_bytes)) is not None:
        return size
    for prefix in _MEASURES:
        time = "completion_time_s" if not prefix else f"{prefix}time_s"
        algbw, seconds = number(record.metrics.get(f"{prefix}algbw_GBps")), number(record.metrics.get(time))
        if algbw is not None and seconds is not None:
            size = algbw * seconds * 1e9
            return float(round(size)) if 1 <= size < _LARGEST else None
    return None


def _ranks(record: RunRecord) -> float | None:
    """Return the number of ranks, from the ratio of the two bandwidths."""
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

NAMES = ("method", "instance", "clock")  #: Name and heading of each facet, in the order in which a page encodes them.

_AFTER = (" (", ", ", " [", ": ")  #: What may follow the name of a method in the name of a series.


@dataclass(frozen=True)
class Facets:
    """The methods, instances and time models of a ledger, in natural order, as :data:`NAMES` lists them.

    ``clock`` has the known time models, by the identity of the run.
    """

    values: tuple[tuple[str, ...], ...]
    clock: Mapping[tuple[str, ...], str]

    def code(self, records: Iterable[RunRecord]) -> str:
        """Write the runs of a row or cell as space-separated numbers ``method,instance,clock``."""
        keys = {(record.model, record.instance, self.clock.get(identity(record), "")) for record in records}
        codes = ((str(place.get(value, "")) for place, value in zip(self._places, key, strict=True)) for key in keys)
        return " ".join(sorted(map(",".join, codes)))

    def method_of(self, series: str) -> int | None:
        """Return the number of the method whose name a series begins with."""
        fits = [name for name in self.values[0] if series == name or series.startswith(tuple(name + a for a in _AFTER))]
        return self.values[0].index(max(fits, key=len)) if fits else None

    @cached_property
    def _places(self) -> tuple[dict[str, int], ...]:
        return tuple({value: index for index, value in enumerate(values)} for values in self.values)


def facets_of(runs: Sequence[LedgerRun]) -> Facets:
    """Collect the facets of the runs of a ledger."""
    clock = {identity(run.record): run.clock for run in runs if run.clock is not None}
    values = {run.record.model for run in runs}, {run.record.instance for run in runs}, set(clock.values())
    return Facets(tuple(tuple(sorted(names, key=natural)) for names in values), clock)


#: Fields that are no columns: whole documents, which :func:`~cwb.core.record.read_records` gives.
_DOCUMENTS = frozenset(
    ["schema", "certificate", "pool", "explanation", "sensitivity", "incumbent", "history", "environment"]
)


def records_frame(records: Sequence[RunRecord]) -> Any:
    """Return a ``pandas.DataFrame`` with a row for every record, in order; the last one of several with the same key.

    It has a column for every field, nested names joined by dots, and ``size_bytes``, the size of the collective.
    """
    import pandas as pd

    last = {record.key or number: record for number, record in enumerate(records)}
    sizes = sizes_bytes(list(last.values()))
    rows = [
        {name: value for name, value in each.to_json().items() if name not in _DOCUMENTS} | {"size_bytes": size}
        for each, size in zip(last.values(), sizes, strict=True)
    ]
    return pd.json_normalize(rows, max_level=1).astype({"size_bytes": "Int64"})
