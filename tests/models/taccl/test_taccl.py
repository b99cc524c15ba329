"""TACCL: routing, ordering, contiguity and sketches."""

from __future__ import annotations

from fractions import Fraction

import pyomo.environ as pyo
import pytest
from cwb import solvers
from cwb.core.budget import Budget
from cwb.core.collective import CollectiveKind, Demand
from cwb.core.errors import InputError
from cwb.instances import load
from cwb.models.common.hyper_edges import edges_of
from cwb.models.common.whole_chunks import whole_chunks
from cwb.models.taccl import contiguity, routing
from cwb.models.taccl.contiguity import Orders
from cwb.models.taccl.method import METHOD, Options, run
from cwb.models.taccl.ordering import symmetric
from cwb.models.taccl.routing import Routing
from cwb.models.taccl.sketch import parse_sketch
from cwb.schedules import judge

ROUTING = ["delivered", "relayed", "arrival", "busy", "last", "connection", "alike"]
CONTIGUITY = ["data", "duration", "turn", "joined_begin", "joined_end", "last"]
GATHER = CollectiveKind.ALL_GATHER


def asked(network, kind=GATHER, size=400_000, chunks=1):
    return load(network).with_changes(demand=Demand(kind, Fraction(size), chunks))


def small_routing():
    """A broadcast among three ranks on a switch, with few connections and a symmetry of one pair."""
    instance = asked("star(3, latency='1 s', bandwidth='1 B/s')", CollectiveKind.BROADCAST, 2)
    edges = edges_of(instance.network)
    return routing.build(Routing(whole_chunks(instance)[0], edges, instance.network, (((0, 0), (0, 1)),), "min"))


def small_contiguity():
    """Two sends over one edge, then one of them further."""
    return contiguity.build(Orders([[0, 1], [2]], [1.0, 1.0, 2.0], [3.0, 4.0, 5.0], [None, None, 0], [0, 0, 1]))


def lp_text(model, folder):
    path = folder / "model.lp"
    model.write(str(path), io_options={"symbolic_solver_labels": True})
    return path.read_text()


@pytest.mark.parametrize(("stage", "name"), [("routing", n) for n in ROUTING] + [("contiguity", n) for n in CONTIGUITY])
def test_each_constraint_is_written_as_its_golden_file(stage, name, golden, tmp_path):
    """Every constraint, alone in its model, gives the LP file that was checked by hand."""
    model = small_routing() if stage == "routing" else small_contiguity()
    for constraint in model.component_objects(pyo.Constraint):
        if constraint.name != name:
            constraint.deactivate()
    golden(f"taccl/{stage}_{name}.lp", lp_text(model, tmp_path))


def test_no_constraint_is_without_golden_file():
    """The models have no constraint that the golden files leave out."""
    assert [c.name for c in small_routing().component_objects(pyo.Constraint)] == ROUTING
    assert [c.name for c in small_contiguity().component_objects(pyo.Constraint)] == CONTIGUITY


@pytest.mark.parametrize(
    ("network", "kind", "options"),
    [
        ("ring(4)", GATHER, {}),
        ("ring(4)", CollectiveKind.ALL_TO_ALL, {}),
        ("star(4)", GATHER, {"connections": "min"}),
        ("star(3)", CollectiveKind.ALL_TO_ALL, {"connections": "max"}),
        ("line(3)", CollectiveKind.BROADCAST, {"contiguity": False}),
        ("ring(4)", GATHER, {"sketch": "shift 1"}),
    ],
)
def test_schedules_are_judged(network, kind, options):
    """What comes out is right, whatever the stages and the sketch."""
    instance = asked(network, kind)
    outcome = run(instance, solvers.get("highs"), Budget(), Options(**options))
    assert not judge(instance, outcome.answer, outcome.certificate).violations


def test_few_connections_are_fewer_than_many():
    """On a switch, a broadcast under uc-min uses no more edges than under uc-max."""
    found = []
    for connections in ("min", "max"):
        instance = asked("star(4)", CollectiveKind.BROADCAST)
        edges = edges_of(instance.network)
        model = routing.build(Routing(whole_chunks(instance)[0], edges, instance.network, (), connections))
        solvers.get("highs").solve(model, Budget())
        found.append(sum(any(model.x[c, e].value > 0.5 for c in model.C) for e in model.E))
    assert found[0] <= found[1]


def test_together_pays_the_latency_once():
    """Two short sends over one link of long latency go together: 1 + 10 instead of 20 or more."""
    orders = Orders([[0, 1]], [10.0, 10.0], [0.5, 0.5], [None, None], [0, 0])
    model = contiguity.build(orders)
    solvers.get("highs").solve(model, Budget())
    assert model.T.value == pytest.approx(11)
    apart = contiguity.build(Orders([[0, 1]], [10.0, 10.0], [0.5, 0.5], [None, None], [0, 1]))
    solvers.get("highs").solve(apart, Budget())
    assert apart.T.value == pytest.approx(21)


def test_a_sketch_leaves_out_edges():
    """avoid takes edges away, only keeps some, and what is left has no other."""
    topology = load("complete(4)").network
    kept = parse_sketch("avoid 0 -> 1; only 2 -> 3", 4).allowed(topology, edges_of(topology))
    ends = {(edge.source, edge.target) for edge in kept}
    assert (0, 1) not in ends
    assert {j for i, j in ends if i == 2} == {3}
    assert len(ends) == 12 - 1 - 2


def test_wrong_sketches_are_told():
    """Statements that are none, shifts that do not divide, and shifts that map a link to none are one line each."""
    for text, reason in [
        ("use 0 -> 1", "expected avoid"),
        ("shift 3", "proper divisor"),
        ("shift 1; shift 2", "one shift"),
    ]:
        with pytest.raises(InputError, match=reason):
            parse_sketch(text, 4)
    instance = asked("line(4)")
    with pytest.raises(InputError, match="does not map edges"):
        symmetric(instance.network, whole_chunks(instance)[0], edges_of(instance.network), 2)
    with pytest.raises(InputError, match="leaves no edge"):
        run(instance, solvers.get("highs"), Budget(), Options(sketch="avoid * -> *"))


def test_sums_are_not_supported():
    """An all_reduce is refused with a reason."""
    assert "all_reduce" in (METHOD.supports(asked("ring(4)", CollectiveKind.ALL_REDUCE)) or "")
