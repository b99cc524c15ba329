"""``cwb import``: instances and schedules from files of other programs."""

from pathlib import Path
from typing import Any

import click

from .options import OUTPUT_FILE, PATH, Command, combine, progress_on_stderr
from .streams import echo

_NVIDIA = ("p100", "v100", "a100", "a800", "h100", "h200", "h20", "h800", "gh200", "b200", "gb200", "b300", "gb300")
_CPUS = ("broadwell", "skylake", "sapphire-rapids", "granite-rapids", "amd", "zhaoxin", "kh-40000", "arm", "power")
_AMD = ("mi50", "mi60", "mi100", "mi300a", "mi300x", "mi325x")

_output = click.option("--output", "-o", required=True, type=OUTPUT_FILE, metavar="JSON", help="Output file.")

_name = combine(click.option("--name", help="Name of the instance; by default the file's."), _output)

_boxes = combine(
    click.option("--boxes", type=click.IntRange(min=1), default=1, help="Number of boxes."),
    click.option("--nic", metavar="RATE", help="Number of NICs used per box and their rate, such as '8 x 400 Gb/s'."),
    click.option("--nics", metavar="NAMES", help="NICs in use, such as mlx5_0,mlx5_1; all by default."),
    click.option("--rails", is_flag=True, help="Connect NIC i of every box to switch i, instead of all to one switch."),
    click.option("--keep-pcie", is_flag=True, help="Keep the whole PCIe tree, even if NVLink connects all GPUs."),
    click.option("--latency", default="0.7 us", help="Latency between two GPUs."),
    click.option("--nic-latency", default="1.3 us", help="Latency between two NICs."),
)

_nvls = click.option(
    "--nvls/--no-nvls",
    default=None,
    help="Whether NVSwitches copy and add (NVLink SHARP); by default those of Hopper and later do.",
)

_rated = click.option(
    "--rates",
    type=click.Choice(["effective", "nominal"]),
    default="effective",
    help="Rates that copies attain, as assumed by NCCL (about 80 %), or those of data sheets.",
)

_cpus = combine(
    click.option("--between-cpus", metavar="RATE", help="Rate between two CPUs, such as '16 GB/s'."),
    click.option("--cpu", type=click.Choice(_CPUS), help="What the CPUs are, for NCCL's rate between two."),
)

_pcie_rates = combine(click.option("--pcie", metavar="RATE", help="Rate of a PCIe link, such as '24 GB/s'."), _cpus)


@click.group(name="import", no_args_is_help=False)
def importing() -> None:
    """Make an instance from files of another program."""


@importing.command(cls=Command)
@click.option("--network", required=True, type=PATH, metavar="YML", help="Topology, NpusCount, CostDimension.")
@click.option("--workload", required=True, type=PATH, metavar="TXT", help="Layers as ASTRA-sim 1.0 text.")
@click.option("--communicator", required=True, type=PATH, metavar="YML", help="Forward, InputGrad, WeightGrad.")
@click.option("--cost-model", required=True, type=PATH, metavar="YML", help="Prices in dollars per GB/s.")
@click.option("--total-bandwidth", metavar="RATE", help="Bandwidth per NPU over all dimensions, such as '1000 GB/s'.")
@click.option("--name", help="Name of the instance; by default such as gpt-3-4d.")
@_output
def libra(**options: Any) -> None:
    """Import the input files of the original LIBRA (astra-sim/libra).

    The instance is checked before it is written. Sizes of all-gathers become those of full buffers.

    \b
    cwb import libra --network 4d_network.yml --workload GPT_3.txt --communicator GPT_3_4d.yml \\
        --cost-model 4d_cost_model.yml --total-bandwidth "1000 GB/s" -o gpt-3-4d.json
    """
    _import("libra", **options)


@importing.command(cls=Command)
@click.argument("input_file", type=PATH, metavar="JSON")
@click.option(
    "--as-drawn", is_flag=True, help="Use the network of the paper's figure if it differs from the original's code."
)
@click.option("--schedule", type=PATH, metavar="JSON", help="A schedule of the original for this input.")
@_name
def teccl(**options: Any) -> None:
    """Import an input file of the original TE-CCL (microsoft/TE-CCL), or a schedule for it.

    The instance is checked before it is written. The size of a chunk becomes that of the full buffer.
    With --schedule, a schedule file is written, for cwb check and cwb simulate.

    \b
    cwb import teccl ndv2_sample.json -o ndv2.json
    cwb import teccl ndv2_sample.json --schedule 1MB.json -o 1mb-schedule.json
    """
    _import("teccl", **options)


