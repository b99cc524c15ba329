"""The pricing problem of column generation, ``mtree-layers``: the cheapest spanning tree of limited height.

Here too are three formulations of spanning trees, one tree for each k in ``m.K``, which the models of patterns
share. ``layered`` counts hops: an arc at depth h follows one at depth h - 1. ``labelled`` adds up latencies
along arcs. ``flowing`` has no limit on the height: a unit of flow from the first site to every other one. Each
returns a function of (tree, link) that is 1 where the tree has the link. An arc (e, 0) leads from the link's tail
to its head, (e, 1) back.
"""

from collections.abc import Callable
from typing import Any

import pyomo.environ as pyo

from ....algorithms.trees.network import HeightLimit, Wan
from ....algorithms.trees.trees import shortest_paths
from ....core.budget import require_buildable
from ....core.schedule import Floats
from ..problem import LinkPrices

Arc = tuple[int, int]
Uses = Callable[[int, int], Any]


def build(wan: Wan, limit: HeightLimit, price: Floats) -> Any:
    """Build model ``mtree-layers``: one tree, by layers (hops) or labels (latency)."""
    m = pyo.ConcreteModel("mtree-layers")
    m.K = pyo.RangeSet(0, 0)
    m.E = pyo.RangeSet(0, len(wan) - 1)
    m.V = pyo.RangeSet(0, wan.nodes - 1)
    uses = spanning(m, wan, limit)
    objective(m, uses, price)
    return m


def build_of_prices(index: LinkPrices) -> Any:
    """Build model ``mtree-layers`` of prices (``Formulation.build``)."""
    return build(index.problem.wan, index.problem.limit, index.price)


def objective(m: Any, uses: Uses, price: Floats) -> None:
    """Minimize ``sum_e w_e x_e``."""
    m.objective = pyo.Objective(expr=pyo.quicksum(float(price[e]) * uses(0, e) for e in m.E), sense=pyo.minimize)


def ends(wan: Wan, arc: Arc) -> tuple[int, int]:
    """Return the tail and head site of an arc."""
    e, back = arc
    one, other = int(wan.tail[e]), int(wan.head[e])
    return (other, one) if back else (one, other)


def arcs_into(wan: Wan) -> list[list[Arc]]:
    """Return the arcs into every site."""
    into: list[list[Arc]] = [[] for _ in range(wan.nodes)]
    for e in range(len(wan)):
        for back in (0, 1):
            into[ends(wan, (e, back))[1]].append((e, back))
    return into


def spanning(m: Any, wan: Wan, limit: HeightLimit | None) -> Uses:
    """Declare spanning trees of limited height, in hops or by latency; None is any height."""
    if limit is None:
        return flowing(m, wan)
    return layered_trees(m, wan, limit) if limit.unit == "hops" else labelled_trees(m, wan, limit)


def layered_trees(m: Any, wan: Wan, limit: HeightLimit) -> Uses:
    """``z_v``, 1 at the root; ``y_{u,v,h}``, 1 for an arc at depth h: trees of at most H hops."""
    columns = 2 * len(m.K) * len(wan) * limit.most
    require_buildable(columns, f"{len(wan):,} links in {limit.most:,} layers", 8e-6)
    m.H = pyo.RangeSet(1, limit.most)
    m.root = pyo.Var(m.K, m.V, domain=pyo.Binary)
    m.arc = pyo.Var(m.K, m.E, (0, 1), m.H, domain=pyo.Binary)
    one_root(m)
    layer_entered(m, wan)
    first_layer(m, wan)
    next_layer(m, wan)
    return lambda k, e: pyo.quicksum(m.arc[k, e, back, h] for back in (0, 1) for h in m.H)


def one_root(m: Any) -> None:
    """``sum_v z_v = 1``."""

    @m.Constraint(m.K)
    def one_root(m: Any, k: int) -> Any:
        return pyo.quicksum(m.root[k, v] for v in m.V) == 1


def layer_entered(m: Any, wan: Wan) -> None:
    """``z_v + sum_{u,h} y_{u,v,h} = 1``: every site but the root is entered once."""
    into = arcs_into(wan)

    @m.Constraint(m.K, m.V)
    def layer_entered(m: Any, k: int, v: int) -> Any:
        return m.root[k, v] + pyo.quicksum(m.arc[k, arc, h] for arc in into[v] for h in m.H) == 1


def first_layer(m: Any, wan: Wan) -> None:
    """``y_{u,v,1} <= z_u``."""

    @m.Constraint(m.K, m.E, (0, 1))
    def first_layer(m: Any, k: int, e: int, back: int) -> Any:
        return m.arc[k, e, back, 1] <= m.root[k, ends(wan, (e, back))[0]]


