"""Functions ``import_*``: instances and schedules from files of other programs.

``name`` is that of the instance, by default the file's, and ``output`` a file for the instance or schedule.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from ..core.budget import Progress, ignore
from ..core.collective import collective_named
from ..core.errors import InputError, locate_errors
from ..core.files import write_whole
from ..core.instance import Instance
from ..core.option_names import check_name, verb
from ..core.schedule import Schedule, StepSchedule
from ..core.units import UnitKind, parse
from ..exchange import astra, graph_network, libra, nccl_topology, smi, taccl, teccl
from ..exchange.box import Layout, Times, Wiring
from ..exchange.chakra.files import read_trace
from ..exchange.chakra.lift import lift_trace
from ..exchange.json_layout import readable_json
from ..exchange.link_rates import AMD_GENERATIONS, CPUS, GB, GENERATIONS, Rates, Rating
from ..exchange.links_csv import import_links
from ..exchange.msccl.files import read_algorithm
from ..exchange.msccl.lift import lift
from ..schedules.files import write_schedule
from ..schedules.lowering import schedule_in_epochs
from ..schedules.verify import verify
from ..schedules.verify.answers import count_epochs
from .inputs import Spec, load, network_of, whole


@dataclass(frozen=True, eq=False)
class ImportedInstance:
    """An instance as the data of its file."""

    data: dict[str, Any]
    about: str  #: Name and size of its network, and its source.

    @cached_property
    def instance(self) -> Instance:
        """The instance."""
        return load(self.data)


@dataclass(frozen=True, eq=False)
class ImportedSchedule:
    """A verified schedule of another program."""

    instance: Instance
    schedule: StepSchedule | Schedule
    about: str


@verb
def import_libra(
    *,
    network: str | Path,
    workload: str | Path,
    communicator: str | Path,
    cost_model: str | Path,
    total_bandwidth: str | None = None,
    name: str | None = None,
    output: str | Path | None = None,
) -> ImportedInstance:
    """Read the input files of the original LIBRA, as ``cwb import libra`` does.

    Parameters
    ----------
    total_bandwidth : str, optional
        Bandwidth per NPU over all dimensions, such as ``"1000 GB/s"``.
    """
    files = libra.LibraFiles(Path(network), Path(workload), Path(communicator), Path(cost_model))
    data = libra.import_libra(files, total_bandwidth=total_bandwidth, name=name)
    return _write_instance(data, output, f"{data['network']['npus']:,} NPUs")


@verb
def import_teccl(
    input_file: str | Path,
    *,
    as_drawn: bool = False,
    schedule: str | Path | None = None,
    name: str | None = None,
    output: str | Path | None = None,
) -> ImportedInstance | ImportedSchedule:
    """Read an input file of the original TE-CCL, or a schedule for it, as ``cwb import teccl`` does.

    Parameters
    ----------
    as_drawn, schedule : optional
        True for the network of the paper's figure if that of the original's code differs; a schedule of the original.
    """
    data = teccl.import_teccl(Path(input_file), as_drawn=as_drawn, name=name)
    if schedule is None:
        return _write_instance(data, output, str(data["network"]))
    path = Path(schedule)
    original = teccl.import_schedule(data, teccl.topology_name(Path(input_file)), path)
    timed = schedule_in_epochs(original.instance, original.chunks, original.sends)
    epochs = count_epochs(timed, original.instance)
    about = f"{len(timed.sends):,} sends, {epochs} epochs; the file says {original.epochs}"
    return _written_schedule(original.instance, timed, f"{path.name}, a schedule of microsoft/TE-CCL", about, output)


@verb
def import_wan(
    source: str | Path,
    *,
    bandwidth: str | None = None,
    bandwidth_unit: str | None = None,
    latency: str | None = None,
    name: str | None = None,
    output: str | Path | None = None,
) -> ImportedInstance:
    """Read a wide-area network, as ``cwb import wan`` does.

    Parameters
    ----------
    source : str or Path
        GraphML, GML, SNDlib's XML, node-link JSON, or ``topohub:NAME``.
    bandwidth, bandwidth_unit, latency : str, optional
        Rate per direction of links without one; unit of rates without one, such as ``"Mb/s"``; latency of links whose
        sites have no coordinates.
    """
    defaults = graph_network.Defaults(bandwidth, bandwidth_unit, latency=latency)
    data = graph_network.import_wan(str(source), defaults, name)
    nodes, links = (len(data["network"][part]) for part in ("nodes", "links"))
    return _write_instance(data, output, f"{nodes:,} sites, {links:,} links")


@verb
def import_nccl(
    file: str | Path,
    *,
    rates: str = "effective",
    generation: str | None = None,
    nvlink: str | None = None,
    wiring: str | None = None,
    no_nvlink: bool = False,
    between_cpus: str | None = None,
    cpu: str | None = None,
    graph: int = 0,
    nvls: bool | None = None,
    name: str | None = None,
    output: str | Path | None = None,
    **boxes: Any,
) -> ImportedInstance:
    """Read a topology or a graph of NCCL or RCCL, as ``cwb import nccl`` does.

    Parameters
    ----------
    file : str or Path
        File written by NCCL_TOPO_DUMP_FILE or NCCL_GRAPH_DUMP_FILE.
    rates : str
        Rates of links, ``effective`` or ``nominal``.
    generation, nvlink, wiring, no_nvlink : optional
        For a file with only the PCIe tree: the GPU, such as ``a100``; NVLinks of a GPU, as ``"12 x 25 GB/s"``;
        ``switch``, ``mesh`` or ``hybrid-cube-mesh``; or True without NVLinks.
    between_cpus, cpu : str, optional
        Rate between two CPUs, or what they are, such as ``amd`` or ``skylake``; by default as the file says.
    graph : int
        Number of the graph in a graph file; 0 is the rings.
    nvls : bool, optional
        True if NVSwitches copy and add; by default those of Hopper and later.
    **boxes
        Several boxes: ``boxes=4``, ``nic="8 x 400 Gb/s"``, ``nics``, ``rails``, ``keep_pcie``, ``latency``,
        ``nic_latency``.
    """
    links = _times("--nvlink", nvlink, counted=True)
    speeds = _rates(rates, generation, GENERATIONS, links, None, between_cpus, cpu)
    wires = None if wiring is None else Wiring(check_name(wiring, tuple(one.value for one in Wiring), "--wiring"))
    speeds = replace(speeds, wiring=wires, pcie_only=no_nvlink)
    layout, number = _layout(nvls=nvls, **boxes), whole(graph, "graph", 0, 100)
    return _write_instance(nccl_topology.import_nccl(Path(file), layout, speeds, graph=number, name=name), output)


@verb
def import_nvidia_smi(
    files: str | Path | Sequence[str | Path],
    *,
    rates: str = "effective",
    generation: str | None = None,
    nvlink: str | None = None,
    pcie: str | None = None,
    between_cpus: str | None = None,
    cpu: str | None = None,
    nvls: bool | None = None,
    rack: int | None = None,
    name: str | None = None,
    output: str | Path | None = None,
    **boxes: Any,
) -> ImportedInstance:
    """Read the text of nvidia-smi topo -m, as ``cwb import nvidia-smi`` does.

    Parameters
    ----------
    files : str, Path or sequence of them
        The text, with that of ``nvidia-smi -L`` or ``nvidia-smi nvlink -s``.
    pcie, rack : optional
        Rate of a PCIe link; GPUs of a rack if the text is that of one of its trays, ``boxes`` then being racks.
    rates, generation, nvlink, between_cpus, cpu, nvls, name, output, **boxes
        The same as in :func:`import_nccl`.
    """
    paths = tuple(map(Path, (files,) if isinstance(files, str | Path) else files))
    links = _times("--nvlink", nvlink, counted=True)
    speeds = _rates(rates, generation, GENERATIONS, links, pcie, between_cpus, cpu)
    data = smi.import_nvidia_smi(paths, _layout(nvls=nvls, rack=rack, **boxes), speeds, name=name)
    return _write_instance(data, output)


@verb
def import_rocm_smi(
    file: str | Path,
    *,
    rates: str = "effective",
    generation: str | None = None,
    xgmi: str | None = None,
    pcie: str | None = None,
    between_cpus: str | None = None,
    cpu: str | None = None,
    name: str | None = None,
    output: str | Path | None = None,
    **boxes: Any,
) -> ImportedInstance:
    """Read the text of rocm-smi --showtopo, as ``cwb import rocm-smi`` does.

    Parameters
    ----------
    xgmi : str, optional
        xGMI links of a pair, as ``"2 x 50 GB/s"``.
    pcie : str, optional
        Rate of a PCIe link.
    rates, generation, between_cpus, cpu, name, output, **boxes
        The same as in :func:`import_nccl`.
    """
    speeds = _rates(rates, generation, AMD_GENERATIONS, _times("--xgmi", xgmi), pcie, between_cpus, cpu)
    return _write_instance(smi.import_rocm_smi(Path(file), _layout(**boxes), speeds, name=name), output)


@verb
def import_astra(
    file: str | Path,
    *,
    blocks: str | None = None,
    bandwidth: str | None = None,
    latency: str | None = None,
    fabric: bool = False,
    name: str | None = None,
    output: str | Path | None = None,
) -> ImportedInstance:
    """Read a network of ASTRA-sim, as ``cwb import astra`` does.

    Parameters
    ----------
    file : str or Path
        A network of the analytical backend, or the logical dimensions of the ns-3 backend.
    blocks, bandwidth, latency : str, optional
        For logical dimensions: comma-separated blocks, rates and latencies.
    fabric : bool
        Return a network of dimensions instead of a graph.
    """
    lists = {"blocks": _list(blocks), "bandwidth": _list(bandwidth), "latency": _list(latency)}
    return _write_instance(astra.import_astra(Path(file), **lists, fabric=fabric, name=name), output)


@verb
def import_taccl(
    file: str | Path,
    *,
    sketch: str | Path | None = None,
    size: str | None = None,
    time_unit: str = "1 us",
    name: str | None = None,
    output: str | Path | None = None,
) -> ImportedInstance:
    """Read a topology of the original TACCL, as ``cwb import taccl`` does.

    Parameters
    ----------
    sketch : str or Path, optional
        A sketch: the number of boxes, and the senders between them.
    size, time_unit : str
        Data size to which the costs apply, by default that in the file's name, and time of a cost of 1.
    """
    path = None if sketch is None else Path(sketch)
    return _write_instance(
        taccl.import_taccl(Path(file), sketch=path, size=size, time_unit=time_unit, name=name), output
    )


@verb
def import_csv(
    file: str | Path,
    *,
    switches: str | None = None,
    bandwidth: str | None = None,
    latency: str | None = None,
    one_way: bool = False,
    name: str | None = None,
    output: str | Path | None = None,
) -> ImportedInstance:
    """Read a list of links, as ``cwb import csv`` does.

    Parameters
    ----------
    file : str or Path
        Columns source, target, bandwidth, latency, count, bidirectional.
    switches : str, optional
        Patterns of the names of switches, such as ``"leaf*,spine*"``.
    bandwidth, latency : str, optional
        Values for links without one; latency is by default 0.
    one_way : bool
        True if links that say no direction lead only from source to target.
    """
    defaults = graph_network.Defaults(bandwidth, latency=latency, switches=_list(switches))
    return _write_instance(import_links(Path(file), defaults, name=name, one_way=one_way), output)


@verb
def import_msccl(
    file: str | Path,
    *,
    topology: Spec,
    size: str = "1 GiB",
    name: str | None = None,
    output: str | Path | None = None,
    progress: Progress = ignore,
) -> ImportedSchedule:
    """Read an MSCCL algorithm of any origin as a schedule in steps, as ``cwb import msccl`` does.

    Parameters
    ----------
    topology : Instance or other
        The network, or what :func:`load` takes; GPU i is its rank i.
    """
    path = Path(file)
    algorithm = read_algorithm(path)
    network = network_of(topology, progress)
    size_bytes = parse(size, UnitKind.SIZE, allow_zero=False, source="--size")
    with locate_errors(source=str(path)):
        instance, schedule = lift(algorithm, network, size_bytes, name or path.stem)
        report = verify(instance, schedule)
        if not report.ok:
            raise InputError(f"cannot be expressed as a schedule in steps: {report.violations[0]}")
    about = f"{algorithm.coll}, {len(schedule.sends):,} sends in {schedule.steps:,} steps"
    return _written_schedule(instance, schedule, f"{path.name}, an MSCCL algorithm", about, output)


@verb
def import_chakra(
    folder: str | Path,
    *,
    topology: Spec,
    collective: str,
    size: str | None = None,
    name: str | None = None,
    output: str | Path | None = None,
    progress: Progress = ignore,
) -> ImportedSchedule:
    """Read Chakra execution traces of all ranks as a schedule in steps, as ``cwb import chakra`` does.

    Parameters
    ----------
    folder : str or Path
        Folder with a trace for each rank.
    topology : Instance or other
        The network, or what :func:`load` takes, with the trace's number of ranks.
    collective, size : str
        Collective of the trace, ``point_to_point`` for plain messages, and its full buffer, by default derived from the
        messages.
    """
    path = Path(folder)
    with locate_errors(source="--collective"):
        kind = collective_named(collective)
    size_bytes = None if size is None else parse(size, UnitKind.SIZE, allow_zero=False, source="--size")
    trace, network = read_trace(path), network_of(topology, progress)
    with locate_errors(source=str(path)):
        instance, schedule = lift_trace(trace, network, kind, size_bytes, name or path.resolve().name)
    about = f"{collective}, {len(schedule.sends):,} sends in {schedule.steps:,} steps"
    return _written_schedule(instance, schedule, f"{path.name}, Chakra execution traces", about, output)


def _write_instance(data: dict[str, Any], output: str | Path | None, size: str = "") -> ImportedInstance:
    if output is not None:
        write_whole(Path(output), readable_json(data).encode())
    network = data["network"]
    if not size and (isinstance(network, str) or "links" not in network):
        size = data["description"]
    elif not size:
        ranks = sum(node.get("kind") != "switch" for node in network["nodes"])
        others = len(network["nodes"]) - ranks
        links = sum((2 if link.get("bidirectional") else 1) * link.get("count", 1) for link in network["links"])
        size = f"{ranks:,} ranks, {others:,} switches, {links:,} links\n{data['source']}"
    return ImportedInstance(data, f"{data['name']}, {size}")


def _written_schedule(
    instance: Instance, schedule: StepSchedule | Schedule, source: str, about: str, output: str | Path | None
) -> ImportedSchedule:
    if output is not None:
        write_schedule(Path(output), instance, schedule, extra={"source": source})
    return ImportedSchedule(instance, schedule, about)


def _layout(
    boxes: int = 1,
    nic: str | None = None,
    nics: str | None = None,
    rails: bool = False,
    keep_pcie: bool = False,
    latency: str = "0.7 us",
    nic_latency: str = "1.3 us",
    nvls: bool | None = None,
    rack: int | None = None,
) -> Layout:
    port, cards, count = _times("--nic", nic), _list(nics), whole(boxes, "boxes", 1, 10**6)
    gpus = None if rack is None else whole(rack, "rack", 2, 1024)
    return Layout(count, port, cards, rails, keep_pcie, latency, nic_latency, nvls, gpus)


def _rates(
    rates: str,
    generation: str | None,
    generations: Iterable[str],
    links: Times | None,
    pcie: str | None,
    cpus: str | None,
    cpu: str | None,
) -> Rates:
    rating = Rating(check_name(rates, tuple(one.value for one in Rating), "--rates"))
    if generation is not None:
        check_name(generation, tuple(generations), "--generation")
    if cpus is not None and cpu is not None:
        raise InputError("is given beside --between-cpus; expected one of the two", source="--cpu")
    between = _rate("--between-cpus", cpus)
    if cpu is not None:
        between = Fraction(CPUS[check_name(cpu, tuple(CPUS), "--cpu")] * GB)
    return Rates(rating, generation, links, _rate("--pcie", pcie), between)


def _times(option: str, text: str | None, *, counted: bool = False) -> Times | None:
    with locate_errors(source=option):
        return None if text is None else Times.read(text, with_count=counted)


def _rate(option: str, text: str | None) -> Fraction | None:
    return None if text is None else parse(text, UnitKind.RATE, allow_zero=False, source=option)


def _list(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",")) if text else ()