@importing.command(cls=Command)
@click.argument("source")
@click.option("--bandwidth", metavar="RATE", help="Rate of links without one, in each direction, such as '10 Gb/s'.")
@click.option(
    "--capacity-unit",
    "bandwidth_unit",
    metavar="UNIT",
    help="Unit of rates without one (as in SNDlib), such as 'Mb/s'.",
)
@click.option("--latency", metavar="DURATION", help="Latency of links whose sites have no coordinates.")
@click.option("--name", help="Name of the instance; by default the graph's.")
@_output
def wan(**options: Any) -> None:
    """Import a wide-area network: GraphML, GML, SNDlib's XML, node-link JSON, or topohub:NAME.

    Latencies are distances over 200,000 km/s, from lengths or coordinates.

    \b
    cwb import wan Abilene.graphml --bandwidth "10 Gb/s" -o abilene.json
    cwb import wan topohub:sndlib/germany50 --bandwidth "10 Gb/s" -o germany50.json
    """
    _import("wan", **options)


@importing.command(cls=Command)
@click.argument("file", type=PATH, metavar="XML")
@_rated
@click.option("--generation", type=click.Choice(_NVIDIA), help="GPU model, if the file has only the PCIe tree.")
@click.option("--nvlink", metavar="LINKS", help="NVLinks of a GPU, for such a file, as '12 x 25 GB/s'.")
@click.option("--wiring", type=click.Choice(["switch", "mesh", "hybrid-cube-mesh"]), help="Topology of these NVLinks.")
@click.option("--no-nvlink", is_flag=True, help="There are no NVLinks.")
@_cpus
@click.option(
    "--graph", type=click.IntRange(0, 100), default=0, help="Number of the graph in a graph file; 0 is the rings."
)
@_nvls
@_boxes
@_name
def nccl(**options: Any) -> None:
    """Import a topology of NCCL or RCCL (NCCL_TOPO_DUMP_FILE, NCCL_TOPO_FILE), or a graph (NCCL_GRAPH_DUMP_FILE).

    Files of clouds have only the PCIe tree; --generation, --nvlink or --no-nvlink adds the NVLinks.

    \b
    cwb import nccl topo.xml -o box.json
    cwb import nccl ndv4-topo.xml --generation a100 --boxes 4 --nic "8 x 200 Gb/s" -o ndv4.json
    cwb import nccl graph.xml --graph 1 -o trees.json
    """
    _import("nccl", **options)


@importing.command("nvidia-smi", cls=Command)
@click.argument("files", type=PATH, metavar="TXT...", nargs=-1, required=True)
@_rated
@click.option("--generation", type=click.Choice(_NVIDIA), help="The GPU, where the text does not name it.")
@click.option("--nvlink", metavar="LINKS", help="NVLinks of a GPU and the rate of one, as '18 x 25 GB/s'.")
@click.option(
    "--rack", type=click.IntRange(2, 1024), help="GPUs of a rack, such as 72, if the text is that of one of its trays."
)
@_pcie_rates
@_nvls
@_boxes
@_name
def nvidia_smi(**options: Any) -> None:
    """Import the text of nvidia-smi topo -m.

    With that of nvidia-smi -L or nvidia-smi nvlink -s, in the same file or another one, --generation is unnecessary.

    \b
    (nvidia-smi -L; nvidia-smi topo -m) > topo.txt
    cwb import nvidia-smi topo.txt -o box.json
    cwb import nvidia-smi topo.txt --boxes 4 --nic "8 x 400 Gb/s" --rails -o cluster.json
    cwb import nvidia-smi tray.txt --rack 72 --boxes 2 --nic "4 x 400 Gb/s" --rails -o racks.json
    """
    _import("nvidia_smi", **options)


@importing.command("rocm-smi", cls=Command)
@click.argument("file", type=PATH, metavar="TXT")
@_rated
@click.option("--generation", type=click.Choice(_AMD), help="GPU model, if every pair has one xGMI link.")
@click.option("--xgmi", metavar="LINKS", help="xGMI links of a pair and the rate of one, as '2 x 50 GB/s'.")
@_pcie_rates
@_boxes
@_name
def rocm_smi(**options: Any) -> None:
    """Import the text of rocm-smi --showtopo.

    \b
    cwb import rocm-smi topo.txt --generation mi300x -o box.json
    """
    _import("rocm_smi", **options)


