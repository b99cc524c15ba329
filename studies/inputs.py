"""Loading of instances from names, files, expressions, graphs and tables."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from math import inf
from numbers import Real
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..core.budget import Budget, Progress, ignore, limited_by
from ..core.collective import Collective
from ..core.errors import InputError, locate_errors, show_value
from ..core.fabric import Fabric
from ..core.instance import Instance
from ..core.network_views import other_view
from ..core.option_names import MSCCL_COLLECTIVES, keyword_names
from ..core.topology import Topology
from ..core.units import UnitKind, parse
from ..instances.demand import with_demand

if TYPE_CHECKING:
    from ..core.trace import SimulationMode
    from ..exchange.graph_network import Defaults
    from ..exchange.msccl.flow import Flow
    from ..instances.edits import Edit

#: What :func:`load` takes: text, a path, a mapping, a network, a graph of networkx or a DataFrame of pandas.
Spec: TypeAlias = Any

LENGTH = "length"  #: The latency that is that of a link's length.
MAX_CHUNKS = 10**9  #: Chunks into which a part may be divided.

_GRAPH_FILES = (".graphml", ".gml")


def load(
    spec: Spec,
    *,
    bandwidth: str | None = None,
    bandwidth_unit: str | None = None,
    latency: str | None = None,
    latency_unit: str | None = None,
    switches: str | Sequence[str] = (),
    name: str | None = None,
    collective: str | None = None,
    size: str | None = None,
    chunks: int | None = None,
    ranks: str | None = None,
    without_link: str | Sequence[str] = (),
    without_node: str | Sequence[str] = (),
    without_rank: str | Sequence[str] = (),
    link: str | Sequence[str] = (),
    rates: str | Sequence[str] = (),
) -> Instance:
    """Load an instance from a name, a file, an expression, a graph or a table.

    Parameters
    ----------
    spec : str, Path, mapping, networkx.Graph, pandas.DataFrame, Topology, Fabric or Instance
        A shipped name (``"4d"``), building blocks, an expression (``"torus(8,8)"``), or a file: an instance, a graph in
        GraphML or GML, or links as comma-separated values. A mapping has the contents of an instance file, only its
        network, or node-link data. In a graph and in a table of links, rates and times have one of several names, and a
        unit in the value or in the name: :ref:`graphs and tables <graphs-and-tables>`.
    bandwidth, latency : str, optional
        Defaults for links of a graph or table, such as ``"25 GB/s"``; without ``latency`` it is 0. ``"length"``
        computes latency from ``dist`` in km or coordinates, at 200,000 km/s.
    bandwidth_unit, latency_unit : str, optional
        Units of numbers without one, such as ``"Gb/s"`` and ``"us"``.
    switches : str or sequence of str
        Patterns of the names of switches, such as ``"leaf*"``.
    collective, size, chunks : optional
        Collective that replaces the instance's, such as ``"all_gather"``, ``"1 GiB"`` and 4.
    ranks : str, optional
        Ranks of the network to keep, such as ``"0-3,8"``.
    without_link, without_node, without_rank : str or sequence of str
        Links (``"a:b"``) and nodes to remove, as by ``cwb solve``.
    link : str or sequence of str
        Links to change or add, such as ``"a:b=25GB/s,1us"`` or ``"a:b=50%"``.
    rates : str, optional
        Rates of a machine's generator: ``"nominal"`` or ``"effective"``.

    Raises
    ------
    InputError
        If a file or an option is wrong.
    """
    from ..exchange.graph_network import Defaults
    from ..instances.edits import edit_instance

    lengths = latency == LENGTH
    patterns = (switches,) if isinstance(switches, str) else tuple(switches)
    defaults = Defaults(bandwidth, bandwidth_unit, None if lengths else latency, latency_unit, lengths, patterns)
    with keyword_names():
        instance = _load(spec, defaults, name)
        if edits := edits_of(ranks, without_link, without_node, without_rank, link, rates):
            instance = edit_instance(instance, edits)
        if name is not None and name != instance.name:
            instance = instance.with_changes(name=name)
        if collective is None and size is None and chunks is None:
            return instance
        return with_demand(
            instance, collective, size, None if chunks is None else whole(chunks, "chunks", 1, MAX_CHUNKS)
        )


def edits_of(
    ranks: str | None,
    without_link: str | Sequence[str],
    without_node: str | Sequence[str],
    without_rank: str | Sequence[str],
    link: str | Sequence[str],
    rates: str | Sequence[str] = (),
) -> list[Edit]:
    """Return the changes of a network given by keyword arguments of :func:`load`."""
    from ..instances.edits import Edit

    options = ("--without-link", "--without-node", "--without-rank", "--link", "--rates", "--ranks")
    values = (without_link, without_node, without_rank, link, rates, () if ranks is None else ranks)
    texts = [(one,) if isinstance(one, str) else one for one in values]
    return [Edit(option, text) for option, some in zip(options, texts, strict=True) for text in some]


def _load(spec: Spec, defaults: Defaults, name: str | None) -> Instance:
    from ..exchange.graph_network import Defaults
    from ..instances.loader import from_data

    if (data := _of_links(spec, defaults, name)) is not None:
        return from_data(data, str(data["name"]))

    if defaults != Defaults(lengths=False):
        raise InputError("bandwidth, latency, their units and switches are those of a graph or a table of links")
    if isinstance(spec, Instance):
        return spec
    if isinstance(spec, Topology | Fabric):
        return Instance(name or "network", spec)
    if isinstance(spec, Mapping):
        with locate_errors(source="a mapping"):
            return from_data({"network": dict(spec)} if "network" not in spec else dict(spec), name or "network")
    if isinstance(spec, str | Path):
        from ..instances import load as load_instance

        return load_instance(spec)
    expected = "a text, a path, a mapping, a graph of networkx, a DataFrame, a network or an instance"
    raise InputError(f"{show_value(spec)} is a {type(spec).__name__}; expected {expected}")


def _of_links(spec: Spec, defaults: Defaults, name: str | None) -> dict[str, Any] | None:
    """Return the data of an instance given as a graph or a table of links; None for all other input."""
    suffix = Path(spec).suffix.lower() if isinstance(spec, str | Path) else ""
    if suffix == ".csv":
        from ..exchange.links_csv import import_links

        return import_links(Path(spec), defaults, name=name)
    if _is_a("pandas", "DataFrame", spec):
        from ..exchange.links_csv import import_frame

        with locate_errors(source="a DataFrame"):
            return import_frame(spec, defaults, name or "links")
    nodes = spec.get("nodes") if isinstance(spec, Mapping) else None
    has_ids = isinstance(nodes, list) and any(isinstance(node, Mapping) and "id" in node for node in nodes)
    if _is_a("networkx", "Graph", spec) or suffix in _GRAPH_FILES or has_ids:  # node-link data has ids, not names
        from ..exchange.graph_network import import_data, import_file, import_graph

        if isinstance(spec, str | Path):
            return import_file(Path(spec), defaults, name)
        with locate_errors(source="a graph"):
            if isinstance(spec, Mapping):
                return import_data(dict(spec), defaults, name)
            return import_graph(spec, defaults, name)
    return None


def _is_a(library: str, class_name: str, value: object) -> bool:
    """Return True if a value is of a class of a library, which is not imported for this."""
    module = sys.modules.get(library)
    return module is not None and isinstance(value, getattr(module, class_name))


def whole(value: Any, name: str, least: int, most: int) -> int:
    """Return a keyword argument as an int; reject all but Python and numpy integers within limits."""
    number = None if isinstance(value, bool) or not hasattr(value, "__index__") else index(value)
    if number is None or not least <= number <= most:
        raise InputError(f"{show_value(value)}; expected a whole number from {least:,} to {most:,}", source=name)
    return number


def at_least_0(value: Any, name: str) -> float:
    """Return a keyword argument as a float; reject it unless finite and at least 0."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < inf:
        raise InputError(f"{show_value(value)}; expected a number of at least 0", source=name)
    return float(value)


