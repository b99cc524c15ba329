"""Schedules of the original TE-CCL become schedule files that are verified and timed again."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from click.testing import CliRunner
from cwb.cli.importing import importing
from cwb.core.errors import InputError
from cwb.exchange.teccl import import_schedule, import_teccl
from cwb.harness.run import Request, run
from cwb.instances import load
from cwb.schedules import verdict_of
from cwb.schedules.files import read_schedule
from cwb.schedules.lowering import schedule_in_epochs


def input_file(folder, name="DGX1", collective=1, chunks=1, chassis=1, chunk_size=25e-6):
    """An input in the original's form."""
    path = folder / "input.json"
    topology = {"name": name, "chassis": chassis, "chunk_size": chunk_size, "side_length": 2, "alpha": [0, 0]}
    path.write_text(
        json.dumps({"TopologyParams": topology, "InstanceParams": {"collective": collective, "num_chunks": chunks}})
    )
    return path


def schedule_file(folder, lines, epoch_s, epochs):
    """A schedule in the original's form."""
    path = folder / "output.json"
    path.write_text(json.dumps({"1-Epoch_Duration": epoch_s, "3-Epochs_Required": epochs, "7-Flows": lines}))
    return path


def mesh_lines(to_each):
    """On four nodes in a square, 0-1, 0-2, 1-3, 2-3: everybody to the neighbours, and to the corner on the other side
    over one of them."""
    over = {0: (1, 2), 1: (0, 3), 2: (0, 3), 3: (1, 2)}
    relay = {0: 1, 1: 3, 3: 2, 2: 0}
    lines = []
    for source, near in over.items():
        corner = 3 - source
        for node in near:
            chunk = node if to_each else 0
            lines.append((chunk, source, source, node, 0))
        first = 1 if to_each else 0
        if to_each:
            lines.append((corner, source, source, relay[source], first))
        lines.append((corner if to_each else 0, source, relay[source], corner, first + 1))
    volume = " with volume 1.0" if to_each else ""
    return [f"Chunk {c} from {s} traveled over {a}->{b}{volume} in epoch {k}" for c, s, a, b, k in lines]


@pytest.mark.parametrize(("collective", "epochs"), [(1, 2), (2, 3)])
def test_a_schedule_is_verified(tmp_path, collective, epochs):
    """An all-gather and an all-to-all on a square are schedule files that the verifier takes, in as many epochs as they
    say."""
    given = input_file(tmp_path, "Mesh", collective, chunk_size=1e-3)
    lines = schedule_file(tmp_path, mesh_lines(collective == 2), 1e-5, epochs)
    target = tmp_path / "schedule.json"
    words = ["teccl", str(given), "--as-drawn", "--schedule", str(lines), "-o", str(target)]
    done = CliRunner().invoke(importing, words)
    assert done.exit_code == 0, done.output
    assert f"{epochs} epochs; the file says {epochs}" in done.output
    read = read_schedule(target)
    verdict = verdict_of(read.instance, read.answer)
    assert verdict.ok, verdict.violations
    assert verdict.metrics["epochs"] == epochs
    assert verdict.objective == pytest.approx(epochs * 1e-5)


@pytest.mark.parametrize("drop", range(3))
def test_a_schedule_with_a_send_less_is_refused(tmp_path, drop):
    """Without one of its lines the schedule delivers less, and the verifier says so."""
    lines = mesh_lines(to_each=False)
    del lines[drop]
    data = import_teccl(input_file(tmp_path, "Mesh", chunk_size=1e-3), as_drawn=True)
    found = import_schedule(data, "Mesh", schedule_file(tmp_path, lines, 1e-5, 2))
    assert not verdict_of(found.instance, schedule_in_epochs(found.instance, found.chunks, found.sends)).ok


