"""Clusters of GPU boxes: rails, pods of leaf and spine switches, three tiers, two makers, and those of TE-CCL.

A box is GPUs on one NVSwitch, with a NIC for each; by default with the numbers of ForestColl's A100 boxes (section
5.3): 300 GB/s for a GPU's NVLinks and 25 GB/s for its NIC, in each direction. The tiers above are generic, with all
parallel links between two switches as one. All switches only pass on: they cannot store, nor therefore add.

The internal topologies of TE-CCL are a reading. Table 2: 4 GPUs and 8 links a chassis (internal 1), 2 GPUs and 2 links
(internal 2), counted in each direction as the 32 links of a DGX-1 are; 0.6 us between GPUs and 0.75 us between GPU and
switch. Section 6.1: many GPUs of a chassis are connected to a switch; section 8: the network outside is one big switch.
Here the GPUs of a chassis are a ring, and every GPU has a link to the switch and one from it. The paper withholds all
rates, so the defaults are this library's.
"""

from fractions import Fraction

from ...core.topology import Node, Topology
from . import building
from .amd import INFINITY_FABRIC

#: What ForestColl's A100 boxes have.
NVLINK: building.Rate = "300 GB/s"
NIC: building.Rate = "25 GB/s"


def rail(
    boxes: int = 32,
    per_box: int = 8,
    missing_nics: int = 0,
    *,
    nvlink: building.Rate = NVLINK,
    nic: building.Rate = NIC,
    latency: building.Time = building.LATENCY,
    multicast: bool = False,
) -> Topology:
    """Rail-optimized cluster: boxes of GPUs on an NVSwitch, and a switch for each position in the box."""
    building.check_ranges(boxes=(boxes, 2), per_box=(per_box, 2), missing_nics=(missing_nics, 0, boxes - 1))
    return building.rail_cluster(
        boxes, per_box, per_box, nvlink=nvlink, nic=nic, latency=latency, multicast=multicast, missing_nics=missing_nics
    )


