"""Execution on an emulated network; only the last tests need root."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from ipaddress import IPv4Address
from pathlib import Path

import cwb
import numpy as np
import pytest
from cwb.cli.main import run as run_command
from cwb.core.errors import ExitStatus, InputError, Unsupported
from cwb.core.paper_results import PublishedFile
from cwb.harness.execution import emulation
from cwb.harness.execution.emulation import SUBNET, Wire, addresses, assign, configuration, creation, wires_of
from cwb.harness.execution.player import FirstComePlayer, Job, Report
from cwb.harness.execution.program import Operation, Program, lower
from cwb.harness.execution.sockets import ConnectionLost, DelayedTransport
from cwb.schedules.files import write_schedule
from cwb.studies import reproduce
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="networks are emulated on Linux")

JOB = Job("int64", 1, 0)
SLOW_RING = "ring(3, bandwidth='1 MB/s', latency='1 ms')"


def solve(spec: str = SLOW_RING, method: str = "ring", size: str = "24 KB"):
    """Return an all-gather with its verified schedule."""
    done = cwb.solve(cwb.load(spec), method, collective="all_gather", size=size)
    assert done.verified is True, done.message
    return done


def lower_by_hops(done) -> list[Program]:
    return lower(done.problem, done.schedule, 8, hop_by_hop=True)


def test_every_directed_link_is_a_pair_of_interfaces_shaped_at_its_sender():
    """Commands make one pair for each direction, with a token bucket at the end that sends and nowhere else."""
    wires = [Wire(0, 1, Fraction(10**6), Fraction(0)), Wire(1, 0, Fraction(2 * 10**6), Fraction(0))]
    assert creation(["a", "b"], wires) == [
        "netns add a",
        "netns add b",
        "link add s0 netns a type veth peer name r0 netns b",
        "link add s1 netns b type veth peer name r1 netns a",
    ]
    interfaces, shapes = configuration(0, wires)
    assert interfaces == [
        "addr add 198.18.0.0/31 dev s0",
        "link set s0 up",
        "addr add 198.18.0.3/31 dev r1",
        "link set r1 up",
    ]
    assert shapes == ["qdisc add dev s0 root tbf rate 8000000bit burst 8kb limit 400kb"]
    assert configuration(1, wires)[1] == ["qdisc add dev s1 root tbf rate 16000000bit burst 8kb limit 400kb"]


@given(st.lists(st.integers(0, SUBNET.num_addresses // 2 - 1), min_size=2, max_size=2, unique=True))
def test_addresses_are_those_of_the_network_for_benchmarks(numbers):
    """Two links have four different addresses, all in the reserved network, the two of a link in a network of two."""
    one, two = (addresses(number) for number in numbers)
    assert len({*one, *two}) == 4
    assert all(IPv4Address(each) in SUBNET for each in (*one, *two))
    assert int(IPv4Address(one[0])) ^ int(IPv4Address(one[1])) == 1


def test_a_switch_is_a_node_of_its_own():
    """Messages through a switch go to it over one link and on over another, with the rates and latencies of both."""
    done = solve("switch(3, bandwidth='1 MB/s', latency='1 ms')", "direct")
    programs = lower_by_hops(done)
    wires = wires_of(programs, done.problem.topology)
    assert [program.name for program in programs] == ["0", "1", "2", done.problem.topology.switches[0]]
    assert {(wire.source, wire.target) for wire in wires} == {(n, 3) for n in range(3)} | {(3, n) for n in range(3)}
    assert len({(wire.rate_Bps, wire.latency_s) for wire in wires}) == 1


def test_processes_listen_and_connect_over_their_links():
    """The sender of a link connects to the address at which its other end listens; receivers know the latency."""
    done = solve()
    programs = lower_by_hops(done)
    wires = wires_of(programs, done.problem.topology)
    found = assign(programs, JOB, wires, ["a", "b", "c"])
    heard = Counter(address for each in found for address in each.listens)
    called = Counter(address for each in found for address in each.targets.values())
    assert heard == called
    assert set(heard.values()) == {1}
    for each in found:
        assert each.targets.keys() == each.program.sends.keys()
        assert each.latency_s == dict.fromkeys(each.program.receives, 1e-3)
    assert [each.namespace for each in found] == ["a", "b", "c"]


def test_the_prediction_for_trees_is_that_of_links_which_serve_one_piece_at_a_time(monkeypatch):
    """Trees have no shares of emulated links: their time is that of the congestion-aware simulation of their pieces."""
    monkeypatch.setattr(
        "cwb.studies.execution.execute_emulated", lambda programs, *_: [Report([1.0], [])] * len(programs)
    )
    done = solve("ring(4, bandwidth='1 MB/s')", "forestcoll")
    found = cwb.run(done, emulate=True, scale="1", repeat=1, warmup=0, pieces=4)
    trace = cwb.simulate(done, mode="congestion-aware", pieces=4)
    assert found.predicted.seconds == trace.completion_s
    assert "a link serves one piece at a time, 4 pieces of a tree" in found.predicted.model


def test_networks_that_cannot_be_emulated_are_told():
    """Parallel links, messages without a link, and rates beyond the kernel's are one line each."""
    done = solve()
    programs, network = lower_by_hops(done), done.problem.topology
    with pytest.raises(Unsupported, match="parallel links from 0 to 1 are not emulated"):
        wires_of(programs, replace(network, links=network.links * 2))
    with pytest.raises(InputError, match="there is no link from 0 to 1"):
        wires_of(programs, replace(network, links=()))
    for rate, told in ((Fraction(10**11), "100 GB/s"), (Fraction(1), "1 B/s")):
        links = tuple(replace(link, bandwidth_Bps=rate) for link in network.links)
        with pytest.raises(InputError, match=f"--scale: a link has {told} at this scale; expected 1 KB/s to 125 MB/s"):
            wires_of(programs, replace(network, links=links))
    monkey = [Program("0", 0, 0, {}, {}, [], [])]
    assert wires_of(monkey, network) == []


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"scale": "1/2"}, "only the rates of an emulated network are scaled; expected emulate="),
        ({"emulate": True, "scale": "0"}, "'0'; expected a number from 1e-12 to 1e12, such as 1/1000"),
        ({"emulate": True, "scale": "some"}, "expected a number from 1e-12"),
        ({"emulate": True, "scale": "1e999"}, "expected a number from 1e-12"),
        ({"emulate": True, "processes": "mpi"}, "an emulated network has processes of its own"),
    ],
)
def test_options_that_do_not_apply_are_told(options, told):
    """A scale without a network, one that is no number, and other processes are rejected."""
    done = solve()
    with pytest.raises(InputError, match=told):
        cwb.run(done, **options)


