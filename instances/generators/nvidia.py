"""NVIDIA machines: DGX-1, NDv2, DGX-2, DGX A100, DGX H100, DGX H200, DGX B200, GB200 NVL72 and PCIe boxes."""

from ...core.errors import InputError
from ...core.topology import Link, Node, Topology
from .building import (
    LATENCY,
    Rate,
    Time,
    bufferless,
    check_range,
    check_ranges,
    check_size,
    gpu,
    gpus,
    nvswitches,
    rail_cluster,
    read_wire,
    switched_boxes,
    switched_network,
    wired_box,
    wiring,
)

#: The hybrid cube mesh of eight V100: pairs by number of NVLinks; every GPU has six. The same matrix stands in the
#: code of TE-CCL (topologies/dgx1.py, topologies/ndv2.py) and of TACCL (topologies/generic.py).
HYBRID_CUBE_MESH = wiring(
    {
        2: ((0, 1), (0, 4), (1, 3), (2, 3), (2, 6), (4, 5), (5, 7), (6, 7)),
        1: ((0, 2), (0, 3), (1, 2), (1, 5), (3, 7), (4, 6), (4, 7), (5, 6)),
    }
)


def dgx1(*, latency: Time = "0.7 us") -> Topology:
    """DGX-1 with eight V100 GPUs in a hybrid cube mesh of NVLinks.

    An NVLink has 25 GB/s in each direction (TE-CCL code, topologies/dgx1.py). The two NVLinks that some pairs share
    are one link of 50 GB/s here, as in TE-CCL and TACCL: a chunk can use both at once. The latency is TE-CCL's
    (section 6.1).
    """
    links = wired_box(0, HYBRID_CUBE_MESH, read_wire("25 GB/s", latency))
    return Topology(tuple(map(Node, gpus(1, 8))), tuple(links))


def ndv2(chassis: int = 1, variant: str = "fixed", *, gpu0_switch: bool = False) -> Topology:
    """Azure NDv2 as in TE-CCL: chassis with the GPUs of a DGX-1, joined by one NIC each.

    TE-CCL, figure 14 and topologies/ndv2.py: NVLinks of 25 GB/s and 0.7 us within a chassis; 12.5 GB/s and 1.3 us
    outside. GPU 0 of each chassis sends into the network and GPU 1 receives. Two chassis are joined directly, three
    and more by a switch that copies and does not store (section 3.1).

    ``variant``: ``repo`` repeats a slip of the published code for two chassis, for comparison with its published
    results: GPU 0 of the first chassis is a switch, so that 15 GPUs remain. ``fixed`` has all 16, as the paper's
    appendix must have had (its all-to-all of 1 GB takes 320.2 ms, the time of 64 chunks over 12.5 GB/s). With three and
    more chassis the two are the same. ``gpu0_switch``: another way to ask for ``variant=repo``.
    """
    variant = "repo" if gpu0_switch and variant == "fixed" else variant
    if variant not in ("fixed", "repo"):
        raise InputError(f"{variant[:40]!r} is unknown; expected fixed or repo", place="variant")
    check_range(chassis, "chassis", 1 if variant == "fixed" else 2)
    check_size(nodes=8 * chassis + 1, links=34 * chassis)
    nodes = [Node(name) for name in gpus(chassis, 8)]
    inside = read_wire("25 GB/s", "0.7 us")
    links = [link for box in range(chassis) for link in wired_box(box, HYBRID_CUBE_MESH, inside)]
    outside = read_wire("12.5 GB/s", "1.3 us")
    if chassis == 2:
        links += [outside.link(gpu(0, 0), gpu(1, 1)), outside.link(gpu(1, 0), gpu(0, 1))]
        if variant == "repo":
            nodes[0] = bufferless(gpu(0, 0))
    elif chassis > 2:
        nodes.append(bufferless("network"))
        for box in range(chassis):
            links += [outside.link(gpu(box, 0), "network"), outside.link("network", gpu(box, 1))]
    return Topology(tuple(nodes), tuple(links))


