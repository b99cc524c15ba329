"""The verbs ``library_*``: small problems with their best known schedules, bounds and certificates.

``python benchmarks/best_known.py`` makes the files of the folder ``library``.
"""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from math import inf
from pathlib import Path
from typing import Any

from ..core.errors import InputError, did_you_mean
from ..core.instance import Instance
from ..core.option_names import check_name, verb
from ..schedules.files import ScheduleFile, read_schedule, write_schedule
from ..schedules.metrics import SIMULATED, contradictions
from .check import Check, check

FOLDER = Path(__file__).parent / "library"


@verb
def library_list(collective: str | None = None) -> list[dict[str, Any]]:
    """Return the problems with their best known times and bounds, as ``cwb library list --json`` prints them.

    Parameters
    ----------
    collective : str, optional
        Only problems of this collective.
    """
    problems: list[dict[str, Any]] = json.loads((FOLDER / "index.json").read_bytes())["problems"]
    if collective is not None:
        check_name(collective, tuple(dict.fromkeys(each["collective"] for each in problems)), "--collective")
    return [each for each in problems if collective in (None, each["collective"])]


@verb
def library_get(name: str, *, output: str | Path | None = None) -> ScheduleFile:
    """Return the best known schedule of a problem with its instance, as ``cwb library get`` writes it.

    Parameters
    ----------
    name, output : optional
        Name of the problem, and file for the schedule.
    """
    digests = {each["name"]: each["file_sha256"] for each in library_list()}
    path = FOLDER / f"{name}.json.gz"
    if name not in digests:
        text = f"{name!r} is unknown; expected a problem of 'cwb library list'{did_you_mean(name, digests)}"
        raise InputError(text, source="name")
    if sha256(path.read_bytes()).hexdigest() != digests[name]:
        raise InputError("its SHA-256 is not that of the index; install cwb again", source=str(path))
    file = read_schedule(path)
    if output is not None:
        write_schedule(output, *file)
    return file


@verb
def library_submit(schedule: str | Path) -> Check:
    """Verify a schedule and compare its time with the best known one, as ``cwb library submit`` does.

    Parameters
    ----------
    schedule : str or Path
        File of a schedule for a problem of the library.
    """
    digest = digest_of(read_schedule(Path(schedule)).instance)
    best = next((each for each in library_list() if each["problem_sha256"] == digest), None)
    if best is None:
        text = "is not in the library; expected a problem of 'cwb library list'"
        raise InputError(text, source=str(schedule), place="instance")
    checked = check(schedule)
    time, best_s = checked.data["completion_time_s"] or inf, best["time_s"]
    wrong = [*checked.data["violations"], *contradictions(time, best["bound_s"])]
    new = not wrong and time < best_s * (1 - SIMULATED)
    verdict = wrong[-1] if wrong else f"{'NEW BEST, ' if new else ''}{time / best_s:.6g} times the best known time"
    line = f"{best['name']}: {verdict}; best known {best_s:.9g} s, bound {best['bound_s']:.9g} s"
    data = {**checked.data, "verified": not wrong, "violations": wrong, "new_best": new, "best_known": best}
    return Check(data, (*checked.lines, line), not wrong)


def digest_of(instance: Instance) -> str:
    """Return the digest of a problem: of its instance in one chunk and without a grid of constant epochs.

    Completion times and bounds of the library depend on neither.
    """
    timing = instance.timing
    if timing is not None and not timing.changes:
        instance = instance.with_changes(timing=None)
    demand = instance.demand
    return instance.with_changes(demand=None if demand is None else replace(demand, chunks=1)).sha256