@pytest.fixture
def programs_on_path(tmp_path, monkeypatch):
    """Stand-ins for ``ip`` and ``tc`` that keep what they are told, and no namespaces."""

    def install(status: int = 0) -> Path:
        log = tmp_path / "log"
        for name in ("ip", "tc"):
            script = tmp_path / name
            fail = f"case \"$*\" in *-force*) ;; *) echo 'Operation not permitted' >&2; exit {status};; esac\n"
            script.write_text(f'#!/bin/sh\necho "{name} $*" >> {log}\ncat >> {log}\n{fail if status else ""}')
            script.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
        monkeypatch.setattr(emulation, "NAMESPACES", str(tmp_path / "none"))
        return log

    return install


def test_namespaces_are_deleted_after_the_processes_whatever_fails(programs_on_path, monkeypatch):
    """If processes fail, they end before the namespaces are deleted, all of them and by name."""
    log = programs_on_path()

    def fail(stack, folder, assignments):
        stack.callback(lambda: log.open("a").write("processes end\n"))
        raise KeyboardInterrupt

    monkeypatch.setattr(emulation, "Processes", fail)
    done = solve()
    with pytest.raises(KeyboardInterrupt):
        cwb.run(done, emulate=True)
    lines = log.read_text().splitlines()
    names = [line.removeprefix("netns add ") for line in lines if line.startswith("netns add ")]
    assert len(names) == 3
    assert all(name.startswith(f"cwb-{os.getpid()}-") for name in names)
    assert lines[-5:] == ["processes end", "ip -force -batch -", *(f"netns del {name}" for name in names)]