def next_layer(m: Any, wan: Wan) -> None:
    """``y_{u,v,h} <= sum_{w != v} y_{w,u,h-1}`` for h >= 2."""
    into = arcs_into(wan)
    last = max(m.H)

    @m.Constraint(m.K, m.E, (0, 1), range(2, last + 1))
    def next_layer(m: Any, k: int, e: int, back: int, h: int) -> Any:
        u, v = ends(wan, (e, back))
        before = [arc for arc in into[u] if ends(wan, arc)[0] != v]
        return m.arc[k, e, back, h] <= pyo.quicksum(m.arc[k, arc, h - 1] for arc in before)


def labelled_trees(m: Any, wan: Wan, limit: HeightLimit) -> Uses:
    """``z_v``, 1 at the root; ``y_{u,v}``, 1 for an arc; ``0 <= d_v <= 1``, a site's distance in multiples of H."""
    m.root = pyo.Var(m.K, m.V, domain=pyo.Binary)
    m.arc = pyo.Var(m.K, m.E, (0, 1), domain=pyo.Binary)
    m.far = pyo.Var(m.K, m.V, bounds=(0, 1))
    one_root(m)
    site_entry(m, wan)
    near_root(m, wan, limit)
    farther(m, wan, limit)
    later(m, wan)
    return lambda k, e: m.arc[k, e, 0] + m.arc[k, e, 1]


def site_entry(m: Any, wan: Wan) -> None:
    """``z_v + sum_u y_{u,v} = 1``: every site but the root is entered once."""
    into = arcs_into(wan)

    @m.Constraint(m.K, m.V)
    def one_arc_in(m: Any, k: int, v: int) -> Any:
        return m.root[k, v] + pyo.quicksum(m.arc[k, arc] for arc in into[v]) == 1


def near_root(m: Any, wan: Wan, limit: HeightLimit) -> None:
    """``y_{u,v} <= sum_r z_r`` over the roots r with ``d_r(u) + L_uv <= H``: implied, but not by the relaxation."""
    reach = shortest_paths(wan, limit.length).reach

    @m.Constraint(m.K, m.E, (0, 1))
    def near_root(m: Any, k: int, e: int, back: int) -> Any:
        u, _ = ends(wan, (e, back))
        near = [r for r in m.V if 0 <= reach[r, u] <= limit.most - limit.length[e]]
        return m.arc[k, e, back] <= pyo.quicksum(m.root[k, r] for r in near)


def farther(m: Any, wan: Wan, limit: HeightLimit) -> None:
    """``d_v >= d_u + L_e - (1 + L_e) (1 - y_{u,v})``, ``d <= 1``, L in multiples of H."""

    @m.Constraint(m.K, m.E, (0, 1))
    def farther(m: Any, k: int, e: int, back: int) -> Any:
        u, v = ends(wan, (e, back))
        step = int(limit.length[e]) / max(limit.most, 1)
        return m.far[k, v] >= m.far[k, u] + step - (1 + step) * (1 - m.arc[k, e, back])


def later(m: Any, wan: Wan) -> None:
    """``t_v >= t_u + 1 - n (1 - y_{u,v})``: an order of sites against zero-length cycles."""
    m.turn = pyo.Var(m.K, m.V, bounds=(0, wan.nodes - 1))

    @m.Constraint(m.K, m.E, (0, 1))
    def later(m: Any, k: int, e: int, back: int) -> Any:
        u, v = ends(wan, (e, back))
        return m.turn[k, v] >= m.turn[k, u] + 1 - wan.nodes * (1 - m.arc[k, e, back])


def flowing(m: Any, wan: Wan) -> Uses:
    """``x_e``, 1 for a link; ``f_e``, the flow from the first site to the others: trees of any height."""
    m.link = pyo.Var(m.K, m.E, domain=pyo.Binary)
    m.flow = pyo.Var(m.K, m.E, bounds=(1 - wan.nodes, wan.nodes - 1))
    flow_capacity(m, wan)
    flow_balance(m, wan)
    tree_size(m, wan)
    return lambda k, e: m.link[k, e]


def flow_capacity(m: Any, wan: Wan) -> None:
    """``-(n - 1) x_e <= f_e <= (n - 1) x_e``."""

    @m.Constraint(m.K, m.E, (-1, 1))
    def flow_on_links(m: Any, k: int, e: int, sign: int) -> Any:
        return sign * m.flow[k, e] <= (wan.nodes - 1) * m.link[k, e]


def flow_balance(m: Any, wan: Wan) -> None:
    """``sum_{e into v} f_e - sum_{e out of v} f_e = 1`` for every site but the first."""

    @m.Constraint(m.K, range(1, wan.nodes))
    def flow_balance(m: Any, k: int, v: int) -> Any:
        into = pyo.quicksum(m.flow[k, e] for e in m.E if wan.head[e] == v)
        return into - pyo.quicksum(m.flow[k, e] for e in m.E if wan.tail[e] == v) == 1


def tree_size(m: Any, wan: Wan) -> None:
    """``sum_e x_e = n - 1``."""

    @m.Constraint(m.K)
    def tree_size(m: Any, k: int) -> Any:
        return pyo.quicksum(m.link[k, e] for e in m.E) == wan.nodes - 1
