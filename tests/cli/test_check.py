"""``cwb check`` from the outside: exit status and what is printed."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from cwb.cli.schedules import check
from cwb.core.bounds import CutCertificate, DistanceCertificate
from cwb.core.errors import InputError
from cwb.schedules.files import write_schedule
from families import FAMILIES


def run(*arguments):
    """(exit status, output) of a call; errors come out as they are."""
    runner = CliRunner()
    with runner.isolation() as (out, _, _):
        status = check.main([str(a) for a in arguments], standalone_mode=False)
        return status, out.getvalue().decode()


@pytest.fixture
def right(tmp_path):
    instance, answer = FAMILIES["ring_all_gather"]()
    write_schedule(tmp_path / "s.json.gz", instance, answer, CutCertificate((0,)), {"bound_s": 1e-6})
    return tmp_path / "s.json.gz"


@pytest.fixture
def wrong(tmp_path):
    instance, answer = FAMILIES["ring_all_gather"]()
    write_schedule(tmp_path / "w.json", instance, replace(answer, step=np.zeros_like(answer.step)))
    return tmp_path / "w.json"


def test_a_right_schedule(right):
    """Status 0, what the certificate proves, the cut that does, and the completion time."""
    status, out = run(right)
    assert status == 0
    assert out.splitlines() == [
        f"{right}: right, a schedule of all_gather of 5 ranks; its certificate proves 1e-06 s",
        "cut: 1 of 5 nodes, 1 of 5 ranks; 1 GB/s leave it",
        "completion time: 4e-06 s, link by link, store and forward; a link serves one piece at a time",
    ]


@pytest.fixture
def forest(tmp_path):
    """Chains both ways round a ring of five, as fast as what enters rank 4."""
    instance, answer = FAMILIES["chain_trees"]()
    write_schedule(tmp_path / "f.json", instance, answer, CutCertificate((0, 1, 2, 3)), {"bound_s": 4e-6})
    return tmp_path / "f.json"


def test_trees_that_meet_their_cut(forest):
    """Both sides come from the file alone, as fractions: the forest is optimal, and the cut shows why."""
    status, out = run(forest)
    assert status == 0
    assert out.splitlines() == [
        f"{forest}: right, a schedule of all_gather of 5 ranks; its certificate proves 4e-06 s",
        "cut: 4 of 5 nodes, 4 of 5 ranks; 2 GB/s leave it",
        "completion time: 4.046875e-06 s, link by link, store and forward; every tree has its share of every link, "
        "256 pieces of a tree",
        "flow time: 4e-06 s, of the most loaded link, latency left out",
        "optimal (flow, latency left out): flow time and bound are the same fraction, 1/250000 s",
    ]
    verdict = json.loads(run(forest, "--json")[1])
    assert verdict["exact"] == {"bound": "1/250000", "flow_time": "1/250000", "gap": "0"}
    assert verdict["pieces"] == 256
    assert verdict["completion_time_s"] == pytest.approx(4e-6 * (1 + 3 / 256))
    assert verdict["gap"] == 0
    assert verdict["cut"] == {"nodes": 4, "ranks": 4, "bandwidth_Bps": 2e9}


def test_trees_above_their_bound(tmp_path):
    """A cut that proves less leaves a gap, which is told exactly; a distance has no say about trees, and wrong trees
    have no time."""
    instance, answer = FAMILIES["chain_trees"]()
    path = tmp_path / "f.json"
    write_schedule(path, instance, answer, CutCertificate((0,)))
    assert run(path)[1].splitlines()[-1] == "gap: 75.000%, exactly 3/4 of the flow time"
    write_schedule(path, instance, answer, DistanceCertificate(0, 1))
    assert [line.split(":")[0] for line in run(path)[1].splitlines()] == [str(path), "completion time"]
    write_schedule(path, instance, replace(answer, child=answer.child[::-1].copy()), CutCertificate((0,)))
    status, out = run(path)
    assert status == 5
    assert "optimal" not in out
    assert "gap" not in out


def test_a_wrong_schedule(wrong):
    """Status 5, and the first violations with rank, chunk, link and step."""
    status, out = run(wrong)
    assert status == 5
    assert out.splitlines()[0] == "not-held: n1 does not hold it yet (rank 1, chunk 0, link 1, step 0)"
    assert "WRONG, 15 violations" in out


def test_json(right, wrong):
    """One JSON object on stdout, for right and wrong alike."""
    for path, verified in ((right, True), (wrong, False)):
        verdict = json.loads(run(path, "--json")[1])
        assert verdict["verified"] is verified
        assert bool(verdict["violations"]) is not verified
    assert verdict["counts"]["not-held"] == 15


def test_a_claim_beyond_the_certificate(tmp_path):
    """A bound that the certificate does not prove is a violation."""
    instance, answer = FAMILIES["ring_all_gather"]()
    write_schedule(tmp_path / "s.json", instance, answer, CutCertificate((0,)), {"bound_s": 2e-6})
    status, out = run(tmp_path / "s.json")
    assert status == 5
    assert "claimed bound 2e-06 s, it proves 1e-06 s" in out


def test_a_certificate_that_is_none(tmp_path):
    """A cut of nodes that do not exist is a violation, not a crash."""
    instance, answer = FAMILIES["ring_all_gather"]()
    write_schedule(tmp_path / "s.json", instance, answer, CutCertificate((99,)))
    status, out = run(tmp_path / "s.json")
    assert status == 5
    assert out.startswith("certificate: certificate.nodes[0]: node 99 of 5")


def test_another_instance_is_bad_input(right):
    """A schedule for another instance than the user's is an input error: status 2 at the entry point."""
    with pytest.raises(InputError, match="is for the instance") as error:
        run(right, "--instance", "torus(2,2)")
    assert error.value.exit_status == 2


def test_the_same_network_without_a_collective(tmp_path):
    """An expression names a network only: its schedules are accepted whatever they do."""
    from cwb.core.collective import Collective, Demand
    from cwb.core.schedule import StepSchedule
    from cwb.instances import load

    instance = load("torus(2,2)").with_changes(demand=Demand(Collective.ALL_GATHER, FAMILIES_SIZE))
    _, answer = FAMILIES["ring_all_gather"](4)
    ends = instance.network.link_ends
    links = np.array([ends.index(pair) for pair in zip(RING, [*RING[1:], RING[0]], strict=True)])
    sends = answer.sends
    moved = replace(
        sends,
        source=np.array(RING)[sends.source],
        target=np.array(RING)[sends.target],
        path_links=links[sends.path_links],
    )
    chunks = replace(answer.chunks, groups=tuple(tuple(sorted(RING[r] for r in g)) for g in answer.chunks.groups))
    write_schedule(tmp_path / "s.json", instance, StepSchedule(instance.sha256, chunks, moved, answer.step))
    assert run(tmp_path / "s.json", "--instance", "torus(2,2)")[0] == 0


RING = [0, 1, 3, 2]
FAMILIES_SIZE = 4 * FAMILIES["ring_all_gather"](4)[1].chunks.unit_bytes