def dgx2(chassis: int = 1) -> Topology:
    """DGX-2 as in TE-CCL: 16 GPUs on one NVSwitch; between two chassis, odd GPUs send and even ones receive.

    TE-CCL, figure 13 and topologies/dgx2.py: 125 GB/s and 0.35 us between GPU and NVSwitch, in each direction; GPU
    2i + 1 of either chassis sends to GPU 2i of the other with 12.5 GB/s and 2.6 us. The NVSwitch copies and does not
    store (section 3.1). These are the numbers that TACCL profiled; the nominal rate of six NVLinks is 150 GB/s.

    ``chassis``: 1 or 2; the paper defines no more.
    """
    check_range(chassis, "chassis", 1, 2)
    inside = read_wire("125 GB/s", "0.35 us")
    outside = read_wire("12.5 GB/s", "2.6 us")
    links = switched_boxes(chassis, 16, inside)
    if chassis == 2:
        links += [outside.link(gpu(box, i + 1), gpu(1 - box, i)) for box in (0, 1) for i in range(0, 16, 2)]
    return Topology((*map(Node, gpus(chassis, 16)), *map(bufferless, nvswitches(chassis))), tuple(links))


def dgx_a100(boxes: int = 1, rails: int = 2, *, latency: Time = LATENCY, multicast: bool = False) -> Topology:
    """DGX A100 as in ForestColl: eight GPUs on one NVSwitch, and a NIC for each GPU.

    ForestColl, section 5.3: 300 GB/s between GPU and NVSwitch and 25 GB/s between GPU and InfiniBand, in each
    direction. Its code (topologies.py) has one InfiniBand switch for the even and one for the odd GPUs, which is
    ``rails=2``. The NICs, which only pass on, are part of the links. The switches only pass on, too: they cannot
    store, nor therefore add. The paper gives no latency.

    ``multicast``: whether the switches can copy; ForestColl assumes not (section 3.2).
    """
    check_ranges(boxes=(boxes, 1), rails=(rails, 1, 8))
    return rail_cluster(boxes, 8, rails, nvlink="300 GB/s", nic="25 GB/s", latency=latency, multicast=multicast)


def dgx_h100(
    boxes: int = 1, rails: int = 8, *, latency: Time = LATENCY, multicast: bool = False, nvls: bool = True
) -> Topology:
    """DGX H100, and DGX H200: eight GPUs on one NVSwitch, and a NIC for each GPU.

    NVIDIA's data sheet: 18 NVLinks for a GPU, 900 GB/s in both directions together, hence 450 GB/s in each; a
    ConnectX-7 of 400 Gb/s = 50 GB/s for each GPU. The four NVSwitches are one here. A rail for each position in the
    box, as in the DGX SuperPOD reference architecture (RA-11333-001); the spine between the rails is left out, since
    the NVSwitch joins them. The NVSwitches copy and add unless ``nvls`` is False (NVLink SHARP, the third generation of
    NVSwitch); the switches between boxes only pass on, as in ``dgx_a100``. The data sheet gives no latency. That of the
    H200 and the DGX H100/H200 user guide, "Hardware", have the same numbers: what is new is the memory.
    """
    check_ranges(boxes=(boxes, 1), rails=(rails, 1, 8))
    return rail_cluster(
        boxes, 8, rails, nvlink="450 GB/s", nic="400 Gb/s", latency=latency, multicast=multicast, nvls=nvls
    )


def dgx_b200(
    boxes: int = 1, rails: int = 8, *, latency: Time = LATENCY, multicast: bool = False, nvls: bool = True
) -> Topology:
    """DGX B200: eight GPUs on one NVSwitch, and a NIC for each GPU.

    NVIDIA's data sheet of the DGX B200: 14.4 TB/s of NVLink for its eight GPUs, that is 1.8 TB/s for each in both
    directions together, hence 900 GB/s in each; eight ConnectX-7 ports of 400 Gb/s = 50 GB/s. The two NVSwitches are
    one here; they copy and add (NVLink SHARP). A rail for each position in the box, as in ``dgx_h100``. The data sheet
    gives no latency.
    """
    check_ranges(boxes=(boxes, 1), rails=(rails, 1, 8))
    return rail_cluster(
        boxes, 8, rails, nvlink="900 GB/s", nic="400 Gb/s", latency=latency, multicast=multicast, nvls=nvls
    )


