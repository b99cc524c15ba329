"""Networks like those of supercomputers: Frontera, Leonardo and Frontier, as many racks, cells or groups as wanted.

The numbers of a rack, cell or group are those of the machine. Which node is on which switch of its group is an
assumption, since the sources do not say it; it uses as many ports of each switch as they say. Switches only pass on.
"""

from ...core.topology import Link, Topology
from .building import (
    LATENCY,
    Time,
    check_range,
    check_ranges,
    check_size,
    gpu,
    gpus,
    read_wire,
    switched_network,
    wired_box,
    wiring,
)
from .switch_networks import between_groups

#: The eight GPUs (two in each MI250X) of a node of Frontier: pairs by number of Infinity Fabric links.
FRONTIER_NODE = wiring(
    {4: ((0, 1), (2, 3), (4, 5), (6, 7)), 2: ((0, 6), (2, 4)), 1: ((0, 2), (1, 3), (1, 5), (3, 7), (4, 6), (5, 7))}
)
#: The four GPUs of a node of Leonardo, a bundle of NVLinks between every two.
LEONARDO_NODE = wiring({1: [(a, b) for b in range(4) for a in range(b)]})


def frontera(racks: int = 2, *, latency: Time = LATENCY, multicast: bool = False) -> Topology:
    """Frontera-like fat tree of two tiers, oversubscribed 22 to 18: racks of 88 nodes, six core switches.

    Frontera user guide, "System architecture" (TACC): two leaf switches in a rack, each with 44 nodes on HDR100 (100
    Gb/s = 12.5 GB/s) and 18 uplinks of HDR (200 Gb/s) to six core switches, three to each, which are one link of 75
    GB/s here. The machine has 91 racks with 8,008 nodes. The guide gives no latency.
    """
    check_range(racks, "racks", 1)
    check_size(nodes=90 * racks + 6, links=2 * (88 + 12) * racks)
    down, up = read_wire("100 Gb/s", latency), read_wire("600 Gb/s", latency)
    nodes = [f"rack{rack}.node{index}" for rack in range(racks) for index in range(88)]
    leaves = [f"rack{rack}.leaf{index}" for rack in range(racks) for index in (0, 1)]
    cores = [f"core{index}" for index in range(6)]
    links = [link for index, node in enumerate(nodes) for link in down.link_pair(node, leaves[index // 44])]
    links += [link for leaf in leaves for core in cores for link in up.link_pair(leaf, core)]
    return switched_network(nodes, [*leaves, *cores], links, multicast=multicast)


def leonardo(cells: int = 2, leaves: int = 18, *, latency: Time = LATENCY, multicast: bool = False) -> Topology:
    """Leonardo-like Dragonfly+ of HDR InfiniBand: cells of 18 leaf and 18 spine switches, nodes of four A100.

    M. Turisini, G. Amati, M. Cestari, "LEONARDO: a pan-European pre-exascale supercomputer for HPC and AI
    applications", arXiv:2307.16885, and CINECA's page of the system: nodes of four A100 with two dual-port HDR cards,
    400 Gb/s, hence a port of 100 Gb/s = 12.5 GB/s for each GPU; cells of 180 nodes, 18 leaf and 18 spine switches with
    40 ports of 200 Gb/s = 25 GB/s; every spine has a link to each of up to 22 other cells. The GPUs of a node are
    all linked: 12 NVLinks of 25 GB/s (NVIDIA's data sheet of the A100) for three others, hence 100 GB/s for each. The
    four GPUs of a node are on one leaf here. The sources give no latency.

    ``leaves``: leaf switches of a cell with ten nodes each; 18 in the machine.
    """
    check_ranges(cells=(cells, 1, 23), leaves=(leaves, 1, 18))
    nodes, spines = 10 * leaves * cells, 18
    check_size(
        nodes=4 * nodes + cells * (leaves + spines),
        links=(12 + 8) * nodes + 2 * cells * leaves * spines + cells * (cells - 1) * spines,
    )
    inside, port, cable = read_wire("100 GB/s", latency), read_wire("100 Gb/s", latency), read_wire("200 Gb/s", latency)
    low = [f"cell{cell}.leaf{index}" for cell in range(cells) for index in range(leaves)]
    top = [f"cell{cell}.spine{index}" for cell in range(cells) for index in range(spines)]
    links: list[Link] = []
    for node in range(nodes):
        links += wired_box(node, LEONARDO_NODE, inside)
        links += [link for index in range(4) for link in port.link_pair(gpu(node, index), low[node // 10])]
    for index, leaf in enumerate(low):
        first = index // leaves * spines
        links += [link for spine in top[first : first + spines] for link in cable.link_pair(leaf, spine)]
    links += between_groups(top, cells, cable, spines)
    return switched_network(gpus(nodes, 4), [*low, *top], links, multicast=multicast)


def frontier(groups: int = 2, chassis: int = 8, *, latency: Time = LATENCY, multicast: bool = False) -> Topology:
    """Frontier-like dragonfly of Slingshot: groups of 32 switches, nodes of eight GPUs (four MI250X) with four NICs.

    Frontier user guide (OLCF): Infinity Fabric of 200 GB/s between the two GPUs of an MI250X, 50 to 100 GB/s between
    those of different ones, which are one to four links of 50 GB/s, drawn there; a NIC of 200 Gb/s = 25 GB/s for each
    MI250X, here at its second GPU. G. Lockwood, "Frontier", with the numbers of S. Atchley et al., "Frontier: exploring
    exascale", SC 2023: a group has 128 nodes and 32 switches of 64 ports of 200 Gb/s, 16 of them for NICs and 31 to the
    other switches of the group; four links between every two of 74 groups. A chassis is 16 nodes with four switches;
    NIC i of a node is on switch i of its chassis here. The sources give no latency.

    ``chassis``: chassis of 16 nodes in a group; 8 in the machine.
    """
    check_ranges(groups=(groups, 1, 74), chassis=(chassis, 1, 8))
    nodes, routers = 16 * chassis * groups, 4 * chassis
    check_size(
        nodes=8 * nodes + routers * groups,
        links=(2 * len(FRONTIER_NODE) + 8) * nodes + groups * routers * (routers - 1) + 4 * groups * (groups - 1),
    )
    inside, cable = read_wire("50 GB/s", latency), read_wire("200 Gb/s", latency)
    names = [f"group{group}.switch{index}" for group in range(groups) for index in range(routers)]
    links: list[Link] = []
    for node in range(nodes):
        links += wired_box(node, FRONTIER_NODE, inside)
        for card in range(4):
            links += cable.link_pair(gpu(node, 2 * card + 1), names[node // 16 * 4 + card])
    for first in range(0, len(names), routers):
        group = names[first : first + routers]
        links += [cable.link(one, other) for one in group for other in group if one != other]
    links += between_groups(names, groups, cable, 4)
    return switched_network(gpus(nodes, 8), names, links, multicast=multicast)
