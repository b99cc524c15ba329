"""The two internal topologies of TE-CCL, as far as the paper tells.

Table 2: 4 GPUs and 8 links a chassis (internal 1), 2 GPUs and 2 links (internal 2), counted in each direction as the 32
links of a DGX-1 are; 0.6 us between GPUs and 0.75 us between GPU and switch. Section 6.1: many GPUs of a chassis are
connected to a switch; section 8: the network outside is one big switch. The rest is a reading: the GPUs of a chassis
are a ring, and every GPU has a link to the switch and one from it. The paper withholds all rates, so the defaults are
this library's.
"""

from __future__ import annotations

from ...core.topology import Link, Node, Topology
from .boxes import bufferless, gpu, gpus
from .building import BANDWIDTH, Rate, Time, check_range, check_size, read_wire

#: TE-CCL, table 2.
INSIDE: Time = "0.6 us"
OUTSIDE: Time = "0.75 us"


def internal1(chassis: int = 2, *, bandwidth: Rate = BANDWIDTH, uplink: Rate = "25 GB/s") -> Topology:
    """Chassis of four GPUs in a ring, all joined by one switch: the first internal topology of TE-CCL.

    Parameters
    ----------
    uplink : str
        Between a GPU and the switch; not in the paper.
    """
    return _chassis(chassis, 4, bandwidth, uplink)


def internal2(chassis: int = 2, *, bandwidth: Rate = BANDWIDTH, uplink: Rate = "25 GB/s") -> Topology:
    """Chassis of two GPUs, all joined by one switch: the second internal topology of TE-CCL.

    Parameters
    ----------
    uplink : str
        Between a GPU and the switch; not in the paper.
    """
    return _chassis(chassis, 2, bandwidth, uplink)


def _chassis(chassis: int, per_chassis: int, bandwidth: Rate, uplink: Rate) -> Topology:
    check_range(chassis, "chassis", 1)
    ring = 2 if per_chassis == 2 else 2 * per_chassis
    check_size(nodes=chassis * per_chassis + (chassis > 1), links=chassis * (ring + 2 * per_chassis * (chassis > 1)))
    inside, outside = read_wire(bandwidth, INSIDE), read_wire(uplink, OUTSIDE, place="uplink")
    links: list[Link] = []
    for box in range(chassis):
        for index in range(ring // 2):
            links += inside.link_pair(gpu(box, index), gpu(box, (index + 1) % per_chassis))
    names = gpus(chassis, per_chassis)
    if chassis == 1:
        return Topology(tuple(map(Node, names)), tuple(links))
    for name in names:
        links += outside.link_pair(name, "network")
    return Topology((*map(Node, names), bufferless("network")), tuple(links))
