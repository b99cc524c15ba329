"""``cwb import``: files of other programs as instances."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .chakra import import_chakra
from .importing_machines import MACHINES
from .msccl import import_msccl
from .options import OUTPUT_FILE, PATH
from .streams import echo


@click.group(name="import", no_args_is_help=False)
def importing() -> None:
    """Make an instance from files of another program."""


@importing.command()
@click.option("--network", required=True, type=PATH, metavar="YML", help="Topology, NpusCount, CostDimension.")
@click.option("--workload", required=True, type=PATH, metavar="TXT", help="Layers as ASTRA-sim 1.0 text.")
@click.option("--communicator", required=True, type=PATH, metavar="YML", help="Forward, InputGrad, WeightGrad.")
@click.option("--cost-model", required=True, type=PATH, metavar="YML", help="Prices in dollars per GB/s.")
@click.option("--total-bandwidth", metavar="RATE", help="Bandwidth per NPU over all dimensions, such as '1000 GB/s'.")
@click.option("--name", help="Name of the instance; by default such as gpt-3-4d.")
@click.option("--output", "-o", required=True, type=OUTPUT_FILE, metavar="JSON", help="Where the instance is written.")
def libra(
    network: Path,
    workload: Path,
    communicator: Path,
    cost_model: Path,
    total_bandwidth: str | None,
    name: str | None,
    output: Path,
) -> None:
    """Import the input files of the original LIBRA (astra-sim/libra).

    The instance is checked before it is written. Sizes of all-gathers become those of full buffers.

    \b
    cwb import libra --network 4d_network.yml --workload GPT_3.txt --communicator GPT_3_4d.yml \\
        --cost-model 4d_cost_model.yml --total-bandwidth "1000 GB/s" -o gpt-3-4d.json
    """
    from ..core.files import write_whole
    from ..exchange.layout import readable_json
    from ..exchange.libra import LibraFiles, import_libra

    files = LibraFiles(network, workload, communicator, cost_model)
    data = import_libra(files, total_bandwidth=total_bandwidth, name=name)
    write_whole(output, readable_json(data).encode())
    echo(f"{output}: {data['name']}, {data['network']['npus']:,} NPUs", err=True)


@importing.command()
@click.argument("input_file", type=PATH, metavar="JSON")
@click.option(
    "--as-drawn", is_flag=True, help="The network of the paper's figure, where the original's code has another."
)
@click.option("--schedule", type=PATH, metavar="JSON", help="A schedule of the original for this input.")
@click.option("--name", help="Name of the instance; by default the file's.")
@click.option("--output", "-o", required=True, type=OUTPUT_FILE, metavar="JSON", help="Where the result is written.")
def teccl(input_file: Path, as_drawn: bool, schedule: Path | None, name: str | None, output: Path) -> None:
    """Import an input file of the original TE-CCL (microsoft/TE-CCL), or a schedule for it.

    The instance is checked before it is written. The size of a chunk becomes that of the full buffer.
    With --schedule, a schedule file is written, for cwb check and cwb simulate.

    \b
    cwb import teccl ndv2_sample.json -o ndv2.json
    cwb import teccl ndv2_sample.json --schedule 1MB.json -o 1mb-schedule.json
    """
    from ..core.files import write_whole
    from ..exchange.layout import readable_json
    from ..exchange.teccl import import_teccl

    data = import_teccl(input_file, as_drawn=as_drawn, name=name)
    if schedule is not None:
        _write_teccl_schedule(data, input_file, schedule, output)
        return
    write_whole(output, readable_json(data).encode())
    echo(f"{output}: {data['name']}, {data['network']}", err=True)


def _write_teccl_schedule(data: dict[str, Any], input_file: Path, schedule: Path, output: Path) -> None:
    """Write a schedule of the original as a schedule file, and tell the epochs that both count."""
    from ..exchange.teccl import topology_name
    from ..exchange.teccl_schedule import import_schedule
    from ..schedules.epoch_sends import schedule_in_epochs
    from ..schedules.files import write_schedule
    from ..schedules.verify.epochs import finish_epochs

    found = import_schedule(data, topology_name(input_file), schedule)
    timed = schedule_in_epochs(found.instance, found.chunks, found.sends)
    write_schedule(output, found.instance, timed, extra={"source": f"{schedule.name}, a schedule of microsoft/TE-CCL"})
    epochs = finish_epochs(found.instance, timed)
    echo(f"{output}: {len(timed.sends):,} sends, {epochs} epochs; the file says {found.epochs}", err=True)


@importing.command()
@click.argument("source")
@click.option("--bandwidth", metavar="RATE", help="Rate of links without one, in each direction, such as '10 Gb/s'.")
@click.option("--capacity-unit", metavar="UNIT", help="Unit of rates without one (as in SNDlib), such as 'Mb/s'.")
@click.option("--latency", metavar="DURATION", help="Latency of links whose sites have no coordinates.")
@click.option("--name", help="Name of the instance; by default the graph's.")
@click.option("--output", "-o", required=True, type=OUTPUT_FILE, metavar="JSON", help="Where the instance is written.")
def wan(
    source: str, bandwidth: str | None, capacity_unit: str | None, latency: str | None, name: str | None, output: Path
) -> None:
    """Import a wide-area network: GraphML, GML, SNDlib's XML, node-link JSON, or topohub:NAME.

    Latencies are distances over 200,000 km/s, from lengths or coordinates.

    \b
    cwb import wan Abilene.graphml --bandwidth "10 Gb/s" -o abilene.json
    cwb import wan topohub:sndlib/germany50 --bandwidth "10 Gb/s" -o germany50.json
    """
    from ..core.files import write_whole
    from ..exchange.graph_network import Defaults
    from ..exchange.layout import readable_json
    from ..exchange.wan import import_wan

    defaults = Defaults(bandwidth, capacity_unit, latency=latency)
    data = import_wan(source, defaults, name)
    write_whole(output, readable_json(data).encode())
    network = data["network"]
    echo(f"{output}: {data['name']}, {len(network['nodes']):,} sites, {len(network['links']):,} links", err=True)


for command in MACHINES:
    importing.add_command(command)
importing.add_command(import_msccl)
importing.add_command(import_chakra)
