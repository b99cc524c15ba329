"""The finder: the published tables, the closure by brute force over few sizes, schedules of what is chosen, and
constraints."""

import csv
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import networkx as nx
import pytest
from cwb.algorithms.breadth_first.broadcast import Broadcast, graph_of
from cwb.core.collective import Collective
from cwb.core.errors import InputError, Unsupported
from cwb.schedules.verify import verify
from cwb.studies.topology_finder.build import all_gather, links_of, schedule
from cwb.studies.topology_finder.candidates import (
    DISTANCE_REGULAR,
    SPECIAL,
    Construction,
    Traits,
    bases,
    circulant_diameter,
    generalized_kautz,
    imase_itoh,
    transpose_candidate,
)
from cwb.studies.topology_finder.finder import Closure, Job, fastest, find, lower_bound

PUBLISHED = list(
    csv.DictReader((Path(__file__).parents[2] / "reference" / "direct_connect.csv").open(encoding="utf-8"))
)
MICROSECOND = Fraction(1, 10**6)

#: Rows of table 7 that circulants of theorem 22, or their line graphs, beat.
BEATEN = {(128, 10): (8, Fraction(127, 128)), (512, 11): (9, Fraction(1))}


def _job(nodes, degree, **more):
    """Ask for the job of table 4: 10 us, 2^20 bytes, 100 Gb/s."""
    return Job(nodes, degree, 10 * MICROSECOND, Fraction(2**20), Fraction(10**11, 8), **more)


@pytest.mark.parametrize("nodes", [32, 64, 128, 256, 512, 1024])
def test_published_frontiers(nodes):
    """Without circulants of theorem 22, T_L and T_B of the frontier are those of tables 4 and 7, as fractions and as
    printed."""
    rows = [row for row in PUBLISHED if int(row["nodes"]) == nodes]
    found = Closure([nodes], [4], circulants=False).frontier(nodes, 4)
    assert sorted({(one.steps, one.bandwidth) for one in found}) == [(int(r["T_L"]), Fraction(r["T_B"])) for r in rows]
    for row in rows:
        assert f"{float(Fraction(row['T_B'])):.3f}" == row["T_B_printed"]


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: f"{row['nodes']}-{row['topology']}")
def test_published_rows(row):
    """Every row's own network is found at its values, with the table's diameter; with circulants all but two rows
    stay."""
    values = int(row["T_L"]), Fraction(row["T_B"])
    nodes = int(row["nodes"])
    better = BEATEN.get((nodes, values[0]))
    with_circulants = Closure([nodes], [4])
    found = with_circulants.frontier(nodes, 4)
    if better:
        assert better in {(one.steps, one.bandwidth) for one in found}
        assert values not in {(one.steps, one.bandwidth) for one in found}
        assert better[0] < values[0]
        assert better[1] == values[1]
        found = Closure([nodes], [4], circulants=False).frontier(nodes, 4)
    mine = next(one for one in found if str(one) == row["expression"])
    assert (mine.steps, mine.bandwidth) == values
    graph = nx.DiGraph(links_of(mine).tolist())
    assert nx.eccentricity(graph, 0) <= int(row["diameter"])
    if nodes <= 256:
        assert nx.diameter(graph) == int(row["diameter"])


def test_published_times():
    """All-reduce times of table 4 to the printed digits, the bound and the best one included."""
    choices = find(_job(1024, 4))
    times = {(choice.steps, choice.bandwidth): f"{float(choice.all_reduce_s) * 1e6:.1f}" for choice in choices}
    rows = [row for row in PUBLISHED if row["table"] == "4"]
    assert times == {(int(row["T_L"]), Fraction(row["T_B"])): row["all_reduce_us"] for row in rows}
    job = _job(1024, 4)
    steps, bandwidth = lower_bound(job)
    assert f"{float(2 * (steps * job.alpha_s + bandwidth * job.ratio_s)) * 1e6:.1f}" == "267.6"
    assert fastest(choices).steps == 6


