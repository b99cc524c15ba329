"""Orders of chunks as sends: verified on any fabric, and as long as the model says where it counts no latency."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import pytest
from cwb.core.answers import ChunkOrders
from cwb.core.collective import Collective, Demand, collective_named
from cwb.core.errors import InputError
from cwb.core.fabric import WiredFabric, parse_fabric
from cwb.core.instance import Instance
from cwb.core.network_views import rings_of, to_wired_fabric
from cwb.core.trace import SimulationMode
from cwb.harness import Request
from cwb.harness.run import run
from cwb.instances import load
from cwb.schedules.multirail import evaluate, message_bytes, to_sends
from cwb.schedules.simulate.run import simulate
from cwb.schedules.verify import verify

KINDS = (Collective.ALL_REDUCE, Collective.REDUCE_SCATTER, Collective.ALL_GATHER)


def make_instance(text, kind, chunks, latency=True):
    """A fabric with a collective; without latency if wanted."""
    fabric = to_wired_fabric(parse_fabric(text))
    if not latency:
        fabric = WiredFabric(fabric.dimensions, fabric.bandwidth_Bps, (Fraction(0),) * len(fabric.dimensions))
    return Instance(text, fabric, Demand(kind, Fraction(7 * 2**20), chunks))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["RI(4)_FC(3)", "RI(5)", "SW(6)_RI(4)", "FC(2)_RI(3)_SW(4)", "RI(4)_RI(5)"])
def test_every_order_is_right(text, kind):
    """Chunks in all orders of the dimensions are verified, block by block."""
    instance = make_instance(text, kind, 4)
    orders = list(permutations(range(len(instance.fabric.dimensions))))
    answer = ChunkOrders(tuple(orders[chunk % len(orders)] for chunk in range(4)), "scf")
    on_links, schedule = to_sends(instance, answer)
    assert verify(on_links, schedule).violations == ()
    npus, passes = instance.npus, 2 if kind is Collective.ALL_REDUCE else 1
    assert len(schedule.sends) == 4 * passes * npus * (npus - 1) * (2 if "RI(4)" in text or "RI(5)" in text else 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["RI(6)", "FC(5)", "RI(3)"])
def test_without_latency_the_links_take_the_time_of_the_model(text, kind):
    """In one dimension, a chunk on links without latency takes exactly the time of the pipeline."""
    instance = make_instance(text, kind, 1, latency=False)
    answer = ChunkOrders((tuple(range(len(instance.fabric.dimensions))),), "fifo")
    network, demand = instance.network, instance.demand
    expected = evaluate(network, demand, answer.orders, "fifo").completion_s
    found = simulate(*to_sends(instance, answer), SimulationMode.CONGESTION_AWARE).completion_s
    assert found == pytest.approx(float(expected), rel=1e-12)


def test_bytes_are_those_of_the_model():
    """An NPU sends in every dimension what table 3.4 of the dissertation says."""
    instance = make_instance("RI(4)_FC(3)_SW(2)", Collective.ALL_REDUCE, 2)
    answer = ChunkOrders(((0, 1, 2), (0, 1, 2)), "fifo")
    on_links, schedule = to_sends(instance, answer)
    sent = [Fraction(0)] * 3
    rank = {node: index for index, node in enumerate(on_links.network.rank_nodes)}
    for source, target in zip(schedule.sends.source.tolist(), schedule.sends.target.tolist(), strict=True):
        apart = abs(rank[source] - rank[target])
        sent[0 if apart < 4 else 1 if apart < 12 else 2] += schedule.chunks.unit_bytes
    assert [part / 24 for part in sent] == list(message_bytes(instance.network, instance.demand, (0, 1, 2)))


def test_too_many_sends_are_refused():
    """A large fabric is refused before any send is made."""
    instance = make_instance("RI(32)_RI(32)", Collective.ALL_REDUCE, 8)
    with pytest.raises(InputError, match="33,521,664 sends; expected at most 5,000,000"):
        to_sends(instance, ChunkOrders(((0, 1),) * 8, "fifo"))


@pytest.mark.parametrize("collective", ["all_reduce", "reduce_scatter", "all_gather"])
@pytest.mark.parametrize("network", ["mesh(4,3)", "mesh(2,5)", "mesh(3,2,4)"])
def test_rows_of_a_mesh_are_taken_for_rings(network, collective):
    """Orders on a mesh are sends over its own links, verified, and no quicker than on the torus that they are made
    for."""
    seconds = {}
    for name in (network, network.replace("mesh", "torus")):
        demand = Demand(collective_named(collective), Fraction(2**20), 3)
        record = run(load(name).with_changes(demand=demand), Request("themis")).record
        assert record.verified, record.violations
        seconds[name[:4]] = record.metrics["completion_time_s" if name == network else "links_time_s"]
    assert seconds["mesh"] >= seconds["toru"]


def test_what_is_no_mesh_is_told():
    """Links that differ within a dimension, a missing one, a switch, and bandwidths beside those of links are
    refused."""
    assert rings_of(load("mesh(4,3)").network).sizes == (4, 3)
    assert rings_of(load("line(5)").network).sizes == (5,)
    assert all(rings_of(load(other).network) is None for other in ("torus(4,4)", "ring(5)", "star(4)", "complete(4)"))
    mesh = load("mesh(4,3)").network
    uneven = (replace(mesh.links[0], latency_s=Fraction(1)), *mesh.links[1:])
    assert all(rings_of(replace(mesh, links=links)) is None for links in (uneven, mesh.links[2:]))
    many = load("mesh(9,9)").with_changes(demand=Demand(Collective.ALL_REDUCE, Fraction(2**30), 500))
    assert "with fewer chunks" in run(many, Request("themis")).record.message
    asked = Request("themis", options={"bandwidth": ["1 GB/s"] * 2})
    given = load("mesh(4,3)").with_changes(demand=Demand(Collective.ALL_REDUCE, Fraction(2**20)))
    with pytest.raises(InputError, match="expected no others"):
        run(given, asked)
