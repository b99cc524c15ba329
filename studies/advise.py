"""The verb ``advise``: NCCL's choice, best schedule, bound and measured times by size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core.budget import Progress, ignore
from ..core.errors import InputError
from ..core.files import write_whole
from ..core.option_names import verb
from ..exchange.nccl_graph import ring_channels
from ..exchange.nccl_tests import Measurements, read_measured
from .advice import DEFAULT_MODELS, Advice, advice_of
from .calibrate import measured_collective
from .inputs import Spec, load, seconds_or_none
from .schedule_candidates import DEFAULT_CHUNKS, Choice, counts_of, items_of, machine_and_collective, whole_size


@verb
def advise(
    instance: Spec,
    *,
    collective: str | None = None,
    sizes: str = "1KiB..8GiB",
    measured: str | Path | None = None,
    models: str = DEFAULT_MODELS,
    chunks: str | Sequence[int] = DEFAULT_CHUNKS,
    options: Mapping[str, Any] | None = None,
    graphs: str | Path | None = None,
    time_limit_s: float | None = 300.0,
    run_limit_s: float | None = 10.0,
    links_limit_s: float | None = 60.0,
    output: str | Path | None = None,
    progress: Progress = ignore,
) -> Advice:
    """Report the expected times of a collective on a machine and possible improvements, as ``cwb advise`` does.

    Parameters
    ----------
    sizes : str
        First and last size; the rows are every other power of two.
    measured : str or Path, optional
        File with results of nccl-tests.
    models : str
        Methods in addition to NCCL's, such as ``"ring, dbt, forestcoll k=2"``.
    chunks : str or sequence of int
        Numbers of chunks of each rank's part to try.
    options : mapping, optional
        Options of the method ``nccl``, such as ``{"version": "2.27.3"}``.
    graphs : str or Path, optional
        NCCL's graph file, whose channels are used unchanged.
    time_limit_s, run_limit_s, links_limit_s : float or None
        Seconds for all runs, for each run, and for the value of more bandwidth (0 omits it); None is no limit.
    """
    first, last = _size_range(sizes)
    items, numbers = items_of(models), counts_of(chunks)
    limits = seconds_or_none(time_limit_s, "time_limit_s"), seconds_or_none(run_limit_s, "run_limit_s")
    links_s = seconds_or_none(links_limit_s, "links_limit_s")
    given = dict(options or {})
    if graphs is not None:
        orders, speeds = ring_channels(Path(graphs))
        given |= {"channels": orders, "speeds": speeds}
    posed, kind = machine_and_collective(load(instance), collective)
    choice = Choice(posed, kind, first, last, items, numbers, *limits)
    times: Measurements | None = None
    if measured is not None:
        times = read_measured(Path(measured))
        measured_collective(times, kind.name, str(measured))
    found = advice_of(choice, given, times, links_s, progress)
    if output is not None:
        _write_page(Path(output), found)
    return found


def _size_range(text: str) -> tuple[int, int]:
    ends = text.split("..")
    if len(ends) != 2:
        raise InputError(f"{text[:60]!r}; expected two sizes, such as 1KiB..8GiB", source="--sizes")
    first, last = (whole_size(end.strip(), "--sizes") for end in ends)
    if first > last:
        raise InputError(f"{first:,} B is more than {last:,} B; expected a range of sizes", source="--sizes")
    return first, last


def _write_page(path: Path, found: Advice) -> None:
    from ..reports.advice import advice_page
    from ..reports.plots.advice import draw
    from ..reports.plots.look import look, to_bytes

    plain = found.to_json()
    with look():
        plot = to_bytes(draw(plain), "svg")
    write_whole(path, advice_page(plain, plot).encode(errors="backslashreplace"))