def seconds_or_none(value: float | None, name: str) -> float | None:
    """Return a time limit in seconds, given as a keyword argument; None is no limit."""
    return None if value is None else at_least_0(value, name)


def read_flow(schedule: Path, mode: SimulationMode | None = None, pieces: int | None = None) -> Flow:
    """Read a schedule as the data flow between its GPUs; reject a wrong one.

    With a mode, the simulation in it gives the order of messages, and trees are in pieces.
    """
    from ..core.trees import Forest
    from ..exchange.msccl.flow import flow_of
    from ..schedules.completion import completion_if_any
    from ..schedules.files import read_schedule
    from ..schedules.verify import verify

    read = read_schedule(schedule)
    with locate_errors(source=str(schedule)):
        report = verify(read.instance, read.answer)
        if not report.ok:
            raise InputError(f"the schedule is invalid: {report.violations[0]}; see cwb check")
        if mode is None:
            return flow_of(read.instance, read.answer)
        if isinstance(read.answer, Forest):
            pieces = completion_if_any(read.instance, read.answer, pieces or read.pieces).pieces
        elif pieces is not None:
            raise InputError("only trees are divided into pieces", source="--pieces")
        return flow_of(read.instance, read.answer, mode, pieces or 1)


def size_range(min_bytes: str, max_bytes: str | None, flow: Flow) -> tuple[int, int]:
    """Return the smallest and largest size that a file is for."""
    low = int(parse(min_bytes, UnitKind.SIZE, source="--min-bytes"))
    high = max(2**30, int(flow.grains * flow.grain_bytes))
    if max_bytes is not None:
        high = int(parse(max_bytes, UnitKind.SIZE, allow_zero=False, source="--max-bytes"))
    if low > high:
        raise InputError(f"{low:,} B is more than {high:,} B; expected a range of sizes", source="--min-bytes")
    return low, high


def network_of(spec: Spec, progress: Progress = ignore) -> Topology:
    """Return the network that ``--topology`` names: that of an instance, or of the schedule in a file."""
    from ..schedules.files import is_schedule, read_schedule

    with limited_by(Budget(progress=progress)), locate_errors(source="--topology"):
        of_file = isinstance(spec, str | Path) and is_schedule(Path(spec))
        network = (read_schedule(Path(spec)).instance if of_file else load(spec)).network
        if not isinstance(network, Topology):
            raise InputError(f"{spec} has dimensions without bandwidth; expected a network of nodes and links")
    return network


def whole_size(text: str, option: str) -> int:
    """Parse a size as an integer in bytes."""
    with locate_errors(source=option):
        size = parse(text, UnitKind.SIZE, allow_zero=False)
        if size.denominator != 1:
            raise InputError(f"{text!r} is not a whole number of bytes")
    return int(size)


def machine_and_collective(instance: Instance, collective: str | None) -> tuple[Instance, Collective]:
    """Return a machine of nodes and links, and its only collective."""
    problem = with_demand(instance, collective, None, None)
    problem = problem if isinstance(problem.network, Topology) else other_view(problem) or problem
    if not isinstance(problem.network, Topology):
        raise InputError("is a bandwidth design; expected a network and a collective")
    if problem.demand is None or problem.also:
        raise InputError("expected one collective; --collective names it")
    if problem.demand.collective is Collective.POINT_TO_POINT:
        raise InputError(f"point_to_point; expected one of {', '.join(MSCCL_COLLECTIVES)}", source="--collective")
    return problem, problem.demand.collective
