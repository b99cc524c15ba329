"""``cwb predict``: the time to expect of a collective."""

from __future__ import annotations

import json
from typing import Any

import click

from ..core.option_names import NCCL_COLLECTIVES
from ..core.units import TIMES, amount
from . import completion
from .options import Command, json_flag, options_of, plugin_option
from .streams import echo


@click.command(cls=Command)
@click.argument("instance", shell_complete=completion.complete("instances", files=True))
@click.option("--collective", type=click.Choice(NCCL_COLLECTIVES), help="Collective, instead of the instance's.")
@click.option("--size", default="1 GiB", show_default=True, help="Size of the collective.")
@options_of("the method nccl, such as version")
@json_flag("one JSON object on stdout")
@plugin_option
def predict(instance: str, as_json: bool, **given: Any) -> None:
    """Predict the time of NCCL's collective on INSTANCE, without solving anything.

    \b
    cwb predict "dgx_h100(boxes=2)" --collective all_reduce --size "256 MiB"

    The time is NCCL's own prediction with the overheads that it leaves out, fitted to published results of nccl-tests.
    Nine of ten of these were within the interval. The lower bound is proved, in the time model of cwb.
    """
    from ..studies.predict import predict as expect

    found = expect(instance, **given)
    if as_json:
        echo(json.dumps(found.to_json(), allow_nan=False))
        return
    echo(f"{_time(found.seconds)} expected, {_time(found.low_s)} to {_time(found.high_s)} in nine of ten cases")
    echo(f"{found.busbw_GBps:.4g} GB/s bus bandwidth, as nccl-tests has it")
    echo(f"{found.algorithm} with {found.protocol}: choice of NCCL {found.nccl}, which predicts {_time(found.nccl_s)}")
    echo(f"{_time(found.bound_s)} at least: proved lower bound")
    echo(f"source: {found.source}")


def _time(seconds: float) -> str:
    """Return a time with four digits."""
    return amount(float(f"{seconds:.4g}"), TIMES)