@pytest.mark.parametrize("nodes", [8, 12, 16, 18, 24, 27, 30, 32])
@pytest.mark.parametrize("degree", [2, 3, 4, 6])
def test_every_candidate_can_be_built(nodes, degree, verify_gather):
    """Every candidate in the closure can be built, also transposed, and has the predicted degrees, links and times."""
    for one in Closure([nodes], [degree]).cells.get((nodes, degree), ()):
        made = all_gather(one)
        assert verify_gather(made) == (one.steps, one.bandwidth)
        graph = nx.MultiDiGraph(links_of(one).tolist())
        if Traits.REGULAR in one.traits:
            assert {d for _, d in [*graph.in_degree, *graph.out_degree]} == {degree}
        if one.bidirectional:
            assert {(v, u) for u, v in graph.edges()} == set(graph.edges())
        back = all_gather(one, transposed=True)
        assert (back.links[:, ::-1] == made.links).all()
        other = transpose_candidate(one)
        assert verify_gather(back) == (other.steps, other.bandwidth)


@pytest.mark.parametrize("kind", [Collective.ALL_REDUCE, Collective.REDUCE_SCATTER, Collective.ALL_GATHER])
@pytest.mark.parametrize(("nodes", "degree"), [(10, 4), (10, 6), (12, 2), (18, 2), (32, 4), (45, 4), (64, 4)])
def test_schedules_of_choices(nodes, degree, kind, instance):
    """Every network of a frontier gets a verified schedule of each collective, of as many steps as are told."""
    for choice in find(_job(nodes, degree)):
        problem = instance(links_of(choice.candidate), nodes, kind)
        made = schedule(choice.candidate, problem, back=choice.back)
        assert not verify(problem, made).violations
        parts = {Collective.ALL_GATHER: choice.steps, Collective.REDUCE_SCATTER: choice.reduce_steps}
        assert made.steps == parts.get(kind, sum(parts.values()))


def _breadth_first(links, nodes, degree):
    """T_L and T_B of theorem 19 by definition: for all nodes, and all sets of links into one, what can come over no
    other link."""
    ends = [(u, v) for u, v in links]
    into = [[u for u, v in ends if v == node] for node in range(nodes)]
    graph = nx.MultiDiGraph(ends)
    distance = dict(nx.all_pairs_shortest_path_length(graph))
    steps = max(max(of.values()) for of in distance.values())
    loads = [Fraction(0)] * (steps + 1)
    for node in range(nodes):
        for step in range(1, steps + 1):
            shards = [v for v in range(nodes) if distance[v][node] == step]
            over = [{i for i, u in enumerate(into[node]) if distance[v][u] == step - 1} for v in shards]
            for size in range(1, len(into[node]) + 1):
                for chosen in map(set, combinations(range(len(into[node])), size)):
                    loads[step] = max(loads[step], Fraction(sum(links <= chosen for links in over), size))
    return steps, Fraction(degree, nodes) * sum(loads)


@pytest.mark.parametrize("degree", [2, 3, 4, 6])
def test_no_choice_is_beaten_by_its_own_network(degree, verify_gather):
    """Every row up to 20 nodes is what its all-gather takes, and the network's best breadth-first all-gather does not
    beat it."""
    improved = 0
    for nodes in range(degree + 1, 21):
        for choice in find(_job(nodes, degree)):
            one = choice.candidate
            own = _breadth_first(links_of(one).tolist(), nodes, degree)
            values = one.steps, one.bandwidth
            assert values == own or not (own[0] <= values[0] and own[1] <= values[1])
            assert one.breadth_first <= (values == own)
            assert verify_gather(all_gather(one)) == values
            assert verify_gather(all_gather(choice.back, transposed=True)) == (
                choice.reduce_steps,
                choice.reduce_bandwidth,
            )
            improved += one.breadth_first
    assert improved or degree in (3, 4)


@pytest.mark.parametrize(
    ("nodes", "degree", "name", "steps", "bandwidth"),
    [
        (18, 2, "L(ring(3, false)^□2)", 5, Fraction(17, 18)),
        (10, 6, "directed_circulant(5, [1, 2, 3]) * 2", 2, Fraction(9, 10)),
    ],
)
def test_networks_that_do_better_than_their_formulas(nodes, degree, name, steps, bandwidth):
    """A line graph that spreads anew what a returning shard leaves free, and copies that reach one another on shorter
    ways."""
    choice = next(one for one in find(_job(nodes, degree)) if str(one.candidate) == name)
    assert (choice.steps, choice.bandwidth) == (steps, bandwidth)


