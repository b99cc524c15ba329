"""The network as a simulator sees it: bandwidth and latency of every link."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...core.errors import InputError
from ...core.instance import Instance
from ...core.schedule import Floats
from ...core.topology import Topology


@dataclass(frozen=True, eq=False)
class Wires:
    """Columns of the links.

    Parameters
    ----------
    bandwidth_Bps, latency_s : array of float, shape (links,)
        Bytes per second, and seconds that the first byte takes.
    """

    bandwidth_Bps: Floats
    latency_s: Floats

    def __len__(self) -> int:
        return len(self.bandwidth_Bps)


def network_of(instance: Instance) -> Topology:
    """Give the explicit network of an instance.

    Raises
    ------
    InputError
        If the network is a fabric, whose links do not exist yet.
    """
    if not isinstance(instance.network, Topology):
        raise InputError("expected an explicit network of nodes and links, not building blocks", place="network")
    return instance.network


def wires(topology: Topology) -> Wires:
    """Give the columns of a topology's links."""
    return Wires(
        np.array([float(link.bandwidth_Bps) for link in topology.links]),
        np.array([float(link.latency_s) for link in topology.links]),
    )
