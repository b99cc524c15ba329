"""Abstract networks with switches: star, fat tree, dragonflies, those of TACOS, and fabrics of building blocks."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from ...core.errors import InputError, locate_errors
from ...core.fabric import expand, expanded_size, parse_fabric
from ...core.topology import Link, Topology
from ...core.units import UnitKind, parse
from .building import (
    BANDWIDTH,
    LATENCY,
    Rate,
    Time,
    Wire,
    check_range,
    check_ranges,
    check_size,
    rank_names,
    read_wire,
    switched_network,
)


def star(n: int, *, bandwidth: Rate = BANDWIDTH, latency: Time = LATENCY, multicast: bool = False) -> Topology:
    """Star: n nodes on one switch."""
    check_size(nodes=check_range(n, "n", 2) + 1, links=2 * n)
    cable = read_wire(bandwidth, latency)
    links = [link for rank in rank_names(n) for link in cable.link_pair(rank, "switch")]
    return switched_network(rank_names(n), ["switch"], links, multicast=multicast, stores=True)


def fat_tree(
    k: int,
    *,
    oversubscription: Fraction = Fraction(1),
    bandwidth: Rate = BANDWIDTH,
    latency: Time = LATENCY,
    multicast: bool = False,
) -> Topology:
    """Fat tree of switches with k ports: k^3/4 hosts, full bisection bandwidth unless it is oversubscribed.

    M. Al-Fares, A. Loukissas, A. Vahdat, "A scalable, commodity data center network architecture", SIGCOMM 2008,
    section 3: k pods, each with k/2 edge and k/2 aggregation switches; (k/2)^2 core switches. Every edge switch has
    k/2 hosts; the aggregation switch a of every pod is connected with core switches a k/2 ... (a + 1) k/2 - 1.

    ``oversubscription``: bandwidth of an edge switch towards its hosts over that upwards, at least 1: links above the
    edge switches have this part of ``bandwidth``.
    """
    if check_range(k, "k", 2) % 2:
        raise InputError(f"{k:,} is odd; expected an even number of ports", place="k")
    if oversubscription < 1:
        raise InputError(f"{float(oversubscription):g} is below 1; expected at least 1", place="oversubscription")
    half = k // 2
    hosts = k * half**2
    check_size(nodes=hosts + k * k + half**2, links=6 * hosts)
    cable = read_wire(bandwidth, latency)
    above_edges = cable * (1 / oversubscription)
    ranks, core = rank_names(hosts), [f"core{index}" for index in range(half**2)]
    places = [f"{pod}.{index}" for pod in range(k) for index in range(half)]
    edge, aggregation = ([f"{tier}{place}" for place in places] for tier in ("edge", "aggregation"))
    links = [link for host, name in enumerate(ranks) for link in cable.link_pair(name, edge[host // half])]
    for above, name in enumerate(aggregation):
        for other in range(half):
            links += above_edges.link_pair(edge[above // half * half + other], name)
            links += above_edges.link_pair(name, core[above % half * half + other])
    return switched_network(ranks, [*edge, *aggregation, *core], links, multicast=multicast, stores=True)


def dragonfly(
    groups: int,
    routers: int,
    hosts: int = 0,
    *,
    bandwidth: Rate = BANDWIDTH,
    global_bandwidth: Rate = BANDWIDTH,
    latency: Time = LATENCY,
    multicast: bool = False,
) -> Topology:
    """Dragonfly: fully connected groups of routers, and one link in each direction between every two groups.

    After J. Kim et al., "Technology-driven, highly-scalable dragonfly topology", ISCA 2008, for any number of groups:
    group g is connected with g + 1, g + 2, ... in turn, and its routers take these links in turn. Without hosts the
    routers themselves compute, as in the dissertation (section 5.6.2: 4 x 5 with 400 and 200 GiB/s, which is
    ``dragonfly(4, 5, bandwidth="400 GiB/s", global_bandwidth="200 GiB/s")``; its text leaves open which of the two
    numbers counts the groups, and the number of links between two groups).

    ``groups``, ``routers``: number of groups, at least 2, and of routers in a group. ``hosts``: compute nodes on each
    router; 0 for routers that compute.
    """
    check_ranges(groups=(groups, 2), routers=(routers, 1), hosts=(hosts, 0))
    count = groups * routers
    check_size(nodes=count * (1 + hosts), links=count * (routers - 1) + groups * (groups - 1) + 2 * count * hosts)
    local = read_wire(bandwidth, latency)
    between = read_wire(global_bandwidth, latency, place="global_bandwidth")
    names = [f"router{index}" if hosts else str(index) for index in range(count)]
    links: list[Link] = []
    for first in range(0, count, routers):
        group = names[first : first + routers]
        links += [local.link(one, other) for one in group for other in group if one != other]
    links += between_groups(names, groups, between)
    for rank in range(count * hosts):
        links += local.link_pair(str(rank), names[rank // hosts])
    computing, switches = (rank_names(count * hosts), names) if hosts else (names, [])
    return switched_network(computing, switches, links, multicast=multicast, stores=True)


def between_groups(names: Sequence[str], groups: int, wire: Wire, count: int = 1) -> Iterator[Link]:
    """Link members of every two groups in both directions, ``count`` times; members, named group by group, take turns.

    Group g counts the others from g + 1 on, and its members take the links to them in this order.
    """
    members = len(names) // groups
    for low in range(groups):
        for high in range(low + 1, groups):
            up, down = high - low - 1, groups - 1 - (high - low)
            for k in range(count):
                one, other = (up * count + k) % members, (down * count + k) % members
                yield from wire.link_pair(names[low * members + one], names[high * members + other])


def dragonfly_plus(
    groups: int,
    leaves: int,
    spines: int,
    hosts: int,
    global_links: int = 1,
    *,
    bandwidth: Rate = BANDWIDTH,
    global_bandwidth: Rate = BANDWIDTH,
    latency: Time = LATENCY,
    multicast: bool = False,
) -> Topology:
    """Dragonfly+: groups of leaf and spine switches, every leaf on all spines of its group, and links between spines.

    A. Shpiner et al., "Dragonfly+: low cost topology for scaling datacenters", HiPINEB 2017. Every two groups have the
    same number of links, which the spines of a group take in turn, as the routers of ``dragonfly`` do.

    ``leaves``, ``spines``, ``hosts``: leaf and spine switches of a group, and compute nodes on each leaf switch.
    ``global_links``: links between every two groups, in each direction; as many as there are spines is one from every
    spine to every other group.
    """
    check_range(groups, "groups", 2)
    check_ranges(leaves=(leaves, 1), spines=(spines, 1), hosts=(hosts, 1), global_links=(global_links, 1))
    check_size(
        nodes=groups * (leaves * (hosts + 1) + spines),
        links=2 * groups * leaves * (hosts + spines) + groups * (groups - 1) * global_links,
    )
    local = read_wire(bandwidth, latency)
    between = read_wire(global_bandwidth, latency, place="global_bandwidth")
    low = [f"leaf{group}.{index}" for group in range(groups) for index in range(leaves)]
    top = [f"spine{group}.{index}" for group in range(groups) for index in range(spines)]
    links = [link for rank in range(len(low) * hosts) for link in local.link_pair(str(rank), low[rank // hosts])]
    for index, leaf in enumerate(low):
        first = index // leaves * spines
        links += [link for spine in top[first : first + spines] for link in local.link_pair(leaf, spine)]
    links += between_groups(top, groups, between, global_links)
    return switched_network(rank_names(len(low) * hosts), [*low, *top], links, multicast=multicast, stores=True)


def switch2d(
    inner: int = 8,
    outer: int = 4,
    *,
    inner_bandwidth: Rate = "300 GiB/s",
    outer_bandwidth: Rate = "25 GiB/s",
    latency: Time = LATENCY,
    multicast: bool = False,
) -> Topology:
    """Two-dimensional switch: every node has a port on the switches of its row and of its column.

    The defaults are the system of the dissertation, section 5.6.2: 8 x 4 with 300 and 25 GiB/s; 0.5 us is that of
    section 5.5.2. The node (x, y) has rank x + inner * y.

    ``inner``, ``outer``: nodes on an inner and on an outer switch; there are ``outer`` inner and ``inner`` outer
    switches. ``inner_bandwidth``, ``outer_bandwidth``: bandwidth of a node's port on either switch, in each direction.
    """
    count = check_range(inner, "inner", 2) * check_range(outer, "outer", 2)
    check_size(nodes=count + inner + outer, links=4 * count)
    near = read_wire(inner_bandwidth, latency, place="inner_bandwidth")
    far = read_wire(outer_bandwidth, latency, place="outer_bandwidth")
    links: list[Link] = []
    for rank in range(count):
        links += near.link_pair(str(rank), f"inner{rank // inner}")
        links += far.link_pair(str(rank), f"outer{rank % inner}")
    switches = [*(f"inner{y}" for y in range(outer)), *(f"outer{x}" for x in range(inner))]
    return switched_network(rank_names(count), switches, links, multicast=multicast, stores=True)


def rfs3d(
    ring: int = 2,
    connected: int = 4,
    switched: int = 8,
    *,
    ring_bandwidth: Rate = "200 GiB/s",
    connected_bandwidth: Rate = "100 GiB/s",
    switch_bandwidth: Rate = "50 GiB/s",
    latency: Time = LATENCY,
    multicast: bool = False,
) -> Topology:
    """Three-dimensional ring, fully connected, switch: RI(ring)_FC(connected)_SW(switched).

    The defaults are the system of the dissertation, section 5.6.2: 2 x 4 x 8 with 200, 100 and 50 GiB/s. A bandwidth
    is a node's, summed over its links in the dimension: half of it for each neighbour in a ring of more than 2, a
    (connected - 1)th for each partner of the fully connected dimension. So the ideal of table 5.5 counts
    (350 = 200 + 100 + 50); the text itself does not say it. For links of 50 GiB/s in the fully connected dimension,
    give ``connected_bandwidth="150 GiB/s"``. The node (x, y, z) has rank x + ring * y + ring * connected * z.

    ``ring_bandwidth``, ``connected_bandwidth``, ``switch_bandwidth``: of a node in each dimension, in each direction.
    """
    plane = check_range(ring, "ring", 2) * check_range(connected, "connected", 2)
    count = plane * check_range(switched, "switched", 2)
    neighbours = 1 if ring == 2 else 2
    check_size(nodes=count + plane, links=count * (neighbours + connected - 1 + 2))
    around = read_wire(ring_bandwidth, latency, place="ring_bandwidth") * Fraction(1, neighbours)
    across = read_wire(connected_bandwidth, latency, place="connected_bandwidth") * Fraction(1, connected - 1)
    up = read_wire(switch_bandwidth, latency, place="switch_bandwidth")
    links: list[Link] = []
    for rank in range(count):
        x, y = rank % ring, rank // ring % connected
        for step in (1, -1)[:neighbours]:
            links.append(around.link(str(rank), str(rank - x + (x + step) % ring)))
        links += [across.link(str(rank), str(rank + (other - y) * ring)) for other in range(connected) if other != y]
        links += up.link_pair(str(rank), f"switch{rank % plane}")
    switches = [f"switch{index}" for index in range(plane)]
    return switched_network(rank_names(count), switches, links, multicast=multicast, stores=True)


def fabric(dims: str, bandwidth: Sequence[Rate], latency: Sequence[Time] = ()) -> Topology:
    """Expand building blocks such as RI(4)_FC(2)_SW(4), given the bandwidth per NPU of each dimension.

    ``dims``: building blocks, innermost first (dissertation, section 3.4.1). ``bandwidth``: for each dimension, the
    bandwidth per NPU in each direction; how an NPU's links share it is described in :func:`cwb.core.fabric.expand`.
    ``latency``: for each dimension, the latency between two NPUs; none unless given.
    """
    with locate_errors("dims"):
        blocks = parse_fabric(dims, tiers=("",) * len(dims.split("_")))
    count = len(blocks.dimensions)
    entries = {"bandwidth": (bandwidth, UnitKind.RATE), "latency": (latency or ("0 s",) * count, UnitKind.TIME)}
    read: dict[str, list[Fraction]] = {}
    for name, (texts, kind) in entries.items():
        if len(texts) != count:
            raise InputError(f"{len(texts)} entries for {count} dimensions", place=name)
        with locate_errors(name):
            read[name] = [parse(text, kind, allow_zero=kind is UnitKind.TIME) for text in texts]
    nodes, links = expanded_size(blocks)
    check_size(nodes=nodes, links=links)
    return expand(blocks, read["bandwidth"], read["latency"])
