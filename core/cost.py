"""Dollar cost of a network (dissertation, section 4.4.3 and table 4.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from .errors import InputError
from .fabric import Block, Fabric

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

        A ring block has 2n half-bandwidth links, a fully connected one n(n-1) links of B/(n-1), a switch n links, n
        NICs and n ports: each is n times the bandwidth per NPU, so that the whole network costs the number of NPUs
        times this price times B.
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
