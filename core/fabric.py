"""Multi-dimensional networks in the building-block notation (dissertation, section 3.4.1).

``RI(4)_FC(8)_RI(4)_SW(32)`` stacks a ring of 4, a fully connected block of 8, a ring of 4 and a switch
of 32: 4,096 NPUs. The fabric stays symbolic here; bandwidth per dimension is a design variable, and has a price in
dollars (section 4.4.3 and table 4.1).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from math import prod
from typing import Self

from .budget import check_time_rarely
from .errors import InputError
from .topology import Link, Node, NodeKind, Topology


class Block(Enum):
    """Network building block (dissertation, figure 3.3)."""

    RING = "RI"
    FULLY_CONNECTED = "FC"
    SWITCH = "SW"


#: Technology of a dimension, from the inside out (dissertation, section 4.2.1 and figure 4.2).
TIERS = ("inter-chiplet", "inter-package", "inter-node", "inter-pod")

_ALIASES = {"RI": Block.RING, "R": Block.RING, "FC": Block.FULLY_CONNECTED, "SW": Block.SWITCH}
_NOTATION = re.compile(r"([A-Za-z]+)\(([0-9]{1,7})\)\Z")
# Blocks have names of one or two letters: AMD(2) alone is a generator, but RI(4)_RNG(8) a stack with a wrong block.
_SHAPE = re.compile(r"(?:[A-Z]{1,2}\([0-9]+\)|[A-Z]+\([0-9]+\)(?:_[A-Z]+\([0-9]+\))+)\Z")

MAX_DIMENSIONS = 16
MAX_NPUS = 10**9


@dataclass(frozen=True)
class Dimension:
    """One dimension of a fabric."""

    block: Block  #: Building block that connects the NPUs which differ in this coordinate only.
    size: int
    tier: str  #: Technology, an entry of the cost model; one of :data:`TIERS` unless the user names another.
    in_network: bool = False  #: If the switches of this dimension reduce all-reduces on the way (section 4.4.2).

    def __str__(self) -> str:
        return f"{self.block.value}({self.size})"


@dataclass(frozen=True)
class Fabric:
    """Stack of dimensions, innermost first."""

    dimensions: tuple[Dimension, ...]

    @property
    def npus(self) -> int:
        """Number of NPUs, the product of the dimensions' sizes."""
        return prod(d.size for d in self.dimensions)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Size of every dimension, innermost first."""
        return tuple(d.size for d in self.dimensions)

    def __str__(self) -> str:
        return "_".join(str(d) for d in self.dimensions)

    def with_in_network(self, dimensions: frozenset[int]) -> Self:
        """Return this fabric with in-network reduction in these dimensions (counted from 0)."""
        return replace(
            self, dimensions=tuple(replace(d, in_network=i in dimensions) for i, d in enumerate(self.dimensions))
        )


@dataclass(frozen=True)
class WiredFabric(Fabric):
    """Fabric with known bandwidths and latencies."""

    #: ``bandwidth_Bps`` and ``latency_s``: for each dimension, the bandwidth per NPU in each direction and the latency
    #: of a link.
    bandwidth_Bps: tuple[Fraction, ...]
    latency_s: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        for name, values in (("bandwidth_Bps", self.bandwidth_Bps), ("latency_s", self.latency_s)):
            if len(values) != len(self.dimensions):
                raise InputError(f"{len(values)} entries for {len(self.dimensions)} dimensions", place=name)
        if min(self.bandwidth_Bps) <= 0:
            raise InputError("bandwidth must be greater than zero", place="bandwidth_Bps")


def default_tiers(count: int) -> tuple[str, ...]:
    """Return the tiers of a fabric of ``count`` dimensions: the outermost ones, ending in the pod.

    More dimensions than known tiers raise InputError: they must be named.
    """
    if count > len(TIERS):
        raise InputError(f"{count} dimensions: name a tier for each, there are defaults for {len(TIERS)} only")
    return TIERS[len(TIERS) - count :]


def parse_fabric(notation: str, tiers: tuple[str, ...] | None = None) -> Fabric:
    """Read a fabric such as ``RI(4)_FC(8)_RI(4)_SW(32)``, with :func:`default_tiers` unless tiers are given.

    ``R`` is short for ``RI``.
    """
    parts = notation.split("_")
    if len(parts) > MAX_DIMENSIONS:
        raise InputError(f"{len(parts)} dimensions; expected at most {MAX_DIMENSIONS}")
    blocks: list[tuple[Block, int]] = []
    for index, part in enumerate(parts):
        match = _NOTATION.match(part)
        block = _ALIASES.get(match[1].upper()) if match else None
        if match is None or block is None:
            raise InputError(f"dimension {index + 1} is {part[:40]!r}; expected RI(n), FC(n) or SW(n), joined by '_'")
        if (size := int(match[2])) < 2:
            raise InputError(f"dimension {index + 1} is {part!r}; expected a size of at least 2")
        blocks.append((block, size))
    if prod(size for _, size in blocks) > MAX_NPUS:
        raise InputError(f"{notation!r} has more than {MAX_NPUS:,} NPUs")
    if tiers is None:
        tiers = default_tiers(len(blocks))
    if len(tiers) != len(blocks):
        raise InputError(f"{len(tiers)} tiers for {len(blocks)} dimensions; expected one for each")
    return Fabric(tuple(Dimension(block, size, tier) for (block, size), tier in zip(blocks, tiers, strict=True)))


def looks_like_fabric(text: str) -> bool:
    """Check if a text looks like building-block notation: ``_``-separated parts such as RI(4), known or not."""
    return _SHAPE.match(text) is not None


def coordinates(rank: int, sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the coordinates of an NPU, innermost dimension first."""
    digits: list[int] = []
    for size in sizes:
        digits.append(rank % size)
        rank //= size
    return tuple(digits)