def test_what_is_not_permitted_is_one_line_and_status_7(programs_on_path):
    """The reason of ``ip`` is told, and what it may have made is deleted."""
    log = programs_on_path(status=1)
    done = solve()
    with pytest.raises(Unsupported, match="no network can be emulated here: ip: Operation not permitted") as told:
        cwb.run(done, emulate=True)
    assert told.value.exit_status == ExitStatus.UNSUPPORTED == 7
    assert log.read_text().count("netns del") == 3


def test_missing_programs_and_other_systems_are_one_line(monkeypatch, tmp_path):
    """Without ``ip``, and on other systems than Linux, nothing is started."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unsupported, match="ip is not installed, which emulates networks; it is in the package iproute"):
        emulation.require_programs()
    monkeypatch.setattr(emulation.sys, "platform", "darwin")
    with pytest.raises(Unsupported, match="on Linux only"):
        emulation.require_programs()


def test_what_killed_processes_left_is_cleared_by_name(programs_on_path, monkeypatch, tmp_path):
    """Namespaces of processes that are no more are deleted, those of others and of other programs are not."""
    log, folder = programs_on_path(), tmp_path / "netns"
    ended = subprocess.Popen(["true"])
    ended.wait()
    folder.mkdir()
    for name in (f"cwb-{ended.pid}-0-0", f"cwb-{ended.pid}-0-1", f"cwb-{os.getpid()}-0-0", "cwb-1", "other"):
        (folder / name).touch()
    monkeypatch.setattr(emulation, "NAMESPACES", str(folder))
    emulation.clear_leftovers()
    deleted = re.findall("netns del (.*)", log.read_text())
    assert deleted == [f"cwb-{ended.pid}-0-0", f"cwb-{ended.pid}-0-1"]


class RecordingTransport:
    """A transport that remembers what it is asked for."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def send(self, peer: int, data: memoryview) -> None:
        self.sent.append(bytes(data))

    def receive(self, peer: int, into: memoryview) -> None:
        self.into = into


def test_a_message_that_waits_delays_no_other_one():
    """The second message of a connection goes first if only its data is there, with its number before it."""
    operations = [Operation(0, 1, 0, 1, 0, False), Operation(1, 1, 1, 0, 0, False)]
    program = Program("0", 2, 2, {1: operations}, {2: [Operation(0, 1, 0, 0, 0, False)]}, [], [])
    player = FirstComePlayer(program, np.array([5, 6]), transport := RecordingTransport())
    player.begin()
    assert transport.sent == [bytes((1, 0, 0, 0)) + np.array([6]).tobytes()]
    player.advance([(1, False)])
    assert len(transport.sent) == 1
    transport.into[:] = bytes(4)
    player.advance([(2, True)])
    transport.into[:] = np.array([7]).tobytes()
    player.advance([(2, True)])
    assert transport.sent[1:] == [bytes(4) + np.array([7]).tobytes()]
    player.advance([(1, False)])
    assert not player.pending


def connect_delayed(latency_s: float) -> tuple[socket.socket, DelayedTransport, list[socket.socket]]:
    """Return a peer's end of a connection, a transport with the other one, and what must stay open."""
    (theirs, mine), control = socket.socketpair(), socket.socketpair()
    return theirs, DelayedTransport(control[0], {}, {1: mine}, {1: latency_s}), [mine, *control]


