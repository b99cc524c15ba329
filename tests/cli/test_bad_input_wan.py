"""Errors in wide-area networks and options for trees: one line on stderr with the documented exit status."""

from __future__ import annotations

import json

import pytest
from cwb.cli.main import run

BAD_INPUT, INFEASIBLE, UNSUPPORTED = 2, 3, 7
BOTH, MTREE = ("mtree", "gost"), ("mtree",)
LINKS = [("Oslo", "Bonn", "200 Mb/s"), ("Bonn", "Rome", "100 Mb/s")]


def wide(folder, links):
    """Write the instance file of a network of three sites."""
    network = {
        "nodes": [{"name": name} for name in ("Oslo", "Bonn", "Rome")],
        "links": [
            {"source": a, "target": b, "bandwidth": rate, "latency": "5 ms", "bidirectional": True}
            for a, b, rate in links
        ],
    }
    path = folder / "wide.json"
    path.write_text(json.dumps({"schema": "cwb-instance/1", "network": network}))
    return str(path)


CASES = {
    "no way to a site": (BOTH, LINKS[:1], (), BAD_INPUT,
        "wide.json: network.links: no path of links in both directions leads from 'Oslo' to 'Rome'"),
    "no capacity": (BOTH, [LINKS[0], (*LINKS[1][:2], "0 b/s")], (), BAD_INPUT,
        "wide.json: network.links[1].bandwidth: '0 b/s' must be greater"),
    "no trees": (BOTH, LINKS, ("trees=0",), BAD_INPUT,
        "-O: trees: '0' is wrong; input should be greater than or equal to 1"),
    "half a tree": (BOTH, LINKS, ("trees=0.5",), BAD_INPUT, "-O: trees: '0.5' is wrong"),
    "no height": (BOTH, LINKS, ("height=0",), BAD_INPUT, "-O: height: 0 is wrong; expected at least 1 hop"),
    "no latency": (BOTH, LINKS, ("height=0 ms",), BAD_INPUT, "-O: height: '0 ms' is wrong; expected a number of hops"),
    "too low for hops": (BOTH, "gscale", ("height=1",), INFEASIBLE, "the smallest feasible height is 3 hops"),
    "too low for latencies": (MTREE, LINKS, ("height=4 ms",), INFEASIBLE, "the smallest feasible height is 5 ms"),
    "a rate above all": (BOTH, LINKS, ("min_rate=1 Gb/s",), INFEASIBLE,
        "there is no link of at least min_rate 1000 Mb/s; the fastest has 200 Mb/s"),
    "a rate above some": (BOTH, LINKS, ("min_rate=150 Mb/s",), INFEASIBLE,
        "the links of at least min_rate 150 Mb/s do not join all sites"),
    "a rate without unit": (BOTH, LINKS, ("min_rate=10",), BAD_INPUT, "-O: min_rate: '10' has no unit"),
}  # fmt: skip


@pytest.mark.parametrize(("case", "model"), [(case, model) for case, (models, *_) in CASES.items() for model in models])
def test_wrong_problems_are_one_clear_line(case, model, tmp_path, capsys):
    """Networks that are not connected or have no capacity, and trees, heights and rates that cannot be, are told with
    place, value and remedy."""
    _, links, options, status, text = CASES[case]
    network = links if isinstance(links, str) else wide(tmp_path, links)
    asked = [part for option in options for part in ("-O", option)]
    with pytest.raises(SystemExit) as ended:
        run(
            ["solve", "-m", model, network, "--collective", "all_reduce", "--size", "1 GB", "--quiet", "--json", *asked]
        )
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("cwb: ")]
    assert text in line
    assert ended.value.code == status


def test_other_collectives_are_not_supported(capsys):
    """Its trees reduce and broadcast: a collective that is no all-reduce is refused with a reason."""
    with pytest.raises(SystemExit) as ended:
        run(["solve", "-m", "mtree", "gscale", "--collective", "all_gather", "--size", "1 GB", "--quiet"])
    assert "it does not define all_gather, but all_reduce" in capsys.readouterr().err
    assert ended.value.code == UNSUPPORTED
