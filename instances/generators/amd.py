"""AMD boxes: 16 GPUs of MI250 as ForestColl and TE-CCL model them, and eight MI300X or MI325X."""

from ...core.errors import InputError
from ...core.topology import Link, Node, Topology
from .building import (
    LATENCY,
    Time,
    Wiring,
    bufferless,
    check_range,
    check_ranges,
    check_size,
    gpu,
    gpus,
    nics,
    read_wire,
    switched_network,
    wired_box,
    wiring,
)

#: Sixteen GPUs (two in each MI250): pairs by number of Infinity Fabric links; every GPU has seven. The same matrix
#: stands in the code of ForestColl (topologies.py) and of TE-CCL (topologies/amd.py); the picture is ForestColl's
#: figure 7(a).
INFINITY_FABRIC = wiring(
    {
        4: ((0, 1), (2, 3), (4, 5), (6, 7), (8, 9), (10, 11), (12, 13), (14, 15)),
        2: ((0, 4), (3, 7), (8, 12), (11, 15)),
        1: (
            *((0, 8), (1, 5), (1, 9), (1, 10), (2, 6), (2, 9), (2, 10), (3, 11)),
            *((4, 6), (5, 6), (5, 7), (9, 13), (10, 14), (12, 14), (13, 14), (13, 15)),
        ),
    }
)

FULL_MESH = wiring({1: [(a, b) for b in range(8) for a in range(b)]})  #: Eight MI300X: a link between every two.


def mi250(boxes: int = 1, *, latency: Time = LATENCY, multicast: bool = False) -> Topology:
    """AMD MI250 as in ForestColl: 16 GPUs joined by Infinity Fabric, boxes joined by one InfiniBand switch.

    ForestColl, section 5.2: 50 GB/s for an Infinity Fabric link, in each direction; parallel ones are one link of
    their summed bandwidth here. Between a GPU and the InfiniBand switch 16 GB/s, its share of the box's eight NICs
    (256 GB/s); PCIe switches and NICs are left out, as in figure 7(a). The switch only passes on: it cannot store,
    nor therefore add. The paper gives no latency.

    ``multicast``: whether the InfiniBand switch can copy; ForestColl assumes not (section 3.2).
    """
    return _boxes(boxes, 16, latency, multicast)


def mi250_8(boxes: int = 2, *, latency: Time = LATENCY, multicast: bool = False) -> Topology:
    """AMD MI250 with GPUs 0 to 7 of every box only: the "8+8" setting of ForestColl.

    ForestColl, section 5.2: the left half of figure 7(a), with the links among these GPUs, and 16 GB/s between each
    of them and the InfiniBand switch. The numbers are those of ``mi250``.
    """
    return _boxes(boxes, 8, latency, multicast)


def amd(chassis: int = 1, variant: str = "fixed") -> Topology:
    """AMD chassis as in TE-CCL: the 16 GPUs of ``mi250``, with a small switch for each pair of GPUs.

    TE-CCL, figure 15 and topologies/amd.py: 50 GB/s for an Infinity Fabric link; GPUs 2i and 2i + 1 on small switch i
    of their chassis, all small switches on one large one, 25 GB/s for every link of a switch. Neither the paper nor
    the code gives the latencies; they are those of ``ndv2``, 0.7 us between GPUs and 1.3 us at switches. The switches
    copy and do not store (section 3.1). For two and more chassis the code counts its switches from the wrong end of
    the list; this is what figure 15 shows.

    ``variant``: ``fixed`` is figure 15. ``repo`` repeats two slips of the code, for comparison with its results:
    counting one place too low, it makes GPU 15 of every chassis a switch with a link to the large one and small switch
    7 a GPU without one; and the links of small switch 0 have the rate and the latency of an Infinity Fabric link. A
    single chassis has no switches and no such variant.
    """
    if variant not in ("fixed", "repo"):
        raise InputError(f"{variant[:40]!r} is unknown; expected fixed or repo", place="variant")
    check_range(chassis, "chassis", 1 if variant == "fixed" else 2)
    check_size(nodes=24 * chassis + 1, links=(56 + 32 + 16) * chassis)
    inside, outside = read_wire("50 GB/s", "0.7 us"), read_wire("25 GB/s", "1.3 us")
    links: list[Link] = []
    switches: list[str] = []
    for box in range(chassis):
        links += wired_box(box, INFINITY_FABRIC, inside)
        smalls = [f"box{box}.switch{pair}" for pair in range(8 if chassis > 1 else 0)]
        for pair, small in enumerate(smalls):
            joint = inside if variant == "repo" and pair == 0 else outside
            links += [*joint.link_pair(gpu(box, 2 * pair), small), *joint.link_pair(gpu(box, 2 * pair + 1), small)]
        switches += smalls
        # The code takes what stands one place before each small switch in its list: GPU 15, then small switches 0 to 6.
        for name in [gpu(box, 15), *smalls[:-1]] if variant == "repo" else smalls:
            links += outside.link_pair(name, "network")
    names = [*gpus(chassis, 16), *switches]
    swaps = {name for box in range(chassis) for name in (gpu(box, 15), f"box{box}.switch7") if variant == "repo"}
    nodes = [bufferless(name) if (name in switches) != (name in swaps) else Node(name) for name in names]
    if chassis > 1:
        nodes.append(bufferless("network"))
    return Topology(tuple(nodes), tuple(links))


def mi300x(boxes: int = 1, rails: int = 8, *, latency: Time = LATENCY, multicast: bool = False) -> Topology:
    """AMD MI300X, and MI325X: eight GPUs, a link of Infinity Fabric between every two, and a NIC for each GPU.

    AMD's data sheet of the Instinct MI300X platform: seven links for a GPU, 128 GB/s each and 896 GB/s altogether in
    both directions together, hence 64 GB/s in each direction of a link. A NIC of 400 Gb/s = 50 GB/s for each GPU, as in
    AMD's Instinct cluster reference architecture; PCIe switches, which are as fast, are left out. A rail for each
    position in the box. The switches only pass on, as in ``mi250``. The data sheet gives no latency. That of the
    MI325X has the same links: what is new is the memory.
    """
    check_ranges(boxes=(boxes, 1), rails=(rails, 1, 8))
    rails = rails if boxes > 1 else 0
    check_size(nodes=8 * boxes + rails, links=2 * boxes * (len(FULL_MESH) + (8 if rails else 0)))
    inside, outside = read_wire("64 GB/s", latency), read_wire("400 Gb/s", latency)
    links = [link for box in range(boxes) for link in wired_box(box, FULL_MESH, inside)]
    if rails:
        links += nics(boxes, 8, outside, lambda _, index: f"rail{index % rails}")
    return switched_network(gpus(boxes, 8), [f"rail{rail}" for rail in range(rails)], links, multicast=multicast)


def _boxes(boxes: int, per_box: int, latency: Time, multicast: bool) -> Topology:
    check_range(boxes, "boxes", 1)
    pairs: Wiring = {pair: count for pair, count in INFINITY_FABRIC.items() if max(pair) < per_box}
    check_size(nodes=boxes * per_box + 1, links=2 * boxes * (len(pairs) + per_box))
    inside, outside = read_wire("50 GB/s", latency), read_wire("16 GB/s", latency)
    links = [link for box in range(boxes) for link in wired_box(box, pairs, inside)]
    names = gpus(boxes, per_box)
    if boxes > 1:
        links += [link for name in names for link in outside.link_pair(name, "ib")]
    return switched_network(names, ["ib"] if boxes > 1 else [], links, multicast=multicast)