def test_data_counts_as_received_after_the_latency():
    """Messages come whole and in order, none before its latency, also if the sender has ended."""
    theirs, transport, ends = connect_delayed(0.02)
    into = [bytearray(3), bytearray(2)]
    begin = time.perf_counter()
    theirs.sendall(b"abcde")
    theirs.close()
    for each in into:
        transport.receive(1, memoryview(each))
        assert transport.wait() == [(1, True)]
    assert time.perf_counter() - begin >= 0.02
    assert into == [b"abc", b"de"]
    transport.receive(1, memoryview(bytearray(1)))
    for end in ends:
        end.close()


def test_a_connection_that_ends_early_is_lost():
    """Data that can never come ends the process instead of blocking it."""
    theirs, transport, ends = connect_delayed(0.0)
    theirs.sendall(b"ab")
    theirs.close()
    transport.receive(1, memoryview(bytearray(3)))
    with pytest.raises(ConnectionLost):
        transport.wait()
    for end in ends:
        end.close()


def has_namespaces() -> bool:
    """Return whether a network can be emulated here."""
    try:
        emulation.require_programs()
        emulation.set_up([f"cwb-{os.getpid()}-test-{n}" for n in range(2)], [Wire(0, 1, Fraction(10**6), Fraction(0))])
    except Unsupported:
        return False
    finally:
        emulation.delete([f"cwb-{os.getpid()}-test-{n}" for n in range(2)])
    return True


@pytest.fixture(scope="module")
def namespaces() -> None:
    """Skip where no network can be emulated."""
    if not has_namespaces():
        pytest.skip("network namespaces are not permitted here")


def left_by(number: int) -> list[str]:
    """Names of the namespaces of a process."""
    folder = Path(emulation.NAMESPACES)
    return [each.name for each in folder.iterdir() if each.name.startswith(f"cwb-{number}-")]


@pytest.mark.slow
@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize(
    ("spec", "method"),
    [
        (SLOW_RING, "ring"),
        ("switch(3, bandwidth='1 MB/s')", "direct"),
        ("complete(3, bandwidth='1 GB/s')", "forestcoll"),
    ],
)
def test_real_namespaces(spec, method):
    """Schedules in steps, through a switch and in trees have their result over emulated links, and leave nothing."""
    done = solve(spec, method)
    found = cwb.run(done, emulate=True, repeat=2, warmup=0, scale="1/1000" if "GB" in spec else None)
    assert found.ok
    told = found.to_json()
    assert told["processes"] == "emulated"
    assert 0 < told["predicted_s"] < told["predicted_with_headers_s"]
    assert told["ratio"] == found.median_s / told["predicted_s"]
    assert not left_by(os.getpid())


@pytest.fixture
def small_paper(monkeypatch):
    """A paper with a figure of two methods on a small network."""
    runs = {"in a ring": {"model": "ring"}, "in trees": {"model": "forestcoll", "pieces": 2}}
    data = {
        "title": "t",
        "source": "s",
        "default": {"instance": SLOW_RING, "collective": "all_gather", "size": "24 KB"},
        "runs": runs,
        "emulated": {"table": "Figure 1", "scale": "1/2", "runs": list(runs)},
        "row": [{"table": "Figure 1", "row": "a", "section": "1", "printed": "1", "needs": "GPUs"}],
    }
    monkeypatch.setattr(reproduce, "load_paper", lambda name: PublishedFile.model_validate(data))


def reproduce_by_command(*words: str) -> int:
    """Return the exit status of ``cwb reproduce t --emulate`` with more words."""
    with pytest.raises(SystemExit) as ended:
        run_command(["reproduce", "t", "--emulate", "-q", *words])
    return ended.value.code


@pytest.mark.slow
@pytest.mark.usefixtures("namespaces", "small_paper")
def test_methods_of_a_figure_are_measured(tmp_path, capsys):
    """Each method of a figure has a measured time beside the predicted ones, in the form that the file has."""
    path = tmp_path / "t.csv"
    assert reproduce_by_command("Figure 1", "-o", str(path)) == 0
    rows = list(csv.DictReader(path.open()))
    assert [(row["method"], row["status"], row["pieces"]) for row in rows] == [
        ("in a ring", "right", ""),
        ("in trees", "right", "2"),
    ]
    for row in rows:
        assert 0 < float(row["low_s"]) <= float(row["median_s"]) <= float(row["high_s"])
        assert float(row["predicted_s"]) < float(row["predicted_with_headers_s"])
    assert (
        "pairs of methods that differ by more than 5 % are predicted in the measured order" in capsys.readouterr().err
    )
    assert not left_by(os.getpid())


