"""``cwb calibrate``: a machine with the latency and the bandwidth that nccl-tests measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.errors import ExitStatus, InputError, located
from . import completion
from .options import OUTPUT_FILE, PATH
from .streams import echo

if TYPE_CHECKING:
    from ..core.collective import CollectiveKind
    from ..core.instance import Instance
    from ..exchange.nccl_tests import Measured
    from ..harness.calibration import Calibrated

#: Collectives that both nccl-tests and the method ``nccl`` have.
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")


@click.command()
@click.argument("results", type=PATH)
@click.option(
    "--machine", required=True, metavar="INSTANCE", shell_complete=completion.of(completion.instances, files=True)
)
@click.option(
    "--collective", type=click.Choice(COLLECTIVES), help="What was measured, where the file does not name it."
)
@click.option(
    "-O", "options", multiple=True, metavar="NAME=VALUE", help="An option of the method nccl, such as version."
)
@click.option("--output", "-o", type=OUTPUT_FILE, metavar="JSON", help="Write the machine to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print what was fitted as one JSON object.")
def calibrate(
    results: Path, machine: str, collective: str | None, options: tuple[str, ...], output: Path | None, as_json: bool
) -> int:
    """Fit latency and bandwidth to RESULTS of nccl-tests, and scale the links of a machine to them.

    \b
    cwb calibrate nccl-tests.txt --machine my.json -o calibrated.json
    cwb calibrate results.json --machine "dgx_h100(boxes=2)" -O version=2.27.3 --json

    RESULTS is what nccl-tests or rccl-tests printed, or the file of -J. The fit is time = latency + size / bandwidth, with
    intervals of 95 %; samples that are far from those beside them are named and left out. Rates of links are scaled so
    that the schedule of NCCL has the fitted bandwidth, latencies so that it has the fitted latency.
    """
    from ..core.files import write_whole
    from ..exchange.nccl_tests import read_measured
    from ..harness.calibration import calibrated
    from ..instances import load
    from .options import parse_options

    measured = read_measured(results)
    kind = kind_of(measured, collective, str(results))
    with located(source=machine):
        posed: Instance = load(machine)
    told = f"nccl-tests in {results.name}" + (f", NCCL {measured.version}" if measured.version else "")
    with located(source=str(results)):
        found = calibrated(posed, measured, kind, told, parse_options(options))
    if output is not None:
        write_whole(output, (json.dumps(found.data, indent=1) + "\n").encode())
    if as_json:
        echo(json.dumps(_plain(found, measured, kind), allow_nan=False))
    else:
        _show(found, measured, kind, machine)
    return int(ExitStatus.OK)


def kind_of(measured: Measured, given: str | None, source: str) -> CollectiveKind:
    """The collective that a file or an option names.

    Raises
    ------
    InputError
        If neither does, they differ, or NCCL's algorithms are not for it.
    """
    from ..core.collective import CollectiveKind

    if given is None and measured.collective is None:
        raise InputError("names no program such as all_reduce_perf; --collective says what was measured", source=source)
    kind = measured.collective or CollectiveKind(given)
    if given is not None and kind.value != given:
        raise InputError(f"has times of {kind.value}, not of {given}", source=source)
    if kind.value not in COLLECTIVES:
        raise InputError(f"has times of {kind.value}; expected one of {', '.join(COLLECTIVES)}", source=source)
    return kind


def _plain(found: Calibrated, measured: Measured, kind: CollectiveKind) -> dict[str, Any]:
    about = {"schema": "cwb-calibration/1", "collective": kind.value, "ranks": measured.ranks, "nccl": measured.version}
    scaled = {"rate_factor": found.rate, "latency_factor": found.latency, "schedule": found.schedule}
    return {**about, **found.fit.plain(), **scaled}


def _show(found: Calibrated, measured: Measured, kind: CollectiveKind, machine: str) -> None:
    fit = found.fit
    alpha, rate = fit.latency_s, fit.bandwidth_Bps
    version = f", NCCL {measured.version}" if measured.version else ""
    echo(f"{kind.value}{version}: {len(measured.samples)} samples, {fit.samples} of them fitted")
    echo(f"latency    {alpha.value * 1e6:.5g} us, {alpha.low * 1e6:.5g} to {alpha.high * 1e6:.5g}")
    echo(f"bandwidth  {rate.value / 1e9:.5g} GB/s, {rate.low / 1e9:.5g} to {rate.high / 1e9:.5g}")
    echo(f"between    up to {fit.misfit:.3g} times as long as latency + size / bandwidth")
    for one in fit.outliers:
        place = "in place" if one.sample.in_place else "out of place"
        echo(
            f"outlier    {one.sample.size:,} B {place}: {one.sample.seconds * 1e6:.5g} us, expected {one.expected_s * 1e6:.5g} us"
        )
    if not fit.outliers:
        echo("outliers   none")
    echo(
        f"{machine}: rates times {found.rate:.4g}, latencies times {found.latency:.4g}, by the schedule of {found.schedule}"
    )
    if found.rate > 1:
        echo("the machine is measured faster than its links are described", err=True)
