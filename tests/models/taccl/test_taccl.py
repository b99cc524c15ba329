"""TACCL: routing, ordering, contiguity and sketches."""

from __future__ import annotations

from fractions import Fraction

import pytest
from cwb import solvers
from cwb.algorithms.graphs.hyper_edges import edges_of
from cwb.algorithms.schedules.commodities import commodities_of
from cwb.core.budget import Budget
from cwb.core.collective import CollectiveKind, Demand
from cwb.core.errors import InputError
from cwb.instances import load
from cwb.models.taccl.formulations import contiguity, routing
from cwb.models.taccl.formulations.contiguity import QueueOrders
from cwb.models.taccl.formulations.routing import RoutingProblem
from cwb.models.taccl.method import METHOD, TacclOptions, parse_sketch
from cwb.models.taccl.solve import run, symmetric
from cwb.schedules import judge

GATHER = CollectiveKind.ALL_GATHER


def asked(network, kind=GATHER, size=400_000, chunks=1):
    return load(network).with_changes(demand=Demand(kind, Fraction(size), chunks))


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
    outcome = run(instance, solvers.get("highs"), Budget(), TacclOptions(**options))
    assert not judge(instance, outcome.answer, outcome.certificate).violations


def test_few_connections_are_fewer_than_many():
    """On a switch, a broadcast under uc-min uses no more edges than under uc-max."""
    found = []
    for connections in ("min", "max"):
        instance = asked("star(4)", CollectiveKind.BROADCAST)
        edges = edges_of(instance.network)
        model = routing.build(RoutingProblem(commodities_of(instance), edges, instance.network, (), connections))
        solvers.get("highs").solve(model, Budget())
        found.append(sum(any(model.x[c, e].value > 0.5 for c in model.C) for e in model.E))
    assert found[0] <= found[1]


def test_together_pays_the_latency_once():
    """Two short sends over one link of long latency go together: 1 + 10 instead of 20 or more."""
    orders = QueueOrders([[0, 1]], [10.0, 10.0], [0.5, 0.5], [None, None], [0, 0])
    model = contiguity.build(orders)
    solvers.get("highs").solve(model, Budget())
    assert model.T.value == pytest.approx(11)
    apart = contiguity.build(QueueOrders([[0, 1]], [10.0, 10.0], [0.5, 0.5], [None, None], [0, 1]))
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
        symmetric(instance.network, commodities_of(instance), edges_of(instance.network), 2)
    with pytest.raises(InputError, match="leaves no edge"):
        run(instance, solvers.get("highs"), Budget(), TacclOptions(sketch="avoid * -> *"))


def test_sums_are_not_supported():
    """An all_reduce is refused with a reason."""
    assert "all_reduce" in (METHOD.supports(asked("ring(4)", CollectiveKind.ALL_REDUCE)) or "")
