"""Shared by the tests of the topology finder: base networks from text, and a verifier for all-gathers."""

from fractions import Fraction

import numpy as np
import pytest
from cwb.core.collective import Collective, Demand
from cwb.core.instance import Instance
from cwb.core.topology import Link, Node, Topology
from cwb.instances.expression import parse_expression
from cwb.instances.generators import generate
from cwb.schedules.verify import verify
from cwb.studies.topology_finder.build import breadth_first
from cwb.studies.topology_finder.gather import schedule_of


@pytest.fixture(scope="session")
def make():
    """Make a topology from an expression."""
    return lambda text: generate(parse_expression(text))


@pytest.fixture(scope="session")
def gather(make):
    """Make the breadth-first all-gather of a named network; the degree is nominal."""

    def of(text, degree):
        topology = make(text)
        return breadth_first(len(topology.nodes), degree, np.array(topology.link_ends))

    return of


@pytest.fixture(scope="session")
def instance():
    """Make an instance of the links of an all-gather."""

    def of(links, nodes, kind=Collective.ALL_GATHER):
        ends = (Link(str(u), str(v), Fraction(10**9)) for u, v in np.asarray(links).tolist())
        network = Topology(tuple(Node(str(node)) for node in range(nodes)), tuple(ends))
        return Instance("test", network, Demand(kind, Fraction(2**20)))

    return of


@pytest.fixture(scope="session")
def verify_gather(instance):
    """Verify an all-gather, and give its T_L and T_B."""

    def of(gather):
        problem = instance(gather.links, gather.nodes)
        report = verify(problem, schedule_of(gather, problem))
        assert not report.violations
        assert not report.warnings
        return gather.steps, gather.bandwidth

    return of
