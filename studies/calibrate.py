"""The verb ``calibrate``: a machine with the latency and bandwidth that nccl-tests measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..core.choices import NCCL_COLLECTIVES
from ..core.collective import Collective, collective_named
from ..core.errors import InputError, locate_errors
from ..core.files import write_whole
from ..core.option_names import check_name, verb
from ..exchange.nccl_tests import Measurements, read_measured
from .calibration import CalibratedMachine, calibrate_machine
from .inputs import Spec, load


@verb
def calibrate(
    results: str | Path,
    machine: Spec,
    *,
    collective: str | None = None,
    options: Mapping[str, Any] | None = None,
    output: str | Path | None = None,
) -> CalibratedMachine:
    """Fit latency and bandwidth to results of nccl-tests and scale the links of a machine, as ``cwb calibrate`` does.

    Parameters
    ----------
    results : str or Path
        Output of nccl-tests or rccl-tests, or the file of its ``-J``.
    """
    path = Path(results)
    if collective is not None:
        check_name(collective, NCCL_COLLECTIVES, "--collective")
    measured = read_measured(path)
    kind = measured_collective(measured, collective, str(path))
    posed = load(machine)
    version = f", NCCL {measured.version}" if measured.version else ""
    with locate_errors(source=str(path)):
        found = calibrate_machine(posed, measured, kind, f"nccl-tests in {path.name}{version}", dict(options or {}))
    if output is not None:
        write_whole(Path(output), (json.dumps(found.data, indent=1) + "\n").encode())
    return found


def measured_collective(measured: Measurements, given: str | None, source: str) -> Collective:
    """Return the collective that a file of nccl-tests or an option names."""
    kind = measured.collective or (None if given is None else collective_named(given))
    if kind is None:
        raise InputError("names no program such as all_reduce_perf; expected --collective", source=source)
    if given is not None and kind.name != given:
        raise InputError(f"has times of {kind.name}, not of {given}", source=source)
    if kind.name not in NCCL_COLLECTIVES:
        raise InputError(f"has times of {kind.name}; expected one of {', '.join(NCCL_COLLECTIVES)}", source=source)
    return kind
