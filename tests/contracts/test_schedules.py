"""Properties of all textbook algorithms: valid schedules, no bound beaten, and the closed form on their own network."""

from __future__ import annotations

from fractions import Fraction

import pytest
from cwb.algorithms.bounds import schedule_bounds
from cwb.core.collective import Collective, Demand, collectives
from cwb.harness import Request, run
from cwb.instances import load
from cwb.schedules.files import read_schedule, write_schedule
from cwb.schedules.simulate import SimulationMode, simulate
from cwb.schedules.verify import verify
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st

K = Collective
SIZE = Fraction(2**20)

ALGORITHMS = ["ring", "direct", "rhd", "bruck", "bine", "dbt", "knomial", "torus-rings", "shifted-ring", "swing"]
NETWORKS = ["ring({n})", "complete({n})", "star({n})", "torus({n},2)", "circulant(n={n}, offsets=[1])", "mesh({n},2)"]


def instance(spec: str, kind: Collective, size_bytes: Fraction = SIZE, chunks: int = 1):
    return load(spec).with_changes(demand=Demand(kind, size_bytes, chunks))


@pytest.mark.slow
@settings(max_examples=draws(150))
@given(data=st.data())
def test_no_bound_is_beaten(data):
    """On random networks, sizes, bandwidths and latencies, every algorithm that fits is verified and no faster than any
    applicable bound."""
    name = data.draw(st.sampled_from(ALGORITHMS))
    n = data.draw(st.integers(3, 9))
    link = f"bandwidth='{data.draw(st.integers(1, 400))} GB/s', latency='{data.draw(st.integers(0, 5000))} ns'"
    spec = data.draw(st.sampled_from(NETWORKS)).format(n=n)[:-1] + f", {link})"
    size = Fraction(data.draw(st.integers(1, 2**34)))
    posed = instance(spec, data.draw(st.sampled_from(collectives())), size, data.draw(st.integers(1, 3)))
    done = run(posed, Request(name))
    if done.record.status == "unsupported":
        assert done.record.message
        return
    assert done.record.verified is True, done.record.violations
    assert done.record.bound is not None
    for bound in (schedule_bounds.best_bound, schedule_bounds.latency_bound, schedule_bounds.rank_bound):
        assert done.record.objective >= float(bound(posed)[0]) * (1 - 1e-12)
    unaware = simulate(done.instance, done.answer, SimulationMode.ALPHA_BETA).completion_s
    assert done.record.objective >= unaware * (1 - 1e-12)


def completion(spec: str, kind: Collective, name: str, size: Fraction, **options: object) -> float:
    done = run(instance(spec, kind, size), Request(name, options=options))
    assert done.record.verified is True, (done.record.status, done.record.message, done.record.violations)
    return done.record.metrics["completion_time_s"]


sizes = st.integers(1, 2**32).map(Fraction)
alphas = st.integers(0, 10**5)
betas = st.integers(1, 500)


@pytest.mark.slow
@settings(max_examples=draws(60))
@given(st.integers(3, 12), sizes, alphas, betas)
def test_ring_on_a_ring(n, size, alpha_ns, gigabytes):
    """Around a ring a part takes n - 1 steps of alpha + S / (n B), twice for an all-reduce, and half the data each way
    takes half the bytes."""
    alpha, part = alpha_ns * 1e-9, float(size) / n / (gigabytes * 1e9)
    link = f"latency='{alpha_ns} ns', bandwidth='{gigabytes} GB/s'"
    for kind, passes in ((K.ALL_GATHER, 1), (K.REDUCE_SCATTER, 1), (K.ALL_REDUCE, 2)):
        one = completion(f"ring({n}, {link})", kind, "ring", size, ways="one-way")
        assert one == pytest.approx(passes * (n - 1) * (alpha + part), rel=1e-9)
        two = completion(f"ring({n}, {link})", kind, "ring", size, ways="two-way")
        assert two == pytest.approx(passes * (n - 1) * (alpha + part / 2), rel=1e-9)