def original_lines(instance, answer, order):
    """Write a schedule of this package as the original does: links through switches in one line, one line for each
    receiver."""
    epoch, delay = float(instance.timing.epoch_s), 1e-12
    names = {name: place for place, name in enumerate(order)}
    nodes = [names[node.name] for node in instance.network.nodes]
    sends = answer.sends
    rank = [nodes[node] for node in instance.network.rank_nodes]
    rows = []
    for send in range(len(sends)):
        chunk = int(sends.chunk[send])
        source = rank[answer.chunks.groups[int(answer.chunks.held_by[chunk])][0]]
        ends = [nodes[int(sends.source[send])], nodes[int(sends.target[send])]]
        rows.append((source, *ends, answer.start_s[send] / epoch, answer.end_s[send] / epoch))
    switches = {names[name] for name in instance.network.switches}
    lines = []

    def follow(source, way, begin, end):
        if way[-1] not in switches:
            between = f" via switches {'->'.join(map(str, way[1:-1]))}" if way[1:-1] else ""
            lines.append(f"Chunk 0 from {source} traveled over {way[0]}->{way[-1]} in epoch {round(begin)}{between}")
            return
        for s, a, b, start, stop in rows:
            if s == source and a == way[-1] and abs(start - end) < 1e-6 + delay:
                follow(source, (*way, b), begin, stop)

    for s, a, b, start, stop in rows:
        if a not in switches:
            follow(s, (a, b), start, stop)
    return lines


@pytest.mark.slow
def test_ways_through_switches_come_back(tmp_path):
    """A proved schedule of NDv2, written in the original's form and imported again, takes as many epochs and is
    verified."""
    data = import_teccl(input_file(tmp_path, "NDv2", chassis=2, chunk_size=0.0625))
    instance = load("ndv2(chassis=2, gpu0_switch=true)").with_changes(demand=load_demand(data))
    solved = run(instance, Request("teccl", options={"epoch": "slow"}))
    assert solved.record.verified
    order = [node.name for node in instance.network.nodes]
    lines = original_lines(solved.instance, solved.answer, order)
    assert any("via switches" in line for line in lines)
    epoch_s = float(solved.instance.timing.epoch_s)
    found = import_schedule(data, "NDv2", schedule_file(tmp_path, lines, epoch_s, 10))
    verdict = verdict_of(found.instance, schedule_in_epochs(found.instance, found.chunks, found.sends))
    assert verdict.ok, verdict.violations
    assert verdict.metrics["epochs"] == solved.record.metrics["epochs"]


def load_demand(data):
    """The collective of an imported instance."""
    from cwb.core.collective import Demand, collective_named

    size = Fraction(data["collective"]["size"].split()[0])
    return Demand(collective_named(data["collective"]["kind"]), size, data["collective"]["chunks"])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("Chunk 0 from 0 traveled over 0->3 in epoch 0", "no link from '0' to '3'"),
        ("Chunk 7 from 0 traveled over 0->1 in epoch 0", "chunk 7 of 1"),
        ("Chunk 0 from 9 traveled over 0->1 in epoch 0", "node 9 of 4"),
        ("Chunk 0 from 0 traveled over 0->1 with volume 0.5 in epoch 0", "a part of 0.5 of a chunk"),
        ("Chunk 0 from 0 traveled over 0->1 with volume 1.2.3 in epoch 0", "is no volume"),
    ],
)
def test_wrong_lines_are_told(tmp_path, line, message):
    """Sends that the input does not have, and parts of chunks, give one line with the place."""
    data = import_teccl(input_file(tmp_path, "Mesh"), as_drawn=True)
    with pytest.raises(InputError, match=message) as error:
        import_schedule(data, "Mesh", schedule_file(tmp_path, [line], 1e-6, 1))
    assert "7-Flows[0]" in str(error.value)


def test_chunks_from_switches_are_told(tmp_path):
    """A switch has no data of its own."""
    data = import_teccl(input_file(tmp_path, "NDv2", chassis=2))
    lines = schedule_file(tmp_path, ["Chunk 0 from 0 traveled over 1->9 in epoch 0 via switches 0"], 1e-6, 1)
    with pytest.raises(InputError, match="a chunk from the switch"):
        import_schedule(data, "NDv2", lines)
