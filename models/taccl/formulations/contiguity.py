"""Model ``taccl-contiguity``: begins of sends, and which are joined (:mod:`cwb.models.taccl`)."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyomo.environ as pyo


@dataclass(frozen=True)
class QueueOrders:
    """Order of the sends on every queue, with latencies alpha and times on the link beta in one unit."""

    queues: Sequence[Sequence[int]]  #: Sends of each queue, in order; a send is in one queue.
    alpha: Sequence[float]
    beta: Sequence[float]
    after: Sequence[int | None]  #: The send that brings the chunk to where this one starts; None at the source.
    edge: Sequence[int]  #: Edge of every send; only sends over the same edge can be joined.
    horizon: float  #: End of all sends without joining, an upper bound on the optimum.

    @property
    def neighbours(self) -> list[tuple[int, int]]:
        """Pairs of consecutive sends of a queue."""
        return [(a, b) for queue in self.queues for a, b in itertools.pairwise(queue)]


def build(orders: QueueOrders) -> Any:
    """Build the model: precedence of data, turns, joined sends, the end."""
    m = pyo.ConcreteModel("taccl-contiguity")
    variables(m, orders)
    data(m, orders)
    duration(m, orders)
    turn(m, orders)
    joined_begin(m, orders)
    joined_end(m, orders)
    busy(m, orders)
    last(m, orders)
    m.objective = pyo.Objective(expr=m.T, sense=pyo.minimize)
    return m


def variables(m: Any, orders: QueueOrders) -> None:
    """Begin ``b_k``, end ``f_k``, joined time ``w_k``; ``g_k``, 1 if joined with the send before; ``T``, the end."""
    m.K = pyo.RangeSet(0, len(orders.after) - 1)
    m.pairs = pyo.Set(initialize=orders.neighbours, dimen=2)
    horizon = orders.horizon
    m.b = pyo.Var(m.K, bounds=(0, horizon))
    m.f = pyo.Var(m.K, bounds=(0, horizon))
    m.w = pyo.Var(m.K, bounds=(0, horizon))
    m.g = pyo.Var(m.pairs, domain=pyo.Binary)
    m.T = pyo.Var(bounds=(0, None))
    for a, b in m.pairs:
        if orders.edge[a] != orders.edge[b]:
            m.g[a, b].fix(0)


def data(m: Any, orders: QueueOrders) -> None:
    """``b_k >= f_h`` where h brings the chunk."""

    @m.Constraint([(k, h) for k, h in enumerate(orders.after) if h is not None])
    def data(m: Any, k: int, h: int) -> Any:
        return m.b[k] >= m.f[h]


def duration(m: Any, orders: QueueOrders) -> None:
    """``f_k >= b_k + alpha + w_k``, with ``w_k >= beta_k``: latency once, and the joined time."""

    @m.Constraint(m.K, ["own", "all"])
    def duration(m: Any, k: int, part: str) -> Any:
        return m.w[k] >= orders.beta[k] if part == "own" else m.f[k] >= m.b[k] + orders.alpha[k] + m.w[k]


def turn(m: Any, orders: QueueOrders) -> None:
    """``b_k >= f_{k-1} - M g_k``: a send that is not joined waits for the end before."""

    @m.Constraint(m.pairs)
    def turn(m: Any, a: int, b: int) -> Any:
        return m.b[b] >= m.f[a] - orders.horizon * m.g[a, b]


def joined_begin(m: Any, orders: QueueOrders) -> None:
    """``b_{k-1} >= b_k - M (1 - g_k)`` and ``b_k >= b_{k-1}``: joined sends begin together."""

    @m.Constraint(m.pairs, ["together", "order"])
    def joined_begin(m: Any, a: int, b: int, part: str) -> Any:
        if part == "order":
            return m.b[b] >= m.b[a]
        return m.b[a] >= m.b[b] - orders.horizon * (1 - m.g[a, b])


def joined_end(m: Any, orders: QueueOrders) -> None:
    """``w_k >= w_{k-1} + beta_k - M (1 - g_k)`` and ``f_{k-1} >= f_k - M (1 - g_k)``: jointly."""

    @m.Constraint(m.pairs, ["length", "end"])
    def joined_end(m: Any, a: int, b: int, part: str) -> Any:
        slack = orders.horizon * (1 - m.g[a, b])
        if part == "length":
            return m.w[b] >= m.w[a] + orders.beta[b] - slack
        return m.f[a] >= m.f[b] - slack


def busy(m: Any, orders: QueueOrders) -> None:
    """``f_k >= b_1 + sum_{h <= k} (beta_h + alpha_h (1 - g_h))`` in every queue.

    g of its first send is 0. It follows from the others where g is integral, and keeps turns in the relaxation.
    """
    place = {k: (queue, n) for queue in orders.queues for n, k in enumerate(queue)}

    @m.Constraint([k for queue in orders.queues for k in queue[1:]])
    def busy(m: Any, k: int) -> Any:
        queue, n = place[k]
        rest = sum(orders.beta[h] for h in queue[: n + 1]) + orders.alpha[queue[0]]
        pairs = itertools.pairwise(queue[: n + 1])
        return m.f[k] >= m.b[queue[0]] + rest + pyo.quicksum(orders.alpha[h] * (1 - m.g[a, h]) for a, h in pairs)


def last(m: Any, orders: QueueOrders) -> None:
    """``T >= f_k``."""

    @m.Constraint(m.K)
    def last(m: Any, k: int) -> Any:
        return m.f[k] <= m.T
