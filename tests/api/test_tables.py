"""Networks, schedules, records and methods as tables and graphs."""

from __future__ import annotations

import subprocess
import sys

import cwb
import numpy as np
import pytest
from cwb.core.errors import InputError
from cwb.core.record import append_record
from cwb.harness import registry


@pytest.fixture(scope="module")
def runs() -> list[cwb.Run]:
    """A schedule in steps, a packing of trees, and a schedule in time."""
    asked = {"collective": "all_gather", "size": "1 MiB"}
    return [cwb.solve("torus(3,3)", model, **asked) for model in ("ring", "forestcoll", "tacos")]


def test_links_of_a_network():
    """A row for every link, with units in the names; the table loads as the same network."""
    network = cwb.load("torus(3,3)").network
    table = cwb.links("torus(3,3)")
    assert [*table.columns] == ["link", "source", "target", "bandwidth_GBps", "latency_us"]
    assert len(table) == len(network.links)
    assert table["bandwidth_GBps"][0] == float(network.links[0].bandwidth_Bps) / 1e9
    assert cwb.load(table).network.links == network.links


def test_loads_are_those_of_the_sends(runs):
    """The loads in the table add up to the sends, and the busiest link is the verifier's."""
    for run in runs:
        loads, sends = cwb.links(run), cwb.sends(run)
        carried = sends["size_bytes"].to_numpy().repeat(sends["path"].map(len))
        total = np.bincount(np.concatenate(sends["path"].map(list).to_list()), carried, len(loads))
        assert np.allclose(loads["load_bytes"], total)
        assert loads["sends"].sum() == sends["path"].map(len).sum()
        assert 0 < loads["utilization"].max() <= 1 + 1e-9
        assert np.allclose(loads["busy_s"], loads["load_bytes"] / (loads["bandwidth_GBps"] * 1e9))


def test_a_bare_schedule_has_numbers_for_names(runs):
    """Without its instance, a schedule has the same sends between numbers, and with it their names."""
    for run in runs:
        named, bare = cwb.sends(run.schedule, run.problem), cwb.sends(run.schedule)
        assert named.equals(cwb.sends(run))
        assert [str(node) for node in bare["source"]] == [name.removeprefix("gpu") for name in named["source"]]
        assert cwb.links(run.schedule)["load_bytes"].sum() == pytest.approx(cwb.links(run)["load_bytes"].sum())
        assert cwb.to_networkx(run.schedule).number_of_edges() == len(bare)


def test_units_are_in_the_names(runs):
    """Columns that have a unit end in it, and only schedules in time have times."""
    steps, trees, timed = (set(cwb.sends(run).columns) for run in runs)
    assert {"send", "source", "target", "size_bytes", "reduce", "path"} <= steps & trees & timed
    assert "step" in steps & trees
    assert "tree" in trees
    assert {"start_s", "end_s"} <= timed - steps - trees


def test_what_sends_nothing_is_refused():
    """A plan of bandwidths sends nothing, and says so."""
    plan = cwb.solve("4d", "libra-equal")
    for call in (cwb.sends, cwb.links, cwb.to_networkx):
        with pytest.raises(InputError, match="BandwidthPlan has no sends; expected a schedule"):
            call(plan)


def test_fabrics_have_links_and_orders_have_sends():
    """A fabric is its links, and the orders of chunks in it are sends over them, which can be simulated and drawn."""
    assert len(cwb.links("RI(4)_FC(3)")) == cwb.to_networkx("RI(4)_FC(3)").number_of_edges() == 4 * 3 * (2 + 2)
    run = cwb.solve(
        "fabric('RI(4)_FC(3)', bandwidth=['100 GB/s', '50 GB/s'])", "themis", collective="all_reduce", size="1 MiB"
    )
    assert cwb.verify(run).ok
    table = cwb.sends(run)
    assert set(table["source"]) == {f"npu{rank}" for rank in range(12)}
    assert cwb.sends(run.schedule, run.problem).equals(table)
    assert cwb.simulate(run).completion_s > 0
    assert "<svg" in run.plot()._repr_svg_()


def test_records(runs, tmp_path):
    """A row for each record, the last of a key, with the fields of records as columns."""
    for run in (*runs, runs[0]):
        append_record(tmp_path / "records.jsonl", run)
    table = cwb.records(tmp_path)
    assert len(table) == 4  # made here: without a key
    assert {"model", "objective", "objective_unit", "seconds.total", "metrics.busbw_GBps"} <= set(table.columns)
    assert [*table["objective"][:3]] == [run.objective for run in runs]
    assert {*table["size_bytes"].dropna()} <= {run.problem.demand.size_bytes for run in runs if run.problem}
    assert table["size_bytes"].notna().any()
    with pytest.raises(InputError, match="no such file or folder of records"):
        cwb.records(tmp_path / "none")


def test_methods():
    """Every method that takes an instance, and why the others do not, as the command line lists them."""
    table = cwb.models("torus(3,3)", "all_reduce")
    assert set(table.index) == set(registry.names())
    assert table.loc["ring", "takes it"] == "yes"
    assert "no workload" in table.loc["libra", "why not"]


@pytest.mark.slow
def test_what_methods_take():
    """Every method with its family and the networks and collectives that it takes."""
    table = cwb.models()
    assert set(table.index) == set(registry.names())
    assert [*table.columns] == ["family", "kind", "network", "summary", "collectives"]


def test_the_package_says_what_it_offers():
    """Every name is there, another one is an error, and importing all of them loads no library of tables."""
    for name in cwb.__all__:
        assert getattr(cwb, name) is not None
    assert set(cwb.__all__) <= set(dir(cwb))
    assert cwb.__version__.count(".") >= 2
    with pytest.raises(AttributeError, match="has no attribute 'sovle'"):
        _ = cwb.sovle
    program = (
        "import sys, cwb; cwb.load('torus(4,4)'); assert 'numpy' not in sys.modules; cwb.solve; cwb.plot; cwb.links; "
        "print(*{'networkx', 'pandas', 'scipy', 'pyomo', 'matplotlib'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
