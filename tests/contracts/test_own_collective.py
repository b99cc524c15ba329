"""A collective from outside the package: every method makes it or says why not, and all commands know it."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import cwb
import pytest
from cwb.algorithms.bounds.schedule_bounds import (
    best_bound,
    candidate_sets,
    cut_bound,
    groups_of,
    joint_cut,
    joint_length,
    latency_bound,
    pairs_of,
    rank_bound,
)
from cwb.cli.main import run
from cwb.core import collective
from cwb.core.bounds import CutCertificate, DistanceCertificate
from cwb.core.collective import Collective, Demand
from cwb.core.errors import ExitStatus
from cwb.harness import registry
from cwb.harness.registry import PLUGINS
from cwb.schedules.network_bounds import recomputed_cut_bound, recomputed_distance_bound, recomputed_length_bound

EXAMPLE = Path(__file__).parents[2] / "examples" / "ring_shift.py"

#: Methods that work by conditions; those that cannot add are not asked for sums.
COPY = {"pccl", "sccl", "spff", "taccl", "ten-ilp", "teccl", "teccl-milp", "teccl-lp", "teccl-astar"}
ADD = {"pccl", "teccl-milp"}

RING_SHIFT = Collective(
    "ring_shift",
    pieces=lambda n: [([rank], [(rank + 1) % n]) for rank in range(n)],
    summary="every rank has the buffer of the one before it",
    size="buffer of a rank",
)
NEIGHBOUR_SUM = Collective(
    "neighbour_sum",
    pieces=lambda n: [([(rank - 1) % n, rank], [rank]) for rank in range(n)],
    summary="every rank has the sum of its buffer and that of the one before it",
    size="buffer of a rank",
    sums=True,
)


@pytest.fixture(autouse=True)
def forget_registrations(monkeypatch):
    """Drop plugins and registrations of a test after it."""
    monkeypatch.setenv(PLUGINS, "")
    monkeypatch.setattr(collective, "_registry", dict(collective._registry))


@pytest.mark.slow
@pytest.mark.parametrize("model", registry.names())
@pytest.mark.parametrize(("kind", "makers"), [(RING_SHIFT, COPY), (NEIGHBOUR_SUM, ADD)])
def test_a_method_makes_it_or_says_why_not(kind, makers, model):
    """Methods that work by conditions give a schedule that the verifier finds right; all others refuse in one line."""
    cwb.register(kind)
    record = cwb.solve("ring(4)", model, collective=kind.name, size="1 MB", time_limit_s=60)
    assert record.collective == kind.name
    if model in makers:
        assert (record.status in ("optimal", "feasible"), record.verified) == (True, True)
    else:
        assert record.status == "unsupported"
        assert record.message
        assert "\n" not in record.message


@pytest.mark.parametrize("kind", [RING_SHIFT, NEIGHBOUR_SUM])
@pytest.mark.parametrize("ranks", [None, (4, 1, 3)])
def test_bounds_follow_from_the_conditions(kind, ranks):
    """Bounds by ranks, cuts, distances and lengths are those that the verifier recomputes from their certificates."""
    cwb.register(kind)
    instance = cwb.load("ring(5)").with_changes(demand=Demand(kind, Fraction(10**6), ranks=ranks))
    for seconds, certificate in (rank_bound(instance, late=True), cut_bound(instance, [0, 1]), best_bound(instance)):
        assert isinstance(certificate, CutCertificate)
        assert 0 < seconds == recomputed_cut_bound(instance, certificate)
    seconds, distance = latency_bound(instance)
    assert isinstance(distance, DistanceCertificate)
    assert 0 < seconds == recomputed_distance_bound(instance, distance)
    found = joint_cut(instance, groups_of(instance), candidate_sets(instance.topology, groups_of(instance)))
    assert found is not None
    assert found[0] == recomputed_cut_bound(instance, found[1])
    if not kind.sums:
        length, lengths = joint_length(instance, pairs_of(instance), [1] * len(instance.topology.links))
        assert 0 < length == recomputed_length_bound(instance, lengths)


def exit_status(*words: str) -> int:
    """Exit status of a command."""
    with pytest.raises(SystemExit) as stopped:
        run([*words])
    return int(stopped.value.code or 0)


def test_commands_know_the_collective_of_a_plugin_file(tmp_path, capfd):
    """It is listed, solved, checked and simulated, in a file of an instance too; a method that cannot make it exits
    with 7."""
    plug, schedule, instance = ["--plugin", str(EXAMPLE)], str(tmp_path / "s.json"), tmp_path / "i.json"
    demand = {"kind": "ring_shift", "size": "1 MB", "ranks": [0, 2, 3]}
    instance.write_text(json.dumps({"schema": "cwb-instance/1", "network": "ring(4)", "collective": demand}))
    assert exit_status("list", "collectives", *plug) == 0
    assert "every rank has the buffer of the one before it" in capfd.readouterr().out
    assert exit_status("solve", *plug, "--model", "sccl", str(instance), "--quiet", "-o", schedule) == 0
    assert exit_status("check", *plug, schedule, "--instance", str(instance)) == 0
    assert exit_status("simulate", *plug, schedule) == 0
    assert "ring_shift: buffer of a rank" in capfd.readouterr().out
    assert exit_status("solve", *plug, "--model", "ring", str(instance), "--quiet") == ExitStatus.UNSUPPORTED
    assert capfd.readouterr().err.count("\n") == 1


@pytest.mark.slow
def test_worker_processes_of_compare_know_it(tmp_path, capfd):
    """Each run of a suite is in a process of its own, which reads the plugin file again."""
    suite, out = tmp_path / "suite.toml", tmp_path / "out"
    suite.write_text(
        '[[grid]]\ninstances = ["ring(4)"]\nmodels = ["sccl", "spff", "ring"]\n'
        'collectives = ["ring_shift"]\nsizes = ["1 MB"]\n'
    )
    assert exit_status("compare", str(suite), "--plugin", str(EXAMPLE), "-o", str(out), "--quiet") == 0, (
        capfd.readouterr()
    )
    records = [json.loads(line) for line in (out / "records.jsonl").read_text().splitlines()]
    assert {(each["model"], each["status"], each["verified"]) for each in records} == {
        ("sccl", "feasible", True),
        ("spff", "feasible", True),
        ("ring", "unsupported", None),
    }
    assert {each["collective"] for each in records} == {"ring_shift"}
