"""A paper's printed numbers, computed again and compared.

Runs are made once, whatever the number of rows that need them.
"""

from __future__ import annotations

import json
import threading
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from importlib.resources import files
from itertools import product
from pathlib import Path
from statistics import fmean, geometric_mean
from tempfile import TemporaryDirectory
from typing import Any

from ..core.budget import silent
from ..core.errors import CwbError, InputError, located
from ..core.fields import validated
from ..core.instance import Instance
from ..core.pipelining import LatencyModel
from ..core.published import (
    Agreement,
    Finding,
    PublishedFile,
    PublishedNetwork,
    PublishedRow,
    PublishedRun,
    Quantity,
    compared,
    printed,
)
from ..core.record import RunRecord
from ..core.reserved import reserve
from ..core.text import one_of
from ..core.topology import Topology
from ..core.training import TrainingOptions
from ..core.trees import TreePacking
from .cell import run_cell, run_loading
from .interrupt import stop_on_interrupt
from .networks import found
from .plan import Cell
from .run import DEFAULT_SOLVER, Request

#: How numbers of several parts or seeds become one.
_COMBINED: dict[str, Callable[[list[float]], float]] = {
    "mean": fmean,
    "geomean": geometric_mean,
    "least": min,
    "largest": max,
    "total": sum,
}


class NotComputedError(Exception):
    """A quantity cannot be had; the text says why."""


