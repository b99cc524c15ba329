"""The verb ``select``: the best of several schedules for every size, as a folder for a runtime."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from ..core.budget import Progress, ignore
from ..core.choices import PLACEMENTS, PROTOCOLS
from ..core.errors import InputError
from ..core.folders import check_new, new_folder
from ..core.option_names import check_name, verb
from ..exchange.msccl.check import check_file
from ..exchange.msccl.dialects import dialect_of
from ..exchange.msccl.folder import config_text, faults
from ..exchange.msccl.lower import Target
from ..exchange.msccl.write import xml_text
from ..schedules.files import write_schedule
from .inputs import Spec, load, seconds_or_none, whole
from .schedule_candidates import (
    DEFAULT_CHUNKS,
    DEFAULT_MODELS,
    Choice,
    candidates,
    counts_of,
    items_of,
    machine_and_collective,
    whole_size,
)
from .selection import Selection, select_schedules


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
    models : str
        Methods to run, such as ``"ring, dbt, forestcoll k=2"``.
    dialect, proto, placement, instances
        Properties of the programs as in :func:`export_msccl`.
    files : int, optional
        Largest number of files; by default the runtime's limit.
    """
    folder = None if output is None else Path(output)
    if folder is not None:
        check_new(folder)
    first, last = whole_size(min_bytes, "--min-bytes"), whole_size(max_bytes, "--max-bytes")
    if first > last:
        raise InputError(f"{first:,} B is more than {last:,} B; expected a range of sizes", source="--min-bytes")
    check_name(proto, PROTOCOLS, "--proto")
    check_name(placement, PLACEMENTS, "--placement")
    copies = whole(instances, "instances", 1, 128)
    target = Target(dialect_of(dialect), "cwb", proto, copies, placement, first, last)
    items, numbers = items_of(models), counts_of(chunks)
    most = None if files is None else whole(files, "files", 1, 1024)
    limits = seconds_or_none(time_limit_s, "time_limit_s"), seconds_or_none(run_limit_s, "run_limit_s")
    posed, kind = machine_and_collective(load(instance), collective)
    choice = Choice(posed, kind, first, last, items, numbers, *limits)
    found = candidates(choice, progress)
    progress("comparing, and writing programs")
    chosen = select_schedules(choice, found, target, most)
    if folder is not None:
        with new_folder(folder) as made:
            _write_folder(made, folder.absolute(), chosen, proto)
    return chosen


def _write_folder(made: Path, folder: Path, chosen: Selection, proto: str) -> None:
    """Write all files into ``made``, to be renamed to ``folder``, and check the programs as a runtime loads them."""
    from ..reports.plots import selection as plot
    from ..reports.plots.look import look, to_bytes
    from ..reports.selection import csv_text, markdown

    _write_programs(made, folder, chosen)
    _write_schedules(made, chosen)
    plain = chosen.to_json()
    records = (json.dumps(record.to_json(), allow_nan=False) for record in chosen.found.records)
    texts = {
        "select.json": json.dumps(plain, indent=1, allow_nan=False) + "\n",
        "select.csv": csv_text(plain),
        "select.md": markdown(plain),
        "records.jsonl": "".join(f"{record}\n" for record in records),
        "nccl_tuner.conf": chosen.tuner(proto),
    }
    for name, text in texts.items():
        if text is not None:
            (made / name).write_bytes(text.encode(errors="backslashreplace"))
    with look():
        (made / "select.svg").write_bytes(to_bytes(plot.draw(plain), "svg"))


def _write_programs(made: Path, folder: Path, chosen: Selection) -> None:
    """Write and check the programs and the list for microsoft/msccl."""
    programs = made / "algorithms"
    programs.mkdir()
    for one in chosen.ranges:
        (programs / one.file).write_bytes("".join(xml_text(one.algorithm)).encode())
    checked = [check_file(programs / one.file, [chosen.dialect]) for one in chosen.ranges]
    for fault in faults(checked, chosen.choice.first, chosen.choice.last, chosen.dialect)[:1]:
        raise InputError(f"the files do not pass the check: {fault}")
    if not chosen.dialect.placed:
        listed = [(folder / "algorithms" / one.file, one.algorithm) for one in chosen.ranges]
        (made / "msccl.conf").write_bytes(config_text(listed).encode(errors="surrogateescape"))


def _write_schedules(made: Path, chosen: Selection) -> None:
    """Write the schedule of every program at its original size."""
    schedules = made / "schedules"
    schedules.mkdir()
    for one in chosen.ranges:
        candidate = one.candidate
        extra = {"model": candidate.item.model, "options": dict(candidate.item.options)}
        write_schedule(schedules / f"{one.algorithm.name}.json", candidate.instance, candidate.answer, None, extra)
