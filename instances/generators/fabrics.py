"""Multi-dimensional fabrics in building blocks, as explicit networks."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from ...core.errors import InputError, locate_errors
from ...core.fabric import expand, expanded_size, parse_fabric
from ...core.topology import Topology
from ...core.units import UnitKind, parse
from .building import Rate, Time, check_size


def fabric(dims: str, bandwidth: Sequence[Rate], latency: Sequence[Time] = ()) -> Topology:
    """Expand building blocks such as RI(4)_FC(2)_SW(4), given the bandwidth per NPU of each dimension.

    Parameters
    ----------
    dims : str
        Building blocks, innermost first (dissertation, section 3.4.1).
    bandwidth : sequence of str
        For each dimension, the bandwidth per NPU in each direction; how an NPU's links share it is described in
        :func:`cwb.core.fabric.expand`.
    latency : sequence of str
        For each dimension, the latency between two NPUs; none unless given.
    """
    with locate_errors("dims"):
        blocks = parse_fabric(dims, tiers=("",) * len(dims.split("_")))
    count = len(blocks.dimensions)
    given = {"bandwidth": (bandwidth, UnitKind.RATE), "latency": (latency or ("0 s",) * count, UnitKind.TIME)}
    read: dict[str, list[Fraction]] = {}
    for name, (texts, kind) in given.items():
        if len(texts) != count:
            raise InputError(f"{len(texts)} entries for {count} dimensions", place=name)
        with locate_errors(name):
            read[name] = [parse(text, kind, allow_zero=kind is UnitKind.TIME) for text in texts]
    nodes, links = expanded_size(blocks)
    check_size(nodes=nodes, links=links)
    return expand(blocks, read["bandwidth"], read["latency"])