def test_other_collectives_are_not_scheduled(instance):
    """The finder makes all-gathers and what follows from them."""
    one = Closure([8], [2]).frontier(8, 2)[0]
    with pytest.raises(Unsupported, match="schedules all_gather, reduce_scatter and all_reduce"):
        schedule(one, instance(links_of(one), 8, Collective.ALL_TO_ALL))


@pytest.mark.parametrize("degree", range(1, 6))
@pytest.mark.parametrize("nodes", range(2, 41))
def test_bases_take_what_is_said(nodes, degree, gather, verify_gather):
    """T_L and T_B of every base network up to 40 nodes and degree 5 are those of its all-gather; so are its traits."""
    for one in bases(nodes, degree):
        made = all_gather(one)
        assert (made.steps, made.bandwidth) == (one.steps, one.bandwidth), one
        graph = nx.MultiDiGraph(made.links.tolist())
        assert len(graph) == one.nodes
        regular = {d for _, d in [*graph.in_degree, *graph.out_degree]} == {one.degree}
        assert regular or Traits.REGULAR not in one.traits, one
        assert (
            one.bidirectional == (set(graph.edges()) == {(v, u) for u, v in graph.edges()})
            or "kautz" in str(one)
            or "bruijn" in str(one)
        ), one
        if Traits.FACTOR in one.traits:
            assert one.bandwidth == Fraction(one.nodes - 1, one.nodes), one
            assert len(set(graph.edges())) == graph.number_of_edges(), one
        if Traits.SYMMETRIC in one.traits and one.nodes <= 12:
            plain = nx.DiGraph(graph)
            assert nx.is_isomorphic(plain, plain.reverse()), one


@pytest.mark.parametrize("n", sorted(DISTANCE_REGULAR))
def test_distance_regular_graphs_are_optimal(n, gather):
    """Theorem 18: all networks of table 8 have a breadth-first all-gather of the least T_B."""
    made = gather(f"distance_regular(4, {n})", 4)
    assert (made.steps, made.bandwidth) == (DISTANCE_REGULAR[n], Fraction(n - 1, n))


@pytest.mark.parametrize("of", SPECIAL, ids=lambda of: of[0])
def test_special_all_gathers(of, make, verify_gather):
    """The diamond and the modified de Bruijn graphs have all-gathers that are optimal in bandwidth, forwards and
    backwards."""
    expression, nodes, degree, steps, _ = of
    one = next(base for base in bases(nodes, degree) if base.expression == expression)
    made, back = all_gather(one), all_gather(one, transposed=True)
    assert verify_gather(made) == verify_gather(back) == (steps, Fraction(nodes - 1, nodes))
    ends = sorted(make(expression).link_ends)
    assert ends == sorted(map(tuple, made.links.tolist())) == sorted(map(tuple, back.links[:, ::-1].tolist()))


@pytest.mark.parametrize("d", [2, 4, 8, 16])
def test_stored_values_of_generalized_kautz_graphs(d):
    """A sample of the stored values is computed anew: equal, and T_L is within one of the Moore bound, T_B at most
    2."""
    for n in (d + 2, d + 7, 12 * d, 12 * d + 5, 333):
        found = Broadcast(graph_of(range(n), imase_itoh(d, n)))
        assert generalized_kautz(d, n) == (found.steps, found.bandwidth(d))
    for n in range(d + 1, 2001):
        steps, bandwidth = generalized_kautz(d, n)
        assert sum(d**i for i in range(steps - 1)) < n
        assert Fraction(n - 1, n) <= bandwidth <= 2


def test_reduce_scatters_on_generalized_kautz_graphs():
    """The transpose of a generalized Kautz graph takes other values: 341/250 and not 333/250 for 1,000 nodes of degree
    4."""
    one = next(base for base in bases(1000, 4) if base.expression == "generalized_kautz(4, 1000)")
    assert one.bandwidth == Fraction(333, 250)
    assert transpose_candidate(one).bandwidth == Fraction(341, 250)


