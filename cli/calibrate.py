"""``cwb calibrate``: scale a machine to the latency and bandwidth that nccl-tests measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.errors import ExitStatus, locate_errors
from ..core.option_names import NCCL_COLLECTIVES
from . import completion
from .options import OUTPUT_FILE, PATH, Command, json_flag, options_of
from .streams import echo

if TYPE_CHECKING:
    from ..studies.calibration import CalibratedMachine


@click.command(cls=Command)
@click.argument("results", type=PATH)
@click.option(
    "--machine",
    required=True,
    metavar="INSTANCE",
    shell_complete=completion.complete_names(completion.instances, files=True),
)
@click.option(
    "--collective", type=click.Choice(NCCL_COLLECTIVES), help="The measured collective, if the file does not name it."
)
@options_of("the method nccl, such as version")
@click.option("--output", "-o", type=OUTPUT_FILE, metavar="JSON", help="Write the machine to this file.")
@json_flag("what was fitted as one JSON object")
def calibrate(
    results: Path, machine: str, collective: str | None, options: dict[str, Any], output: Path | None, as_json: bool
) -> int:
    """Fit latency and bandwidth to RESULTS of nccl-tests, and scale the links of a machine to them.

    \b
    cwb calibrate nccl-tests.txt --machine my.json -o calibrated.json
    cwb calibrate results.json --machine "dgx_h100(boxes=2)" -O version=2.27.3 --json

    RESULTS is the output of nccl-tests or rccl-tests, or the file of -J. The fit is time = latency + size / bandwidth,
    with intervals of 95 %; outliers are listed and excluded. Rates of links are scaled so that the schedule of NCCL has
    the fitted bandwidth, latencies so that it has the fitted latency.
    """
    from ..instances import load
    from ..reports.advice import faster_than_bound
    from ..studies.calibration import calibrate as fit

    with locate_errors(source=machine):
        posed = load(machine)
    found = fit(results, posed, collective=collective, options=options, output=output)
    if found.below_bound:
        echo(f"cwb: {faster_than_bound(found.below_bound, found.suspects)}", err=True)
    if as_json:
        echo(json.dumps(found.to_json(), allow_nan=False))
    else:
        _show(found, machine)
    return int(ExitStatus.OK)


def _show(found: CalibratedMachine, machine: str) -> None:
    fit, measured = found.fit, found.measured
    alpha, rate = fit.latency_s, fit.bandwidth_Bps
    version = f", NCCL {measured.version}" if measured.version else ""
    echo(f"{found.collective.name}{version}: {len(measured.samples)} samples, {fit.samples} of them fitted")
    echo(f"latency    {alpha.value * 1e6:.5g} us, {alpha.low * 1e6:.5g} to {alpha.high * 1e6:.5g}")
    echo(f"bandwidth  {rate.value / 1e9:.5g} GB/s, {rate.low / 1e9:.5g} to {rate.high / 1e9:.5g}")
    echo(f"between    up to {fit.misfit:.3g} times as long as latency + size / bandwidth")
    for one in fit.outliers:
        place = "in place" if one.sample.in_place else "out of place"
        echo(
            f"outlier    {one.sample.size:,} B {place}: {one.sample.seconds * 1e6:.5g} us, expected "
            f"{one.expected_s * 1e6:.5g} us"
        )
    if not fit.outliers:
        echo("outliers   none")
    echo(
        f"{machine}: rates times {found.rate:.4g}, latencies times {found.latency:.4g}, by the schedule of "
        f"{found.schedule}"
    )
    if found.rate > 1 and not found.below_bound:
        text = f"the machine is measured {found.rate:.3g} times as fast as its links are described. "
        echo(text + " ".join(found.suspects), err=True)