def pods(
    pods: int = 4,
    boxes: int = 4,
    per_box: int = 8,
    spines: int = 4,
    oversubscription: int = 2,
    missing_nics: int = 0,
    *,
    nvlink: building.Rate = NVLINK,
    nic: building.Rate = NIC,
    latency: building.Time = building.LATENCY,
    multicast: bool = False,
) -> Topology:
    """Pods of GPU boxes: a leaf switch for each pod, and every leaf on all spine switches.

    ``oversubscription``: a leaf's bandwidth towards the GPUs over that towards the spines: 1 is a network that does not
    block, 2 halves what leaves a pod. A missing NIC does not count.
    """
    building.check_ranges(pods=(pods, 2), boxes=(boxes, 1), per_box=(per_box, 2), spines=(spines, 1))
    building.check_range(oversubscription, "oversubscription", 1)
    count = pods * boxes
    building.check_range(missing_nics, "missing_nics", 0, count - 1)
    building.check_size(
        nodes=count * (per_box + 1) + pods + spines, links=2 * (2 * count * per_box - missing_nics + pods * spines)
    )
    inside, outside = building.read_wire(nvlink, latency, place="nvlink"), building.read_wire(nic, latency, place="nic")
    up = outside * Fraction(boxes * per_box, oversubscription * spines)
    leaves, tops = [f"leaf{pod}" for pod in range(pods)], [f"spine{index}" for index in range(spines)]
    links = building.switched_boxes(count, per_box, inside)
    links += building.nics(count, per_box, outside, lambda box, _: leaves[box // boxes], missing=missing_nics)
    links += [link for leaf in leaves for top in tops for link in up.link_pair(leaf, top)]
    switches = [*building.nvswitches(count), *leaves, *tops]
    return building.switched_network(building.gpus(count, per_box), switches, links, multicast=multicast)


def three_tier(
    pods: int = 4,
    leaves: int = 4,
    boxes: int = 4,
    per_box: int = 4,
    aggregations: int = 4,
    cores: int = 4,
    oversubscription: int = 1,
    core_oversubscription: int = 1,
    missing_nics: int = 0,
    *,
    nvlink: building.Rate = NVLINK,
    nic: building.Rate = NIC,
    latency: building.Time = building.LATENCY,
    multicast: bool = False,
) -> Topology:
    """Three tiers above GPU boxes: every leaf on all aggregation switches of its pod, these on all core switches.

    ``leaves``, ``aggregations``, ``boxes``: leaf switches and aggregation switches of a pod, and boxes on a leaf
    switch. ``oversubscription``, ``core_oversubscription``: bandwidth downwards over bandwidth upwards, of a leaf
    switch and of an aggregation switch; 1 does not block. A missing NIC does not count.
    """
    building.check_ranges(pods=(pods, 2), per_box=(per_box, 2))
    building.check_ranges(leaves=(leaves, 1), boxes=(boxes, 1), aggregations=(aggregations, 1), cores=(cores, 1))
    building.check_ranges(oversubscription=(oversubscription, 1), core_oversubscription=(core_oversubscription, 1))
    count = pods * leaves * boxes
    building.check_range(missing_nics, "missing_nics", 0, count - 1)
    building.check_size(
        nodes=count * (per_box + 1) + pods * (leaves + aggregations) + cores,
        links=2 * (2 * count * per_box - missing_nics + pods * aggregations * (leaves + cores)),
    )
    inside, outside = building.read_wire(nvlink, latency, place="nvlink"), building.read_wire(nic, latency, place="nic")
    middle = outside * Fraction(boxes * per_box, oversubscription * aggregations)
    top = middle * Fraction(leaves, core_oversubscription * cores)
    low = [[f"leaf{pod}.{index}" for index in range(leaves)] for pod in range(pods)]
    high = [[f"aggregation{pod}.{index}" for index in range(aggregations)] for pod in range(pods)]
    core = [f"core{index}" for index in range(cores)]
    leaf_names = [name for pod in low for name in pod]
    links = building.switched_boxes(count, per_box, inside)
    links += building.nics(count, per_box, outside, lambda box, _: leaf_names[box // boxes], missing=missing_nics)
    for below, above in zip(low, high, strict=True):
        links += [link for one in below for other in above for link in middle.link_pair(one, other)]
        links += [link for one in above for other in core for link in top.link_pair(one, other)]
    switches = [*building.nvswitches(count), *leaf_names, *(name for pod in high for name in pod), *core]
    return building.switched_network(building.gpus(count, per_box), switches, links, multicast=multicast)


def mixed(
    a100: int = 16, mi250: int = 8, *, latency: building.Time = building.LATENCY, multicast: bool = False
) -> Topology:
    """A100 boxes and MI250 boxes on one InfiniBand switch.

    The boxes are those of ``dgx_a100`` (eight GPUs on an NVSwitch of 300 GB/s, NICs of 25 GB/s) and of ``mi250`` (16
    GPUs, Infinity Fabric links of 50 GB/s, 16 GB/s for each GPU to InfiniBand).

    ``a100``, ``mi250``: number of boxes of each kind, at least 1; the A100 boxes have the lower ranks.
    """
    building.check_ranges(a100=(a100, 1), mi250=(mi250, 1))
    building.check_size(nodes=9 * a100 + 16 * mi250 + 1, links=2 * (16 * a100 + (len(INFINITY_FABRIC) + 16) * mi250))
    inside, fabric = building.read_wire("300 GB/s", latency), building.read_wire("50 GB/s", latency)
    outside, share = building.read_wire("25 GB/s", latency), building.read_wire("16 GB/s", latency)
    links = building.switched_boxes(a100, 8, inside)
    links += building.nics(a100, 8, outside, lambda _box, _index: "ib")
    names = [*building.gpus(a100, 8)]
    for box in range(a100, a100 + mi250):
        mine = [building.gpu(box, index) for index in range(16)]
        names += mine
        links += building.wired_box(box, INFINITY_FABRIC, fabric)
        links += [link for name in mine for link in share.link_pair(name, "ib")]
    return building.switched_network(names, [*building.nvswitches(a100), "ib"], links, multicast=multicast)


#: TE-CCL, table 2.
INSIDE: building.Time = "0.6 us"
OUTSIDE: building.Time = "0.75 us"


def internal1(
    chassis: int = 2, *, bandwidth: building.Rate = building.BANDWIDTH, uplink: building.Rate = "25 GB/s"
) -> Topology:
    """Chassis of four GPUs in a ring, all joined by one switch: the first internal topology of TE-CCL.

    ``uplink``: between a GPU and the switch; not in the paper.
    """
    return _chassis(chassis, 4, bandwidth, uplink)


def internal2(
    chassis: int = 2, *, bandwidth: building.Rate = building.BANDWIDTH, uplink: building.Rate = "25 GB/s"
) -> Topology:
    """Chassis of two GPUs, all joined by one switch: the second internal topology of TE-CCL.

    ``uplink``: between a GPU and the switch; not in the paper.
    """
    return _chassis(chassis, 2, bandwidth, uplink)


def _chassis(chassis: int, per_chassis: int, bandwidth: building.Rate, uplink: building.Rate) -> Topology:
    building.check_range(chassis, "chassis", 1)
    ring = 2 if per_chassis == 2 else 2 * per_chassis
    building.check_size(
        nodes=chassis * per_chassis + (chassis > 1), links=chassis * (ring + 2 * per_chassis * (chassis > 1))
    )
    inside, outside = building.read_wire(bandwidth, INSIDE), building.read_wire(uplink, OUTSIDE, place="uplink")
    cycle = {(index, (index + 1) % per_chassis): 1 for index in range(ring // 2)}
    links = [link for box in range(chassis) for link in building.wired_box(box, cycle, inside)]
    names = building.gpus(chassis, per_chassis)
    if chassis == 1:
        return Topology(tuple(map(Node, names)), tuple(links))
    for name in names:
        links += outside.link_pair(name, "network")
    return Topology((*map(Node, names), building.bufferless("network")), tuple(links))
