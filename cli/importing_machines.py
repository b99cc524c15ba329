"""``cwb import nccl``, ``nvidia-smi``, ``rocm-smi``, ``astra``, ``taccl`` and ``csv``: machines of other programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..core.errors import located
from .options import OUTPUT_FILE, PATH
from .streams import echo

if TYPE_CHECKING:
    from fractions import Fraction

    from ..exchange.box import Layout, Times
    from ..exchange.link_rates import Rates, Rating

_Command = TypeVar("_Command", bound=Callable[..., None])

_NVIDIA = ("p100", "v100", "a100", "a800", "h100", "h200", "h20", "h800", "gh200", "b200", "gb200", "b300", "gb300")
_AMD = ("mi50", "mi60", "mi100", "mi300a", "mi300x", "mi325x")


def _options(*options: Callable[[Any], Any]) -> Callable[[_Command], _Command]:
    """Several options as one decorator, in the order in which help lists them."""

    def decorate(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


_named = _options(
    click.option("--name", help="Name of the instance; by default the file's."),
    click.option(
        "--output", "-o", required=True, type=OUTPUT_FILE, metavar="JSON", help="Where the instance is written."
    ),
)

_joined = _options(
    click.option("--boxes", type=click.IntRange(min=1), default=1, help="Number of such boxes; 1 by default."),
    click.option("--nic", metavar="RATE", help="Rate of a NIC, and how many a box uses, such as '8 x 400 Gb/s'."),
    click.option("--nics", metavar="NAMES", help="NICs in use, such as mlx5_0,mlx5_1; all by default."),
    click.option("--rails", is_flag=True, help="NIC i of every box is on switch i; without, all are on one switch."),
    click.option("--keep-pcie", is_flag=True, help="Keep all of the PCIe tree, also where NVLink joins all GPUs."),
    click.option("--latency", default="0.7 us", help="Between two GPUs; 0.7 us by default."),
    click.option("--nic-latency", default="1.3 us", help="Between two NICs; 1.3 us by default."),
)

_rated = click.option(
    "--rates",
    type=click.Choice(["effective", "nominal"]),
    default="effective",
    help="Rates that copies attain, as NCCL counts (about 80 %), or those of data sheets.",
)

_pcie_rates = _options(
    click.option("--pcie", metavar="RATE", help="Rate of a PCIe link, such as '24 GB/s'."),
    click.option("--between-cpus", metavar="RATE", help="Rate between two CPUs, such as '16 GB/s'."),
)


@click.command()
@click.argument("file", type=PATH, metavar="XML")
@_rated
@click.option("--generation", type=click.Choice(_NVIDIA), help="The GPU, where the file has the PCIe tree alone.")
@click.option("--nvlink", metavar="LINKS", help="NVLinks of a GPU, in such a file, as '12 x 25 GB/s'.")
@click.option("--wiring", type=click.Choice(["switch", "mesh", "hybrid-cube-mesh"]), help="Where these NVLinks lead.")
@click.option("--no-nvlink", is_flag=True, help="There are none.")
@click.option("--graph", type=click.IntRange(0, 100), default=0, help="The graph of a graph file; 0, the rings.")
@_joined
@_named
def nccl(
    file: Path,
    rates: str,
    generation: str | None,
    nvlink: str | None,
    wiring: str | None,
    no_nvlink: bool,
    graph: int,
    name: str | None,
    output: Path,
    **joined: Any,
) -> None:
    """Import a topology of NCCL or RCCL (NCCL_TOPO_DUMP_FILE, NCCL_TOPO_FILE), or a graph (NCCL_GRAPH_DUMP_FILE).

    Files of clouds have only the PCIe tree; --generation, --nvlink or --no-nvlink adds the NVLinks.

    \b
    cwb import nccl topo.xml -o box.json
    cwb import nccl ndv4-topo.xml --generation a100 --boxes 4 --nic "8 x 200 Gb/s" -o ndv4.json
    cwb import nccl graph.xml --graph 1 -o trees.json
    """
    from ..exchange.box import Wiring
    from ..exchange.nccl_topology import Missing, import_nccl

    given = None if nvlink is None else _times("--nvlink", nvlink, counted=True)
    missing = Missing(generation, given, Wiring(wiring) if wiring else None, no_nvlink)
    _write(import_nccl(file, _layout(**joined), _rating(rates), missing, graph=graph, name=name), output)


@click.command("nvidia-smi")
@click.argument("files", type=PATH, metavar="TXT...", nargs=-1, required=True)
@_rated
@click.option("--generation", type=click.Choice(_NVIDIA), help="The GPU, where the text does not name it.")
@click.option("--nvlink", metavar="LINKS", help="NVLinks of a GPU and the rate of one, as '18 x 25 GB/s'.")
@_pcie_rates
@_joined
@_named
def nvidia_smi(
    files: tuple[Path, ...],
    rates: str,
    generation: str | None,
    nvlink: str | None,
    pcie: str | None,
    between_cpus: str | None,
    name: str | None,
    output: Path,
    **joined: Any,
) -> None:
    """Import the text of nvidia-smi topo -m.

    With that of nvidia-smi -L or nvidia-smi nvlink -s, in the same file or another one, the GPU need not be said.

    \b
    (nvidia-smi -L; nvidia-smi topo -m) > topo.txt
    cwb import nvidia-smi topo.txt -o box.json
    cwb import nvidia-smi topo.txt --boxes 4 --nic "8 x 400 Gb/s" --rails -o cluster.json
    """
    from ..exchange.nvidia_smi import import_nvidia_smi

    given = None if nvlink is None else _times("--nvlink", nvlink, counted=True)
    told = _rates(rates, generation, given, pcie, between_cpus)
    _write(import_nvidia_smi(files, _layout(**joined), told, name=name), output)


@click.command("rocm-smi")
@click.argument("file", type=PATH, metavar="TXT")
@_rated
@click.option("--generation", type=click.Choice(_AMD), help="The GPU, where a pair has one xGMI link.")
@click.option("--xgmi", metavar="LINKS", help="xGMI links of a pair and the rate of one, as '2 x 50 GB/s'.")
@_pcie_rates
@_joined
@_named
def rocm_smi(
    file: Path,
    rates: str,
    generation: str | None,
    xgmi: str | None,
    pcie: str | None,
    between_cpus: str | None,
    name: str | None,
    output: Path,
    **joined: Any,
) -> None:
    """Import the text of rocm-smi --showtopo.

    \b
    cwb import rocm-smi topo.txt --generation mi300x -o box.json
    """
    from ..exchange.rocm_smi import import_rocm_smi

    given = None if xgmi is None else _times("--xgmi", xgmi)
    told = _rates(rates, generation, given, pcie, between_cpus)
    _write(import_rocm_smi(file, _layout(**joined), told, name=name), output)


@click.command()
@click.argument("file", type=PATH, metavar="YML")
@click.option("--blocks", metavar="LIST", help="Blocks of logical-dims, such as Ring,Switch.")
@click.option("--bandwidth", metavar="LIST", help="Rate of a link in each of them, such as '200 GB/s,50 GB/s'.")
@click.option("--latency", metavar="LIST", help="Latency of a link in each of them, such as '50 ns,2 us'.")
@click.option("--fabric", is_flag=True, help="A network of dimensions, for bandwidth designs, and not a graph.")
@_named
def astra(
    file: Path,
    blocks: str | None,
    bandwidth: str | None,
    latency: str | None,
    fabric: bool,
    name: str | None,
    output: Path,
) -> None:
    """Import a network of ASTRA-sim's analytical backend, or the logical dimensions of its ns-3 backend.

    \b
    cwb import astra HGX-H100.yml -o h100.json
    cwb import astra logical.json --blocks Ring,Switch --bandwidth "50 GB/s,25 GB/s" --latency "1 us,2 us" -o l.json
    """
    from ..exchange.astra import import_astra

    lists = {"blocks": _list(blocks), "bandwidth": _list(bandwidth), "latency": _list(latency)}
    _write(import_astra(file, **lists, fabric=fabric, name=name), output)


@click.command()
@click.argument("file", type=PATH, metavar="JSON")
@click.option("--sketch", type=PATH, metavar="JSON", help="A sketch: how many boxes, and who sends between them.")
@click.option("--size", metavar="SIZE", help="The data that has the costs; by default as in the name (1MB is 1 MiB).")
@click.option("--time-unit", default="1 us", help="What a cost of 1 is; 1 us by default.")
@_named
def taccl(file: Path, sketch: Path | None, size: str | None, time_unit: str, name: str | None, output: Path) -> None:
    """Import a topology of the original TACCL (microsoft/taccl), for the boxes of a sketch.

    \b
    cwb import taccl topo-ndv2-1MB.json --sketch sk1-ndv2-n2.json -o ndv2x2.json
    """
    from ..exchange.taccl import import_taccl

    _write(import_taccl(file, sketch=sketch, size=size, time_unit=time_unit, name=name), output)


@click.command("csv")
@click.argument("file", type=PATH, metavar="CSV")
@click.option("--switches", metavar="PATTERNS", help="Names of nodes that are no ranks, such as 'leaf*,spine*'.")
@click.option("--bandwidth", metavar="RATE", help="Bandwidth of links without one, such as '25 GB/s'.")
@click.option("--latency", metavar="DURATION", help="Latency of links without one; 0 by default.")
@_named
def links(
    file: Path, switches: str | None, bandwidth: str | None, latency: str | None, name: str | None, output: Path
) -> None:
    """Import a list of links: columns source, target, bandwidth, latency, count, bidirectional.

    \b
    cwb import csv links.csv --switches "leaf*,spine*" --latency "0.5 us" -o cluster.json
    """
    from ..exchange.graph_network import Defaults
    from ..exchange.links_csv import import_links

    _write(import_links(file, Defaults(bandwidth, latency=latency, switches=_list(switches)), name=name), output)


def _layout(
    boxes: int, nic: str | None, nics: str | None, rails: bool, keep_pcie: bool, latency: str, nic_latency: str
) -> Layout:
    from ..exchange.box import Layout

    port = None if nic is None else _times("--nic", nic)
    return Layout(boxes, port, _list(nics), rails, keep_pcie, latency, nic_latency)


def _rating(text: str) -> Rating:
    from ..exchange.link_rates import Rating

    return Rating(text)


def _rates(rates: str, generation: str | None, links: Times | None, pcie: str | None, cpus: str | None) -> Rates:
    from ..exchange.link_rates import Rates

    return Rates(_rating(rates), generation, links, _rate("--pcie", pcie), _rate("--between-cpus", cpus))


def _times(option: str, text: str, *, counted: bool = False) -> Times:
    from ..exchange.box import Times

    with located(source=option):
        return Times.read(text, counted=counted)


def _rate(option: str, text: str | None) -> Fraction | None:
    from ..core.units import UnitKind, parse

    with located(source=option):
        return None if text is None else parse(text, UnitKind.RATE, allow_zero=False)


def _list(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",")) if text else ()


def _write(data: dict[str, Any], output: Path) -> None:
    """Write the instance, and say what it is."""
    from ..core.files import write_whole
    from ..exchange.layout import readable_json

    write_whole(output, readable_json(data).encode())
    network = data["network"]
    if isinstance(network, str) or "links" not in network:
        echo(f"{output}: {data['name']}, {data['description']}", err=True)
        return
    ranks = sum(node.get("kind") != "switch" for node in network["nodes"])
    others = len(network["nodes"]) - ranks
    counted = sum((2 if link.get("bidirectional") else 1) * link.get("count", 1) for link in network["links"])
    echo(f"{output}: {data['name']}, {ranks:,} ranks, {others:,} switches, {counted:,} links", err=True)
    echo(data["source"], err=True)


MACHINES = (nccl, nvidia_smi, rocm_smi, astra, taccl, links)
