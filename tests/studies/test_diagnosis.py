"""Causes of measured times that are longer than expected."""

from __future__ import annotations

import cwb
import pytest
from cwb.exchange.nccl import read_measured
from cwb.heuristics.nccl.method import prediction, study_options
from cwb.reports.studies import hints
from cwb.studies.diagnosis import diagnosis
from nccl_tests_files import table_text

SIZE = 2**32
NET = " NCCL INFO Channel 0{}/0 : 0[0] -> 8[0] [{}] via NET/IB/{}"
SIDES = ("send", "receive")


def advise(tmp_path, rate_GBps, log=""):
    """Advice with results of nccl-tests at a bus bandwidth, from times of all sizes."""
    rows = [(2**k, *[50 + 2**k * 15 / 8 / rate_GBps / 1e3] * 2) for k in range(20, 33, 4)]
    path = tmp_path / "results.txt"
    path.write_text(log + table_text(rows, ranks=16))
    words = {"models": "ring", "chunks": "1", "links_limit_s": 0, "sizes": "1GiB", "measured": path}
    found = cwb.advise("dgx_h100(boxes=2)", collective="all_reduce", **words).to_json()
    return found["diagnosis"], " ".join(hints(found))


@pytest.mark.parametrize(
    ("rate_GBps", "cause"),
    [(345, "NVLink SHARP off"), (72, "1 of 8 NICs"), (288, "4 of 8 NICs"), (39, "the protocol LL alone")],
)
def test_the_nearest_cause_is_named(tmp_path, rate_GBps, cause):
    """A time near that of a machine with one fault is slower than expected, and names the fault first."""
    found, told = advise(tmp_path, rate_GBps)
    assert found["causes"][0]["cause"] == cause
    assert found["causes"][0]["expected_s"] == pytest.approx(found["measured_s"], rel=0.1)
    assert "4 GiB is measured slower than expected" in told
    assert f"GB/s with {cause}." in told


def test_a_machine_as_it_should_be_has_no_cause(tmp_path):
    """At the expected rate nothing is wrong, and a rate above the interval is told, too."""
    found, told = advise(tmp_path, 460)
    assert (found["causes"], found["log"]) == ([], [])
    assert "4 GiB is measured as expected: 458.7 GB/s" in told
    assert "is measured faster than expected" in advise(tmp_path, 700)[1]


def test_a_box_without_nvlink_is_found():
    """PCIe in place of NVLink is a cause on one box, which has no NICs."""
    posed = cwb.load("dgx_a100", collective="all_reduce", size="4 GiB")
    found = prediction(posed, study_options({}))
    told = diagnosis(posed, found, SIZE, SIZE * 7 / 4 / 24e9)
    assert told["causes"][0]["cause"] == "PCIe instead of NVLink"
    assert not any("NIC" in one["cause"] for one in told["causes"])


def test_a_log_names_what_was_used(tmp_path):
    """Lines of NCCL_DEBUG=INFO tell NICs, crossed rails, memory of the CPU and missing NVLink SHARP."""
    lines = [NET.format(0, "send", 0), NET.format(0, "receive", 3)]
    lines.append(" NCCL INFO Channel 01 : 1[1b] -> 2[1c] via SHM/direct")
    lines.append(" NCCL INFO NVLS multicast support is not available on dev 0")
    path = tmp_path / "log.txt"
    path.write_text("\n".join(lines) + "\n" + table_text([(1024, 20.0, 20.0)]))
    assert read_measured(path).findings == (
        "The log says that NVLink SHARP is not available.",
        "GPUs of a box exchange data over memory of the CPU (SHM), not over NVLink.",
        "Boxes send over 1 NIC (IB).",
        "Data between boxes passes through memory of the CPU (no GPUDirect RDMA).",
        "1 of 1 connections cross rails: they leave and enter over NICs of different numbers.",
    )
    straight = [NET.format(nic, side, f"{nic}(1)/GDRDMA") for nic in (0, 1) for side in SIDES]
    path.write_text("\n".join(straight) + "\n" + table_text([(1024, 20.0, 20.0)]))
    assert read_measured(path).findings == ("Boxes send over 2 NICs (IB).",)
