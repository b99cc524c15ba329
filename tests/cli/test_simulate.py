"""``cwb simulate``, also with ``--reserve`` and ``--latency-model``."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from click.testing import CliRunner
from cwb.cli.schedules import simulate
from cwb.core.collective import Collective, Demand, collectives
from cwb.core.errors import InputError
from cwb.core.schedule import Chunks, StepSchedule, sends_from_lists
from cwb.core.trees import TreeKind, TreePacking
from cwb.instances import load
from cwb.schedules.files import write_schedule

MIB = 2**20


@pytest.fixture
def ring_file(tmp_path):
    """A ring all-gather of 4 MiB on ring(4) of 50 GiB/s and 0.5 us: three steps of 20.03125 us."""
    demand = Demand(Collective.ALL_GATHER, Fraction(4 * MIB))
    instance = load("ring(4,bandwidth='50 GiB/s')").with_changes(demand=demand)
    link = {ends: i for i, ends in enumerate(instance.network.link_ends)}
    rows = [(step, (i - step) % 4, i) for step in range(3) for i in range(4)]
    sends = sends_from_lists(
        [c for _, c, _ in rows],
        [i for *_, i in rows],
        [(i + 1) % 4 for *_, i in rows],
        False,
        [[link[i, (i + 1) % 4]] for *_, i in rows],
    )
    ones = np.ones(4, dtype=np.int64)
    groups = ((0,), (1,), (2,), (3,), (0, 1, 2, 3))
    chunks = Chunks(ones, Fraction(MIB), groups, np.arange(4), 4 * ones, ones < 0)
    schedule = StepSchedule(instance.sha256, chunks, sends, np.array([step for step, *_ in rows]))
    write_schedule(tmp_path / "ring.json", instance, schedule)
    return tmp_path / "ring.json"


@pytest.fixture
def tree_file(tmp_path):
    """A broadcast of 4 MiB down line(3) of 50 GiB/s and 0.5 us."""
    demand = Demand(Collective.BROADCAST, Fraction(4 * MIB))
    instance = load("line(3,bandwidth='50 GiB/s')").with_changes(demand=demand)
    link = {ends: i for i, ends in enumerate(instance.network.link_ends)}
    packing = TreePacking(
        instance.sha256,
        TreeKind.OUT,
        np.array([0]),
        np.array([4]),
        Fraction(MIB),
        np.array([0, 2]),
        np.array([0, 1]),
        np.array([1, 2]),
        np.arange(3),
        np.array([link[0, 1], link[1, 2]]),
    )
    write_schedule(tmp_path / "tree.json.gz", instance, packing)
    return tmp_path / "tree.json.gz"


@pytest.fixture
def chain_file(tmp_path):
    """A broadcast of 100 MB down three links of 10 MB/s and 100 ms."""
    demand = Demand(Collective.BROADCAST, Fraction(10**8))
    instance = load("line(4,bandwidth='10 MB/s',latency='100 ms')").with_changes(demand=demand)
    link = {ends: i for i, ends in enumerate(instance.network.link_ends)}
    nodes = np.arange(3)
    links = np.array([link[i, i + 1] for i in range(3)])
    packing = TreePacking(
        instance.sha256, TreeKind.OUT, np.array([0]), np.array([1]), Fraction(10**8), np.array([0, 3]),
        nodes, nodes + 1, np.arange(4), links,
    )  # fmt: skip
    write_schedule(tmp_path / "chain.json.gz", instance, packing)
    return tmp_path / "chain.json.gz"


@pytest.fixture
def steps_file(tmp_path):
    """One message over one link."""
    demand = Demand(Collective.BROADCAST, Fraction(8))
    instance = load("line(2)").with_changes(demand=demand)
    one = np.ones(1, dtype=np.int64)
    chunks = Chunks(one, Fraction(8), ((0,), (0, 1)), one - 1, one, one < 0)
    sends = sends_from_lists([0], [0], [1], False, [[instance.network.link_ends.index((0, 1))]])
    write_schedule(tmp_path / "steps.json", instance, StepSchedule(instance.sha256, chunks, sends, one - 1))
    return tmp_path / "steps.json"


def run(*arguments):
    result = CliRunner().invoke(simulate, [str(a) for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_object_has_time_bandwidths_bound_and_busiest_links(ring_file):
    """--json prints one object whose numbers are those of the closed form, with the size that algbw counts."""
    found = json.loads(run(ring_file, "--json"))
    time = 3 * (0.5e-6 + 1 / 51200)
    assert found["completion_time_s"] == pytest.approx(time)
    assert found["size_bytes"] == 4 * MIB
    assert found["size_of"] == "output buffer of a rank"
    assert found["algbw_GBps"] == pytest.approx(4 * MIB / time / 1e9)
    assert found["busbw_GBps"] == pytest.approx(3 * MIB / time / 1e9)
    assert found["lower_bound_s"] == pytest.approx(0.5e-6 + 1.5 / 51200)
    assert found["certificate"] == "cut"
    assert [link["busy_s"] for link in found["busiest_links"][:4]] == pytest.approx([3 / 51200] * 4)
    assert found["busiest_links"][4]["busy_s"] == 0
    assert found["sends"] == 12


@pytest.mark.parametrize("mode", ["alpha-beta", "congestion-aware", "cut-through", "fair-share"])
@pytest.mark.parametrize("barrier", [[], ["--barrier"]])
def test_every_mode_can_be_chosen(ring_file, mode, barrier):
    """Without congestion all modes give the same time, with and without barriers, and say which they are."""
    found = json.loads(run(ring_file, "--json", "--mode", mode, *barrier))
    assert found["mode"] == mode
    assert found["barrier"] is bool(barrier)
    assert found["completion_time_s"] == pytest.approx(60.09375e-6)


def test_people_see_the_same_numbers(ring_file):
    """The tables show time, both bandwidths, which size is meant, the bound and the busiest links."""
    text = run(ring_file)
    for part in ("all_gather: output buffer of a rank", "4 MiB", "60.09", "busbw", "lower bound (cut)", "busiest"):
        assert part in text


def test_trees_are_pipelined_in_pieces(tree_file):
    """A tree takes both hops one after the other, and with more pieces nearly one."""
    one, eight = (json.loads(run(tree_file, "--json", "--pieces", k))["completion_time_s"] for k in (1, 8))
    assert one == pytest.approx(1e-6 + 8 / 51200)
    assert eight == pytest.approx(1e-6 + 4.5 / 51200)


def test_the_chrome_trace_has_every_hop(ring_file, tmp_path):
    """--trace writes complete events in microseconds, with the rank as process and the link as thread, and names for
    both."""
    run(ring_file, "--trace", tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    hops = [event for event in events if event["ph"] == "X"]
    assert len(hops) == 12
    assert {event["pid"] for event in hops} == {0, 1, 2, 3}
    assert hops[0]["dur"] == pytest.approx(1e6 / 51200)
    assert max(event["ts"] for event in hops) == pytest.approx(2 * (0.5 + 1e6 / 51200))
    names = {event["args"]["name"] for event in events if event["ph"] == "M"}
    assert {"0", "0 -> 1", "3 -> 0"} <= names
    assert not list(tmp_path.glob(".*"))


def test_arrows_lead_from_arrivals_to_what_is_sent_on(ring_file, tmp_path):
    """Around a ring every hop but the first of a chunk has an arrow from the one before, which ends no later than it
    begins."""
    run(ring_file, "--trace", tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    hops = [event for event in events if event["ph"] == "X"]
    ends = {phase: {event["id"]: event for event in events if event["ph"] == phase} for phase in "sf"}
    assert ends["s"].keys() == ends["f"].keys()
    assert len(ends["s"]) == 8  # of 12 hops 4 are the first of their chunk

    def hop(event):
        """The hop that an end of an arrow lies in."""
        return next(h for h in hops if h["tid"] == event["tid"] and h["ts"] < event["ts"] < h["ts"] + h["dur"])

    for number, begin in ends["s"].items():
        before, after = hop(begin), hop(ends["f"][number])
        assert before["args"]["chunk"] == after["args"]["chunk"]
        assert before["ts"] + before["dur"] + 0.5 == pytest.approx(after["ts"])


def test_bad_input_is_told(ring_file, tmp_path):
    """Pieces of something that is no tree, a folder that does not exist, and a file that does not, are errors in one
    line."""
    with pytest.raises(InputError, match="only trees"):
        run(ring_file, "--pieces", 2)
    with pytest.raises(InputError, match="folder"):
        run(ring_file, "--trace", tmp_path / "nowhere" / "trace.json")
    with pytest.raises(InputError):
        run(tmp_path / "nothing.json")


def test_a_certificate_that_proves_nothing_is_told_as_zero(ring_file):
    """A bound of exactly 0 s is a number in the object, as any other bound is."""
    data = json.loads(ring_file.read_text())
    data["certificate"] = {"certificate": "distance", "source": 1, "target": 1}
    ring_file.write_text(json.dumps(data))
    assert json.loads(run(ring_file, "--json"))["proved_bound_s"] == 0.0


def test_every_collective_says_what_its_size_is():
    """No collective is without the words that say which size is meant."""
    assert all(each.size and each.summary for each in collectives())


def test_the_latency_model_decides_when_the_next_piece_follows(chain_file):
    """In 5 pieces three links take 14 s and 0.3 s; held links add 0.1 s for each piece but the first."""
    for model, expected in (("propagation", 14.3), ("occupancy", 14.7)):
        found = json.loads(run(chain_file, "--json", "--pieces", 5, "--latency-model", model))
        assert found["completion_time_s"] == pytest.approx(expected)
        assert (found["latency_model"], found["reserve"], found["pieces"]) == (model, False, 5)
    assert json.loads(run(chain_file, "--json"))["latency_model"] == "propagation"


def test_reserved_trees_take_the_best_number_of_chunks(chain_file, tmp_path):
    """lam (lam + 1) >= 2 * 10 s / 0.1 s first holds for 14, which take 0.2 + 10 + 20 / 14 + 14 * 0.1 seconds; the trace
    has all of them."""
    found = json.loads(
        run(chain_file, "--json", "--reserve", "--latency-model", "occupancy", "--trace", tmp_path / "t.json")
    )
    assert found["pieces"] == [14]
    assert found["completion_time_s"] == pytest.approx(0.2 + 10 + 20 / 14 + 1.4)
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert sum(event["ph"] == "X" for event in events) == 3 * 14


def test_an_overhead_limits_the_number_of_chunks(chain_file):
    """If latency only delays, an overhead of 0.1 s per chunk limits their number; a given number is used."""
    asked = ["--json", "--reserve", "--chunk-overhead", "100 ms"]
    found = json.loads(run(chain_file, *asked))
    assert found["pieces"] == [14]
    assert found["completion_time_s"] == pytest.approx(0.3 + 0.2 + 10 + 20 / 14 + 1.4)
    assert json.loads(run(chain_file, *asked, "--pieces", 1))["completion_time_s"] == pytest.approx(30.6)


def test_people_see_reserved_trees(chain_file):
    """The tables are those of any simulation."""
    assert "completion time" in run(chain_file, "--reserve", "--latency-model", "occupancy")


@pytest.mark.parametrize(
    ("file", "options", "told"),
    [
        ("steps_file", ["--reserve"], "only trees"),
        ("chain_file", ["--reserve", "--mode", "fair-share"], "congestion-aware"),
        ("chain_file", ["--reserve", "--barrier"], "without barriers"),
        ("chain_file", ["--chunk-overhead", "1 ms"], "--reserve"),
        ("chain_file", ["--reserve", "--chunk-overhead", "1"], "no unit|with its unit"),
        ("chain_file", ["--latency-model", "occupancy", "--mode", "fair-share"], "links are never occupied"),
        ("chain_file", ["--reserve", "--pieces", 10**7], "at most 5,000,000 sends"),
    ],
)
def test_what_does_not_fit_is_told(request, file, options, told):
    """Each wrong combination is one line."""
    with pytest.raises(InputError, match=told):
        run(request.getfixturevalue(file), *options)


@pytest.mark.parametrize("routing", ["fixed", "ecmp", "spray"])
def test_routing_is_told(ring_file, routing):
    """The output names a routing that is not the schedule's own; on a ring all give the same time."""
    found = json.loads(run(ring_file, "--json", "--routing", routing))
    fixed = json.loads(run(ring_file, "--json"))
    assert found["mode"] == ("cut-through" if routing == "spray" else "congestion-aware")
    assert found["completion_time_s"] == fixed["completion_time_s"]
    assert found.get("routing", "fixed") == routing
    assert (f"routing {routing}" in found["model"]) == (routing != "fixed")
