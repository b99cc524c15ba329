"""TACCL: routing, ordering, contiguity and sketches."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pyomo.environ as pyo
import pytest
from cwb import solvers
from cwb.algorithms.schedules.problem import commodities_of, edges_of
from cwb.algorithms.schedules.stages import stages_of
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError
from cwb.core.solver import Termination
from cwb.instances import load
from cwb.models.taccl.formulations import contiguity, routing
from cwb.models.taccl.formulations.contiguity import QueueOrders
from cwb.models.taccl.formulations.routing import RoutingProblem
from cwb.models.taccl.method import METHOD, ROUTING, TacclOptions
from cwb.models.taccl.sketch import parse_sketch, shortest_ways
from cwb.models.taccl.solve import first_routes, routing_of, routing_time, run, symmetric
from cwb.schedules import verdict_of

GATHER = Collective.ALL_GATHER


def make_instance(network, kind=GATHER, size=400_000, chunks=1):
    return load(network).with_changes(demand=Demand(kind, Fraction(size), chunks))


@pytest.mark.parametrize(
    ("network", "kind", "options"),
    [
        ("ring(4)", GATHER, {}),
        ("ring(4)", Collective.ALL_TO_ALL, {}),
        ("star(4)", GATHER, {"connections": "min"}),
        ("star(3)", Collective.ALL_TO_ALL, {"connections": "max"}),
        ("line(3)", Collective.BROADCAST, {"contiguity": False}),
        ("ring(4)", GATHER, {"sketch": "shift 1"}),
        ("ring(4)", Collective.ALL_REDUCE, {"sketch": "shift 1"}),
        ("star(3)", Collective.REDUCE_SCATTER, {}),
        ("ring(4, bidirectional=false)", Collective.REDUCE, {"contiguity": False}),
    ],
)
def test_schedules_are_verified(network, kind, options):
    """Schedules are valid for all stages and sketches."""
    instance = make_instance(network, kind)
    outcome = run(instance, solvers.get("highs"), Budget(), TacclOptions(**options))
    assert not verdict_of(instance, outcome.answer, outcome.certificate).violations


def test_few_connections_are_fewer_than_many():
    """On a switch, a broadcast under uc-min uses no more edges than under uc-max."""
    found = []
    for connections in ("min", "max"):
        instance = make_instance("star(4)", Collective.BROADCAST)
        chunks, edges = commodities_of(instance), edges_of(instance.network)
        model = routing.build(
            RoutingProblem(chunks, edges, stages_of(instance)[0], [range(len(edges))] * len(chunks), (), connections)
        )
        solvers.get("highs").solve(model, Budget())
        found.append(len({e for c, e in model.sends if model.x[c, e].value > 0.5}))
    assert found[0] <= found[1]


def test_together_pays_the_latency_once():
    """Two short sends over one link of long latency go together: 1 + 10 instead of 20 or more."""
    orders = QueueOrders([[0, 1]], [10.0, 10.0], [0.5, 0.5], [None, None], [0, 0], 21.0)
    model = contiguity.build(orders)
    solvers.get("highs").solve(model, Budget())
    assert model.T.value == pytest.approx(11)
    apart = contiguity.build(QueueOrders([[0, 1]], [10.0, 10.0], [0.5, 0.5], [None, None], [0, 1], 21.0))
    solvers.get("highs").solve(apart, Budget())
    assert apart.T.value == pytest.approx(21)


def test_a_sketch_leaves_out_edges():
    """avoid takes edges away, only keeps some, and what is left has no other."""
    topology = load("complete(4)").network
    kept = parse_sketch("avoid 0 -> 1; only 2 -> 3", 4).allowed_edges(topology, edges_of(topology))
    ends = {(edge.source, edge.target) for edge in kept}
    assert (0, 1) not in ends
    assert {j for i, j in ends if i == 2} == {3}
    assert len(ends) == 12 - 1 - 2


def test_wrong_sketches_are_told():
    """Statements that are none, shifts that do not divide, and shifts that map a link to none are one line each."""
    for text, reason in [
        ("use 0 -> 1", "expected avoid"),
        ("sketches/sk1.json", "expected the whole text of a sketch file, such as -O sketch"),
        ('{"nnodes": 2', "expected the whole text of a sketch file, such as -O sketch"),
        ("shift 3", "proper divisor"),
        ("shift 4", "proper divisor"),
        ("shift 2 of 3", "proper divisor"),
        ('{"nnodes": 3}', "divisor of the 4 ranks"),
        ('{"nnodes": 2, "symmetry_offsets": [[2]]}', "pairs of an offset and a size"),
        ('{"nnodes": 2, "hyperparameters": {"input_chunkup": 0}}', "number of chunks"),
        ('{"nnodes": 2, "internode_sketch": {"internode_conn": {"2": [0]}}}', "GPUs from 0 to 1"),
        ('{"nnodes": 2, "internode_sketch": []}', "expected an object"),
        ('{"nnodes": 2', "JSON"),
    ]:
        with pytest.raises(InputError, match=reason):
            parse_sketch(text, 4)
    instance = make_instance("line(4)")
    with pytest.raises(InputError, match="does not map edges"):
        symmetric(instance.network, commodities_of(instance), edges_of(instance.network), (2, 4))
    with pytest.raises(InputError, match="leaves no edge"):
        run(instance, solvers.get("highs"), Budget(), TacclOptions(sketch="avoid * -> *"))


def test_sums_that_are_no_copies_backwards_are_refused():
    """A late all_reduce is refused by the method, and an all_reduce by its models, each with a reason."""
    assert "late_all_reduce" in str(METHOD.supports(make_instance("ring(4)", Collective.LATE_ALL_REDUCE)))
    assert "two successive models" in str(ROUTING.supports(make_instance("ring(4)", Collective.ALL_REDUCE)))


def test_statements_name_links_of_the_network_and_files_the_copies():
    """A reduction keeps off a link that is avoided; a file's relays are those of the copies that it reverses."""
    instance = make_instance("complete(3)", Collective.ALL_REDUCE)
    outcome = run(instance, solvers.get("highs"), Budget(), TacclOptions(sketch="avoid 0 -> 1"))
    ends = set(zip(outcome.answer.sends.source.tolist(), outcome.answer.sends.target.tolist(), strict=True))
    assert ends == {(1, 0), (0, 2), (2, 0), (1, 2), (2, 1)}
    reduction = make_instance("complete(4)", Collective.REDUCE_SCATTER)
    sends = run(reduction, solvers.get("highs"), Budget(), TacclOptions(sketch=RELAYS)).answer.sends
    between = {(i, j) for i, j in zip(sends.source.tolist(), sends.target.tolist(), strict=True) if i // 2 != j // 2}
    assert between == {(0, 3), (2, 1)}  # an all-gather sends from GPU 1 of a box to GPU 0 of the other


#: Two boxes of two GPUs; chunks leave a box by GPU 1, and come to GPU 0 of the other one.
RELAYS = """{"nnodes": 2, "internode_sketch": {"strategy": "relay", "internode_conn": {"1": [0]},
"gpus_to_sender_rev_map": {"1": [0, 1]}}, "intranode_sketch": {"switch_hyperedge_strategy": ["uc-min"]},
"symmetry_offsets": [[2, 4]], "hyperparameters": {"input_chunkup": 2}}"""


def test_a_sketch_file_of_taccl():
    """Relays, senders, symmetry, the use of switches and the chunks of a file of TACCL are kept by the answer."""
    sketch = parse_sketch(RELAYS, 4)
    assert (sketch.connections, sketch.chunks, sketch.shifts) == ("min", 2, ((2, 4),))
    options = TacclOptions(sketch=RELAYS)
    instance = METHOD.pose(make_instance("complete(4)"), options)
    assert instance.demand.chunks == 2
    outcome = run(instance, solvers.get("highs"), Budget(), options)
    assert not verdict_of(instance, outcome.answer, outcome.certificate).violations
    ends = set(zip(outcome.answer.sends.source.tolist(), outcome.answer.sends.target.tolist(), strict=True))
    assert {(a, b) for a, b in ends if a // 2 != b // 2} == {(1, 2), (3, 0)}


@pytest.mark.parametrize("sketch", ["", "shift 2", "shift 1 of 2; shift 2", RELAYS])
@pytest.mark.parametrize("kind", [GATHER, Collective.ALL_TO_ALL])
def test_routes_without_a_solver(sketch, kind):
    """The routes that are made first obey the sketch, and no routing that the solver finds takes longer."""
    posed = routing_of(
        METHOD.pose(make_instance("complete(4)", kind), TacclOptions(sketch=sketch)), TacclOptions(sketch=sketch)
    )
    first = first_routes(posed)
    assert first is not None
    assert all((one in first) == (other in first) for one, other in (*posed.same, *posed.images))
    model = routing.build(posed)
    assert solvers.get("highs").solve(model, Budget()).has_solution
    assert model.T.value <= routing_time(posed, first) * (1 + 1e-6)


@pytest.mark.parametrize(
    ("network", "kind", "options"),
    [
        ("complete(4)", GATHER, {"sketch": "shift 1"}),
        ("complete(4)", Collective.ALL_TO_ALL, {"sketch": "shift 1 of 2; shift 2", "ways": "any"}),
        ("star(4)", GATHER, {"sketch": "shift 1", "connections": "min"}),
        ("star(4)", Collective.ALL_TO_ALL, {"sketch": "shift 2", "connections": "max"}),
    ],
)
def test_images_share_variables(network, kind, options):
    """With a variable for all images the model is smaller, and its optimum that of equations between all variables."""
    posed = routing_of(make_instance(network, kind), TacclOptions(**options))
    best, columns = [], []
    for problem in (posed, replace(posed, same=posed.images, images=())):
        model = routing.build(problem)
        assert solvers.get("highs").solve(model, Budget()).termination is Termination.OPTIMAL
        best.append(pyo.value(model.objective))
        columns.append(len(model.x))
    assert posed.images
    assert not posed.same
    assert best[0] == pytest.approx(best[1], rel=1e-4)
    assert columns[0] < columns[1]


def test_alike_boxes_leave_the_sends_of_one_chunk():
    """With boxes and the GPUs of a box alike, routing has a variable for each edge, and no equations."""
    posed = routing_of(make_instance("dgx_a100(boxes=2)"), TacclOptions(sketch="shift 8; shift 1 of 8"))
    assert posed.leaders == [0]
    assert sorted({*posed.first.values()}) == [(0, e) for e in range(len(posed.edges))]
    assert not posed.same


def test_images_need_a_symmetry_of_the_network():
    """A shift that maps a link to a slower one, or leaves edges out, keeps rows for pairs of alike sends."""
    fast = make_instance("ring(4)")
    assert routing_of(fast, TacclOptions(sketch="shift 1")).images
    first, *rest = fast.topology.links
    links = (replace(first, bandwidth_Bps=first.bandwidth_Bps / 2), *rest)
    slow = fast.with_changes(network=replace(fast.topology, links=links))
    posed = routing_of(slow, TacclOptions(sketch="shift 1"))
    assert posed.same
    assert not posed.images
    assert routing_of(make_instance("ndv2(chassis=2)"), TacclOptions(sketch="shift 4 of 8")).same


def test_ways_of_fewest_edges():
    """On a ring of five a chunk for the second neighbour goes over the first, and comes by no other rank."""
    topology = load("ring(5)").network
    assert shortest_ways(topology, edges_of(topology), 0, (2,)) == {0, 1, 2}
    assert shortest_ways(topology, edges_of(topology), 0, (1, 2, 3, 4)) == set(range(5))


@pytest.mark.parametrize("network", ["ndv2(chassis=2)", "dgx_a100(boxes=2)"])
def test_two_boxes_have_routes(network):
    """An all-gather on two boxes has a schedule, though no node of the solver's search is done."""
    instance = make_instance(network, size=10**9)
    outcome = run(instance, solvers.get("highs"), Budget(time_limit_s=0.0), TacclOptions(contiguity=False))
    assert not verdict_of(instance, outcome.answer, outcome.certificate).violations
