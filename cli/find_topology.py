"""``cwb find-topology``: the best network of a size and degree for a job, and its schedule."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.errors import ExitStatus, InputError, OutOfTime
from .options import OUTPUT_FILE, exact_number, parse_duration
from .streams import echo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.instance import Instance
    from ..core.schedule import StepSchedule
    from ..finder.candidates import Candidate
    from ..finder.finder import Choice, Job
    from ..harness.clock import WallClock

#: Collectives that the chosen network's schedule may be for.
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter")


@click.command()
@click.option("--nodes", type=int, required=True, help="Number of nodes.")
@click.option("--degree", type=int, required=True, help="Ports of a node in each direction.")
@click.option("--alpha", default="10 us", show_default=True, help="Latency of a step.")
@click.option(
    "--size",
    "sizes",
    multiple=True,
    default=("1 MiB",),
    show_default=True,
    help="Size of a collective; several, each with its weight: --size '1 MiB:9' --size '1 GiB:1'.",
)
@click.option(
    "--all-to-all-share",
    default="0",
    show_default=True,
    help="Part of the collectives that are all-to-alls, from 0 to 1; the others are all-reduces.",
)
@click.option("--bandwidth", default="100 Gb/s", show_default=True, help="Bandwidth of all ports of a node together.")
@click.option("--bidirectional", is_flag=True, help="Only networks in which every link has one back.")
@click.option("--spare-ports", is_flag=True, help="Let ports be idle, where fewer links are better.")
@click.option(
    "--no-circulants", is_flag=True, help="Leave out circulants by theorem 22 or by search, as in the paper's tables."
)
@click.option(
    "--all-to-all-limit",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    help="Seconds for each linear program; 0 for none.",
)
@click.option(
    "--collective",
    type=click.Choice(COLLECTIVES),
    default="all_reduce",
    show_default=True,
    help="Collective of the schedule.",
)
@click.option("--no-schedule", is_flag=True, help="Do not build and verify the schedule of the best network.")
@click.option("--time-limit", metavar="DURATION", help="Limit of the whole command: 60 (seconds), '5 min'.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.option("--output", "-o", type=OUTPUT_FILE, metavar="JSON", help="Write the best network as an instance file.")
@click.option(
    "--schedule", "schedule_file", type=OUTPUT_FILE, metavar="JSON", help="Write its schedule (.json, .json.gz, .npz)."
)
@click.option("--plot", type=OUTPUT_FILE, help="Draw the frontier: a .svg, .pdf or .png file.")
def find_topology(**given: Any) -> int:
    """Find good networks of a size and degree, and the best of them for a job.

    The search covers the base networks of the direct-connect paper and its expansions: line graphs, degree expansions,
    Cartesian powers and products, unions with the transpose, and parallel links. It also covers circulants, two-way and
    directed, whose offsets are searched. The networks shown are those that no other one beats in both latency and
    bandwidth. Other networks may be better; the lower bound says by how much at most.

    \b
    cwb find-topology --nodes 1024 --degree 4 --alpha "10 us" --size "1 MiB" --bandwidth "100 Gb/s"
    cwb find-topology --nodes 64 --degree 4 --bidirectional -o best.json --schedule schedule.json.gz

    The schedule of the best network is built and verified; the exit status is 5 if it is wrong. When the time is up, or
    at Ctrl-C, before there is a schedule, the networks are still shown, and the exit status is 4.
    """
    from ..finder.finder import average_s, fastest, find
    from ..harness.clock import WallClock
    from ..harness.interrupt import within
    from ..harness.networks import generated
    from .find_topology_table import plain, show

    _check_outputs(given)
    job, clock = _job(given), WallClock(parse_duration(given["time_limit"], "--time-limit"))
    with within(clock):
        choices = find(job, generated)
    rates = _all_to_all([choice.candidate for choice in choices], given["all_to_all_limit"], clock)
    seconds = [average_s(job, choice, rate) for choice, rate in zip(choices, rates, strict=True)]
    best = fastest(choices, seconds)
    found = plain(job, _sizes(given["sizes"]), choices, best, rates, seconds)
    right, stopped = True, ""
    if not given["no_schedule"] or given["output"] or given["schedule_file"]:
        try:
            with within(clock):
                right = _write(job, best, given, found)
        except (OutOfTime, KeyboardInterrupt) as error:
            stopped = str(error) or "interrupted"
    if given["plot"]:
        _draw(given["plot"], found)
    if given["as_json"]:
        echo(json.dumps(found, allow_nan=False))
    else:
        show(found)
    if stopped:
        echo(f"cwb: limit: {stopped}; there is no schedule", err=True)
        return int(ExitStatus.LIMIT)
    return int(ExitStatus.OK if right else ExitStatus.VERIFICATION_FAILED)


def _check_outputs(given: dict[str, Any]) -> None:
    """Reject what cannot be written before anything is computed."""
    if given["schedule_file"] and given["no_schedule"]:
        raise InputError("there is no schedule to write with --no-schedule", source="--schedule")
    if given["plot"]:
        from ..reports.plots import plot_format

        plot_format(given["plot"])


def _job(given: dict[str, Any]) -> Job:
    from ..core.errors import located
    from ..core.units import UnitKind, parse
    from ..finder.finder import Job

    quantities = {}
    for option, kind, zero in (
        ("alpha", UnitKind.TIME, True),
        ("bandwidth", UnitKind.RATE, False),
    ):
        with located(source=f"--{option}"):
            quantities[option] = parse(given[option], kind, allow_zero=zero)
    return Job(
        given["nodes"],
        given["degree"],
        quantities["alpha"],
        _average(_sizes(given["sizes"])),
        quantities["bandwidth"],
        bidirectional=given["bidirectional"],
        spare_ports=given["spare_ports"],
        circulants=not given["no_circulants"],
        searched=not given["no_circulants"],
        all_to_all_share=_number(given["all_to_all_share"], "--all-to-all-share", 1),
    )


def _sizes(texts: Sequence[str]) -> list[tuple[Fraction, Fraction]]:
    """Sizes and weights of texts such as ``1 MiB`` or ``1 MiB:9``."""
    from ..core.errors import located
    from ..core.units import UnitKind, parse

    found = []
    for text in texts:
        size, colon, weight = text.partition(":")
        with located(source="--size"):
            taken = _number(weight, "--size") if colon else Fraction(1)
            found.append((parse(size, UnitKind.SIZE, allow_zero=False), taken))
    if not any(weight for _, weight in found):
        raise InputError("the weights of all sizes are 0", source="--size")
    return found


def _average(sizes: Sequence[tuple[Fraction, Fraction]]) -> Fraction:
    """The average of weighted sizes."""
    return sum((size * weight for size, weight in sizes), Fraction(0)) / sum(weight for _, weight in sizes)


def _number(text: str, option: str, most: int | None = None) -> Fraction:
    """A number of at least 0, exactly."""
    value = exact_number(text)
    if value is None or (most is not None and value > most):
        wanted = "at least 0" if most is None else f"from 0 to {most}"
        raise InputError(f"{text[:40]!r}; expected a number {wanted}", source=option)
    return value


def _instance(job: Job, choice: Choice, collective: str) -> Instance:
    """Make the instance of the chosen network; a link has its part of a node's bandwidth."""
    from ..core.collective import CollectiveKind, Demand
    from ..core.instance import Instance
    from ..harness.networks import network_of

    demand = Demand(CollectiveKind(collective), job.size_bytes)
    network = network_of(choice.candidate, job.bandwidth_Bps / job.degree, job.alpha_s)
    return Instance(str(choice.candidate), network, demand)


