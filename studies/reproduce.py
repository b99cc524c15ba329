"""A paper's printed numbers, recomputed and compared.

Each run is made once, however many rows need it.
"""

from __future__ import annotations

import json
import os
import threading
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from importlib.resources import files
from itertools import combinations, product
from pathlib import Path
from statistics import fmean, geometric_mean
from tempfile import TemporaryDirectory
from typing import Any

from ..core.answers import Answer
from ..core.budget import Progress, ignore
from ..core.errors import CwbError, InputError, OutOfTime, locate_errors, one_of
from ..core.fields import run_validation
from ..core.files import write_whole
from ..core.grouping import group_by_key
from ..core.instance import Instance
from ..core.option_names import check_name, verb
from ..core.paper_results import (
    Agreement,
    Finding,
    PublishedFile,
    PublishedNetwork,
    PublishedRow,
    PublishedRun,
    Quantity,
    compare_row,
    parse_printed,
)
from ..core.pipelining import LatencyModel, reserve_rates
from ..core.record import RunRecord
from ..core.topology import Topology
from ..core.training import TrainingOptions
from ..core.trees import TreePacking
from ..harness.clock import WallClock
from ..harness.execution.player import Job
from ..harness.interrupt import command_limits, stop_on_interrupt
from ..harness.plan import Cell
from ..harness.run import DEFAULT_SOLVER, Request
from ..harness.task import load_and_run, run_cell
from ..instances import load
from ..reports.formats import FORMATS, format_of
from ..reports.studies import emulation_table, reproduction_table
from ..schedules.completion import mode_of
from ..schedules.simulate import simulate
from ..schedules.simulate.pipeline import simulate_reserved
from .execution import ExecutionOptions, execute
from .inputs import seconds_or_none
from .topology_finder.assessment import run_finder
from .training import training_record

#: How numbers of several parts or seeds become one.
_COMBINED: dict[str, Callable[[list[float]], float]] = {
    "mean": fmean,
    "geomean": geometric_mean,
    "least": min,
    "largest": max,
    "total": sum,
}


class NotComputedError(Exception):
    """A quantity cannot be computed; the text gives the reason."""


