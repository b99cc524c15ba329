"""Strict readers of the parts of a schedule file, combined by :mod:`cwb.schedules.files`."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from functools import partial
from typing import Any, get_args

import numpy as np

from ..core.bounds import Certificate, CutCertificate, EpochBound, FlowBound, LengthCertificate, SolverBound
from ..core.collective import Demand, collective_named
from ..core.equal_steps import TranslatedTrees
from ..core.errors import InputError, locate_errors, show_value
from ..core.instance import Instance
from ..core.schedule import Chunks, Ints, Schedule, Sends, StepSchedule, offsets
from ..core.step_orbits import StepOrbits
from ..core.timing import BandwidthChange, RankCosts, Semantics, Timing
from ..core.topology import Link, Node, NodeKind, Topology
from ..core.trace import Routing
from ..core.trees import Translation, TreeKind, TreeOrbits, TreePacking
from .strict import Fields, fraction, integers, is_list, reject_if
from .verify.answers import Findings
from .verify.sizes import check_sizes
from .verify.trees import check_tree_sizes

_MAX_INTEGER = 2**62  #: Exclusive limit of integers, so that sums of two fit into 64 bits.
_MAX_STEP = 2**40  #: Exclusive limit of steps.


def read_instance(file: Fields) -> tuple[Instance, Topology]:
    """Read the instance; also return its topology."""
    network = file.fields("network")
    nodes, links, collective = network.fields("nodes"), network.fields("links"), file.fields("collective")
    names, kinds = nodes.list_("name"), [kind.value for kind in NodeKind]
    count = len(names)
    for index, name in enumerate(names):
        if not isinstance(name, str) or not 0 < len(name) <= 200:
            raise InputError(f"{show_value(name)} is wrong; expected a name", place=f"{nodes.at('name')}[{index}]")
    node_kinds = nodes.list_("kind", count)
    for index, kind in enumerate(node_kinds):
        if kind not in kinds:
            place = f"{nodes.at('kind')}[{index}]"
            raise InputError(f"{show_value(kind)} is wrong; expected one of {', '.join(kinds)}", place=place)
    rows, place = enumerate(nodes.list_("buffer_bytes", count)), nodes.at("buffer_bytes")
    limits = [None if limit is None else fraction(limit, f"{place}[{index}]") for index, limit in rows]
    multicast = nodes.flags("multicast", count).tolist()
    reduces = nodes.flags("reduces", count).tolist() if nodes.has("reduces") else [False] * count
    source = links.integers("source", 0, count).tolist()
    target = links.integers("target", 0, count, len(source)).tolist()
    rates, latencies = links.fractions("bandwidth_Bps", len(source)), links.fractions("latency_s", len(source))
    with locate_errors("instance.network"):
        topology = Topology(
            tuple(map(Node, names, map(NodeKind, node_kinds), multicast, limits, reduces)),
            tuple(map(Link, (names[a] for a in source), (names[b] for b in target), rates, latencies)),
        )
    demand, others = _read_demand(collective, len(topology.ranks)), file.list_("also") if file.has("also") else []
    places = (Fields(data, f"{file.at('also')}[{index}]") for index, data in enumerate(others))
    also = tuple(_read_demand(each, len(topology.ranks)) for each in places)
    timing = read_timing(file.fields("timing"), len(topology.links)) if file.has("timing") else None
    costs = _read_costs(file.fields("rank_costs")) if file.has("rank_costs") else None
    routing = Routing(file.word("routing", [each.value for each in Routing])) if file.has("routing") else Routing.FIXED
    name = file.word("name")
    for part in (file, network, nodes, links):
        part.reject_unread()
    return Instance(name, topology, demand, also, timing=timing, rank_costs=costs, routing=routing), topology


def _read_offsets(file: Fields, name: str, low: int, total: int, count: int) -> Ints:
    """Read lengths as offsets; their sum must equal the number of entries."""
    table = offsets(file.integers(name, low, total + 1, count))
    reject_if(int(table[-1]) != total, f"adds up to {int(table[-1]):,}, but there are {total:,}", place=file.at(name))
    return table


def _read_schedule(file: Fields, instance: Instance, topology: Topology, *, timed: bool) -> StepSchedule | Schedule:
    chunks, sends, columns = _read_sends(file, instance, topology)
    answer: StepSchedule | Schedule
    if timed:
        times = columns.times("start_s", len(sends)), columns.times("end_s", len(sends))
        with locate_errors("sends"):
            answer = Schedule(instance.sha256, chunks, sends, *times)
    else:
        answer = StepSchedule(instance.sha256, chunks, sends, columns.integers("step", 0, _MAX_STEP, len(sends)))
    columns.reject_unread()
    _raise_violation(partial(check_sizes, instance, chunks), "chunks.units")
    return answer


def _read_sends(file: Fields, instance: Instance, topology: Topology) -> tuple[Chunks, Sends, Fields]:
    part, columns = file.fields("chunks"), file.fields("sends")
    chunks = _read_chunks(part, len(topology.ranks))
    count, nodes, hops = columns.length("chunk"), len(topology.nodes), columns.length("path_links")
    offset = _read_offsets(columns, "hops", 1, hops, count)
    sends = Sends(
        columns.integers("chunk", 0, len(chunks)),
        columns.integers("source", 0, nodes, count),
        columns.integers("target", 0, nodes, count),
        columns.flags("reduce", count),
        offset,
        columns.integers("path_links", 0, len(topology.links)),
    )
    part.reject_unread()
    return chunks, sends, columns


def _raise_violation(check: Callable[[Findings], None], place: str) -> None:
    """Raise the first violation that a check finds as an InputError."""
    findings = Findings()
    check(findings)
    if findings.violations:
        raise InputError(findings.violations[0].message, place=place)


def _read_demand(file: Fields, count: int) -> Demand:
    ranks = None
    if file.has("ranks"):
        ranks = tuple(file.integers("ranks", 0, count).tolist())
        reject_if(len(set(ranks)) < len(ranks), "a rank is given twice", place=file.at("ranks"))
    kind, whole = file.word("kind"), file.word("part_of") if file.has("part_of") else None
    with locate_errors(file.at("kind")):
        collective = collective_named(kind)
    with locate_errors(file.at("part_of")):
        part_of = None if whole is None else collective_named(whole)
    demand = Demand(collective, file.fraction("size_bytes"), file.integer("chunks", 1, _MAX_INTEGER), ranks, part_of)
    file.reject_unread()
    if part_of is not None and not part_of.is_message(demand):
        raise InputError(f"{collective.name} is no message of {part_of.name}", place=file.at("part_of"))
    return demand


def _read_chunks(file: Fields, ranks: int) -> Chunks:
    groups: list[tuple[int, ...]] = []
    for index, group in enumerate(file.list_("groups")):
        place = f"{file.at('groups')}[{index}]"
        reject_if(not is_list(group) or not len(group), "expected a list of ranks", place=place)
        members = integers(group, 0, ranks, place)
        reject_if((np.diff(members) <= 0).any(), "expected ranks in increasing order", place=place)
        groups.append(tuple(members.tolist()))
    units = file.integers("units", 1, _MAX_INTEGER, file.length("reduced"))
    unit = file.fraction("unit_bytes")
    reject_if(unit == 0, "must be greater than zero", place=file.at("unit_bytes"))
    holders, receivers = (file.integers(name, 0, len(groups), len(units)) for name in ("held_by", "needed_by"))
    return Chunks(units, unit, tuple(groups), holders, receivers, file.flags("reduced", len(units)))


def _read_packing(file: Fields, instance: Instance, topology: Topology) -> TreePacking:
    packing = _read_trees(file.fields("trees"), instance.sha256, topology)
    _raise_violation(partial(check_tree_sizes, instance, packing), "trees.units")
    return packing


def _read_trees(file: Fields, sha256: str, topology: Topology) -> TreePacking:
    kind = TreeKind(file.word("kind", [kind.value for kind in TreeKind]))
    root = file.integers("root", 0, len(topology.ranks), file.length("units"))
    units, unit_bytes = file.integers("units", 1, _MAX_INTEGER, len(root)), file.fraction("unit_bytes")
    reduction = None
    if kind is TreeKind.BOTH:
        part = file.fields("reduction")
        edges = _read_edges(part, len(root), topology)
        reduction = TreePacking(sha256, TreeKind.IN, root, units, unit_bytes, *edges)
        part.reject_unread()
    edges = _read_edges(file, len(root), topology)
    packing = TreePacking(sha256, kind, root, units, unit_bytes, *edges, reduction)
    file.reject_unread()
    return packing


def _read_orbits(file: Fields, instance: Instance, topology: Topology) -> TreeOrbits:
    """Read the trees of some roots, and the translations that generate those of the others."""
    translations = _read_translations(file, topology)
    return TreeOrbits(_read_trees(file.fields("trees"), instance.sha256, topology), translations)


def _read_step_orbits(file: Fields, instance: Instance, topology: Topology) -> StepOrbits:
    """Read the sends of some chunks, and the translations that generate those of the others."""
    chunks, sends, columns = _read_sends(file, instance, topology)
    base = StepSchedule(instance.sha256, chunks, sends, columns.integers("step", 0, _MAX_STEP, len(sends)))
    columns.reject_unread()
    return StepOrbits(base, _read_translations(file, topology))


def _read_translations(file: Fields, topology: Topology) -> tuple[Translation, ...]:
    generators = file.fields("translations")
    orders = generators.integers("order", 2, len(topology.nodes) + 1)
    images = generators.integers("image", 0, len(topology.nodes), len(orders) * len(topology.nodes))
    generators.reject_unread()
    rows = images.reshape(len(orders), len(topology.nodes))
    return tuple(Translation(image, order) for image, order in zip(rows, orders.tolist(), strict=True))


def _read_translated(file: Fields, instance: Instance, topology: Topology) -> TranslatedTrees:
    """Read trees of one rank whose translations are those of all ranks."""
    file, ranks = file.fields("trees"), len(topology.ranks)
    kind = TreeKind(file.word("kind", [kind.value for kind in TreeKind]))
    sizes = tuple(file.integers("sizes", 2, ranks + 1).tolist())
    count = file.length("step")
    copy = file.integers("copy", 0, _MAX_INTEGER, count)
    parent, child = (file.integers(name, 0, ranks, count) for name in ("parent", "child"))
    with locate_errors("trees"):
        step = file.integers("step", 0, _MAX_STEP, count)
        trees = TranslatedTrees(instance.sha256, kind, sizes, copy, parent, child, step)
    file.reject_unread()
    return trees


def _read_edges(file: Fields, trees: int, topology: Topology) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    nodes, count, hops = len(topology.nodes), file.length("child"), file.length("path_links")
    return (
        _read_offsets(file, "edges", 0, count, trees),
        file.integers("parent", 0, nodes, count),
        file.integers("child", 0, nodes),
        _read_offsets(file, "hops", 1, hops, count),
        file.integers("path_links", 0, len(topology.links)),
    )


#: What reads an answer, by the name of its kind in a file.
READERS: Mapping[str, Callable[[Fields, Instance, Topology], Any]] = {
    "step-schedule": partial(_read_schedule, timed=False),
    "timed-schedule": partial(_read_schedule, timed=True),
    "tree-packing": _read_packing,
    "tree-orbits": _read_orbits,
    "step-orbits": _read_step_orbits,
    "translated-trees": _read_translated,
}

#: Certificates by their names in files.
CERTIFICATES: Mapping[str, type[Any]] = {
    **{each.name: each for each in get_args(SolverBound | FlowBound | EpochBound)},
    **{f"late-{each.name}": each for each in (CutCertificate, LengthCertificate)},
}

#: Smallest value of integer fields, by certificate and field, where it is not 0.
_MINIMA = {
    ("epoch-window-prices", "epochs"): 1,
    ("epoch-window-prices", "starts"): -_MAX_INTEGER,
    ("tree-prices", "trees"): 1,
}


def read_certificate(file: Fields) -> Certificate:
    """Read a certificate: its declared fields, by their types."""
    kind = file.word("certificate", list(CERTIFICATES))
    values: dict[str, Any] = {"latency": True} if kind.startswith("late-") else {}
    for field in fields(CERTIFICATES[kind]):
        name, least = field.name, _MINIMA.get((kind, field.name), 0)
        match field.type:
            case "str":
                values[name] = file.word(name)
            case "Fraction":
                values[name] = file.fraction(name)
            case "tuple[int, ...]":
                values[name] = tuple(file.integers(name, least, _MAX_INTEGER).tolist())
            case "int":
                values[name] = file.integer(name, least, _MAX_INTEGER)
            case "int | None":
                values[name] = file.integer(name, least, _MAX_INTEGER) if file.has(name) else None
            case "tuple[tuple[int, ...], ...]" if field.default is MISSING or file.has(name):
                lists = enumerate(file.list_(name))
                values[name] = tuple(_read_integers(part, f"{file.at(name)}[{index}]") for index, part in lists)
    file.reject_unread()
    certificate: Certificate = CERTIFICATES[kind](**values)
    return certificate


def _read_costs(file: Fields) -> RankCosts:
    keys = "reduce_rate_Bps", "switch_reduce_rate_Bps"
    rate, of_switches = (file.fraction(key) if file.has(key) else None for key in keys)
    overhead_s, receiving = file.fraction("overhead_s"), bool(file.integer("while_receiving", 0, 2))
    with locate_errors(file.place):
        costs = RankCosts(overhead_s, rate, of_switches, receiving)
    file.reject_unread()
    return costs


def read_timing(file: Fields, links: int) -> Timing:
    """Read the grid of epochs."""
    semantics = Semantics(file.word("semantics", [each.value for each in Semantics]))
    changes: list[BandwidthChange] = []
    for index, data in enumerate(file.list_("changes")):
        change = Fields(data, f"{file.at('changes')}[{index}]")
        link, factor = change.integer("link", 0, links), change.fraction("factor")
        stretch = change.integer("first", 0, _MAX_INTEGER), change.integer("last", 0, _MAX_INTEGER)
        with locate_errors(change.place):
            changes.append(BandwidthChange(link, *stretch, factor))
        change.reject_unread()
    fluid, epoch_s = bool(file.integer("fluid", 0, 2)), file.fraction("epoch_s")
    with locate_errors(file.place):
        timing = Timing(semantics, epoch_s, fluid, tuple(changes))
    file.reject_unread()
    return timing


def _read_integers(values: object, place: str) -> tuple[int, ...]:
    reject_if(not is_list(values), "expected a list of numbers", place=place)
    return tuple(integers(values, 0, _MAX_INTEGER, place).tolist())
