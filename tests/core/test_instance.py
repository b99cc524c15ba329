"""The digest of an instance."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from fractions import Fraction

import pytest
from cwb.core.collective import Demand, collectives
from cwb.core.instance import Instance, plain
from cwb.core.topology import Link, Node, NodeKind, Topology
from cwb.core.trace import Routing
from cwb.instances import load
from cwb.instances.loader import shipped_instances
from hypothesis import given
from hypothesis import strategies as st

names = st.lists(st.text(max_size=6), min_size=2, max_size=6, unique=True)
sizes = st.none() | st.fractions(min_value=0, max_value=10**6)
rates = st.fractions(min_value=Fraction(1, 10**9), max_value=10**12) | st.integers(1, 10**12)


@st.composite
def topologies(draw) -> Topology:
    """Draw a network: any names, switches, buffers, fractions and whole numbers, parallel links, or none at all."""
    nodes = [Node(name, draw(st.sampled_from(NodeKind)), draw(st.booleans()), draw(sizes)) for name in draw(names)]
    ends = st.permutations([node.name for node in nodes])
    links = [Link(*draw(ends)[:2], draw(rates), draw(rates)) for _ in range(draw(st.integers(0, 8)))]
    return Topology(tuple(nodes), tuple(links))


def _by_definition(instance: Instance) -> str:
    """Digest of the canonical JSON of everything that defines the problem, made whole."""
    told = (
        "name",
        "description",
        "source",
        *(name for name in ("timing", "experts", "rank_costs") if getattr(instance, name) is None),
        *(["routing"] if instance.routing is Routing.FIXED else []),
    )
    problem = {f.name: plain(getattr(instance, f.name)) for f in fields(instance) if f.name not in told}
    for node in problem["network"].get(
        "nodes", ()
    ):  # a switch that does not add has the digest of before there were any
        if not node["reduces"]:
            del node["reduces"]
    text = json.dumps(problem, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.slow
@given(topologies(), st.none() | st.builds(Demand, st.sampled_from(collectives()), rates))
def test_the_digest_is_that_of_canonical_json(topology: Topology, demand: Demand | None) -> None:
    """Written part by part, a network has the digest of its whole JSON text, whatever its names and numbers."""
    instance = Instance("x", topology, demand)
    assert instance.sha256 == _by_definition(instance)


def test_shipped_instances_keep_their_digests() -> None:
    """Fabrics, workloads, designs and graphs alike have the digest of their canonical JSON."""
    for name in shipped_instances():
        instance = load(name)
        assert instance.sha256 == _by_definition(instance)