def papers() -> tuple[str, ...]:
    """Return the names of the papers whose numbers are compared."""
    names = (entry.name for entry in (files(__name__.rpartition(".")[0]) / "papers").iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def load_paper(name: str) -> PublishedFile:
    """Read the published numbers of a paper."""
    if name not in papers():
        raise InputError(f"unknown paper{one_of(name, papers())}", source=name)
    text = (files(__name__.rpartition(".")[0]) / "papers" / f"{name}.toml").read_text()
    with locate_errors(source=f"{name}.toml"):
        data = tomllib.loads(text)
        return run_validation(lambda: PublishedFile.model_validate(data))


def select_rows(paper: PublishedFile, table: str | None) -> list[PublishedRow]:
    """Return the rows of one table, or all."""
    if table is None:
        return paper.row
    rows = [row for row in paper.row if row.table.lower() == table.lower()]
    if not rows:
        tables = dict.fromkeys(row.table for row in paper.row)
        raise InputError(f"no such table; expected one of {', '.join(tables)}", source=table)
    return rows


def unchecked_rows(rows: Iterable[PublishedRow]) -> dict[str, list[PublishedRow]]:
    """Return the rows that are not computed, by the requirement of their computation."""
    return group_by_key((row.needs, row) for row in rows if row.ours is None)


def findings_of(
    paper: PublishedFile,
    rows: Sequence[PublishedRow],
    *,
    quick: bool = False,
    time_limit_s: float | None = None,
    progress: Callable[[str], None] = ignore,
    stop: threading.Event | None = None,
) -> list[Finding]:
    """Compute and compare every row that needs no hardware.

    Runs have no time limit of their own: without ``time_limit_s``, only computing times depend on the machine and its
    load.
    """
    stop = stop or threading.Event()
    with TemporaryDirectory() as folder, stop_on_interrupt(stop):
        runs = Runs(paper, time_limit_s, progress, Path(folder), stop)
        return [_finding(paper, row, runs, quick) for row in rows]


def _finding(paper: PublishedFile, row: PublishedRow, runs: Runs, quick: bool) -> Finding:
    if row.ours is None:
        return Finding(row, Agreement.UNCHECKED, reason=f"needs {row.needs}")
    if quick and any(paper.runs[name].slow for name in row.ours.runs()):
        return Finding(row, Agreement.NOT_RUN, reason="a slow run, left out by --quick")
    try:
        return compare_row(row, compute_quantity(row.ours, runs), paper.models.get(row.predicted, ""))
    except (StoppedError, KeyboardInterrupt):
        runs.stop.set()
        return Finding(row, Agreement.NOT_RUN, reason="stopped")
    except NotComputedError as error:
        return Finding(row, Agreement.FAILED, reason=str(error))


class StoppedError(Exception):
    """A run that a row needs was stopped or not started."""


@dataclass
class Runs:
    """Runs of a paper, made on first use; the paper's own instances are written to a folder."""

    _paper: PublishedFile
    _limit_s: float | None
    _progress: Callable[[str], None]
    _folder: Path
    stop: threading.Event
    _records: dict[str, list[RunRecord]] = field(default_factory=dict)

    def records(self, name: str) -> list[RunRecord]:
        """Return the records of a run, one for each combination and seed."""
        if name not in self._records:
            rows: list[RunRecord] = []
            if (network := self._paper.runs[name].find) is not None:
                for nodes in network.sizes:
                    self._go_on()
                    rows.append(_network(name, network, nodes))
                    degrees = ", ".join(map(str, network.degrees))
                    self._progress(f"{rows[-1].instance}: {nodes} nodes of degree {degrees}")
            run = self._paper.runs[name]
            self._go_on()
            if run.train is not None:
                rows += _train_runs(self._paper, name, self._folder, self._limit_s, self._progress)
            for cell in cells_of(self._paper, name, self._folder, self._limit_s):
                simulated = run.pieces or run.hold_latency
                rows.append(_simulate_cell(cell, run.pieces, self.stop) if simulated else run_cell(cell, self.stop))
                self._progress(f"{rows[-1].shown_status} in {rows[-1].seconds.get('total', 0.0):.2f} s: {cell}")
                self._go_on()
            self._records[name] = rows
        return self._records[name]

    def _go_on(self) -> None:
        """Raise StoppedError after Ctrl-C, so that an interrupted run is never compared."""
        if self.stop.is_set():
            raise StoppedError


def _simulate_cell(cell: Cell, pieces: int | None, stop: threading.Event) -> RunRecord:
    try:
        result = load_and_run(cell, stop)
        if result.instance is None or result.answer is None:
            raise NotComputedError(f"{cell}: {result.record.message or 'no answer'}")
        with command_limits(WallClock(None)):
            seconds = _occupied_s(result.instance, result.answer, pieces)
    except CwbError as error:
        raise NotComputedError(f"{cell}: {error}") from None
    return replace(result.record, metrics={**result.record.metrics, "simulated_s": seconds})


def _occupied_s(instance: Instance, answer: Answer, pieces: int | None) -> float:
    """Return the completion time with links busy during latency; trees in pieces each have their own rate."""
    if pieces is None:
        return simulate(instance, answer, mode_of(answer, instance.routing), hold_latency=True).completion_s
    if not isinstance(answer, TreePacking):
        raise NotComputedError(f"{instance.name}: no trees that could be cut into pieces")
    latency = LatencyModel.OCCUPANCY
    plan = reserve_rates(instance.topology, answer, latency, Fraction(0), pieces)
    return simulate_reserved(instance, answer, plan, latency, overhead_s=Fraction(0)).completion_s


def _train_runs(
    paper: PublishedFile, name: str, folder: Path, time_limit_s: float | None, progress: Callable[[str], None]
) -> list[RunRecord]:
    """Simulate training for each combination and seed; raise NotComputedError if one fails."""
    merged, records = _run_with_defaults(paper, name), []
    train = merged.train or TrainingOptions()
    for index, names in enumerate(_combinations(merged)):
        options = train.model_copy(update=_fill_braces(dict(train), names))
        try:
            instance = _instance(paper, merged, names, folder / f"{name}-{index}.json")
            chunks = int(_fill_braces(merged.chunks, names) or 1)
            with command_limits(WallClock(None)):  # its runs have limits, the simulation has none
                records.append(training_record(instance, options, chunks, int(names["seed"]), time_limit_s))
        except CwbError as error:
            raise NotComputedError(f"{name}: {error}") from None
        progress(f"{records[-1].instance}: an iteration of {records[-1].metrics['workload']}")
    return records


def _network(name: str, network: PublishedNetwork, nodes: int) -> RunRecord:
    try:
        with command_limits(WallClock(None)):  # the finder asks no budget: Ctrl-C ends it at once
            return run_finder(network, nodes)
    except CwbError as error:
        raise NotComputedError(f"{name}: {error}") from None


def cells_of(paper: PublishedFile, name: str, folder: Path, time_limit_s: float | None = None) -> list[Cell]:
    """Plan the cells of a paper's run: one for each combination and seed.

    Runs of the topology finder and of simulated training have none. The paper's own instances are written to the
    folder.
    """
    run = paper.runs[name]
    if run.find is not None or run.train is not None:
        return []
    merged = _run_with_defaults(paper, name)
    if merged.model is None or merged.instance is None:
        raise NotComputedError(f"the run {name!r} names no model or no instance")
    cells: list[Cell] = []
    for names in _combinations(merged):
        instance = _instance(paper, merged, names, folder / f"{name}-{len(cells)}.json")
        options = _fill_braces({**paper.default.options, **run.options}, names)
        seed, solver = int(names["seed"]), merged.solver or DEFAULT_SOLVER
        request = Request(merged.model, solver, options, seed, 1, time_limit_s, merged.gap)
        size, chunks = _fill_braces(merged.size, names), _fill_braces(merged.chunks, names)
        cells.append(Cell(instance, request, merged.collective, size, None if chunks is None else int(chunks)))
    return cells


def _run_with_defaults(paper: PublishedFile, name: str) -> PublishedRun:
    run = paper.runs[name]
    return paper.default.model_copy(update={field: getattr(run, field) for field in run.model_fields_set})


def _instance(paper: PublishedFile, run: PublishedRun, names: Mapping[str, str], path: Path) -> str:
    instance = _fill_braces(run.instance or "", names)
    if instance not in paper.instances:
        return str(instance)
    path.write_text(json.dumps(_fill_braces(paper.instances[instance], names)))
    return str(path)


def _combinations(run: PublishedRun) -> Iterator[dict[str, str]]:
    for values in product(*run.each.values()):
        for seed in run.seeds:
            yield {**dict(zip(run.each, map(str, values), strict=True)), "seed": str(seed)}


def _fill_braces(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        for name, text in names.items():
            value = value.replace(f"{{{name}}}", text)
        return value
    if isinstance(value, list):
        return [_fill_braces(part, names) for part in value]
    if isinstance(value, dict):
        return {key: _fill_braces(part, names) for key, part in value.items()}
    return value


def compute_quantity(quantity: Quantity, runs: Runs) -> float | str:
    """Compute a quantity, a word if a run's value is one; raise NotComputedError if there is none."""
    if quantity.run is not None:
        values = [_value(record, quantity.value, quantity.run) for record in runs.records(quantity.run)]
        if quantity.over == "commonest":
            return Counter(values).most_common(1)[0][0]
        words = [value for value in values if isinstance(value, str)]
        if words:
            return " ".join(dict.fromkeys(words))
        result = _COMBINED[quantity.over]([float(value) for value in values])
    elif quantity.network is not None:
        topology = load(quantity.network).network
        if not isinstance(topology, Topology):
            raise NotComputedError(f"{quantity.network} has no nodes and links")
        counted = {"ranks": topology.rank_nodes, "nodes": topology.nodes}
        result = float(len(counted.get(quantity.value, topology.links)))
    elif quantity.number is not None:
        result = float(parse_printed(quantity.number).value or 0)
    else:
        parts = [compute_quantity(part, runs) for part in quantity.parts]
        for word in (part for part in parts if isinstance(part, str)):
            raise NotComputedError(f"{word!r} is no number")
        result = _combine_parts(quantity, list(map(float, parts)))
    factor = parse_printed(quantity.times).value or Fraction(0)
    return result if factor == 1 else float(Fraction(result) * factor)


def _combine_parts(quantity: Quantity, parts: list[float]) -> float:
    if quantity.ratio is not None:
        if parts[1] == 0:
            raise NotComputedError("a ratio to zero")
        return parts[0] / parts[1]
    if quantity.difference is not None:
        return parts[0] - parts[1]
    name = next(name for name in _COMBINED if getattr(quantity, name) is not None)
    return _COMBINED[name](parts)


def _value(record: RunRecord, name: str, run: str) -> float | str:
    if record.status == "error" or record.verified is False:
        raise NotComputedError(f"{run}: {record.message or '; '.join(record.violations)}")
    field, *keys = name.split(".")
    value = getattr(record, field, None)
    for key in keys:
        if isinstance(value, list | tuple) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise NotComputedError(f"{run}: no {name}: {record.message or record.status}")
    if isinstance(value, str) and (exact := parse_printed(value)).value is not None and not exact.sign:
        return float(exact.value)  # a text such as a fraction
    return value


def measure_figure(
    paper: PublishedFile, quick: bool, limit_s: float | None, progress: Progress, stop: threading.Event
) -> list[dict[str, Any]]:
    """Measure the methods of a figure on an emulated network, beside predictions; Ctrl-C keeps those that are done."""
    if (figure := paper.emulated) is None:
        raise InputError("no figure of this paper is measured; expected mtree", source="--emulate")
    rows: list[dict[str, Any]] = []
    with TemporaryDirectory() as folder, suppress(KeyboardInterrupt), stop_on_interrupt(stop):
        for name, cell in [(n, cell) for n in figure.runs for cell in cells_of(paper, n, Path(folder), limit_s)]:
            result = load_and_run(cell, stop)
            if stop.is_set():
                break
            if result.instance is None or result.answer is None or result.record.verified is not True:
                raise OutOfTime(f"{cell}: {result.record.message or 'no verified answer'}")
            job, pieces = Job("int64", 1 if quick else figure.repeat, 0), paper.runs[name].pieces
            options = ExecutionOptions(mpi=False, job=job, pieces=pieces, scale=Fraction(figure.scale))
            stop.set()  # until it has ended, since Ctrl-C interrupts the measurement
            with command_limits(WallClock(limit_s)):
                row = execute(result.instance, result.answer, options).to_json()
            stop.clear()
            low, high = row["interval_s"]
            load = round(os.getloadavg()[0], 1)
            rows.append({"method": name, **row, "low_s": low, "high_s": high, "load": load})
            progress(f"{name}, {row['instance']}: {row['median_s']:.3g} s, predicted {row['predicted_s']:.3g} s")
    return rows


def order_of_methods(rows: Iterable[Mapping[str, Any]]) -> str:
    """Tell how many pairs of methods are predicted in the measured order."""
    pairs = [
        (one["median_s"] - two["median_s"]) * (one["predicted_s"] - two["predicted_s"])
        for one, two in combinations(rows, 2)
        if one["instance"] == two["instance"] and abs(one["median_s"] / two["median_s"] - 1) > 0.05
    ]
    right = sum(sign > 0 for sign in pairs)
    return f"{right} of {len(pairs)} pairs of methods that differ by more than 5 % are predicted in the measured order"


def counts(findings: Iterable[Finding]) -> dict[str, int]:
    """Count the verdicts, including those that do not occur."""
    verdicts = Counter(finding.agreement for finding in findings)
    return {agreement.value: verdicts[agreement] for agreement in Agreement}


@dataclass(frozen=True, eq=False)
class Reproduction:
    """Rows of a paper, compared."""

    paper: PublishedFile
    findings: list[Finding]
    interrupted: bool
    measured: list[dict[str, Any]] = field(default_factory=list)  #: Methods on an emulated network, with its records.

    @property
    def is_explained(self) -> bool:
        """True if every row that should be reproduced is, or differs for a known reason, and measured data is right."""
        return all(finding.is_explained for finding in self.findings) and all(row["right"] for row in self.measured)

    @property
    def summary(self) -> str:
        """Numbers of the verdicts, or of pairs of methods in order."""
        if self.measured:
            return order_of_methods(self.measured)
        return ", ".join(f"{count} {name}" for name, count in counts(self.findings).items() if count)

    def to_json(self) -> list[dict[str, Any]]:
        """Return the output of ``cwb reproduce --format json``."""
        if self.measured:
            return self.measured
        names = ("table", "row", "column", "section", "page", "unit", "printed")
        return [
            {
                **{name: getattr(finding.row, name) for name in names},
                "ours": finding.ours,
                "difference": finding.difference,
                "verdict": finding.agreement.value,
                "reason": finding.reason,
            }
            for finding in self.findings
        ]

    def text(self, format: str = "text") -> str:
        """Return the rows as ``text``, ``latex``, ``md``, ``csv`` or ``json``."""
        if format == "json":
            return json.dumps(self.to_json(), indent=1, allow_nan=False) + "\n"
        if self.measured:
            return FORMATS[format](emulation_table(self.paper, self.measured, self.summary))
        return FORMATS[format](reproduction_table(self.paper, self.findings))


@verb
def reproduce(
    paper: str,
    table: str | None = None,
    *,
    quick: bool = False,
    emulate: bool = False,
    time_limit_s: float | None = None,
    format: str | None = None,
    output: str | Path | None = None,
    progress: Progress = ignore,
) -> Reproduction:
    """Compute the printed numbers of a paper or of one of its tables, and compare, as ``cwb reproduce`` does.

    Parameters
    ----------
    paper, table : str
        Names, as ``cwb reproduce`` lists them.
    emulate : bool, optional
        Measure the methods of a figure on an emulated network instead; once each with ``quick``.
    time_limit_s : float, optional
        Seconds of each run; verdicts then depend on the machine.
    output, format : optional
        File for the rows, .tex, .md, .csv, .txt or .json, and its format, by default that of the suffix.
    """
    if format is not None:
        check_name(format, (*FORMATS, "json"), "--format")
    published = load_paper(paper)
    rows = select_rows(published, table)
    target = None if output is None else Path(output)
    if target is not None:
        format = format or ("json" if target.suffix == ".json" else format_of(target))
    limit_s, stop = seconds_or_none(time_limit_s, "time_limit_s"), threading.Event()
    if emulate:
        if published.emulated and table not in (None, published.emulated.table):
            raise InputError(f"is not measured; expected {published.emulated.table}", source=table)
        measured = measure_figure(published, quick, limit_s, progress, stop)
        result = Reproduction(published, [], stop.is_set(), measured)
    else:
        findings = findings_of(published, rows, quick=quick, time_limit_s=limit_s, progress=progress, stop=stop)
        result = Reproduction(published, findings, stop.is_set())
    if target is not None:
        write_whole(target, result.text(format or "text").encode())
    return result