def expanded_size(fabric: Fabric) -> tuple[int, int]:
    """Return the numbers of nodes and links of a fabric's explicit network."""
    switches = sum(fabric.npus // d.size for d in fabric.dimensions if d.block is Block.SWITCH)
    return fabric.npus + switches, sum(fabric.npus * links_per_npu(d) for d in fabric.dimensions)


def links_per_npu(dimension: Dimension) -> int:
    """Return the links of a dimension per NPU; two through a switch, there and back."""
    if dimension.block is Block.FULLY_CONNECTED or dimension.size == 2:
        return 2 if dimension.block is Block.SWITCH else dimension.size - 1
    return 2


def expand(fabric: Fabric, bandwidth_Bps: Sequence[Fraction], latency_s: Sequence[Fraction]) -> Topology:
    """Return a fabric's explicit network: NPUs by rank, then one switch per block of a switch dimension.

    An NPU's bandwidth B in a dimension is split over its links there: B/2 to either neighbour of a ring (B to the only
    one of a ring of 2), B/(n - 1) to every peer of a fully connected block, B to and from its switch, over two links of
    half the latency each.
    """
    sizes = fabric.sizes
    stride = [prod(sizes[:d]) for d in range(len(sizes))]
    nodes = [Node(f"npu{rank}") for rank in range(fabric.npus)]
    links: list[Link] = []
    for d, dimension in enumerate(fabric.dimensions):
        n, B, latency = dimension.size, bandwidth_Bps[d], latency_s[d]
        for first in range(fabric.npus):
            check_time_rarely("links are made")
            if coordinates(first, sizes)[d] != 0:
                continue
            members = [f"npu{first + i * stride[d]}" for i in range(n)]
            if dimension.block is Block.SWITCH:
                switch = f"switch{d + 1}.{first}"
                nodes.append(Node(switch, NodeKind.SWITCH))
                for member in members:
                    links += [Link(member, switch, B, latency / 2), Link(switch, member, B, latency / 2)]
            elif dimension.block is Block.FULLY_CONNECTED or n == 2:
                share = B / (n - 1)
                links += [Link(a, b, share, latency) for a in members for b in members if a != b]
            else:
                pairs = [(members[i], members[(i + step) % n]) for i in range(n) for step in (1, n - 1)]
                links += [Link(a, b, B / 2, latency) for a, b in pairs]
    return Topology(tuple(nodes), tuple(links))


#: What a block needs per unit of bandwidth: peers are linked directly, or through a NIC and a switch.
COMPONENTS: Mapping[Block, tuple[str, ...]] = {
    Block.RING: ("link",),
    Block.FULLY_CONNECTED: ("link",),
    Block.SWITCH: ("link", "switch", "nic"),
}


@dataclass(frozen=True)
class CostModel:
    """Price of every component in every tier."""

    #: Tier to component (``link``, ``switch``, ``nic``) to US dollars per byte per second of one NPU's bandwidth. An
    #: absent component cannot be bought in that tier; a price of zero means that it is not needed.
    prices: Mapping[str, Mapping[str, Fraction]]

    def price_per_Bps(self, fabric: Fabric) -> tuple[Fraction, ...]:
        """Return the price of one byte per second of bandwidth per NPU in each dimension.

        The whole network costs the number of NPUs times this price times B (docs/methods/libra.md, "Cost").
        """
        total: list[Fraction] = []
        for index, dimension in enumerate(fabric.dimensions):
            tier = self.prices.get(dimension.tier, {})
            for component in COMPONENTS[dimension.block]:
                if component not in tier:
                    raise InputError(
                        f"no price {dimension.tier}.{component}, which dimension {index + 1}, {dimension}, needs",
                        place="cost_model",
                    )
            total.append(sum((tier[c] for c in COMPONENTS[dimension.block]), Fraction(0)))
        return tuple(total)


def network_price(fabric: Fabric, model: CostModel) -> tuple[Fraction, ...]:
    """Return the whole network's dollars per byte per second of bandwidth in each dimension."""
    return tuple(fabric.npus * price for price in model.price_per_Bps(fabric))
