"""The best of several schedules for every size, as programs of a runtime."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from inspect import getsource
from itertools import combinations
from math import inf
from operator import truediv
from pathlib import Path
from typing import Any

from ..core.budget import Progress, ignore
from ..core.collective import Collective
from ..core.errors import InputError
from ..core.files import check_new, new_folder
from ..core.option_names import PLACEMENTS, PROTOCOLS, RUNTIMES, check_name, verb
from ..core.solver import relative_gap
from ..exchange.msccl.check import LOADED, check_file, config_text, faults
from ..exchange.msccl.dialects import dialect_of
from ..exchange.msccl.files import xml_text
from ..exchange.msccl.flow import flow_of
from ..exchange.msccl.lower import Target, lower
from ..exchange.msccl.program import Algorithm
from ..exchange.mscclpp import register_plans
from ..exchange.mscclpp.check import check_file as check_plan
from ..exchange.mscclpp.files import json_text
from ..exchange.mscclpp.lower import Target as PlanTarget
from ..exchange.mscclpp.lower import lower as lower_plan
from ..exchange.mscclpp.plan import Plan
from ..exchange.nccl import TUNED, selection_text, tuner_text
from ..heuristics.nccl.method import expected_seconds, prediction, study_options, supports
from ..heuristics.nccl.model import Pick
from ..schedules.completion import OF_FORESTS, OF_SCHEDULES
from ..schedules.files import write_schedule
from .fastest_by_size import fastest, limit_spans, sizes_between
from .inputs import Spec, whole
from .schedule_candidates import (
    DEFAULT_CHUNKS,
    DEFAULT_MODELS,
    Candidate,
    Candidates,
    Choice,
    candidates,
    choice_of,
    distinct_candidates,
    flow_bound,
    size_ends,
)

SCHEMA = "cwb-select/1"

AnyTarget = Target | PlanTarget
Program = Algorithm | Plan

MOST_FILES = 8  #: Files of a folder, where the runtime loads any number.

#: UCC's names of the collectives whose k-nomial trees are those of the method ``knomial``, and whether it has others.
_UCC_NAMES = {
    Collective.BROADCAST: ("bcast", True),
    Collective.REDUCE: ("reduce", True),
    Collective.GATHER: ("gather", False),
}


@dataclass(frozen=True, eq=False)
class SelectedSchedule:
    """The program of the fastest schedule for a range of sizes."""

    first: int
    last: int
    candidate: Candidate
    algorithm: Program

    @property
    def file(self) -> str:
        """Name of the program's file."""
        return f"{self.algorithm.name}.{'json' if isinstance(self.algorithm, Plan) else 'xml'}"


@dataclass(frozen=True, eq=False)
class Selection:
    """A program for every size."""

    choice: Choice
    target: AnyTarget
    ranges: tuple[SelectedSchedule, ...]  #: Contiguous ranges of sizes, in ascending order.
    candidates: tuple[Candidate, ...]
    left_out: Mapping[str, str]  #: Reasons of methods that are not among them.
    results: Candidates

    @property
    def runtime(self) -> str:
        """Name of the runtime."""
        return self.target.dialect.name if isinstance(self.target, Target) else "mscclpp"

    def nccl_files(self) -> dict[str, str]:
        """Return files for NCCL by name: algorithms and protocols of the least expected time, if it predicts any."""
        choice = self.choice
        problem = choice.with_size(choice.last, 1)
        if choice.kind not in TUNED or supports(problem):
            return {}
        forecast = prediction(problem, study_options({}))
        offered = [at for at, cost in forecast.costs.items() if cost.bandwidth_GBps]
        if not offered:
            return {}
        curves = [cache(partial(expected_seconds, forecast, Pick(*at, inf))) for at in offered]
        spans = [
            (first, last, offered[at][0].value, offered[at][1].value)
            for first, last, at in fastest(curves, choice.first, choice.last)
        ]
        texts = tuner_text(choice.kind, spans, choice.ranks), selection_text(choice.kind, spans)
        return dict(zip(("nccl_tuner.conf", "nccl_selection.csv"), texts, strict=True))

    def ucc_files(self) -> dict[str, str]:
        """Return the file for UCC by name: its k-nomial tree, with the radix of the least largest slow-down."""
        choice = self.choice
        trees = [one for one in self.candidates if one.item.model == "knomial"]
        if choice.kind not in _UCC_NAMES or len({str(one.item.options.get("k", 2)) for one in trees}) < 2:
            return {}
        sizes = sizes_between(choice.first, choice.last)
        least_s = [min(one.seconds(size) for one in trees) for size in sizes]
        best = min(trees, key=lambda one: max(map(truediv, map(one.seconds, sizes), least_s)))
        name, others = _UCC_NAMES[choice.kind]
        text = f"UCC_TL_UCP_{name.upper()}_KN_RADIX={best.item.options.get('k', 2)}\n"
        if others:  # by default UCC takes its k-nomial tree up to 32 KiB
            text += f"UCC_TL_UCP_TUNE={name}:{choice.first}-{choice.last}:@knomial\n"
        return {"ucc.env": text}

    def to_json(self) -> dict[str, Any]:
        """Return the output of ``cwb select --json``."""
        choice = self.choice
        sizes = sizes_between(choice.first, choice.last)
        return {
            "schema": SCHEMA,
            "instance": choice.instance.name,
            "collective": choice.kind.name,
            "ranks": choice.ranks,
            "dialect": self.runtime,
            "min_bytes": choice.first,
            "max_bytes": choice.last,
            "clock": [OF_SCHEDULES, OF_FORESTS],
            "ranges": [self._range(one) for one in self.ranges],
            "crossovers": [one.first for one in self.ranges[1:]],
            "sizes": sizes,
            "curves": [
                {"schedule": one.label, "seconds": [one.seconds(size) for size in sizes]} for one in self.candidates
            ],
            "left_out": dict(self.left_out),
        }

    def _range(self, one: SelectedSchedule) -> dict[str, Any]:
        best, ends = one.candidate, (one.first, one.last)
        seconds = [best.seconds(size) for size in ends]
        bounds = [self.choice.bound(size, self.results.flow_s_per_byte) for size in ends]
        return {
            "min_bytes": one.first,
            "max_bytes": one.last,
            "schedule": best.label,
            "model": best.item.model,
            "options": dict(best.item.options),
            "chunks": best.chunks,
            "file": one.file,
            "seconds": seconds,
            "algbw_GBps": [size * best.unit / time / 1e9 for size, time in zip(ends, seconds, strict=True)],
            "bound_s": bounds,
            "gap": [relative_gap(time, bound) for time, bound in zip(seconds, bounds, strict=True)],
            "steps": one.algorithm.steps,
        }


