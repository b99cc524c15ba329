"""One network seen as a fabric and as links: what is read, what is not, and that each view is that of the other."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import cwb
import pytest
from cwb import instances
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError, Refusal
from cwb.core.fabric import Fabric, WiredFabric, parse_fabric
from cwb.core.instance import Instance
from cwb.core.network_views import (
    NetworkView,
    fabric_of,
    links_of,
    other_view,
    supported_view,
    to_wired_fabric,
    with_refusals,
)
from cwb.core.topology import Link, Topology
from hypothesis import given
from hypothesis import strategies as st

BLOCKS = st.sampled_from(["RI(4)", "RI(5)", "FC(2)", "FC(3)", "FC(4)", "SW(2)", "SW(3)"])
RATES = st.integers(1, 9)


@given(st.lists(st.tuples(BLOCKS, RATES, RATES), min_size=1, max_size=3))
def test_what_is_expanded_is_read(stack):
    """A fabric that is expanded into links is read as itself."""
    blocks = parse_fabric("_".join(block for block, _, _ in stack), tiers=("",) * len(stack))
    rates, delays = (tuple(Fraction(row[k]) for row in stack) for k in (1, 2))
    fabric = WiredFabric(blocks.dimensions, rates, delays)
    assert fabric_of(links_of(fabric)) == fabric


@pytest.mark.parametrize(
    ("text", "fabric"),
    [
        ("torus(4, 5)", "RI(4)_RI(5)"),
        ("hypercube(3)", "FC(2)_FC(2)_FC(2)"),
        ("complete(6)", "FC(6)"),
        ("product(ring(4), complete(4))", "RI(4)_FC(4)"),
        ("switch2d()", "SW(8)_SW(4)"),
        ("rfs3d(4, 4, 2)", "RI(4)_FC(4)_SW(2)"),
        ("h100(4, nvls=false)", "SW(8)_SW(4)"),
        ("mi300x(2)", "FC(8)_SW(2)"),
    ],
)
def test_grids_of_links_are_fabrics(text, fabric):
    """Tori, products, and machines with a rail for each position are read as the fabrics that they are."""
    assert str(fabric_of(instances.load(text).network)) == fabric


@pytest.mark.parametrize(
    "text", ["mesh(3, 3)", "ring(8, false)", "dgx1()", "a100(2)", "pcie(2)", "kautz(2, 2)", "fat_tree(4)"]
)
def test_other_links_are_none(text):
    """A network that is no stack of rings, complete graphs and switches is no fabric."""
    assert fabric_of(instances.load(text).network) is None


def test_one_link_makes_the_difference():
    """A torus with one slower link, one link more, or two of a link, is no fabric."""
    torus = instances.load("torus(4, 4)").network
    first = torus.links[0]
    slower = Link(first.source, first.target, first.bandwidth_Bps / 2, first.latency_s)
    for links in (
        (slower, *torus.links[1:]),
        (*torus.links, Link("0", "5", first.bandwidth_Bps)),
        (*torus.links, first),
    ):
        assert fabric_of(Topology(torus.nodes, links)) is None


def test_links_without_bandwidths_are_those_of_generators():
    """Without bandwidths, the links of a fabric are those of the torus of the same sizes."""
    made, torus = links_of(parse_fabric("RI(4)_RI(5)")), instances.load("torus(4, 5)").network
    ends = {(a, b, link.bandwidth_Bps, link.latency_s) for (a, b), link in zip(made.link_ends, made.links, strict=True)}
    assert ends == {
        (*pair, link.bandwidth_Bps, link.latency_s) for pair, link in zip(torus.link_ends, torus.links, strict=True)
    }
    switched = links_of(parse_fabric("SW(4)"))
    assert {(e.bandwidth_Bps, e.latency_s) for e in switched.links} == {(50 * 10**9, Fraction(1, 2 * 10**6))}
    assert to_wired_fabric(to_wired_fabric(parse_fabric("RI(4)"))) == to_wired_fabric(parse_fabric("RI(4)"))


def test_large_fabrics_are_refused():
    """A fabric of 10^9 links is not expanded, which is said at once."""
    fabric = parse_fabric("FC(1000)_FC(1000)")
    with pytest.raises(
        InputError, match=r"has 1,000,000 nodes and 1,998,000,000 links; expected at most 20,000,000 links"
    ):
        links_of(fabric)
    refusal = supported_view(taking(NetworkView.LINKS, lambda _: "no fabrics"), Instance("f", fabric))[1]
    assert refusal is not None
    assert refusal.code == "size"
    assert refusal.text.startswith("no fabrics; FC(1000)_FC(1000) has")


def taking(networks: NetworkView, supports: Callable[[Instance], str | None]) -> Any:
    """Return a method of these views."""
    return SimpleNamespace(networks=networks, supports=with_refusals(supports))


def test_a_method_gets_the_view_that_it_declares() -> None:
    """An instance is converted where the method takes the other view alone, and where it has that view."""
    demand = Demand(Collective.ALL_REDUCE, Fraction(2**20), 1)
    torus = instances.load("torus(4, 4)").with_changes(demand=demand)
    fabrics = taking(NetworkView.FABRIC, lambda instance: None if isinstance(instance.network, Fabric) else "no fabric")
    for networks in (NetworkView.LINKS, NetworkView.EITHER):
        assert supported_view(taking(networks, lambda _: None), torus) == (torus, None)
    seen, refusal = supported_view(fabrics, torus)
    assert (str(seen.network), refusal, seen.demand) == ("RI(4)_RI(4)", None, demand)
    assert str(supported_view(fabrics, instances.load("mesh(3, 3)"))[1]) == "no fabric"


def test_the_reason_is_about_the_declared_view() -> None:
    """A refused instance stays as it is, with the refusal of the view that the method is for."""
    links = taking(NetworkView.LINKS, lambda instance: type(instance.network).__name__)
    fabrics = taking(NetworkView.FABRIC, lambda instance: type(instance.network).__name__)
    torus, grid = instances.load("torus(4, 4)"), instances.load("RI(4)_RI(4)")
    for instance in (torus, grid):
        assert supported_view(links, instance) == (instance, Refusal("other", "Topology"))
    assert supported_view(fabrics, torus) == (torus, Refusal("other", "WiredFabric"))


def test_switches_that_add_are_named_where_they_are_the_reason():
    """A method of dimensions says how the machine is one of dimensions."""
    refused = cwb.solve("dgx_h100(2)", "blueconnect", collective="all_reduce", size="1 MB")
    assert "nvls=false leaves it out" in refused.message
    assert (
        cwb.solve("dgx_h100(2, nvls=false)", "blueconnect", collective="all_reduce", size="1 MB").status == "feasible"
    )


def test_a_design_has_one_view():
    """An instance with workloads and prices of dimensions stays a fabric."""
    assert other_view(instances.load("4d")) is None
