"""Files that once were right and proved more than they took, and answers that contradict what their certificates
prove."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from cwb.cli.schedules import check, simulate
from cwb.core.bounds import CutCertificate, DistanceCertificate, EpochDistance, EpochFlow, SolverBound
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError
from cwb.core.instance import Instance
from cwb.core.schedule import Schedule, StepSchedule
from cwb.core.timing import BandwidthChange, Semantics, Timing
from cwb.core.topology import Link, Node, NodeKind, Topology
from cwb.core.trees import TreePacking
from cwb.harness import Request
from cwb.harness import run as run_method
from cwb.instances import load
from cwb.schedules import verdict_of
from cwb.schedules.collective import compare_with_certificate, exact_bound
from cwb.schedules.epoch_bounds import MAX_CHUNKS
from cwb.schedules.files import read_schedule, write_schedule
from cwb.schedules.metrics import contradictions
from cwb.schedules.verify import verify

FILES = Path(__file__).with_name("defects")


def run(command: str, *arguments: object) -> tuple[int, str]:
    """(exit status, output) of a command; errors come out as they are."""
    commands = {"check": check, "simulate": simulate}
    with CliRunner().isolation() as (out, _, _):
        status = commands[command].main([str(argument) for argument in arguments], standalone_mode=False)
        return status, out.getvalue().decode()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("innet", "cannot store, and so cannot add"),
        ("fluid", "0 -> 1 carries 2 chunks for all targets, but can carry 1 in epoch 0"),
        ("flow", "claimed bound 200000.0 s, it proves 0.0 s"),
    ],
)
def test_check_refuses(name: str, words: str) -> None:
    """A sum in a switch without room, a copy of a split chunk, and a flow of more than 32 bits are wrong."""
    status, out = run("check", FILES / f"{name}.json")
    assert (status, words in out) == (5, True), out


@pytest.mark.parametrize(("name", "least"), [("innet", 6.0), ("fluid", 8.0)])
def test_simulate_tells_both_numbers(name: str, least: float) -> None:
    """A simulation verifies nothing, but a schedule that ends before its own bound is told, with status 5."""
    status, out = run("simulate", FILES / f"{name}.json", "--json")
    told = json.loads(out)
    assert status == 5
    assert told["violations"] == [f"contradiction: it takes 5.0 s, but its certificate proves {least} s"]
    assert told["proved_bound_s"] == least


@pytest.mark.parametrize("bound", ["8", True, [8], {"s": 8}, 10**400])
def test_a_claimed_bound_is_a_number(tmp_path: Path, bound: object) -> None:
    """A bound that is no number of seconds is reported with its place by check and simulate."""
    data = json.loads((FILES / "flow.json").read_text())
    data["extra"]["bound_s"] = bound
    (tmp_path / "s.json").write_text(json.dumps(data))
    for command in ("check", "simulate"):
        with pytest.raises(InputError, match=r"expected seconds or null|digits") as told:
            run(command, tmp_path / "s.json")
        assert told.value.exit_status == 2


def test_an_attested_bound_above_the_time_is_told(tmp_path: Path) -> None:
    """A file whose solver attests more than the schedule takes contradicts itself."""
    read = read_schedule(FILES / "flow.json")
    write_schedule(tmp_path / "s.json", read.instance, read.answer, SolverBound("x", "1"), {"bound_s": 2.0})
    for command in ("check", "simulate"):
        status, out = run(command, tmp_path / "s.json", "--json")
        assert status == 5
        assert json.loads(out)["violations"] == ["contradiction: attested bound 2.0 s, but the answer takes 1.0 s"]


def test_equal_numbers_are_no_contradiction() -> None:
    """Exactly the bound is right, less by whatever is not; floats have their margin."""
    third = Fraction(1, 3)
    assert not contradictions(third, third)
    assert contradictions(third - Fraction(1, 10**30), third)
    assert not contradictions(float(third) * (1 - 1e-12), third, 1e-9)
    assert contradictions(float(third) * (1 - 1e-8), third, 1e-9)
    assert not contradictions(third, None)


def pair(bandwidth: int, chunks: int = 1, epoch_s: Fraction = Fraction(1)) -> Instance:
    """Two ranks with a link each way, whole chunks of a byte on a grid."""
    nodes = tuple(Node(name, NodeKind.COMPUTE) for name in "ab")
    rate, zero = Fraction(bandwidth), Fraction(0)
    links = (Link("a", "b", rate, zero), Link("b", "a", rate, zero))
    demand = Demand(Collective.BROADCAST, Fraction(chunks), chunks)
    return Instance("x", Topology(nodes, links), demand, timing=Timing(Semantics.STORE_AND_FORWARD, epoch_s))


@pytest.mark.parametrize("bandwidth", [1, 2**31 - 1, 2**31, 2**32, 2**32 + 1, 2**63, 2**64, 10**40])
def test_flows_over_links_of_any_capacity(bandwidth: int) -> None:
    """However many chunks fit into an epoch, one chunk is there after one epoch and not before."""
    for epochs, proved in ((1, 1), (2, 0), (1000, 0)):
        assert exact_bound(pair(bandwidth), EpochFlow(1, epochs)) == proved


@pytest.mark.parametrize("chunks", [2**20 + 1, MAX_CHUNKS])
def test_flows_of_many_chunks(chunks: int) -> None:
    """The proved number of epochs is that of the chunks that a link can carry, and no more."""
    rate = (chunks + 1) // 2
    assert exact_bound(pair(rate, chunks), EpochFlow(1, 2)) == 2
    assert exact_bound(pair(rate, chunks), EpochFlow(1, 3)) == 0


def test_flows_of_too_many_chunks_are_refused() -> None:
    """Beyond 32 bits nothing is proved, and it is said why."""
    proved, wrong = compare_with_certificate(
        pair(1, MAX_CHUNKS + 1), read_schedule(FILES / "flow.json").answer, EpochFlow(1, 9), 1.0
    )
    assert proved is None
    assert "too large to be checked" in wrong[0]


def test_wrong_certificates_are_violations_of_every_answer() -> None:
    """A certificate that names what there is not fails the verification, in steps, in time and on grids alike."""
    read = read_schedule(FILES / "flow.json")
    for wrong in (CutCertificate((7,)), DistanceCertificate(0, 9), EpochDistance(-1, 1), EpochFlow(5, 1)):
        verdict = verdict_of(read.instance, read.answer, wrong)
        assert not verdict.ok
        assert verdict.bound is None
        assert verdict.violations[0].startswith("certificate: ")


@pytest.mark.parametrize("start", [2.0**58, 2.0**61, 2.0**62, 2.0**63, 2.0**64, 1e300])
def test_times_beyond_all_indices_are_no_times_of_a_grid(start: float) -> None:
    """Indices that 64 bits cannot hold four times are refused, so that none wraps to an early one."""
    read = read_schedule(FILES / "flow.json")
    answer = read.answer
    assert isinstance(answer, Schedule)
    late = Schedule(answer.instance_sha256, answer.chunks, answer.sends, np.array([start]), np.array([start * 2]))
    assert not verify(read.instance, late).ok


def test_a_distance_says_nothing_of_the_flow_of_trees() -> None:
    """Trees are measured without latency, so that a long way to a rank contradicts nothing."""
    from cwb.harness import Request
    from cwb.harness import run as run_method
    from cwb.instances import load

    demand = Demand(Collective.ALL_GATHER, Fraction(3))
    instance = load("ring(3, bandwidth='1 GB/s', latency='1 s')").with_changes(demand=demand)
    done = run_method(instance, Request("forestcoll"))
    assert isinstance(done.answer, TreePacking)
    verdict = verdict_of(done.instance, done.answer, DistanceCertificate(0, 1))
    assert verdict.ok
    assert verdict.bound is None
    assert exact_bound(instance, DistanceCertificate(0, 1)) == 1


def on_grid(model: str, tmp_path: Path, timing: Timing, certificate: object, extra: dict[str, float]) -> Path:
    """Write what a method answers for a line of three, as if the instance had a grid."""
    demand = Demand(Collective.ALL_GATHER, Fraction(3 * 10**9))
    done = run_method(load("line(3, bandwidth='1 GB/s', latency='0 s')").with_changes(demand=demand), Request(model))
    assert done.instance is not None
    assert isinstance(done.answer, StepSchedule | TreePacking)
    instance = done.instance.with_changes(timing=timing)
    answer = replace(done.answer, instance_sha256=instance.sha256)
    path = tmp_path / f"{model}.json"
    write_schedule(path, instance, answer, done.certificate if certificate is None else certificate, extra)
    return path


@pytest.mark.parametrize("model", ["direct", "forestcoll"])
def test_epochs_prove_nothing_of_steps_and_trees(model: str, tmp_path: Path) -> None:
    """A certificate in epochs is none of an answer off the grid, and what the file claims by it contradicts the
    answer."""
    timing = Timing(Semantics.STORE_AND_FORWARD, Fraction(10))
    path = on_grid(model, tmp_path, timing, EpochDistance(0, 2), {"bound_s": 20.0})
    for command in ("check", "simulate"):
        status, out = run(command, path, "--json")
        assert status == 5
        assert "contradiction: attested bound 20.0 s" in out


def test_trees_on_links_that_vary_are_not_measured(tmp_path: Path) -> None:
    """Trees keep rates, which links that are down at times do not: there is no flow time, and nothing is optimal."""
    changes = tuple(BandwidthChange(link, 0, 1000, Fraction(0)) for link in range(4))
    timing = Timing(Semantics.STORE_AND_FORWARD, Fraction(1), changes=changes)
    path = on_grid("forestcoll", tmp_path, timing, None, {})
    status, out = run("check", path)
    assert status == 0
    assert "optimal" not in out
    read = read_schedule(path)
    verdict = verdict_of(read.instance, read.answer, read.certificate)
    assert (verdict.objective, verdict.bound, verdict.metrics.get("flow_time_s")) == (None, None, None)
    assert verdict.metrics["no_completion_time"] == "trees keep rates on links of constant bandwidth only"


def test_a_flow_over_links_without_windows_proves_nothing() -> None:
    """On a grid of circuits, a link that takes less than a tick takes any number of chunks in it."""
    links = tuple(Link(str(a), str(b), Fraction(1), Fraction(0)) for a, b in ((0, 1), (1, 0), (1, 2), (2, 1)))
    network = Topology(tuple(Node(str(i)) for i in range(3)), links)
    demand = Demand(Collective.BROADCAST, Fraction(1))
    instance = Instance("x", network, demand, timing=Timing(Semantics.CIRCUIT, Fraction(10)))
    assert exact_bound(instance, EpochFlow(2, 3)) == 0


def test_links_that_are_faster_at_times_are_held_against_latency_alone(tmp_path: Path) -> None:
    """The lower bound that a simulation prints holds whatever bandwidth links have over time."""
    timing = Timing(Semantics.STORE_AND_FORWARD, Fraction(1), changes=(BandwidthChange(0, 0, 10, Fraction(2)),))
    path = on_grid("direct", tmp_path, timing, EpochDistance(0, 2), {})
    told = json.loads(run("simulate", path, "--json")[1])
    assert (told["certificate"], told["lower_bound_s"]) == ("distance", 0.0)