def nvl72(
    racks: int = 1,
    gpus: int = 72,
    planes: int = 1,
    rails: int = 4,
    *,
    latency: Time = LATENCY,
    multicast: bool = False,
    nvls: bool = True,
) -> Topology:
    """GB200 NVL72: racks of 72 GPUs on NVLink switches, and a NIC for each GPU.

    NVIDIA DGX SuperPOD reference architecture for DGX GB200, "Network Fabrics": a GPU has 18 NVLinks, one to each of
    the rack's 18 switch chips, 1.8 TB/s in both directions together, hence 900 GB/s in each; a rail for each GPU of a
    compute tray. DGX GB200 user guide, "Hardware": 18 trays of four GPUs, with a ConnectX-7 of 400 Gb/s = 50 GB/s for
    each. The chips are one switch unless ``planes`` says otherwise: all GPUs have the same share of every chip, so
    that a flow on one switch is spread evenly over 18 with the same load, and the best throughput is the same. Leaf
    and spine switches of a rail are one switch; the spine between the rails is left out, since NVLink joins them.
    NVSwitches copy and add (NVLink SHARP); those of a rail only pass on. Neither document gives a latency.

    ``planes``: switches that the rack's NVLink bandwidth is spread over: 1, or 18 for the chips as they are built.
    """
    check_ranges(racks=(racks, 1), gpus=(gpus, 2, 72), planes=(planes, 1, 18), rails=(rails, 1, gpus))
    return rail_cluster(
        racks,
        gpus,
        rails,
        nvlink="900 GB/s",
        nic="400 Gb/s",
        latency=latency,
        multicast=multicast,
        planes=planes,
        nvls=nvls,
    )


def pcie(
    boxes: int = 1,
    switches: int = 2,
    per_switch: int = 2,
    *,
    bandwidth: Rate = "32 GB/s",
    upi: Rate = "67.2 GB/s",
    nic: Rate = "200 Gb/s",
    latency: Time = LATENCY,
    multicast: bool = False,
) -> Topology:
    """PCIe box: two processors with PCIe switches of GPUs each, and a NIC on every PCIe switch.

    NVIDIA's data sheet of the A100: PCIe Gen4 with 64 GB/s in both directions together, hence 32 GB/s in each, for a
    GPU and for the link of its switch to the processor; Gen5 has twice that. Intel's page of the Xeon Platinum 8358:
    three UPI links of 11.2 GT/s between two processors, two bytes a transfer, hence 67.2 GB/s in each direction. NICs
    of 200 Gb/s = 25 GB/s, all on one InfiniBand switch; a single box has none. Processors, PCIe switches and the
    InfiniBand switch only pass on. None of the sources gives a latency.

    ``switches``, ``per_switch``: PCIe switches of each of the two processors, and GPUs on a PCIe switch. ``bandwidth``:
    bandwidth of a PCIe link, in each direction. ``upi``: bandwidth between the two processors, in each direction.
    ``nic``: bandwidth between a PCIe switch and the InfiniBand switch, in each direction.
    """
    check_ranges(boxes=(boxes, 1), switches=(switches, 1), per_switch=(per_switch, 1))
    per_box, more = 2 * switches * per_switch, boxes > 1
    check_size(
        nodes=boxes * (per_box + 2 * switches + 2) + more, links=2 * boxes * (per_box + (2 + 2 * more) * switches + 1)
    )
    bus, between = read_wire(bandwidth, latency), read_wire(upi, latency, place="upi")
    card = read_wire(nic, latency, place="nic")
    links: list[Link] = []
    names: list[str] = []
    for box in range(boxes):
        processors = [f"box{box}.cpu{index}" for index in (0, 1)]
        chips = [f"box{box}.pcie{index}" for index in range(2 * switches)]
        names += [*processors, *chips]
        links += between.link_pair(*processors)
        for index, chip in enumerate(chips):
            links += bus.link_pair(chip, processors[index // switches])
            links += card.link_pair(chip, "ib") if more else ()
        for index in range(per_box):
            links += bus.link_pair(gpu(box, index), chips[index // per_switch])
    return switched_network(gpus(boxes, per_box), [*names, *(["ib"] if more else [])], links, multicast=multicast)