@importing.command(cls=Command)
@click.argument("file", type=PATH, metavar="YML")
@click.option("--blocks", metavar="LIST", help="Blocks of logical-dims, such as Ring,Switch.")
@click.option("--bandwidth", metavar="LIST", help="Rate of a link in each of them, such as '200 GB/s,50 GB/s'.")
@click.option("--latency", metavar="LIST", help="Latency of a link in each of them, such as '50 ns,2 us'.")
@click.option(
    "--fabric", is_flag=True, help="Write a network of dimensions, for bandwidth designs, instead of a graph."
)
@_name
def astra(**options: Any) -> None:
    """Import a network of ASTRA-sim's analytical backend, or the logical dimensions of its ns-3 backend.

    \b
    cwb import astra HGX-H100.yml -o h100.json
    cwb import astra logical.json --blocks Ring,Switch --bandwidth "50 GB/s,25 GB/s" --latency "1 us,2 us" -o l.json
    """
    _import("astra", **options)


@importing.command(cls=Command)
@click.argument("file", type=PATH, metavar="JSON")
@click.option("--sketch", type=PATH, metavar="JSON", help="A sketch: number of boxes, and the senders between them.")
@click.option("--size", metavar="SIZE", help="Data size of the costs; by default as in the name (1MB is 1 MiB).")
@click.option("--time-unit", default="1 us", help="Time of a cost of 1.")
@_name
def taccl(**options: Any) -> None:
    """Import a topology of the original TACCL (microsoft/taccl), for the boxes of a sketch.

    \b
    cwb import taccl topo-ndv2-1MB.json --sketch sk1-ndv2-n2.json -o ndv2x2.json
    """
    _import("taccl", **options)


@importing.command("csv", cls=Command)
@click.argument("file", type=PATH, metavar="CSV")
@click.option("--switches", metavar="PATTERNS", help="Names of the switches, such as 'leaf*,spine*'.")
@click.option("--bandwidth", metavar="RATE", help="Bandwidth of links without one, such as '25 GB/s'.")
@click.option("--latency", metavar="DURATION", help="Latency of links without one; 0 by default.")
@click.option("--one-way", is_flag=True, help="Links lead from source to target only, unless they say otherwise.")
@_name
def links(**options: Any) -> None:
    """Import a list of links: columns source, target, bandwidth, latency, count, bidirectional.

    Links that do not say otherwise have both directions, unless the file has some of them in reverse, too.

    \b
    cwb import csv links.csv --switches "leaf*,spine*" --latency "0.5 us" -o cluster.json
    """
    _import("csv", **options)


@importing.command("msccl", cls=Command)
@click.argument("file", type=PATH, metavar="XML")
@click.option("--topology", required=True, metavar="SPEC", help="The network; GPU i is its rank i.")
@click.option("--size", metavar="SIZE", default="1 GiB", help="Full buffer of the collective.")
@_name
def msccl(**options: Any) -> None:
    """Import an MSCCL algorithm (XML) of any origin as a schedule in steps.

    \b
    cwb import msccl a.xml --topology "dgx_a100()" -o s.json

    It is executed symbolically, and the schedule is verified before it is written; then it can be simulated, drawn and
    compared. SPEC is a file, the name of a shipped instance or an expression such as "torus(4,4)".
    """
    with progress_on_stderr(quiet=False) as progress:
        _import("msccl", progress=progress, **options)


@importing.command("chakra", cls=Command)
@click.argument("folder", type=PATH, metavar="FOLDER")
@click.option("--topology", required=True, metavar="SPEC", help="The network, with the trace's number of ranks.")
@click.option(
    "--collective", required=True, metavar="NAME", help="Collective of the trace; point_to_point for messages only."
)
@click.option("--size", metavar="SIZE", help="Full buffer of the collective.  [default: the sum of the messages]")
@click.option("--name", help="Name of the instance; by default the folder's.")
@_output
def chakra(**options: Any) -> None:
    """Import the Chakra execution traces in FOLDER, one for each rank, as a schedule in steps.

    \b
    cwb import chakra traces/ --topology "torus(4,4)" --collective all_reduce -o s.json

    The data of a message is inferred from its dependences, and the schedule is verified before it is written. Nodes
    that are whole collectives contain no schedule, and are rejected. Needs protobuf, cwb[chakra].
    """
    with progress_on_stderr(quiet=False) as progress:
        _import("chakra", progress=progress, **options)


def _import(verb: str, /, output: Path, **options: Any) -> None:
    """Call the verb ``import_VERB``, and print a summary of the written file."""
    from ..studies import imports

    echo(f"{output}: {getattr(imports, f'import_{verb}')(output=output, **options).about}", err=True)
