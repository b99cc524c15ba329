"""Errors in problems on epochs: one line on stderr with the documented exit status."""

from __future__ import annotations

import json

import pytest
from cwb.cli.main import run

NODES = [{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "s", "kind": "switch", "buffer": "0 B"}]
LINKS = [("a", "s"), ("s", "b"), ("b", "a"), ("b", "c"), ("c", "s")]
ALL = ["teccl", "teccl-milp", "teccl-lp", "teccl-astar"]
MODELS = ["teccl-milp", "teccl-lp", "teccl-astar"]
MILP = ["teccl-milp"]


def instance(folder, *, nodes=NODES, links=LINKS, kind="all_gather", ranks=None):
    """Write an instance file."""
    collective = {"kind": kind, "size": "3 MB"} | ({"ranks": ranks} if ranks else {})
    network = {"nodes": nodes, "links": [{"source": a, "target": b, "bandwidth": "1 GB/s"} for a, b in links]}
    path = folder / "small.json"
    path.write_text(json.dumps({"schema": "cwb-instance/1", "network": network, "collective": collective}))
    return str(path)


SMALL = [*NODES[:3], {"name": "s", "kind": "switch", "buffer": "10 B"}]
CASES = {
    "zero epochs": (MODELS, {}, ["epochs=0"], "-O: epochs: '0' is wrong; input should be greater than or equal to 1"),
    "an epoch of no time": (ALL, {}, ["epoch_duration=0 s"], "expected an epoch_duration greater than zero"),
    "an epoch too short": (
        ALL,
        {},
        ["epoch_duration=1 ps"],
        "is too short: a -> s takes 1,000,000,000 epochs; at most",
    ),
    "a demand from a switch": (ALL, {"kind": "broadcast", "ranks": [3, 0]}, [], "no rank 3, since only compute nodes"),
    "unreachable": (ALL, {"links": LINKS[:4]}, [], "network.links: no path leads from 'c' to 'a'"),
    "a buffer below a chunk": (ALL, {"nodes": SMALL}, [], "the buffer of s has 10 bytes, less than a chunk of 1e+06"),
    "a limit of a rank": (
        ALL,
        {"nodes": [{"name": "a", "buffer": "1 MB"}, *NODES[1:]]},
        [],
        "nodes[0].buffer: a limit",
    ),
    "room for no chunk": (MILP, {}, ["buffer=0"], "a buffer of 0 chunks holds less than one"),
    "room for no chunk, fluid": (["teccl-lp"], {}, ["buffer=0"], "greater than or equal to 1"),
    "buffer and no relays": (MILP, {}, ["buffer=1", "relays=pass"], "give one of the two"),
    "two lengths of an epoch": (ALL, {}, ["epoch_duration=1 us", "epoch_multiplier=2"], "give one of the two"),
    "weights of a makespan": (MILP, {}, ["priorities=[1]"], "priorities are weights of objective=paper"),
    "too many weights": (MILP, {}, ["priorities=[1,2]", "objective=paper"], "2 weights for 1 collectives"),
    "stages of what has none": (MILP, {}, ["all_reduce=stages"], "stages applies only to an all_reduce"),
    "stages by one model": (MILP, {}, ["all_reduce=stages", "objective=late"], "needs objective=makespan"),
    "sums that do not wait": (MILP, {"kind": "all_reduce"}, ["relays=pass"], "a sum waits for its parts"),
}


@pytest.mark.parametrize(("case", "model"), [(case, model) for case, (models, *_) in CASES.items() for model in models])
def test_wrong_problems_are_one_clear_line(case, model, tmp_path, capsys):
    """Zero epochs, epochs that are too short, demands from switches, what cannot be reached or held, options that
    disagree."""
    _, what, options, text = CASES[case]
    words = ["solve", "--model", model, instance(tmp_path, **what), *[w for o in options for w in ("-O", o)]]
    with pytest.raises(SystemExit) as ended:
        run(words)
    told = capsys.readouterr()
    assert ended.value.code == 2
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert told.err.startswith("cwb: error: ")
    assert text in told.err


@pytest.mark.parametrize(("model", "status"), [("teccl-lp", 7), ("teccl-astar", 7), ("teccl-milp", 0)])
def test_a_switch_with_limited_room_is_for_one_model(model, status, tmp_path, capsys):
    """Methods without limits of switches refuse them with a reason; the general form respects them."""
    nodes = [*NODES[:3], {"name": "s", "kind": "switch", "buffer": "2 MB"}]
    with pytest.raises(SystemExit) as ended:
        run(["solve", "--model", model, instance(tmp_path, nodes=nodes)])
    assert (ended.value.code or 0) == status
    assert status == 0 or "only teccl-milp supports switches with limited storage" in capsys.readouterr().err


@pytest.mark.parametrize("model", [*MODELS, "teccl-all-to-all"])
def test_no_time_is_a_limit(model, tmp_path, capsys):
    """Without any time there is nothing to keep: exit status 4, and one line that says so."""
    kind = "all_to_all" if model == "teccl-all-to-all" else "all_gather"
    plain = ["-O", "start=none"] if model in ("teccl-milp", "teccl-astar") else []
    with pytest.raises(SystemExit) as ended:
        run(["solve", "--model", model, instance(tmp_path, kind=kind), "--time-limit", "0.000001", *plain])
    assert ended.value.code == 4
    assert capsys.readouterr().err.splitlines()[-1].startswith("cwb: limit: ")