def select_schedules(choice: Choice, results: Candidates, target: AnyTarget, most: int | None = None) -> Selection:
    """Choose, for every size, the fastest candidate whose program fits the runtime, the target.

    Candidates with the same program, such as one with joined chunks and one without chunks, count as one. There are at
    most ``most`` files, by default :data:`MOST_FILES`, or the limit of the runtime.
    """
    left_out, programs = dict(results.left_out), dict[Candidate, Program]()
    some = distinct_candidates(results, choice)
    exclusive = isinstance(target, Target) and target.dialect.exclusive
    most = most or (LOADED.get(target.dialect.name) if isinstance(target, Target) else None) or MOST_FILES
    while some:
        spans = limit_spans([one.seconds for one in some], choice.first, choice.last, most)
        winners = [some[curve] for curve in dict.fromkeys(span.curve for span in spans)]
        misfit = next((one for one in winners if not _fits(one, target, programs, left_out)), None)
        if misfit is not None:
            some.remove(misfit)
            continue
        twins = next(
            (pair for pair in combinations(winners, 2) if programs[pair[0]].gpus == programs[pair[1]].gpus), None
        )
        if twins is None:
            ranges = []
            for number, (first, last, curve) in enumerate(spans, start=1):
                name = f"{choice.kind.name}-{number}-{some[curve].item.model}"
                program = replace(programs[some[curve]], name=name, min_bytes=first, max_bytes=last + exclusive)
                ranges.append(SelectedSchedule(first, last, some[curve], program))
            return Selection(choice, target, tuple(ranges), tuple(some), left_out | results.left_out, results)
        joined = twins[0].join(twins[1])
        programs[joined] = programs[twins[0]]
        some[some.index(twins[0])] = joined
        some.remove(twins[1])
    why = "; ".join(f"{label}: {text}" for label, text in list((left_out | results.left_out).items())[:3])
    raise InputError(f"no schedule of {choice.kind.name} can be used" + (f" ({why}, ...)" if why else ""))


def _fits(one: Candidate, target: AnyTarget, programs: dict[Candidate, Program], left_out: dict[str, str]) -> bool:
    """Return True if the program of a candidate fits, and keep it; otherwise keep the reason."""
    if one not in programs:
        try:
            flow = flow_of(one.instance, one.answer)
            programs[one] = lower(flow, target) if isinstance(target, Target) else lower_plan(flow, target)
        except InputError as error:
            left_out[one.label] = str(error)
            return False
    return True