def papers() -> tuple[str, ...]:
    """Names of the papers whose numbers are compared."""
    names = (entry.name for entry in (files(__name__.rpartition(".")[0]) / "papers").iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def load_paper(name: str) -> PublishedFile:
    """Read the published numbers of a paper.

    Raises
    ------
    InputError
        If no such paper is known.
    """
    if name not in papers():
        raise InputError(f"unknown paper{one_of(name, papers())}", source=name)
    text = (files(__name__.rpartition(".")[0]) / "papers" / f"{name}.toml").read_text()
    with located(source=f"{name}.toml"):
        data = tomllib.loads(text)
        return validated(lambda: PublishedFile.model_validate(data))


def chosen(paper: PublishedFile, table: str | None) -> list[PublishedRow]:
    """Rows of one table, or all.

    Raises
    ------
    InputError
        If the paper has no such table.
    """
    if table is None:
        return paper.row
    rows = [row for row in paper.row if row.table.lower() == table.lower()]
    if not rows:
        tables = dict.fromkeys(row.table for row in paper.row)
        raise InputError(f"no such table; expected one of {', '.join(tables)}", source=table)
    return rows


def unchecked(rows: Iterable[PublishedRow]) -> dict[str, list[PublishedRow]]:
    """Rows that nothing is computed for, under what each would need."""
    found: dict[str, list[PublishedRow]] = {}
    for row in rows:
        if row.ours is None:
            found.setdefault(row.needs, []).append(row)
    return found


def reproduce(
    paper: PublishedFile,
    rows: Sequence[PublishedRow],
    *,
    quick: bool = False,
    time_limit_s: float | None = None,
    progress: Callable[[str], None] = silent,
    stop: threading.Event | None = None,
) -> list[Finding]:
    """Compute every row that needs no hardware, and compare.

    Parameters
    ----------
    paper : PublishedFile
        Has the runs.
    rows : sequence of PublishedRow
        What is compared.
    quick : bool
        Leave out rows that need a slow run.
    time_limit_s : float, optional
        Of each run. No run states one of its own, so that without it nothing depends on the machine and its load but
        the seconds of computing.
    progress : callable
        Called with each run as it is made.
    stop : threading.Event, optional
        Set by the first Ctrl-C: rows that are not computed by then are not run.

    Returns
    -------
    list of Finding
        One for each row, in order.
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
        return compared(row, computed(row.ours, runs), paper.models.get(row.predicted, ""))
    except (StoppedError, KeyboardInterrupt):
        runs.stop.set()
        return Finding(row, Agreement.NOT_RUN, reason="stopped")
    except NotComputedError as error:
        return Finding(row, Agreement.FAILED, reason=str(error))


class StoppedError(Exception):
    """A run that a row needs was stopped, or has not begun."""


class Runs:
    """The runs of a paper, made when they are first needed; its own instances are written to a folder."""

    def __init__(
        self,
        paper: PublishedFile,
        time_limit_s: float | None,
        progress: Callable[[str], None],
        folder: Path,
        stop: threading.Event,
    ) -> None:
        self.stop = stop
        self._paper = paper
        self._folder = folder
        self._limit_s = time_limit_s
        self._progress = progress
        self._made: dict[str, list[RunRecord]] = {}

    def records(self, name: str) -> list[RunRecord]:
        """Records of a run, one for each combination and seed."""
        if name not in self._made:
            made: list[RunRecord] = []
            if (wanted := self._paper.runs[name].find) is not None:
                for nodes in wanted.sizes:
                    self._go_on()
                    made.append(_network(name, wanted, nodes))
                    degrees = ", ".join(map(str, wanted.degrees))
                    self._progress(f"{made[-1].instance}: {nodes} nodes of degree {degrees}")
            run = self._paper.runs[name]
            self._go_on()
            if run.train is not None:
                made += _trained(self._paper, name, self._folder, self._limit_s, self._progress)
            for cell in cells_of(self._paper, name, self._folder, self._limit_s):
                simulated = run.pieces or run.hold_latency
                made.append(_simulated(cell, run.pieces, self.stop) if simulated else run_cell(cell, self.stop))
                self._progress(f"{made[-1].shown_status} in {made[-1].seconds.get('total', 0.0):.2f} s: {cell}")
                self._go_on()
            self._made[name] = made
        return self._made[name]

    def _go_on(self) -> None:
        """Raise StoppedError after Ctrl-C: the record of a run that was stopped is compared with nothing."""
        if self.stop.is_set():
            raise StoppedError


def _simulated(cell: Cell, pieces: int | None, stop: threading.Event) -> RunRecord:
    """Run a cell, and simulate its answer on links that are busy for their latency too."""
    try:
        made = run_loading(cell, stop)
        if made.instance is None or made.answer is None:
            raise NotComputedError(f"{cell}: {made.record.message or 'no answer'}")
        seconds = _occupied_s(made.instance, made.answer, pieces)
    except CwbError as error:
        raise NotComputedError(f"{cell}: {error}") from None
    return replace(made.record, metrics={**made.record.metrics, "simulated_s": seconds})


def _occupied_s(instance: Instance, answer: object, pieces: int | None) -> float:
    """Completion time with links that are busy for their latency; of trees in pieces, each tree at a rate of its own."""
    from ..schedules.completion import mode_of
    from ..schedules.simulate import simulate
    from ..schedules.simulate.reserved import simulate_reserved

    if pieces is None:
        return simulate(instance, answer, mode_of(answer), hold_latency=True).completion_s
    if not isinstance(answer, TreePacking):
        raise NotComputedError(f"{instance.name}: no trees that could be cut into pieces")
    held = LatencyModel.OCCUPANCY
    plan = reserve(instance.topology, answer, held, Fraction(0), pieces)
    return simulate_reserved(instance, answer, plan, held, overhead_s=Fraction(0)).completion_s


def _trained(
    paper: PublishedFile, name: str, folder: Path, time_limit_s: float | None, progress: Callable[[str], None]
) -> list[RunRecord]:
    """Simulate training, for each combination and seed; what cannot be simulated is no number."""
    from .training import recorded, request_of

    merged, made = _merged(paper, name), []
    train = merged.train or TrainingOptions()
    for index, names in enumerate(_combinations(merged)):
        asked = train.model_copy(update=_filled(dict(train), names))
        try:
            instance = _instance(paper, merged, names, folder / f"{name}-{index}.json")
            request = request_of(asked, int(_filled(merged.chunks, names) or 1), int(names["seed"]), time_limit_s)
            made.append(recorded(instance, request))
        except CwbError as error:
            raise NotComputedError(f"{name}: {error}") from None
        progress(f"{made[-1].instance}: an iteration of {made[-1].metrics['workload']}")
    return made


def _network(name: str, wanted: PublishedNetwork, nodes: int) -> RunRecord:
    """Ask the topology finder; that it keeps no such network is no number."""
    try:
        return found(wanted, nodes)
    except InputError as error:
        raise NotComputedError(f"{name}: {error}") from None


def cells_of(paper: PublishedFile, name: str, folder: Path, time_limit_s: float | None = None) -> list[Cell]:
    """Plan a run of a paper: a cell for each combination and seed; none where the topology finder is asked or training is simulated.

    Parameters
    ----------
    paper : PublishedFile
        Has the run, and what it does not say.
    name : str
        Of the run.
    folder : Path
        Where instances that are the paper's own are written.
    time_limit_s : float, optional
        Of each run.

    Raises
    ------
    NotComputedError
        If neither the run nor the paper's default names a model or an instance.
    """
    run = paper.runs[name]
    if run.find is not None or run.train is not None:
        return []
    merged = _merged(paper, name)
    if merged.model is None or merged.instance is None:
        raise NotComputedError(f"the run {name!r} names no model or no instance")
    cells: list[Cell] = []
    for names in _combinations(merged):
        instance = _instance(paper, merged, names, folder / f"{name}-{len(cells)}.json")
        options = _filled({**paper.default.options, **run.options}, names)
        seed, solver = int(names["seed"]), merged.solver or DEFAULT_SOLVER
        request = Request(merged.model, solver, options, seed, 1, time_limit_s, merged.gap)
        chunks = _filled(merged.chunks, names)
        cells.append(
            Cell(
                instance,
                request,
                merged.collective,
                _filled(merged.size, names),
                None if chunks is None else int(chunks),
            )
        )
    return cells


def _merged(paper: PublishedFile, name: str) -> PublishedRun:
    """A run, with what it does not say from the paper's default."""
    run = paper.runs[name]
    return paper.default.model_copy(update={field: getattr(run, field) for field in run.model_fields_set})


def _instance(paper: PublishedFile, run: PublishedRun, names: Mapping[str, str], path: Path) -> str:
    """The instance of a run; one that is the paper's own is written to a file."""
    instance = _filled(run.instance or "", names)
    if instance not in paper.instances:
        return str(instance)
    path.write_text(json.dumps(_filled(paper.instances[instance], names)))
    return str(path)


def _combinations(run: PublishedRun) -> Iterator[dict[str, str]]:
    """Values of each name in braces."""
    for values in product(*run.each.values()):
        for seed in run.seeds:
            yield {**dict(zip(run.each, map(str, values), strict=True)), "seed": str(seed)}


def _filled(value: Any, names: Mapping[str, str]) -> Any:
    """Put names in braces in place, in texts of any depth."""
    if isinstance(value, str):
        for name, text in names.items():
            value = value.replace(f"{{{name}}}", text)
        return value
    if isinstance(value, list):
        return [_filled(part, names) for part in value]
    if isinstance(value, dict):
        return {key: _filled(part, names) for key, part in value.items()}
    return value


def computed(quantity: Quantity, runs: Runs) -> float | str:
    """Compute a quantity; a word only where a run's value is one.

    Raises
    ------
    NotComputedError
        If a run has no such value, or found nothing.
    """
    if quantity.run is not None:
        values = [_value(record, quantity.value, quantity.run) for record in runs.records(quantity.run)]
        if quantity.over == "commonest":
            return Counter(values).most_common(1)[0][0]
        words = [value for value in values if isinstance(value, str)]
        if words:
            return " ".join(dict.fromkeys(words))
        found = _COMBINED[quantity.over]([float(value) for value in values])
    elif quantity.network is not None:
        found = _counted(quantity.network, quantity.value)
    elif quantity.number is not None:
        found = float(printed(quantity.number).value or 0)
    else:
        found = _combined(quantity, [_number(part, runs) for part in quantity.parts])
    factor = printed(quantity.times).value or Fraction(0)
    return found if factor == 1 else float(Fraction(found) * factor)


def _counted(network: str, what: str) -> float:
    """Count the ranks, the nodes or the links of a network."""
    from ..instances import load

    topology = load(network).network
    if not isinstance(topology, Topology):
        raise NotComputedError(f"{network} has no nodes and links")
    return float(
        len(topology.rank_nodes) if what == "ranks" else len(topology.nodes if what == "nodes" else topology.links)
    )


def _number(quantity: Quantity, runs: Runs) -> float:
    value = computed(quantity, runs)
    if isinstance(value, str):
        raise NotComputedError(f"{value!r} is no number")
    return value


def _combined(quantity: Quantity, parts: list[float]) -> float:
    if quantity.ratio is not None:
        if parts[1] == 0:
            raise NotComputedError("a ratio to zero")
        return parts[0] / parts[1]
    if quantity.difference is not None:
        return parts[0] - parts[1]
    name = next(name for name in _COMBINED if getattr(quantity, name) is not None)
    return _COMBINED[name](parts)


def _value(record: RunRecord, name: str, run: str) -> float | str:
    """Take a value out of a record."""
    if record.status == "error" or record.verified is False:
        raise NotComputedError(f"{run}: {record.message or '; '.join(record.violations)}")
    field, *keys = name.split(".")
    value = getattr(record, field, None)
    for key in keys:
        value = _part(value, key)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise NotComputedError(f"{run}: no {name}: {record.message or record.status}")
    return _plain(value)


def _part(value: object, key: str) -> object:
    """Take an entry of a table or a list; None if there is no such."""
    if isinstance(value, dict):
        return value.get(key)
    if isinstance(value, list | tuple) and key.isdigit() and int(key) < len(value):
        return value[int(key)]
    return None


def _plain(value: float | str) -> float | str:
    """Take a fraction that is written as text for a number."""
    if isinstance(value, str) and (exact := printed(value)).value is not None and not exact.sign:
        return float(exact.value)
    return value


def counts(findings: Iterable[Finding]) -> dict[str, int]:
    """Count the verdicts, every one of them named."""
    found = dict.fromkeys((agreement.value for agreement in Agreement), 0)
    for finding in findings:
        found[finding.agreement.value] += 1
    return found
