"""Bad input, through the command line: one line on stderr that names the place and the value, and the documented exit
status."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from cwb.cli.main import run

#: Right, and small; every case below changes one thing.
NODES = [{"name": name} for name in "abc"] + [{"name": "s", "kind": "switch"}]
LINKS = [{"source": x, "target": "s", "bandwidth": "25 GB/s", "bidirectional": True} for x in "abc"]


@pytest.fixture
def solve(tmp_path, capsys):
    """Write an instance to a file, solve it, and give exit status, the record (or None) and the lines on stderr."""

    def command(*words, nodes=None, links=None, kind="all_gather", ranks=None):
        collective = {"kind": kind, "size": "1 GB"} | ({} if ranks is None else {"ranks": ranks})
        network = {"nodes": NODES if nodes is None else nodes, "links": LINKS if links is None else links}
        path = tmp_path / "instance.json"
        path.write_text(json.dumps({"network": network, "collective": collective}))
        with pytest.raises(SystemExit) as caught:
            run(["solve", "-m", "forestcoll", "-q", "--json", str(path), *words])
        captured = capsys.readouterr()
        record = json.loads(captured.out) if captured.out else None
        return int(caught.value.code or 0), record, captured.err.splitlines()

    return command


def link(source, target, bandwidth="25 GB/s", **more):
    return {"source": source, "target": target, "bandwidth": bandwidth, **more}


@pytest.mark.parametrize(
    ("model", "kind"),
    [("forestcoll/optimum", "all_gather"), ("forestcoll/allreduce", "all_reduce"), ("mcf/flow", "all_to_all")],
)
def test_declared_models_are_infeasible_without_a_path(solve, model, kind):
    """A model whose best rate is 0 proves that no time is enough, and says why."""
    links = [link("a", "b", bidirectional=True), link("c", "s", bidirectional=True)]
    status, record, errors = solve("-m", model, links=links, kind=kind)
    assert (status, record["status"]) == (3, "infeasible")
    assert errors == ["cwb: infeasible: no finite time is enough: data cannot reach a rank that needs it"]


def test_the_right_input_is_right(solve):
    """The instance that the cases below change is solved."""
    status, record, err = solve()
    assert (status, record["status"], err) == (0, "optimal", [])


REFUSED = {
    "nobody can reach c": (
        {"links": [*LINKS[:2], link("c", "a")]},
        "network.links: disconnected: no link leads to 'c'",
    ),
    "c cannot be reduced": (
        {"links": [*LINKS[:2], link("a", "c")], "kind": "reduce"},
        "network.links: disconnected: no link leads out of 'c'",
    ),
    "a switch with more in than out": (
        {"links": [*LINKS, link("a", "s", "0.5 GB/s")]},
        "network.nodes[3]: 's' forwards data, but 75.5 GB/s come in, 75 GB/s go out; expected the same",
    ),
    "a switch without a way out": (
        {"nodes": [*NODES, {"name": "t", "kind": "switch"}], "links": [*LINKS, link("a", "t")]},
        "network.nodes[4]: 't' forwards data, but 25 GB/s come in, 0 GB/s go out; expected the same",
    ),
    "a rank outside of the group that keeps data": (
        {"links": [*LINKS, link("a", "c")], "ranks": [0, 1]},
        "network.nodes[2]: 'c' forwards data, but 50 GB/s come in, 25 GB/s go out; expected the same",
    ),
    "no capacity": ({"links": [*LINKS, link("a", "b", "0 GB/s")]}, "must be greater than zero"),
    "negative capacity": ({"links": [*LINKS, link("a", "b", "-3 GB/s")]}, "must not be negative"),
    "a fraction over nothing": ({"links": [*LINKS, link("a", "b", "100/0 GB/s")]}, "'100/0 GB/s'"),
    "no unit": ({"links": [*LINKS, link("a", "b", "25")]}, "has no unit"),
    "an unknown node": ({"links": [*LINKS, link("a", "z")]}, "unknown node 'z'"),
    "a loop": ({"links": [*LINKS, link("a", "a")]}, "link from 'a' to itself"),
}


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.replace(" ", "-"))
def test_wrong_networks(solve, case):
    """Exit status 2, one line that says what is wrong where, nothing on stdout."""
    changes, reason = REFUSED[case]
    status, record, err = solve(**changes)
    assert (status, record) == (2, None)
    assert len(err) == 1
    assert err[0].startswith("cwb: error: ")
    assert reason in err[0]


@pytest.mark.parametrize("k", ["0", "-1", "two", "1.5", "", "true", "1e3", "nan"])
def test_wrong_numbers_of_trees(solve, k):
    """A number of trees is a word that is known, or a whole number of at least 1."""
    status, record, err = solve("-O", f"k={k}")
    assert (status, record) == (2, None)
    assert err == [f"cwb: error: -O: k: {k!r} is wrong; expected optimal, smallest, or a number of at least 1"]


@pytest.mark.parametrize("option", ["prefer=fast", "scan=0", "scan=65", "repack=-1", "patterns=maybe", "trees=3"])
def test_wrong_options(solve, option):
    """Each is named in one line."""
    status, record, err = solve("-O", option)
    assert (status, record, len(err)) == (2, None, 1)
    assert option.split("=", maxsplit=1)[0] in err[0]


def one_way_ring():
    """A network of one-way links on which one tree a root does not go through the switch."""
    rates = [("s", "a", 1), ("a", "c", 6), ("c", "s", 4), ("s", "b", 3), ("b", "a", 5), ("c", "b", 2)]
    return [link(u, v, f"{c} GB/s") for u, v, c in rates]


#: Ranks that receive at other rates than they send, none of which have a common divisor.
UNEVEN = [("a", "b", 10**12 + 39), ("b", "c", 10**12 + 61), ("c", "a", 10**12 + 63), ("a", "c", 10**11 + 3)]

UNSUPPORTED = {
    "a single rank": ({"nodes": [NODES[0], NODES[3]], "links": LINKS[:1]}, [], "at least two ranks"),
    "a group of one": ({"ranks": [1]}, [], "at least two ranks"),
    "no links at all": ({"links": []}, [], "the network has no links"),
    "all to all": ({"kind": "all_to_all"}, [], "does not define all_to_all"),
    "a huge number of trees": ({}, ["-O", "k=1000000000"], "k = 1,000,000,000 trees from 3 roots are too many"),
    "beyond 64 bits": ({}, ["-O", f"k={2**70}"], f"k = {2**70:,} trees from 3 roots are too many"),
    "one-way and whole": ({"links": one_way_ring()}, ["-O", "k=1"], "2 come into 's' and 1 leave it"),
    "two halves without a common unit": (
        {
            "links": [link(u, v, f"{c} B/s") for u, v, c in UNEVEN],
            "nodes": NODES[:3],
            "kind": "all_reduce",
        },
        ["-O", "repack=0"],
        "64 bits cannot count the common parts",
    ),
    "beyond 64 bits by itself": (
        {"links": [link(x, "s", f"{2**70 + i} B/s", bidirectional=True) for i, x in enumerate("abc")]},
        [],
        "bandwidths so uneven need k = ",
    ),
}


@pytest.mark.parametrize("case", UNSUPPORTED, ids=lambda case: case.replace(" ", "-"))
def test_what_is_not_supported(solve, case):
    """Exit status 7, with a reason in the record; nothing is computed for it that takes memory."""
    changes, words, reason = UNSUPPORTED[case]
    status, record, _ = solve(*words, **changes)
    assert (status, record["status"], record["answer"]) == (7, "unsupported", None)
    assert reason in record["message"]
    assert "\n" not in record["message"]


@pytest.mark.parametrize("limit", ["0.001", "0.000001"])
def test_a_time_limit_that_is_too_short(solve, limit):
    """Exit status 4, with the bound."""
    status, record, _ = solve("--time-limit", limit)
    assert (status, record["status"], record["objective"]) == (4, "limit", None)
    assert record["bound"] == pytest.approx(float(Fraction(10**9, 3) * 2 / (25 * 10**9)))


@pytest.mark.parametrize(
    ("rates", "inv_x"),
    [
        (["33.3 GB/s"] * 3, Fraction(2) / Fraction("33.3")),
        (["33.3 GB/s", "0.7 GB/s", "12.345678901 GB/s"], Fraction(2) / Fraction("0.7")),
        (["100 Gb/s", "40 Gb/s", "25 Gb/s"], Fraction(2) / Fraction(25, 8)),
        ([f"{2**62 - 57} B/s", f"{2**62 - 1} B/s", f"{2**61 + 1} B/s"], Fraction(2 * 10**9, 2**61 + 1)),
        (["1e-9 B/s", "3e-9 B/s", "7e-9 B/s"], Fraction(2 * 10**9 * 10**9)),
    ],
)
def test_rates_are_exact(solve, rates, inv_x):
    """Fractional rates, tiny ones and such near 2^62 give the ratio of fractions, and a verified forest without any
    gap."""
    links = [link(x, "s", rate, bidirectional=True) for x, rate in zip("abc", rates, strict=True)]
    for k in ("smallest", "optimal"):
        status, record, _ = solve("-O", f"k={k}", "-O", "repack=1", links=links)
        assert (status, record["status"], record["gap"], record["verified"]) == (0, "optimal", 0.0, True)
        assert record["metrics"]["inv_x"] == str(inv_x)


@pytest.mark.parametrize("patterns", ["true", "false"])
def test_switches_that_nobody_needs(solve, patterns):
    """Switches without links, or with links among themselves alone, do no harm."""
    nodes = [*NODES, *({"name": name, "kind": "switch"} for name in "tuvw")]
    links = [*LINKS, link("t", "u", bidirectional=True), link("u", "v", bidirectional=True)]
    status, record, _ = solve("-O", f"patterns={patterns}", nodes=nodes, links=links)
    assert (status, record["status"], record["verified"]) == (0, "optimal", True)
