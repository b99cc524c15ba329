"""Expected times of NCCL's collectives."""

from __future__ import annotations

import subprocess
import sys

import cwb
import pytest
from cwb.core.errors import InputError
from cwb.heuristics.nccl.method import Filling, NcclOptions, Overheads, expected_seconds, prediction


@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "broadcast"])
def test_expected_times_are_later_than_nccls_and_than_the_bound(collective):
    """Without a plugin's latency, overheads only add to NCCL's prediction; the proved bound is below both."""
    for size in ("4 KiB", "1 MiB", "1 GiB"):
        found = cwb.predict("dgx_h100(boxes=2)", collective=collective, size=size)
        assert found.bound_s < found.nccl_s < found.seconds
        assert found.low_s < found.seconds < found.high_s


@pytest.mark.parametrize("machine", ["sharp", "ring(2)", "line(5)"])
def test_no_expected_time_is_below_the_proved_bound(machine):
    """NCCL counts on links that are slower than its slowest channel; neither time nor interval passes the bound."""
    for size in ("1 B", "64 MiB", "16 GiB"):
        found = cwb.predict(machine, collective="all_reduce", size=size)
        assert found.bound_s <= found.low_s <= found.seconds < found.high_s


def test_given_overheads_are_told_and_limited():
    """With overheads of a machine the source says whose interval it is; absurd ones are refused."""
    asked = {"collective": "all_reduce", "size": "1 MiB"}
    found = cwb.predict("dgx_h100(boxes=2)", options={"overheads": [0, 0, 1]}, **asked)
    assert found.source.endswith("given overheads; the interval is that of published times")
    assert found.seconds == pytest.approx(found.nccl_s)
    own = {"overheads": [0, 0, 1], "interval": [0.9, 1.2]}
    found = cwb.predict("dgx_h100(boxes=2)", options=own, **asked)
    assert (found.low_s, found.high_s) == pytest.approx((0.9 * found.seconds, 1.2 * found.seconds))
    assert found.source.endswith("with the given overheads")
    for wrong in ([1e308, 1e308, 1e308], [0, 0, 0], [-1, 0, 1], [1, 1]):
        with pytest.raises(InputError, match=r"overheads\["):
            cwb.predict("dgx_h100(boxes=2)", options={"overheads": wrong}, **asked)


def test_published_times_are_within_their_intervals():
    """Public results of nccl-tests on eight H100, H200 and A100 are where they are expected."""
    for machine, size, measured_us in (
        ("dgx_h100(boxes=1)", "16 MiB", 124.0),
        ("dgx_h100(boxes=1)", "1 GiB", 4253.0),
        ("dgx_h200(boxes=1)", "64 MiB", 338.9),
        ("dgx_a100(boxes=1)", "1 GiB", 8203.9),
        ("dgx_a100(boxes=1)", "32 KiB", 43.8),
    ):
        found = cwb.predict(machine, collective="all_reduce", size=size)
        assert found.low_s <= measured_us * 1e-6 <= found.high_s, (machine, size)


def test_the_latency_of_a_plugin_chooses_but_is_not_waited_for():
    """A latency that a plugin reports to NCCL counts in its choice; the expected time has at most the fitted one."""
    machine = cwb.load("dgx_h100(boxes=2)", collective="all_reduce", size="1 KiB")
    found = prediction(machine, NcclOptions(net_latency_us=75))
    pick = found.pick(1024)
    none = Overheads(0.0, Filling(0.0, 1.0), Filling(0.0, 1.0), 75.0)
    assert expected_seconds(found, pick, 1024, none) == pytest.approx(pick.seconds)
    less = Overheads(0.0, Filling(0.0, 1.0), Filling(0.0, 1.0), 25.0)
    assert expected_seconds(found, pick, 1024, less) < pick.seconds - 40e-6


def test_what_nccl_does_not_predict_is_refused():
    """An all-to-all, an unknown option and a machine without a demand say what is expected."""
    with pytest.raises(InputError, match="predicts no time for all_to_all"):
        cwb.predict("dgx_a100(boxes=2)", collective="all_to_all")
    with pytest.raises(InputError, match="version"):
        cwb.predict("dgx_a100(boxes=2)", collective="all_reduce", options={"version": "new"})
    with pytest.raises(InputError, match="collective"):
        cwb.predict("dgx_a100(boxes=2)")
    with pytest.raises(InputError, match="bandwidth design"):
        cwb.predict("4d", collective="all_reduce")


def test_symmetric_kernels_are_estimates_that_no_bound_contradicts():
    """``nccl`` and ``advise`` name the symmetric kernel and its SMs, and ``predict`` rejects it; none beats a bound."""
    run = cwb.solve("dgx_h100", "nccl", collective="all_reduce", size="1 MiB", symmetric=True)
    assert (run.metrics["kernel"], run.metrics["sms"]) == ("AllReduce_RSxLDMC_AGxSTMC", 1)
    with pytest.raises(InputError, match="options: symmetric: no measured time of symmetric kernels is known"):
        cwb.predict("dgx_h100", collective="all_reduce", options={"symmetric": True})
    for machine in ("dgx1", "dgx_a100"):
        run = cwb.solve(machine, "nccl", collective="all_reduce", size="1 GiB", symmetric=True)
        assert run.metrics["predicted_s"] == run.bound
        assert "it counts on faster links than these: no schedule takes less than" in run.message
    options = {"symmetric": True}
    found = cwb.advise("dgx1", collective="all_reduce", sizes="64KiB,1GiB", models="ring", options=options)
    small, large = found.to_json()["rows"]
    assert small["nccl"] == {"algorithm": "AllReduce_RSxLD_AGxST", "protocol": "2 SM"}
    assert small["nccl_predicted_s"] > small["bound_s"]
    assert large["nccl_predicted_s"] == large["bound_s"]
    assert (small["nccl_expected_s"], small["nccl_schedule"]) == (None, "ring")


def test_a_bound_counts_the_nics_of_whole_boxes():
    """An all-reduce of two boxes, whose switches add, still crosses the NICs of 400 GB/s twice."""
    found = cwb.predict("dgx_h100(boxes=2)", collective="all_reduce", size="256 MiB")
    assert found.bound_s == pytest.approx(2 * 2**28 / 800e9)
    found = cwb.predict("dgx_a100(boxes=2)", collective="broadcast", size="256 MiB")
    assert found.bound_s == pytest.approx(2**28 / 200e9)


def test_a_prediction_imports_no_scipy():
    """The command answers in a second: the distances of a small machine need no library of sparse matrices."""
    code = "import sys, cwb; cwb.predict('dgx_h100(boxes=2)', collective='all_reduce'); print('scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
