"""``cwb simulate --reserve`` and ``--latency-model``."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from click.testing import CliRunner
from cwb.cli.simulate import simulate
from cwb.core.collective import CollectiveKind, Demand
from cwb.core.errors import InputError
from cwb.core.schedule import Chunks, StepSchedule, sends_from_lists
from cwb.core.trees import TreeKind, TreePacking
from cwb.instances import load
from cwb.schedules.files import write_schedule


@pytest.fixture
def chain_file(tmp_path):
    """A broadcast of 100 MB down three links of 10 MB/s and 100 ms."""
    demand = Demand(CollectiveKind.BROADCAST, Fraction(10**8))
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
    demand = Demand(CollectiveKind.BROADCAST, Fraction(8))
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


def test_the_latency_model_decides_when_the_next_piece_follows(chain_file):
    """In 5 pieces three links take 14 s and 0.3 s; held links add 0.1 s for each piece but the first."""
    for model, expected in (("propagation", 14.3), ("occupancy", 14.7)):
        found = json.loads(run(chain_file, "--json", "--pieces", 5, "--latency-model", model))
        assert found["completion_time_s"] == pytest.approx(expected)
        assert (found["latency_model"], found["reserve"], found["pieces"]) == (model, False, 5)
    assert json.loads(run(chain_file, "--json"))["latency_model"] == "propagation"


def test_reserved_trees_take_the_best_number_of_chunks(chain_file, tmp_path):
    """lam (lam + 1) >= 2 * 10 s / 0.1 s first holds for 14, which take 0.2 + 10 + 20 / 14 + 14 * 0.1 seconds; the trace has all of them."""
    found = json.loads(
        run(chain_file, "--json", "--reserve", "--latency-model", "occupancy", "--trace", tmp_path / "t.json")
    )
    assert found["pieces"] == [14]
    assert found["completion_time_s"] == pytest.approx(0.2 + 10 + 20 / 14 + 1.4)
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert sum(event["ph"] == "X" for event in events) == 3 * 14


def test_an_overhead_limits_the_number_of_chunks(chain_file):
    """Where latency only delays, a chunk's overhead of 0.1 s takes its place; a given number of pieces is taken."""
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
        ("chain_file", ["--latency-model", "occupancy", "--mode", "fair-share"], "nothing holds a link"),
        ("chain_file", ["--reserve", "--pieces", 10**7], "at most 5,000,000 sends"),
    ],
)
def test_what_does_not_fit_is_told(request, file, options, told):
    """Each wrong combination is one line."""
    with pytest.raises(InputError, match=told):
        run(request.getfixturevalue(file), *options)