def measure_instead(monkeypatch, *seconds: float | None) -> None:
    """Let methods take so many seconds, one after the other; None is a Ctrl-C."""
    left = iter(seconds)

    def execute(programs, *rest):
        if (taken := next(left)) is None:
            raise KeyboardInterrupt
        return [Report([taken], [])] * len(programs)

    monkeypatch.setattr("cwb.studies.execution.execute_emulated", execute)


@pytest.mark.usefixtures("small_paper")
@pytest.mark.parametrize(("seconds", "told"), [((2.0, 1.0), "of 1 pairs"), ((1.0, 1.02), "0 of 0 pairs")])
def test_methods_are_compared_in_pairs(seconds, told, monkeypatch, capsys):
    """Two methods of one network are a pair if their measured times differ by more than 5 %."""
    measure_instead(monkeypatch, *seconds)
    assert reproduce_by_command("--quick", "-f", "json") == 0
    found = capsys.readouterr()
    rows = json.loads(found.out)
    assert [row["median_s"] for row in rows] == list(seconds)
    assert told in found.err
    predicted = rows[0]["predicted_s"] > rows[1]["predicted_s"]
    assert found.err.startswith(f"{int(predicted)} of 1" if told == "of 1 pairs" else told)


@pytest.mark.usefixtures("small_paper")
def test_an_interruption_keeps_measured_methods(monkeypatch, capsys):
    """After Ctrl-C the methods that were measured are printed, and the status is that of an interruption."""
    measure_instead(monkeypatch, 1.0, None)
    assert reproduce_by_command("-f", "json") == 130
    assert [row["method"] for row in json.loads(capsys.readouterr().out)] == ["in a ring"]


@pytest.mark.usefixtures("small_paper")
def test_a_figure_is_refused_where_nothing_is_permitted(programs_on_path, capsys):
    """Without namespaces one line says so, with status 7."""
    programs_on_path(status=1)
    assert reproduce_by_command() == 7
    assert capsys.readouterr().err == "cwb: error: no network can be emulated here: ip: Operation not permitted\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("mtree", "Figure 6"), "Figure 6: is not measured; expected Figure 8"),
        (("bine",), "--emulate: no figure of this paper is measured; expected mtree"),
    ],
)
def test_only_one_figure_is_measured(words, told, capsys):
    """Other tables, and papers without such a figure, are one line."""
    with pytest.raises(SystemExit) as ended:
        run_command(["reproduce", *words, "--emulate"])
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_the_figure_of_mtree_has_its_runs():
    """Every method of the measured figure is a run of the file, on GScale."""
    paper = reproduce.load_paper("mtree")
    assert paper.emulated.table == "Figure 8"
    assert all(paper.runs[name].instance.startswith("gscale(") for name in paper.emulated.runs)


@pytest.mark.slow
@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_namespace_survives(number, tmp_path):
    """After Ctrl-C and SIGTERM no namespace is left; after SIGKILL the next start clears them."""
    path, done = tmp_path / "s.json", solve()
    write_schedule(path, done.problem, done.schedule)
    process = subprocess.Popen(
        [sys.executable, "-m", "cwb", "run", str(path), "--emulate", "--repeat", "100000"], stderr=subprocess.PIPE
    )
    while process.poll() is None and len(left_by(process.pid)) < 3:
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(number)
    _, told = process.communicate(timeout=60)
    assert process.returncode == (-9 if number == signal.SIGKILL else 128 + number), told
    if number == signal.SIGKILL:
        assert len(left_by(process.pid)) == 3
        emulation.clear_leftovers()
    assert not left_by(process.pid)
