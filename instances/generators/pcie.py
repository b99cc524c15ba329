"""Boxes of GPUs on PCIe, without links of the GPUs' own."""

from __future__ import annotations

from ...core.topology import Link, Topology
from .boxes import gpu, gpus, switched_network
from .building import LATENCY, Rate, Time, check_range, check_size, wire


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
    GPU and for the link of its switch to the processor; 64 GB/s is PCIe Gen5. Intel's page of the Xeon Platinum 8358:
    three UPI links of 11.2 GT/s between two processors, two bytes a transfer, hence 67.2 GB/s in each direction. A NIC
    of 200 Gb/s = 25 GB/s. All NICs are on one InfiniBand switch. Processors, PCIe switches and the InfiniBand switch
    only pass on. None of the sources gives a latency.

    Parameters
    ----------
    switches, per_switch : int
        PCIe switches of each of the two processors, and GPUs on a PCIe switch.
    bandwidth : str
        Bandwidth of a PCIe link, in each direction.
    upi : str
        Bandwidth between the two processors, in each direction.
    nic : str
        Bandwidth between a PCIe switch and the InfiniBand switch, in each direction.
    """
    for place, value in {"boxes": boxes, "switches": switches, "per_switch": per_switch}.items():
        check_range(value, place, 1)
    per_box, more = 2 * switches * per_switch, boxes > 1
    check_size(
        nodes=boxes * (per_box + 2 * switches + 2) + more,
        links=2 * boxes * (per_box + (2 + 2 * more) * switches + 1),
    )
    lane, between = wire(bandwidth, latency), wire(upi, latency, place="upi")
    card = wire(nic, latency, place="nic")
    links: list[Link] = []
    names: list[str] = []
    for box in range(boxes):
        processors = [f"box{box}.cpu{index}" for index in (0, 1)]
        chips = [f"box{box}.pcie{index}" for index in range(2 * switches)]
        names += [*processors, *chips]
        links += between.both(*processors)
        for index, chip in enumerate(chips):
            links += lane.both(chip, processors[index // switches])
            links += card.both(chip, "ib") if more else ()
        for index in range(per_box):
            links += lane.both(gpu(box, index), chips[index // per_switch])
    return switched_network(gpus(boxes, per_box), [*names, *(["ib"] if more else [])], links, multicast=multicast)
