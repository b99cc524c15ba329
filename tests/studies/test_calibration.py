"""Latency and bandwidth from measured times: known truth, outliers, published times, and the machine that has them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError
from cwb.exchange.nccl import Measurements, Sample
from cwb.harness import Request, run_one
from cwb.heuristics.nccl.method import expected_seconds, prediction, study_options
from cwb.instances import load
from cwb.studies.calibration import below_bound, calibrate_machine, fit, fit_overheads
from nccl_tests_files import reference

ALPHA, BANDWIDTH = 20e-6, 300e9


def synthetic(seed, noise=0.01, alpha=ALPHA, bandwidth=BANDWIDTH):
    draw = np.random.default_rng(seed)
    return [
        Sample(2**k, (alpha + 2**k / bandwidth) * (1 + noise * draw.standard_normal()), in_place)
        for k in range(10, 34)
        for in_place in (False, True)
    ]


def published(name):
    return [
        Sample(size, time * 1e-6, in_place)
        for size, out, within in reference(name)
        for time, in_place in ((out, False), (within, True))
    ]


@pytest.mark.parametrize("seed", range(5))
def test_known_truth(seed):
    """Of synthetic times with noise of 1 %, latency and bandwidth are found within 2 %."""
    found = fit(synthetic(seed))
    assert found.latency_s.value == pytest.approx(ALPHA, rel=0.02)
    assert found.bandwidth_Bps.value == pytest.approx(BANDWIDTH, rel=0.02)
    assert found.latency_s.low < found.latency_s.value < found.latency_s.high
    assert found.misfit < 1.05
    assert not found.outliers


def test_intervals_hold_the_truth():
    """Intervals of 95 % hold the truth in at least 16 of 20 draws."""
    found = [fit(synthetic(100 + seed)) for seed in range(20)]
    assert sum(one.latency_s.low <= ALPHA <= one.latency_s.high for one in found) >= 16
    assert sum(one.bandwidth_Bps.low <= BANDWIDTH <= one.bandwidth_Bps.high for one in found) >= 16


@pytest.mark.parametrize("wrong", [(0,), (11, 34), (47,), (3, 17, 30)])
def test_outliers_are_named(wrong):
    """Samples that are off by more than half are named, with the time that was expected, and change nothing."""
    samples = synthetic(7)
    for index in wrong:
        samples[index] = Sample(samples[index].size, samples[index].seconds * 1.8, samples[index].in_place)
    found = fit(samples)
    assert {(one.sample.size, one.sample.in_place) for one in found.outliers} == {
        (samples[index].size, samples[index].in_place) for index in wrong
    }
    for one in found.outliers:
        assert one.expected_s == pytest.approx(one.sample.seconds / 1.8, rel=0.1)
    assert found.bandwidth_Bps.value == pytest.approx(BANDWIDTH, rel=0.02)
    assert found.latency_s.value == pytest.approx(ALPHA, rel=0.02)


def test_published_times():
    """Of published times the fit is near the smallest and the largest size, and says how far it is between them."""
    found = fit(published("h100-2x8-all_reduce"))
    assert found.latency_s.value == pytest.approx(125e-6, rel=0.03)
    assert 165e9 < found.bandwidth_Bps.value < 181e9
    assert found.misfit > 4
    small = fit(published("2080ti-2"))
    assert small.latency_s.value == pytest.approx(12e-6, rel=0.15)
    assert 40e9 < small.bandwidth_Bps.value < 44e9


def test_the_machine_takes_the_measured_time():
    """NCCL's schedule on the scaled machine has the fitted latency and bandwidth; the source says where they are
    from."""
    machine = load("dgx_a100()")
    truth = Measurements(tuple(synthetic(3, noise=0, alpha=50e-6, bandwidth=100e9)), Collective.ALL_REDUCE, 8, "2.18.3")
    found = calibrate_machine(machine, truth, Collective.ALL_REDUCE, "nccl-tests in a.txt", {"algorithm": "ring"})
    scaled = load_data(found.data)
    for size in (1024, 2**33):
        record = run_one(
            scaled.with_changes(demand=Demand(Collective.ALL_REDUCE, Fraction(size))),
            Request("nccl", options={"algorithm": "ring", "rates": "effective"}),
        )
        assert record.metrics["completion_time_s"] == pytest.approx(50e-6 + size / 100e9, rel=0.02)
    assert "nccl-tests in a.txt: latency 50 us" in found.data["source"]


def test_overheads_of_a_machine_are_found():
    """Times with known overheads give these; published ones of two boxes of H100 are then far nearer than expected."""
    posed = load("dgx_h100(boxes=2)").with_changes(demand=Demand(Collective.ALL_REDUCE, Fraction(2**20)))
    truth = prediction(posed, study_options({"overheads": [40.0, 120.0, 8.0]}))
    samples = [Sample(2**k, expected_seconds(truth, truth.pick(2**k), 2**k), False) for k in range(10, 34)]
    plain = prediction(posed, study_options({}))
    found = fit_overheads(plain, samples)
    assert (found.launch_us, found.most_us, found.half_MiB) == pytest.approx((40, 120, 8))
    assert found.error < 1e-9 < found.published_error
    assert found.options == ("overheads=[40,120,8]", "interval=[1,1]")
    found = fit_overheads(plain, published("h100-2x8-all_reduce"))
    assert found.error < 0.1
    assert 0.7 < found.low < 1 < found.high < 1.4
    assert found.published_error > 0.5
    assert fit_overheads(plain, samples[:3]) is None


def load_data(data):
    from cwb.instances.build import build_instance
    from cwb.instances.loader import find_workload, network_from_text
    from cwb.instances.schema import InstanceFile

    return build_instance(InstanceFile.model_validate(data), "calibrated", find_workload, network_from_text)


def test_what_cannot_be_fitted():
    """Too few samples, times that do not grow, another number of ranks, and a machine without links are refused."""
    with pytest.raises(InputError, match="3 samples; expected at least four"):
        fit(synthetic(1)[:3])
    for power, told in ((-1, "do not grow"), (0, "do not grow"), (1, "have no latency")):
        with pytest.raises(InputError, match=told):
            fit([Sample(2**k, 1e-3 * 2.0 ** (k * power), False) for k in range(10)])
    with pytest.raises(InputError, match="do not grow"):  # nor show how they would: sizes differ by a few bytes
        fit([Sample(2**52 + k, 1e-3 + 1e-4 * k, False) for k in range(4)])
    some = Measurements(tuple(synthetic(1)), None, 4, "")
    for machine in ("dgx_a100()", "RI(4)_SW(2)"):
        with pytest.raises(InputError):
            calibrate_machine(load(machine), some, Collective.ALL_REDUCE, "", {})


def test_times_below_a_bound_are_told():
    """Eight GPUs on an NVSwitch that adds are faster than any schedule on one that does not."""
    samples = tuple(Sample(2**e, 20e-6 + 2**e * 1.75 / 478e9, False) for e in (20, 24, 28, 32))
    measured = Measurements(samples, Collective.ALL_REDUCE, 8, "")
    found = below_bound(load("dgx_h100(nvls=false)"), measured, Collective.ALL_REDUCE)
    assert [size for size, *_ in found] == [2**28, 2**32]
    assert all(seconds < bound for _, seconds, bound in found)
    assert not below_bound(load("dgx_h100"), measured, Collective.ALL_REDUCE)


def test_what_may_be_wrong_is_named():
    """A machine that is measured faster than described has NVSwitches that do not add and its rates named."""
    samples = tuple(Sample(2**e, 20e-6 + 2**e * 1.75 / 478e9, False) for e in range(20, 34, 2))
    measured = Measurements(samples, Collective.ALL_REDUCE, 8, "")
    found = calibrate_machine(load("dgx_h100(nvls=false)"), measured, Collective.ALL_REDUCE, "", {})
    assert found.rate > 1
    assert "NVSwitches do not add" in found.suspects[0]
    assert "450 GB/s" in found.suspects[-1]
    assert calibrate_machine(load("dgx_h100"), measured, Collective.ALL_REDUCE, "", {}).suspects == ()