def test_diameter_of_the_best_circulants():
    """The closed form without square roots is theorem 22's, which is the diameter."""
    for n in range(7, 80):
        m = circulant_diameter(n)
        assert nx.diameter(nx.circulant_graph(n, [m, m + 1])) == m


@pytest.mark.parametrize("a", range(2, 17))
def test_twisted_tori_are_no_better_than_circulants(a, gather):
    """A twisted torus of 2a x a nodes is optimal in bandwidth, in as many steps as the circulant of theorem 22."""
    made = gather(f"twisted_torus({2 * a}, {a}, {a})", 4)
    assert made.bandwidth == Fraction(2 * a * a - 1, 2 * a * a)
    assert made.steps == circulant_diameter(2 * a * a)


def test_one_closure_for_all_sizes():
    """A closure of all sizes gives each the frontier of its own closure."""
    everything = Closure(range(2, 101), [2, 4])
    for nodes in range(2, 101):
        for degree in (2, 4):
            single = Closure([nodes], [degree]).frontier(nodes, degree)
            values = {(one.steps, one.bandwidth) for one in everything.frontier(nodes, degree)}
            assert values == {(one.steps, one.bandwidth) for one in single}


def test_frontiers_are_frontiers():
    """Steps rise, bandwidth time falls, and nothing is below the lower bounds."""
    closure = Closure([360], [4, 8])
    for degree in (4, 8):
        for bidirectional in (False, True):
            points = sorted(
                {(o.steps, o.bandwidth) for o in closure.frontier(360, degree, bidirectional=bidirectional)}
            )
            assert [b for _, b in points] == sorted({b for _, b in points}, reverse=True)
            steps, bandwidth = lower_bound(_job(360, degree))
            assert points[0][0] >= steps
            assert points[-1][1] == bandwidth


def test_bidirectional_networks():
    """With links back everywhere, unidirectional networks appear as the union with their transpose."""
    choices = find(_job(256, 4, bidirectional=True))
    assert all(choice.candidate.bidirectional for choice in choices)
    made = [choice.candidate.form for choice in choices]
    assert Construction.BOTH_DIRECTIONS in made
    fewer = find(_job(256, 4))
    assert choices[0].steps >= fewer[0].steps


def test_spare_ports():
    """A ring is the best that 7 nodes with 3 ports can be wired to in both ways; a third of the bandwidth is idle."""
    with pytest.raises(InputError, match="an odd number of nodes of odd degree cannot be paired"):
        find(_job(7, 3, bidirectional=True))
    (choice,) = find(_job(7, 3, bidirectional=True, spare_ports=True))
    assert (str(choice.candidate), choice.steps, choice.bandwidth) == ("ring(7)", 3, Fraction(9, 7))


@pytest.mark.parametrize(
    ("nodes", "degree", "message"),
    [
        (4, 4, "--nodes: 4 nodes are too few for degree 4; expected at least 5"),
        (1, 1, "1 nodes of degree 1; expected at least 2 nodes and degree 1"),
        (8, 0, "8 nodes of degree 0; expected at least 2 nodes and degree 1"),
        (10_001, 4, "--nodes: 10,001 nodes of degree 4; expected at most 10,000 and 20"),
    ],
)
def test_impossible_jobs(nodes, degree, message):
    """Sizes and degrees that no network has, or that are too large, are told in one line."""
    with pytest.raises(InputError) as caught:
        _job(nodes, degree)
    assert str(caught.value) == message


def test_nothing_is_known():
    """Four nodes with one link back and forth each cannot be connected; a prime number of odd degree cannot be
    paired."""
    with pytest.raises(InputError, match="no bidirectional network of 4 nodes and degree 1 is known: no expansion"):
        find(_job(4, 1, bidirectional=True))
    with pytest.raises(InputError, match="no bidirectional network of 2003 nodes and degree 3 is known: an odd number"):
        find(_job(2003, 3, bidirectional=True))


def test_names():
    """Names say how a network is made."""
    found = {str(one) for one in Closure([64], [8]).cells[64, 8]} | {
        str(one) for one in Closure([32], [4]).cells[32, 4]
    }
    assert "L(complete_bipartite(4, 4))" in found
    assert any("□" in name for name in found)
