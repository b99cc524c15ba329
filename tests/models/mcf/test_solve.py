"""The bound of the maximum concurrent flow on graphs whose flow is known."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from cwb import solvers
from cwb.algorithms.bounds.schedule_bounds import best_bound, cut_bound, length_bound
from cwb.core.bounds import LengthCertificate, SolverBound
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError
from cwb.core.schedule import Chunks, StepSchedule, sends_from_lists
from cwb.core.solver import Capability
from cwb.core.trace import SimulationMode
from cwb.instances import load
from cwb.models.mcf.solve import bound, rounded_lengths
from cwb.schedules.simulate import simulate

GB = 10**9


def exchange(network, ranks=None):
    """An all-to-all in which every pair exchanges one gigabyte."""
    instance = load(network)
    count = instance.npus if ranks is None else len(ranks)
    return instance.with_changes(demand=Demand(Collective.ALL_TO_ALL, Fraction(count * GB), ranks=ranks))


def ring_seconds(n):
    """Two-way ring: distances from a node sum to floor(n^2 / 4), over two links a node."""
    return Fraction(n * n // 4, 2)


@pytest.mark.parametrize(
    ("network", "seconds"),
    [(f"ring({n}{{}})", ring_seconds(n)) for n in range(3, 9)]
    + [(f"ring({n},bidirectional=false{{}})", Fraction(n * (n - 1), 2)) for n in (3, 5)]
    + [(f"torus({n},{n}{{}})", n * ring_seconds(n)) for n in (3, 4, 5)]
    + [(f"hypercube({d}{{}})", Fraction(2 ** (d - 1))) for d in (1, 2, 3, 4)]
    + [(f"complete({n}{{}})", Fraction(1)) for n in (2, 5)]
    + [(f"star({n}{{}})", Fraction(n - 1)) for n in (3, 6)],
)
def test_known_graphs_have_their_closed_form(network, seconds):
    """Rings, tori, hypercubes, complete graphs and stars take the sum of distances over the number of links,
    exactly."""
    instance = exchange(network.format(", bandwidth='1 GB/s'"))
    found = bound(instance, solvers.get("highs"), Budget())
    assert found.seconds == seconds
    assert isinstance(found.certificate, LengthCertificate)
    assert length_bound(instance, found.certificate.lengths)[0] == found.seconds
    assert float(found.seconds) == pytest.approx(1 / found.report.objective)


def test_links_into_the_only_source_are_of_no_use():
    """A scatter leaves a rank of a ring over two links; those back carry nothing."""
    demand = Demand(Collective.SCATTER, Fraction(3 * GB))
    instance = load("ring(3, bandwidth='1 GB/s')").with_changes(demand=demand)
    found = bound(instance, solvers.get("highs"), Budget())
    assert (found.seconds, type(found.certificate)) == (1, LengthCertificate)


@pytest.mark.parametrize(
    "network", ["mesh(2,4)", "random_regular(10,3,seed=3)", "circulant(9,[1,2])", "dragonfly(3,2)"]
)
def test_the_flow_is_at_least_as_sharp_as_cuts_and_unit_lengths(network):
    """The rounded dual values lose nothing that matters: the exact bound is the program's optimum to nine digits, and
    above all others."""
    instance = exchange(network)
    found = bound(instance, solvers.get("highs"), Budget())
    unit = max(link.bandwidth_Bps for link in instance.network.links)
    assert float(found.seconds) == pytest.approx(float(GB / unit) / found.report.objective, rel=1e-7)
    slack = 1 + Fraction(1, 10**7)
    assert found.seconds * slack >= best_bound(instance)[0]
    half = instance.network.rank_nodes[: instance.npus // 2]
    assert found.seconds * slack >= cut_bound(instance, half)[0]


def test_a_group_uses_the_other_ranks_to_pass_on():
    """Two opposite ranks of a ring of four use both ways round it, through ranks outside the group."""
    found = bound(exchange("ring(4,bandwidth='1 GB/s')", ranks=(0, 2)), solvers.get("highs"), Budget())
    assert found.seconds == Fraction(1, 2)


class WithoutDuals:
    """HiGHS as a solver that only solves."""

    def __init__(self):
        self.inner = solvers.get("highs")
        self.name = "highs"
        self.capabilities = Capability.LP

    def installation(self):
        return self.inner.installation()

    def licence(self):
        return self.inner.licence()

    def solve(self, model, budget, options=None):
        return self.inner.solve(model, budget)


def test_a_solver_without_dual_values_is_taken_at_its_word():
    """If a solver gives no dual values, the bound is its claim, and the certificate attributes it to the solver."""
    found = bound(exchange("ring(5,bandwidth='1 GB/s')"), WithoutDuals(), Budget())
    assert found.certificate == SolverBound(found.report.solver, found.report.version)
    assert float(found.seconds) == pytest.approx(3)


def test_a_network_that_falls_apart_is_refused():
    """If a rank cannot be reached, there is no flow, and the error gives the reason."""
    instance = exchange("ring(4)")
    apart = replace(instance.network, links=instance.network.links[:2])
    with pytest.raises(InputError, match="no path"):
        bound(instance.with_changes(network=apart), solvers.get("highs"), Budget())


def test_a_direct_exchange_meets_the_bound_on_a_complete_graph():
    """On a complete graph the direct schedule takes exactly the bound, so both are the optimum."""
    instance = exchange("complete(5,bandwidth='1 GB/s',latency='0 s')")
    ends = instance.network.link_ends
    sends = sends_from_lists(range(20), [a for a, _ in ends], [b for _, b in ends], False, [[i] for i in range(20)])
    ones = np.ones(20, dtype=np.int64)
    source, target = (np.array(column) for column in zip(*ends, strict=True))
    chunks = Chunks(ones, Fraction(GB), tuple((r,) for r in range(5)), source, target, ones < 0)
    schedule = StepSchedule(instance.sha256, chunks, sends, 0 * ones)
    found = bound(instance, solvers.get("highs"), Budget())
    for mode in set(SimulationMode) - {SimulationMode.SHARES}:  # of trees alone
        assert simulate(instance, schedule, mode).completion_s == found.seconds == 1


def test_rounded_lengths_are_in_proportion():
    """The largest dual value becomes 2^30, others their share of it; negative ones, which are rounding, become 0."""
    assert rounded_lengths([0.5, 0.25, -1e-17]) == (2**30, 2**29, 0)
    assert rounded_lengths([0.0, 0.0]) == (1, 1)


def test_other_collectives_are_refused():
    """A flow between all pairs says nothing of a broadcast."""
    instance = load("ring(4)").with_changes(demand=Demand(Collective.BROADCAST, Fraction(GB)))
    with pytest.raises(InputError, match="as in an all_to_all"):
        bound(instance, solvers.get("highs"), Budget())
