"""Bounds on several collectives at once are those that the verifier recomputes, and no less than each alone gives."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from cwb import solvers
from cwb.algorithms.bounds.schedule_bounds import (
    best_bound,
    candidate_sets,
    groups_of,
    joint_cut,
    joint_length,
    latency_bound,
    pairs_of,
)
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand, collectives
from cwb.core.errors import InputError
from cwb.core.topology import Topology
from cwb.harness import Request, run
from cwb.instances import load
from cwb.instances.loader import from_data
from cwb.models.mcf.solve import bound
from cwb.schedules.network_bounds import recomputed_cut_bound, recomputed_length_bound
from draws import draws
from hypothesis import assume, given, settings
from hypothesis import strategies as st


@st.composite
def several(draw):
    """Two or three collectives of groups on a small network."""
    instance = load(draw(st.sampled_from(["mesh(2,3)", "ring(6)", "switch2d(2,3)"])))
    found: list[Demand] = []
    for _ in range(draw(st.integers(2, 3))):
        kind = draw(st.sampled_from(list(collectives())))
        count = 2 if kind is Collective.POINT_TO_POINT else draw(st.integers(2, 6))
        ranks = tuple(draw(st.permutations(range(6)))[:count])
        found.append(Demand(kind, Fraction(draw(st.integers(1, 5)) * 10**6), ranks=ranks))
    return instance.with_changes(demand=found[0], also=tuple(found[1:]))


@settings(deadline=None, max_examples=draws(60))
@given(several())
def test_the_verifier_finds_the_same(instance):
    """Cuts and lengths of all collectives together prove what is claimed, and the cut at least what every collective
    alone makes it prove."""
    groups = groups_of(instance)
    sets = candidate_sets(instance.network, groups)
    seconds, certificate = joint_cut(instance, groups, sets)
    assert seconds == recomputed_cut_bound(instance, certificate)
    for demand in instance.demands:
        alone = instance.with_single_demand(demand)
        assert joint_cut(alone, groups_of(alone), sets)[0] <= seconds
    pairs = pairs_of(instance)
    if len(pairs[0]):
        lengths = [1 + link % 3 for link in range(len(instance.network.links))]
        plain, late = (joint_length(instance, pairs, lengths, late=late) for late in (False, True))
        for seconds, certificate in (plain, late):
            assert seconds == recomputed_length_bound(instance, certificate)
        assert plain[0] <= late[0]


def test_the_flow_of_two_groups_is_sharper_than_that_of_one():
    """Two rows of a mesh that exchange data share the links between them: together they take longer than either
    alone."""
    both = load("mesh(3,3, bandwidth='1 MB/s', latency='0 us')").with_changes(
        demand=Demand(Collective.ALL_TO_ALL, Fraction(3 * 10**6), ranks=(0, 1, 2)),
        also=(Demand(Collective.ALL_TO_ALL, Fraction(3 * 10**6), ranks=(3, 4, 5)),),
    )
    solver = solvers.get("highs")
    together = bound(both, solver, Budget())
    alone = bound(both.with_single_demand(both.demands[0]), solver, Budget())
    assert together.seconds == recomputed_length_bound(both, together.certificate)
    assert alone.seconds < together.seconds


def test_planes_of_a_grid_are_tried():
    """With its sides, a grid of 3 x 4 nodes is cut across the longer side."""
    instance = load("mesh(3,4, bandwidth='1 MB/s', latency='0 us')").with_changes(
        demand=Demand(Collective.ALL_TO_ALL, Fraction(12 * 10**6))
    )
    sets = candidate_sets(instance.network, groups_of(instance), (4, 3))
    assert joint_cut(instance, groups_of(instance), sets)[0] == Fraction(36, 3)


def test_what_cannot_leave_is_told():
    """A part that no link leaves is an input error where data must."""
    instance = load("line(3)").with_changes(demand=Demand(Collective.ALL_TO_ALL, Fraction(3)))
    links = tuple(link for link in instance.network.links if link.source != "0")
    apart = instance.with_changes(network=Topology(instance.network.nodes, links))
    with pytest.raises(InputError, match="no link does"):
        joint_cut(apart, groups_of(apart), [np.array([True, False, False])])


@st.composite
def with_own_sizes(draw):
    """A collective with a size per rank or pair, some of them 0, on a small network."""
    network = draw(st.sampled_from(["line(3)", "ring(4)", "star(4)", "mesh(2,2)", "complete(4)"]))
    name = draw(st.sampled_from(["all_to_all_v", "all_gather_v", "gather_v", "scatter_v"]))
    ranks = draw(st.permutations(range(load(network).npus)))[: draw(st.integers(2, 4))]
    row = st.lists(st.integers(0, 5), min_size=len(ranks), max_size=len(ranks))
    rows = draw(st.lists(row, min_size=len(ranks), max_size=len(ranks)))
    sizes = [[f"{size} MB" for size in row] for row in rows]
    collective = {"kind": name, "sizes": sizes if name == "all_to_all_v" else sizes[0], "ranks": ranks}
    collective["chunks"] = draw(st.integers(1, 2))
    try:
        return from_data({"network": network, "collective": collective}, "x")
    except InputError:  # no data at all
        assume(condition=False)


@pytest.mark.slow
@settings(deadline=None, max_examples=draws(25))
@given(with_own_sizes())
def test_no_bound_on_sizes_of_their_own_is_beaten(instance):
    """Every bound that a method, the cut or a rank proves is at most the time of each verified schedule."""
    groups = groups_of(instance)
    cut = joint_cut(instance, groups, candidate_sets(instance.network, groups))[0]
    proved = [float(cut), *(float(bound(instance)[0]) for bound in (best_bound, latency_bound))]
    times = []
    for model in ("pccl", "spff", "direct", "fast", "hierarchical", "ring"):
        record = run(instance, Request(model)).record
        if record.status != "unsupported":
            assert record.verified is True, record.violations
            times.append(record.metrics["completion_time_s"])
            proved.append(record.bound)
    assert max(proved) <= min(times) * (1 + 1e-12)


def test_the_cut_counts_every_size():
    """On a complete graph whose links cost no latency, the root of a gather of three parts is the bottleneck."""
    collective = {"kind": "gather_v", "sizes": ["7 MB", "0 B", "1 MB", "5 MB"]}
    asked = from_data({"network": "complete(4, bandwidth='1 MB/s', latency='0 s')", "collective": collective}, "x")
    groups = groups_of(asked)
    assert joint_cut(asked, groups, candidate_sets(asked.network, groups))[0] == Fraction(1 + 5, 3)
    seconds, certificate = best_bound(asked)
    assert (seconds, recomputed_cut_bound(asked, certificate)) == (2, 2)
