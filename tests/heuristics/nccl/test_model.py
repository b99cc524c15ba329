"""NCCL's performance model against what NCCL itself has printed on machines of others."""

from __future__ import annotations

import csv
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import cwb
import pytest
from cwb.core.collective import Demand, collective_named
from cwb.core.topology import Link, Node, NodeKind, Topology
from cwb.heuristics.nccl.constants import TUNINGS, Algorithm, Protocol
from cwb.heuristics.nccl.method import NcclOptions, prediction
from cwb.heuristics.nccl.model import COLLECTIVES, Graph, Machine, seconds, table
from cwb.heuristics.nccl.symmetric import choose_symmetric
from cwb.instances import load

REFERENCE = Path(__file__).parents[2] / "reference"

#: One rank in each of two boxes, joined by two NICs of 10 Gb/s, which is what NCCL takes where it knows no rate.
TWO_NICS = Topology(
    (Node("0"), Node("1"), *(Node(name, NodeKind.SWITCH, buffer_bytes=Fraction(0)) for name in "ab")),
    tuple(
        Link(*ends, Fraction(1_250_000_000))
        for rank in "01"
        for switch in "ab"
        for ends in ((rank, switch), (switch, rank))
    ),
)


def rows(name):
    with (REFERENCE / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def predict_time(what, collective="all_reduce", size=2**20, **options):
    instance = load(what) if isinstance(what, str) else load("ring(4)").with_changes(network=what)
    demand = Demand(collective_named(collective), Fraction(size))
    return prediction(instance.with_changes(demand=demand), NcclOptions(**options))


#: Machines whose graphs are searched, and those of which a thread tells too little, with the graph that it implies.
MACHINES = {
    "rtx5090": lambda kind: predict_time(TWO_NICS, kind, gpu="blackwell", near_nics=False, version="2.29.7"),
    "h100": lambda kind: predict_time("dgx_h100(nvls=true)", kind),
    "h200-2boxes": lambda kind: predict_time("dgx_h200(boxes=2)", kind, nvls=True, net_latency_us=35),
    **{
        f"h100-{n}gpus": lambda kind, n=n: predict_time(
            f'switch({n},bandwidth="450 GB/s")', kind, per_box=n, nvls=True, version="2.29.7"
        )
        for n in (2, 4, 6)
    },
}
_ONE = {Algorithm.RING: Graph(1, 3, 3), Algorithm.TREE: Graph(1, 3, 3)}
_T4 = {Algorithm.RING: Graph(1, 9, 9), Algorithm.TREE: Graph(1, 9, 9)}
_H800 = {Algorithm.RING: Graph(8, 22, 22), Algorithm.TREE: Graph(8, 22, 22, through_one_gpu=True)}
IMPLIED = {
    "four-boxes": ("2.10.3", Machine(16, 4, "volta", _ONE, nvlink=False)),
    "t4": ("2.10.3", Machine(16, 2, "volta", _T4, nvlink=False)),
    "h800": ("2.20.3", Machine(16, 2, "hopper", _H800)),
}


@pytest.mark.parametrize("row", rows("nccl_tables.csv"), ids=lambda row: "-".join(list(row.values())[:4]))
def test_tables_that_nccl_printed(row):
    """Every cell of public tuning tables is predicted to the digit that is printed."""
    kind, at = collective_named(row["collective"]), (Algorithm(row["algorithm"]), Protocol(row["protocol"]))
    if row["table"] in IMPLIED:
        version, machine = IMPLIED[row["table"]]
        cost = table(machine, TUNINGS[version], kind)[at]
    else:
        cost = MACHINES[row["table"]](row["collective"]).costs[at]
    for printed, value in ((row["latency_us"], cost.latency_us), (row["bandwidth_GBps"], cost.bandwidth_GBps)):
        assert not printed or abs(value - float(printed)) <= 0.05 + 1e-9


def test_times_that_nccl_printed():
    """Times of three H100 boxes with NICs of 200 Gb/s are predicted to six digits, from the network alone."""
    found = predict_time('rail(boxes=3,per_box=8,nvlink="450 GB/s",nic="25 GB/s")', nvls=True, version="2.23.4")
    for row in rows("nccl_times.csv"):
        pick = found.pick(int(row["bytes"]))
        assert (pick.algorithm.value, pick.protocol.value) == (row["algorithm"], row["protocol"])
        assert pick.seconds * 1e6 == pytest.approx(float(row["time_us"]), rel=2e-7)


@pytest.mark.parametrize("row", rows("nccl_choices.csv"), ids=lambda row: f"{row['machine']}-{row['first_bytes']}")
def test_what_nccl_chose(row):
    """The choices of NCCL at every power of two are predicted from the network."""
    found, size = MACHINES[row["machine"]](row["collective"]), int(row["first_bytes"])
    while size <= int(row["last_bytes"]):
        pick = found.pick(size)
        assert (pick.algorithm.value, pick.protocol.value) == (row["algorithm"], row["protocol"]), size
        size *= 2


def test_graphs_are_those_that_nccl_logs():
    """Channels and speeds of known machines: 12 of 20 and of 30 GB/s within a box, one for every NIC between boxes."""
    for spec, channels, speed in (
        ("dgx_a100()", 12, 20),
        ("dgx_h100()", 12, 30),
        ("dgx_a100(boxes=2)", 8, 24),
        ("dgx_h100(boxes=4)", 8, 45),
    ):
        ring = predict_time(spec).machine.graphs[Algorithm.RING]
        assert (ring.channels, ring.intra) == (channels, speed)


def test_versions_differ():
    """Every version has a table of its own but 2.31.2 between boxes, and no newer one loses an algorithm."""
    found = {name: predict_time("dgx_b200(boxes=4)", nvls=True, version=name).costs for name in TUNINGS}
    assert len({tuple(costs.values()) for costs in found.values()}) == len(found) - 1
    assert found["2.31.2"] == found["2.30.7"]
    usable = [{at[0] for at, cost in costs.items() if cost.bandwidth_GBps} for costs in found.values()]
    assert all(before <= after for before, after in pairwise(usable))


@pytest.mark.parametrize(
    ("nominal", "counted"), [("450 GB/s", "370.8 GB/s"), ("900 GB/s", "721.8 GB/s"), ("300 GB/s", "240 GB/s")]
)
def test_effective_rates_are_told_from_nominal_ones(nominal, counted):
    """A machine with the rates that NCCL counts with, as an imported one, has the costs of its data sheet's rates."""
    one, other = (
        predict_time(f'rail(boxes=2,per_box=8,nvlink="{rate}",nic="50 GB/s")', nvls=True) for rate in (nominal, counted)
    )
    assert one.gpu == other.gpu
    assert one.costs == other.costs


@pytest.mark.parametrize(
    ("version", "near"), [("2.21.5", "2.20.3"), ("2.22.3", "2.23.4"), ("2.27.7", "2.27.3"), ("2.32.3", "2.31.2")]
)
def test_an_unknown_version_takes_the_nearest(version, near):
    """Versions without numbers of their own take those of the nearest one and say so."""
    found = predict_time("dgx_a100()", version=version)
    assert found.tuning.name == near
    assert found.version == f"{version} (by the numbers of {near})"


def test_wrong_versions_are_refused():
    """A text that is no version is refused with an example."""
    with pytest.raises(ValueError, match=r"such as 2\.30\.7"):
        NcclOptions(version="newest")


@pytest.mark.parametrize("version", TUNINGS)
def test_all_times_are_those_of_nccls_own_code(version):
    """Every algorithm and protocol has the time, and so has the symmetric kernel, that NCCL's code gives."""
    cases = [row for row in rows("nccl_code.csv") if row["version"] == version]
    assert len(cases) == (60 if version == "2.30.7" else 20)  # those of 2.31.2: see tests/reference/README.md
    for case in cases:
        words = [float(word) for word in case["case"].split()]
        ranks, nodes, capability, amd, nvlink, near, collnet, through_one, net_us, nic, call, size = words[:12]
        graphs = {
            algorithm: Graph(int(channels), intra, inter, bool(through_one))
            for algorithm, (channels, intra, inter) in zip(
                Algorithm, zip(*[iter(words[12:])] * 3, strict=True), strict=True
            )
            if channels
        }
        gpu = {70: "volta", 80: "ampere", 90: "hopper", 100: "blackwell"}[int(capability)]
        cpu = "amd" if amd else "intel"
        machine = Machine(int(ranks), int(nodes), gpu, graphs, cpu, bool(nvlink), bool(near), net_us, bool(collnet))
        tuning = TUNINGS[version]
        costs = table(machine, tuning, COLLECTIVES[int(call)])
        cells = [(algorithm, protocol) for algorithm in Algorithm for protocol in Protocol]
        answer = case["times_us_and_kernel"].split()
        if version == "2.30.7":
            *answer, kernel, sms, kernel_us = answer
            pick = choose_symmetric(machine, tuning, COLLECTIVES[int(call)], size, nic)
            assert (pick is None) == (kernel == "Unknown")
            if pick is not None:
                unit = 1 if kernel == "AllGather_RailRing_LsaSTMC" else 1e-6  # NCCL's is in seconds
                assert (pick.kernel, pick.sms) == (kernel, int(sms))
                assert pick.seconds == pytest.approx(float(kernel_us) * unit, rel=1e-5)
        for cell, time_us in zip(cells, map(float, answer), strict=False):
            if cell[0] is Algorithm.NVLS and machine.per_node > 32 and int(call) != 4:
                continue  # NCCL's enqueue.cc takes it for an all-reduce only
            time = seconds(machine, tuning, costs, cell, size) if cell in costs else None
            assert (-1 if time is None else time * 1e6) == pytest.approx(time_us, rel=1e-5), (case, cell)


@pytest.mark.parametrize("nics", [1, 2, 8])
def test_nvls_between_boxes_has_a_channel_for_every_nic(nics):
    """NVLS between boxes is headed by the GPUs nearest to NICs, as in NCCL's search: one or two NICs of 50 GB/s do not
    give the 460 GB/s of eight."""
    whole = load("dgx_h100(boxes=2)").network
    gone = {f"ib{i}" for i in range(nics, 8)}
    links = tuple(link for link in whole.links if not gone & {link.source, link.target})
    made = predict_time(Topology(tuple(n for n in whole.nodes if n.name not in gone), links))
    assert made.machine.graphs[Algorithm.NVLS_TREE].channels == nics


def rccl(spec, collective, size, gpu):
    return cwb.solve(spec, "rccl", collective=collective, size=size, gpu=gpu)


def test_a_box_of_mi300x_has_the_times_of_rccls_table():
    """Rings with Simple take 17 us, 2.1 us a hop, and seven links of 48 GB/s; with LL 12, 0.8, and 8 % of the rate."""
    found = rccl("mi300x", "all_reduce", "1 GiB", "mi300x").metrics
    assert (found["algorithm"], found["protocol"]) == ("ring", "simple")
    assert found["predicted_s"] == pytest.approx((17 + 14 * 2.1) * 1e-6 + 2**30 / (336e9 * 8 / 14))
    found = rccl("mi300x", "reduce_scatter", "1 MiB", "mi300x").metrics
    assert found["protocol"] == "ll"
    assert found["predicted_s"] == pytest.approx((12 + 7 * 0.8) * 1e-6 + 2**20 / (0.08 * 336e9 * 8 / 7))


@pytest.mark.parametrize(
    ("spec", "collective", "size", "gpu", "protocol"),
    [
        ("mi300x", "reduce_scatter", 8 * 352128, "mi300x", "ll"),
        ("mi300x", "reduce_scatter", 8 * 352640, "mi300x", "simple"),
        ("mi300x", "all_gather", 8 * 88448, "mi350", "ll"),
        ("mi300x(boxes=2)", "all_reduce", 524288, "mi300x", "ll"),
        ("mi300x(boxes=2)", "all_reduce", 524544, "mi300x", "ll128"),
        ("mi300x(boxes=2)", "all_reduce", 4415232, "mi300x", "simple"),
        ("mi300x(boxes=3)", "all_reduce", 4415232, "mi300x", "ll128"),
        ("mi300x(boxes=2)", "all_gather", 16 * 98304, "mi300x", "ll"),
    ],
)
def test_bytes_of_a_part_choose_rccls_protocol(spec, collective, size, gpu, protocol):
    """The limits of LL and LL128 are those of ``rccl_wrap.cc`` and of the tables, to the byte above and below."""
    assert rccl(spec, collective, f"{size} B", gpu).metrics["protocol"] == protocol


def test_trees_of_one_box_have_no_simple_but_on_mi200():
    """RCCL leaves them out on newer GPUs; sixteen dies of MI250 take them for large sizes."""
    assert rccl("mi250", "all_reduce", "1 GiB", "mi200").metrics["algorithm"] == "tree"
    done = cwb.solve("mi300x", "rccl", collective="all_reduce", size="1 GiB", algorithm="tree", protocol="simple")
    assert done.status == "unsupported"
    assert done.message == "RCCL on mi300x does not have tree with simple for this collective here"


def box_with_pcie(rate="12.5"):
    """Two boxes as ``cwb import nccl`` writes them: GPUs share a PCIe switch, whose name has a dot."""
    nodes = [Node(f"box{b}.gpu{g}") for b in range(2) for g in range(4)]
    links = []

    def join(a, b, rate):
        links.extend(Link(x, y, Fraction(rate) * 10**9, Fraction(0)) for x, y in ((a, b), (b, a)))

    for b in range(2):
        nodes += [Node(f"box{b}.nvswitch", NodeKind.SWITCH, multicast=True, reduces=True)]
        for s in range(2):
            nodes += [Node(f"box{b}.{name}", NodeKind.SWITCH) for name in (f"pci-0000:0{s}:00.0", f"mlx5_{s}")]
            join(f"box{b}.mlx5_{s}", f"box{b}.pci-0000:0{s}:00.0", "48")
            join(f"box{b}.mlx5_{s}", f"rail{s}", rate)
        for g in range(4):
            join(f"box{b}.gpu{g}", f"box{b}.nvswitch", "370.8")
            join(f"box{b}.gpu{g}", f"box{b}.pci-0000:0{g // 2}:00.0", "48")
    nodes += [Node(f"rail{s}", NodeKind.SWITCH) for s in range(2)]
    kind = collective_named("all_reduce")
    instance = load("ring(4)").with_changes(network=Topology(tuple(nodes), tuple(links)), also=())
    return prediction(instance.with_changes(demand=Demand(kind, Fraction(2**30))), NcclOptions())


@pytest.mark.parametrize(("port", "ring"), [("12.5", (2, 12, 12)), ("100", (4, 24, 24))])
def test_pcie_switches_are_in_their_box_and_are_no_way_beside_nvlink(port, ring):
    """A switch whose name has dots is in its box, GPUs on it use NVLink, and PCIe bounds what a NIC brings."""
    found = box_with_pcie(port)
    assert found.gpu == "hopper"
    assert [len(box.nics) for box in found.boxes.boxes] == [2, 2]
    assert found.machine.graphs[Algorithm.RING][:3] == ring
    assert found.machine.graphs[Algorithm.NVLS].channels == 2


def test_rings_in_several_orders_delay_a_broadcast():
    """A broadcast in rings that differ waits at every rank, as in NCCL; in rings of one order it does not."""
    one, other = (
        Machine(16, 2, "hopper", {Algorithm.RING: Graph(8, 48, 48, alike=alike), Algorithm.TREE: Graph(8, 48, 48)})
        for alike in (True, False)
    )
    at = (Algorithm.RING, Protocol.LL)
    tuning = TUNINGS["2.30.7"]
    kind = collective_named("broadcast")
    assert table(one, tuning, kind)[at].latency_us == pytest.approx(6.6 + 2.7)
    assert table(other, tuning, kind)[at].latency_us == pytest.approx(6.6 + 16 * 2.7)


@pytest.mark.parametrize(
    ("machine", "size", "kernel", "us"),
    [
        ("dgx_h100", 2**16, "CE_AllGather_MC", 14.9 + 8 * 0.726 + 2**16 / 392e3),
        ("dgx_h100", 2**30, "CE_AllGather_UC", 17.5 + 8 * 1.957 + 7 / 8 * 2**30 / 392e3),
        ("dgx_h100(nvls=False)", 2**16, "CE_AllGather_UC", 17.5 + 8 * 1.957 + 7 / 8 * 2**16 / 392e3),
        ("dgx_b200", 2**30, "CE_AllGather_UC", 32.04 + 8 * 0.13 + 2**27 / 106e3),  # its own part, over PCIe
        ("dgx_h100(boxes=2)", 2**20, None, None),
        ("dgx_a100", 2**20, None, None),
    ],
)
def test_copy_engines_take_no_sm(machine, size, kernel, us):
    """An all-gather by copy engines has the time of NCCL 2.31.2's formula and no SM, in one box of Hopper and later."""
    options = NcclOptions(version="2.31.2", zero_sms=True)
    for name, found in (("all_gather", kernel), ("all_reduce", None)):
        posed = load(machine).with_changes(demand=Demand(collective_named(name), Fraction(size)), also=())
        pick = prediction(posed, options).symmetric_pick(size)
        assert (pick and (pick.kernel, pick.sms)) == (found and (found, 0))
        assert pick is None or pick.seconds == pytest.approx(us * 1e-6)


@pytest.mark.parametrize(("version", "has"), [("2.27.3", False), ("2.30.7", True)])
def test_two_gpus_have_nvls_from_2_29_on(version, has):
    """Before 2.29 a box of two GPUs has no NVLS."""
    instance = load("dgx_h100").with_changes(
        demand=Demand(collective_named("all_reduce"), Fraction(2**30), ranks=(0, 1)), also=()
    )
    found = prediction(instance, NcclOptions(version=version))
    assert (Algorithm.NVLS in found.machine.graphs) is has
