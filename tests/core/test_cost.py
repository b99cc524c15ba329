"""The dollar cost of networks."""

from __future__ import annotations

from fractions import Fraction

import pytest
from cwb import load
from cwb.core.errors import InputError
from cwb.core.fabric import CostModel, network_price, parse_fabric
from cwb.core.units import UnitKind, parse


def price(text: str) -> Fraction:
    """Read a price in dollars per GiB/s."""
    return parse(f"{text} USD/(GiB/s)", UnitKind.PRICE)


TABLE = CostModel({"inter-pod": {"link": price("7.8"), "switch": price("18"), "nic": price("31.6")}})


def test_three_npus_on_a_switch_cost_1722_dollars() -> None:
    """Figure 4.9: three NPUs with 10 GiB/s each on one inter-pod switch cost 3 x 10 x (7.8 + 18 + 31.6) = 1,722
    dollars."""
    (per_Bps,) = network_price(parse_fabric("SW(3)"), TABLE)
    assert per_Bps * 10 * 2**30 == 1722


def test_the_shipped_example_says_the_same() -> None:
    """The instance cost-example has the prices, the network and the bandwidth of figure 4.9."""
    instance = load("cost-example")
    assert instance.cost_model is not None
    assert instance.design is not None
    (per_Bps,) = network_price(instance.fabric, instance.cost_model)
    assert per_Bps * instance.design.total_Bps == 1722


@pytest.mark.parametrize("block", ["RI", "FC"])
def test_direct_links_need_neither_switch_nor_nic(block: str) -> None:
    """A ring has 2n links of half the bandwidth and FC n(n-1) links of B/(n-1): n times the price of B in both."""
    (per_Bps,) = network_price(parse_fabric(f"{block}(8)"), CostModel({"inter-pod": {"link": Fraction(2)}}))
    assert per_Bps == 8 * 2


def test_every_dimension_is_bought_for_all_npus() -> None:
    """4D-4K costs 4,096 times the sum of price times bandwidth: 2, 4, 4 and 57.4 dollars per GB/s (section 4.4.3)."""
    instance = load("4d")
    assert instance.cost_model is not None
    prices = [p * 10**9 / 4096 for p in network_price(instance.fabric, instance.cost_model)]
    assert prices == [Fraction(text) for text in ("2.00001", "4.00002", "4.00003", "57.40012")]


@pytest.mark.parametrize(
    ("notation", "tiers", "missing"),
    [
        ("SW(4)", ("inter-node",), r"no price inter-node\.link, which dimension 1, SW\(4\), needs"),
        ("RI(2)_SW(4)", ("inter-pod", "inter-package"), r"no price inter-package\.link, which dimension 2"),
    ],
)
def test_a_missing_price_is_named(notation: str, tiers: tuple[str, ...], missing: str) -> None:
    """A tier or component without a price is told with the dimension that needs it."""
    with pytest.raises(InputError, match=missing):
        TABLE.price_per_Bps(parse_fabric(notation, tiers))


def test_a_missing_nic_is_named() -> None:
    """A switch without a NIC price cannot be bought, where the original raises an error of its own kind."""
    model = CostModel({"inter-pod": {"link": Fraction(1), "switch": Fraction(1)}})
    with pytest.raises(InputError, match=r"no price inter-pod\.nic"):
        model.price_per_Bps(parse_fabric("SW(4)"))