@verb
def select(
    instance: Spec,
    *,
    collective: str | None = None,
    output: str | Path | None = None,
    min_bytes: str = "1 KiB",
    max_bytes: str = "1 GiB",
    models: str = DEFAULT_MODELS,
    chunks: str | Sequence[int] = DEFAULT_CHUNKS,
    dialect: str = "msccl",
    proto: str = "Simple",
    placement: str = "out",
    instances: int = 1,
    files: int | None = None,
    time_limit_s: float | None = 300.0,
    run_limit_s: float | None = 10.0,
    progress: Progress = ignore,
) -> Selection:
    """Choose the best of several schedules for every size of a collective, as ``cwb select`` does.

    Parameters
    ----------
    output : str or Path, optional
        A new folder for programs, schedules, a table and a plot; None writes nothing.
    dialect : str
        The runtime: that of :func:`export_msccl`, or ``mscclpp`` for plans as of :func:`export_mscclpp`.
    proto, placement, instances
        Properties of the programs as in these functions; plans are for ``Simple`` or ``LL``, and ``out`` or ``in``.
    files : int, optional
        Largest number of files; by default the runtime's limit.
    """
    folder = None if output is None else Path(output)
    if folder is not None:
        check_new(folder)
    first, last = size_ends(min_bytes, max_bytes, "--min-bytes", "--max-bytes")
    of_plans = check_name(dialect, RUNTIMES, "--dialect") == "mscclpp"
    check_name(proto, ("Simple", "LL") if of_plans else PROTOCOLS, "--proto")
    check_name(placement, ("out", "in") if of_plans else PLACEMENTS, "--placement")
    copies = whole(instances, "instances", 1, 128)
    if of_plans:
        target: AnyTarget = PlanTarget(protocol=proto, instances=copies, inplace=placement == "in")
    else:
        target = Target(dialect_of(dialect), proto=proto, instances=copies, placement=placement)
    target = replace(target, min_bytes=first, max_bytes=last)
    most = None if files is None else whole(files, "files", 1, 1024)
    choice = choice_of(instance, collective, first, last, models, chunks, time_limit_s, run_limit_s)
    clock = choice.clock(5.0 if folder else 2.0)  # writing includes a plot and a check of all programs
    flow_s_per_byte = flow_bound(choice, clock=clock)
    results = candidates(choice, progress, clock=clock, compared=sizes_between(first, last))
    progress("comparing, and writing programs")
    results.flow_s_per_byte = flow_s_per_byte
    selection = select_schedules(choice, results, target, most)
    if folder is not None:
        with new_folder(folder) as into:
            _write_folder(into, folder.absolute(), selection)
    return selection


def _write_folder(into: Path, folder: Path, selection: Selection) -> None:
    """Write all files into ``into``, to be renamed to ``folder``, and check the programs as a runtime loads them."""
    from ..reports.plots.look import draw_as
    from ..reports.plots.studies import draw_selection
    from ..reports.studies import selection_csv, selection_markdown

    programs, schedules = into / "algorithms", into / "schedules"
    programs.mkdir()
    schedules.mkdir()
    for one in selection.ranges:
        lines = json_text(one.algorithm) if isinstance(one.algorithm, Plan) else xml_text(one.algorithm)
        (programs / one.file).write_bytes("".join(lines).encode())
        best = one.candidate
        extra = {"model": best.item.model, "options": dict(best.item.options)}
        write_schedule(schedules / f"{one.algorithm.name}.json", best.instance, best.answer, None, extra)
    texts = {}
    if isinstance(selection.target, Target):
        dialect, choice = selection.target.dialect, selection.choice
        checked = [check_file(programs / one.file, [dialect]) for one in selection.ranges]
        wrong = faults(checked, choice.first, choice.last, dialect)
        if not dialect.placed:
            rows = [(folder / "algorithms" / one.path.name, one.algorithm) for one in checked]
            texts["msccl.conf"] = config_text(rows)
    else:
        wrong = [problem for one in selection.ranges for problem in check_plan(programs / one.file).problems]
        texts["register_plans.py"] = getsource(register_plans)
    for fault in wrong[:1]:
        raise InputError(f"the files do not pass the check: {fault}")
    plain = selection.to_json()
    records = (json.dumps(record.to_json(), allow_nan=False) for record in selection.results.records)
    texts |= {
        "select.json": json.dumps(plain, indent=1, allow_nan=False) + "\n",
        "select.csv": selection_csv(plain),
        "select.md": selection_markdown(plain),
        "records.jsonl": "".join(f"{record}\n" for record in records),
        **selection.nccl_files(),
        **selection.ucc_files(),
    }
    for name, text in texts.items():
        (into / name).write_bytes(text.encode(errors="surrogateescape" if name == "msccl.conf" else "backslashreplace"))
    (into / "select.svg").write_bytes(draw_as("svg", draw_selection, plain))