@pytest.mark.slow
@settings(max_examples=draws(60))
@given(st.integers(2, 10), sizes, alphas, betas)
def test_direct_on_a_complete_graph(n, size, alpha_ns, gigabytes):
    """If all ranks are neighbours, all parts travel at once: alpha + S / (n B), twice for an all-reduce."""
    alpha, part = alpha_ns * 1e-9, float(size) / n / (gigabytes * 1e9)
    spec = f"complete({n}, latency='{alpha_ns} ns', bandwidth='{gigabytes} GB/s')"
    for kind, passes in ((K.ALL_GATHER, 1), (K.REDUCE_SCATTER, 1), (K.ALL_TO_ALL, 1), (K.ALL_REDUCE, 2)):
        assert completion(spec, kind, "direct", size) == pytest.approx(passes * (alpha + part), rel=1e-9)


@settings(max_examples=draws(40))
@given(st.integers(1, 3), sizes, alphas, betas)
def test_halving_doubling_on_a_hypercube(d, size, alpha_ns, gigabytes):
    """On a hypercube every exchange of halves has a link of its own: at most d latencies and (n - 1) / n of the data
    each way."""
    n = 2**d
    spec = f"hypercube({d}, latency='{alpha_ns} ns', bandwidth='{gigabytes} GB/s')"
    once = d * alpha_ns * 1e-9 + float(size) * (n - 1) / n / (gigabytes * 1e9)
    assert completion(spec, K.ALL_GATHER, "rhd", size) <= once * (1 + 1e-9)
    assert completion(spec, K.ALL_REDUCE, "rhd", size) <= 2 * once * (1 + 1e-9)


@settings(max_examples=draws(40))
@given(st.integers(3, 6), st.integers(3, 6), sizes, betas)
def test_torus_rings_on_a_torus(a, b, size, gigabytes):
    """Rotated over the dimensions, all links are used all the time: without latency the bound of all ranks is met when
    a = b."""
    spec = f"torus({a},{b}, latency='0 ns', bandwidth='{gigabytes} GB/s')"
    time = completion(spec, K.ALL_REDUCE, "torus-rings", size)
    bound = float(schedule_bounds.best_bound(instance(spec, K.ALL_REDUCE, size))[0])
    assert time >= bound * (1 - 1e-12)
    if a == b:
        assert time == pytest.approx(bound, rel=1e-9)


@settings(max_examples=draws(40))
@given(st.integers(1, 4), sizes, alphas, betas)
def test_binomial_broadcast_on_a_complete_graph(d, size, alpha_ns, gigabytes):
    """A binomial tree doubles the ranks that have the message in each of log2(n) rounds of alpha + S / B."""
    spec = f"complete({2**d}, latency='{alpha_ns} ns', bandwidth='{gigabytes} GB/s')"
    rounds = d * (alpha_ns * 1e-9 + float(size) / (gigabytes * 1e9))
    assert completion(spec, K.BROADCAST, "knomial", size, k=2) <= rounds * (1 + 1e-9)


def test_several_collectives_at_once(tmp_path):
    """Two all-reduces of the rows of a torus and an all-gather of a column run side by side, are verified together, and
    survive a file."""
    rows = [Demand(K.ALL_REDUCE, SIZE, 2, tuple(range(r, r + 4))) for r in (0, 4)]
    column = Demand(K.ALL_GATHER, 3 * SIZE, 1, (0, 4, 8, 12))
    several = load("torus(4,4)").with_changes(demand=rows[0], also=(rows[1], column))
    done = run(several, Request("ring"))
    assert done.record.verified is True, done.record.violations
    assert done.record.bound <= done.record.objective
    alone = [run(several.with_single_demand(demand), Request("ring")).record.objective for demand in several.demands]
    assert done.record.objective >= max(alone) * (1 - 1e-12)
    write_schedule(tmp_path / "s.json", several, done.answer)
    read = read_schedule(tmp_path / "s.json")
    assert read.instance.sha256 == several.sha256
    assert not verify(read.instance, read.answer).violations
    missing = several.with_changes(also=(rows[1],))
    assert run(missing, Request("ring")).answer.instance_sha256 != done.answer.instance_sha256