def _all_to_all(candidates: Sequence[Candidate], seconds: float, clock: WallClock) -> list[float | None]:
    """Rates of every pair in units of a link; None where the linear program would take too long, or time is up."""
    from ..harness.networks import all_to_all_rate
    from .options import libraries_on_stderr

    rates: list[float | None] = []
    for candidate in candidates:
        left = clock.remaining_s()
        with libraries_on_stderr():
            rates.append(all_to_all_rate(candidate, seconds if left is None else min(seconds, left)))
    return rates


def _write(job: Job, best: Choice, given: dict[str, Any], found: dict[str, Any]) -> bool:
    """Write the best network and its schedule, which is built and verified; give whether it is right."""
    instance = _instance(job, best, given["collective"])
    if given["output"]:
        from ..core.files import write_whole
        from .find_topology_table import instance_data

        write_whole(given["output"], json.dumps(instance_data(instance, found), indent=1).encode())
    if given["no_schedule"]:
        return True
    schedule, report = _scheduled(best, instance)
    found["schedule"] = {
        "collective": given["collective"],
        "steps": schedule.steps,
        "chunks": len(schedule.chunks),
        "sends": len(schedule.sends),
        "verified": not report.violations,
        "violations": [str(violation) for violation in report.violations],
    }
    if given["schedule_file"]:
        from ..schedules.files import write_schedule

        write_schedule(given["schedule_file"], instance, schedule, None, {"model": "topology-finder"})
    return not report.violations


def _scheduled(best: Choice, instance: Instance) -> tuple[StepSchedule, Any]:
    from ..finder.build import schedule
    from ..harness.networks import generated
    from ..schedules.verify import verify

    made = schedule(best.candidate, generated, instance, back=best.back)
    return made, verify(instance, made)


def _draw(path: Path, found: dict[str, Any]) -> None:
    from ..core.files import write_whole
    from ..reports.plots import pareto, plot_format
    from ..reports.plots.look import look, to_bytes

    with look():
        write_whole(path, to_bytes(pareto.draw(found), plot_format(path)))
