"""FAST: stages of permutations, balanced rails, and the linear program of both."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from cwb.cli.main import cwb
from cwb.core.collective import Collective, Demand
from cwb.harness import Request, run
from cwb.instances import load
from cwb.instances.demand import with_demand
from cwb.models.fast.extract import stages_of
from cwb.models.fast.problem import balance_rails, busy_s, exchange_of, own_rails, rail_matrices, servers_of, supports
from hypothesis import given, settings
from hypothesis import strategies as st

SKEWED = "all_to_all_v(skew=1.5, seed=2)"


def skewed_instance(network, chunks=1):
    return with_demand(load(network), SKEWED, "1 MiB", chunks)


@settings(max_examples=20, deadline=None)
@given(
    st.integers(2, 6).flatmap(
        lambda n: st.lists(st.lists(st.integers(0, 20), min_size=n, max_size=n), min_size=n, max_size=n)
    )
)
def test_stages_are_permutations_that_cover_the_matrix(rows):
    """The weights of the stages sum to the largest row or column, they cover every entry, and there are at most N^2 -
    2N + 2."""
    matrix = np.array(rows)
    n = len(matrix)
    stages = stages_of([[Fraction(int(value), 3) for value in row] for row in matrix])
    covered = np.zeros((n, n))
    for to, weight in stages:
        assert sorted(to) == list(range(n))
        assert weight > 0
        covered[np.arange(n), to] += 3 * float(weight)
    assert (covered >= matrix - 1e-9).all()
    assert 3 * sum(weight for _, weight in stages) == max(matrix.sum(axis=0).max(), matrix.sum(axis=1).max())
    assert len(stages) <= n * n - 2 * n + 2


def test_servers_are_the_ranks_at_the_fastest_switches():
    """The rows of a two-dimensional switch are servers and its columns rails; a box of eight GPUs is one too; a ring
    has none."""
    assert servers_of(load("switch2d(inner=3,outer=2)").network).members == ((0, 1, 2), (3, 4, 5))
    assert len(servers_of(load("dgx_h100(boxes=2)").network).members[1]) == 8
    assert servers_of(load("ring(4)").network) is None
    assert "servers" in str(supports(with_demand(load("ring(4)"), "all_to_all", None, None)))
    assert "messages" in str(supports(with_demand(load("switch2d(inner=3,outer=2)"), "all_gather", None, None)))


def import_boxes(tmp_path, gpus, nics, boxes=2):
    """Import boxes with NVSwitches and NICs on rails, from what nvidia-smi prints."""
    names = [f"GPU{i}" for i in range(gpus)]
    rows = [" ".join([a, *("X" if a == b else "NV18" for b in names)]) for a in names]
    text = tmp_path / "topo.txt"
    text.write_text("\n".join(["     " + " ".join(names), *rows]) + "\n")
    machine = ["nvidia-smi", str(text), "--generation", "h100", "--boxes", str(boxes)]
    target = tmp_path / "machine.json"
    options = ["--nic", f"{nics} x 400 Gb/s", "--rails", "-o", str(target)]
    cwb.main(["import", *machine, *options], standalone_mode=False)
    return load(target)


def test_rails_over_nics(tmp_path):
    """An imported machine whose GPUs have a NIC each is one of rails: the cut of a server is attained, but for the
    moves inside; GPUs that share a NIC are refused."""
    machine = import_boxes(tmp_path, 4, 4, boxes=3)
    assert servers_of(machine.network).members == ((0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11))
    posed = with_demand(machine, SKEWED, "1 GiB", 8)
    exchange = exchange_of(posed)
    assert max(busy_s(exchange, balance_rails(exchange)).values()) == exchange.bound[0]
    record = run(posed, Request("fast")).record
    assert record.verified
    assert record.bound <= record.objective <= 1.3 * record.bound
    (tmp_path / "machine.json").unlink()
    assert "a NIC of its own" in str(supports(with_demand(import_boxes(tmp_path, 4, 2), "all_to_all", None, None)))


def test_all_rails_carry_the_same():
    """Balanced, every rail carries an equal share of what goes between two servers, all bytes exactly; by the sender's
    rail it is not so."""
    exchange = exchange_of(skewed_instance("switch2d(inner=3,outer=3)"))
    pieces = balance_rails(exchange)
    assert sum(pieces.values()) == sum(exchange.sizes[pair] for pair in exchange.between)
    first, *others = rail_matrices(exchange, pieces)
    assert all(matrix == first for matrix in others)
    first, *others = rail_matrices(exchange, own_rails(exchange, of_target=False))
    assert any(matrix != first for matrix in others)


@pytest.mark.parametrize("rails", ["balanced", "source", "target", "optimal"])
def test_schedules_are_right_and_bounded(rails):
    """Whatever the rails, the schedule is verified, and no faster than the cut that the verifier recomputes."""
    finished = run(skewed_instance("switch2d(inner=2,outer=3)", chunks=2), Request("fast", options={"rails": rails}))
    record = finished.record
    assert record.verified
    assert record.bound <= record.objective
    assert record.metrics["lower_bound_s"] == pytest.approx(record.bound)
    if rails in ("balanced", "optimal"):
        assert record.metrics["rail_time_s"] == pytest.approx(record.bound, rel=1e-4)


def test_the_program_is_solved_where_balanced_does_not_attain_its_bound():
    """With fast servers balanced takes the time of the cut, and nothing is solved; with slow ones the program's is less
    than theirs."""
    easy = run(skewed_instance("switch2d(inner=2,outer=3)"), Request("fast", options={"rails": "optimal"})).record
    assert easy.solver is None
    assert easy.metrics["model_time_s"] == easy.metrics["rail_time_s"] == pytest.approx(easy.bound)
    slow = skewed_instance("switch2d(4, 4, inner_bandwidth='40 GB/s', outer_bandwidth='50 GB/s')")
    solved = run(slow, Request("fast", options={"rails": "optimal"})).record
    assert solved.solver == "highs"
    exchange = exchange_of(slow)
    assert solved.metrics["model_time_s"] < 0.99 * max(busy_s(exchange, balance_rails(exchange)).values())


@pytest.mark.parametrize("network", ["switch2d(inner=2,outer=3)", "dgx_h100(boxes=2)"])
def test_the_bound_is_the_largest_cut_of_a_server_or_rank(network):
    """Cut by cut over all links and messages the largest time is the same, of the same nodes."""
    exchange = exchange_of(skewed_instance(network))
    topology, servers = exchange.servers.topology, exchange.servers
    nodes, everything = topology.rank_nodes, set(range(len(topology.nodes)))
    sets = [{hub, *(nodes[r] for r in ranks)} for ranks, hub in zip(servers.members, servers.hubs, strict=True)]

    def seconds(inside):
        crossing = zip(topology.links, topology.link_ends, strict=True)
        rate = sum(link.bandwidth_Bps for link, (a, b) in crossing if a in inside and b not in inside)
        sizes = exchange.sizes.items()
        return sum(size for (s, t), size in sizes if nodes[s] in inside and nodes[t] not in inside) / rate

    cuts = [cut for part in (*sets, *({node} for node in nodes)) for cut in (part, everything - part)]
    bound, certificate = exchange.bound
    assert bound == max(map(seconds, cuts)) == seconds(set(certificate.nodes))


def test_an_all_to_all_of_equal_parts_is_the_same_problem():
    """An all_to_all is the matrix of equal parts: N - 1 stages of rotations."""
    instance = load("switch2d(inner=2,outer=4)")
    alike = instance.with_changes(demand=Demand(Collective.ALL_TO_ALL, Fraction(2**20)))
    record = run(alike, Request("fast")).record
    assert record.verified
    assert record.metrics["stages"] == 3
