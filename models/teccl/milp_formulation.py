"""TE-CCL's general form as a Pyomo model (section 3.1, appendices A, B, C and F), on the index sets of :mod:`.layout`."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC
from pyomo.core.expr import LinearExpression

from .layout import Layout


def build(plan: Layout, objective: str = "feasible", weights: Sequence[Fraction] = ()) -> Any:
    """Build the model: what is sent, what links carry, what nodes hold and pass on, what must have arrived, what is sought.

    Parameters
    ----------
    plan : Layout
        Index sets.
    objective : str
        ``feasible``, ``late`` (the makespan) or ``paper``.
    weights : sequence of Fraction
        Of the tenants, in the paper's objective; 1 unless given.
    """
    with PauseGC():
        m = pyo.ConcreteModel("teccl-milp")
        variables(m, plan)
        capacity(m, plan)
        buffers(m, plan)
        flow_conservation(m, plan)
        passing_on(m, plan)
        if plan.joint:
            added_up(m, plan)
        ready(m, plan)
        destination(m, plan)
        if plan.limited:
            limited_buffers(m, plan)
        if plan.rules.switches == "hyper-edges":
            hyper_edge_limit(m, plan)
        if objective == "late":
            makespan(m, plan)
        elif objective == "paper":
            paper_objective(m, plan, weights)
    return m


def variables(m: Any, plan: Layout) -> None:
    """``F[q, a, k]``: chunk q starts over arc a in epoch k; ``B[q, n, k]``: node n holds it at index k, whole since F is.

    To a switch that does not copy, F is the number of times that the chunk starts, up to once for every destination; such a switch counts in B
    what it has received, if it stores. Of contributions to one sum, ``S[p, a, k]``: something of sum p starts over arc a in epoch k.

    At nodes with limited buffers that copy, ``X[q, n, k]``: it is taken out in epoch k. Others hold what they have not sent on.
    """
    m.sends = pyo.Set(dimen=3, initialize=plan.sends)
    m.holdings = pyo.Set(dimen=3, initialize=plan.holdings)
    m.F = pyo.Var(m.sends, domain=pyo.Binary)
    m.B = pyo.Var(m.holdings, bounds=lambda m, q, n, k: (0, plan.most(q, n)))
    # Most of the time goes into finding variables, and a dictionary finds them faster than a component.
    m.found_F, m.found_B = dict(m.F.items()), dict(m.B.items())
    several = {(q, a): most for q, spans in enumerate(plan.spans) for a in spans if (most := plan.most_sent(q, a)) > 1}
    for key in plan.sends if several else ():
        if key[:2] in several:
            m.F[key].domain = pyo.NonNegativeIntegers
            m.F[key].setub(several[key[:2]])
    if plan.joint:
        m.S = pyo.Var(sorted(set(plan.joint.values())), bounds=(0, 1))
    if plan.limited:
        copies = plan.problem.copies
        removable = [k for k in plan.holdings if k[1] in plan.limited and copies[k[1]] and not _is_output(plan, *k[:2])]
        m.X = pyo.Var(removable, domain=pyo.Binary)


def capacity(m: Any, plan: Layout) -> None:
    """``sum_{k <= k' < k + kappa} sum_q F[q, (i, j), k'] <= kappa T tau``: whole chunks in any kappa epochs (equation 1, appendix F).

    Contributions to one sum that start in one epoch are added up and count once, as S.
    """
    rows = [(link, k) for link in plan.loads for k in plan.windows(link)]
    loads, links = plan.loads, plan.problem.links

    @m.Constraint(rows)
    def capacity(m: Any, link: int, k: int) -> Any:
        at = loads[link]
        starting = carried(m, plan, [key for t in range(k, k + links[link].window) if t in at for key in at[t]])
        room = plan.room(link, k)
        return LinearExpression(starting) <= room if sum(v.ub for v in starting) > room else pyo.Constraint.Skip


def carried(m: Any, plan: Layout, sends: Sequence[tuple[int, int, int]]) -> list[Any]:
    """List what a link has to carry of these sends: F, but of contributions to one sum that start together S, once."""
    F, joint = m.found_F, plan.joint
    if not joint:
        return [F[key] for key in sends]
    found = [F[key] for key in sends if key not in joint]
    return found + [m.S[key] for key in sorted({joint[key] for key in sends if key in joint})]


def added_up(m: Any, plan: Layout) -> None:
    """``F[q, a, k] <= S[p, a, k]`` for every contribution q to a sum p: those that start together are one send."""

    @m.Constraint(list(plan.joint))
    def added_up(m: Any, q: int, a: int, k: int) -> Any:
        return m.F[q, a, k] <= m.S[plan.joint[q, a, k]]


def buffers(m: Any, plan: Layout) -> None:
    """``B[q, n, k] = B[q, n, k-1] + sum_j F[q, (j, n), k - delta]`` (less X[q, n, k-1], appendix B): what has come by index k."""
    removes = bool(plan.limited)
    sources = {(q, c.source) for q, c in enumerate(plan.problem.commodities)}
    first = plan.first
    F, B = m.found_F, m.found_B

    @m.Constraint([key for key in plan.holdings if key[:2] not in sources])
    def buffers(m: Any, q: int, n: int, k: int) -> Any:
        came = [F[key] for key in plan.arriving(q, n, k)]
        if (given := plan.incoming(q, n, k)) != 0:
            came.append(given)
        if k > first[q][n]:
            came.append(B[q, n, k - 1])
            if removes and (q, n, k - 1) in m.X:
                came.append(-m.X[q, n, k - 1])
        return B[q, n, k] == LinearExpression(came)


def flow_conservation(m: Any, plan: Layout) -> None:
    """``F[q, (n, j), k] <= B[q, n, k]`` for every j: what a node sends it has; the paper's maximum, link by link.

    Of a switch that stores but does not copy, ``sum_{j, k' <= k} F[q, (n, j), k'] <= B[q, n, k]``.
    """
    tail = [arc.source for arc in plan.arcs]
    stored = {(q, a) for q, spans in enumerate(plan.spans) for a in spans if plan.has_buffer(q, tail[a])}
    F, B = m.found_F, m.found_B

    @m.Constraint([key for key in plan.sends if key[:2] in stored and plan.problem.copies[tail[key[1]]]])
    def flow_conservation(m: Any, q: int, a: int, k: int) -> Any:
        return F[q, a, k] <= plan.most_sent(q, a) * B[q, tail[a], k]

    single = [key for key in plan.holdings if plan.has_buffer(*key[:2]) and not plan.problem.copies[key[1]]]

    @m.Constraint(single)
    def flow_conservation_once(m: Any, q: int, n: int, k: int) -> Any:
        sent = [key for t in range(plan.first[q][n], k + 1) for key in plan.departing(q, n, t)]
        return pyo.quicksum(m.F[key] for key in sent) <= m.B[q, n, k] if sent else pyo.Constraint.Skip


def passing_on(m: Any, plan: Layout) -> None:
    """``F[q, (s, j), k] <= sum_i F[q, (i, s), k - delta]`` at nodes that do not store: what came at this very index.

    Without copies, ``sum_j F[q, (s, j), k] <= sum_i F[q, (i, s), k - delta]``; what is not sent on is lost.
    """
    passed = [
        key
        for key in plan.sends
        if not plan.has_buffer(key[0], plan.arcs[key[1]].source) and not plan.is_given(key[0], plan.arcs[key[1]].source)
    ]

    @m.Constraint([key for key in passed if plan.problem.copies[plan.arcs[key[1]].source]])
    def passing_on(m: Any, q: int, a: int, k: int) -> Any:
        n = plan.arcs[a].source
        came = pyo.quicksum(m.F[key] for key in plan.arriving(q, n, k)) + plan.incoming(q, n, k)
        return m.F[q, a, k] <= plan.most_sent(q, a) * came

    nodes = [(key[0], plan.arcs[key[1]].source, key[2]) for key in passed]

    @m.Constraint(sorted({key for key in nodes if not plan.problem.copies[key[1]]}))
    def passing_on_once(m: Any, q: int, n: int, k: int) -> Any:
        came = pyo.quicksum(m.F[key] for key in plan.arriving(q, n, k)) + plan.incoming(q, n, k)
        return pyo.quicksum(m.F[key] for key in plan.departing(q, n, k)) <= came


def ready(m: Any, plan: Layout) -> None:
    """``B[q, s, k] <= B[p, s, k]``: a sum is at its owner once all contributions p are (section 8, demands of several stages)."""
    rows = [
        (q, k, p)
        for q, commodity in enumerate(plan.problem.commodities)
        for p in commodity.after
        for k in range(plan.first[q][commodity.source], plan.last[q][commodity.source] + 1)
    ]

    @m.Constraint(rows)
    def ready(m: Any, q: int, k: int, p: int) -> Any:
        owner = plan.problem.commodities[q].source
        return m.B[q, owner, k] <= m.B[p, owner, min(k, plan.last[p][owner])]


def destination(m: Any, plan: Layout) -> None:
    """``R[q, d, K] = D[q, d]``: everybody has what it needs in the end; R[q, d, k] = B[q, d, k + 1] where D is 1."""
    rows = [(q, d) for q, commodity in enumerate(plan.problem.commodities) for d in commodity.targets]

    @m.Constraint(rows)
    def destination(m: Any, q: int, d: int) -> Any:
        return m.B[q, d, plan.last[q][d]] == 1


def limited_buffers(m: Any, plan: Layout) -> None:
    """``sum_q B[q, n, k] <= L`` (appendix B), over what a node holds for others: neither its own data nor what it needs itself.

    Of a switch that does not copy, ``sum_q (B[q, n, k] - sum_{j, k' < k} F[q, (n, j), k']) <= L``. Only what is held in B can be taken out:
    ``X[q, n, k] <= B[q, n, k]``.
    """
    held: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for q, n, k in plan.holdings:
        if n in plan.limited and not _is_output(plan, q, n):
            held.setdefault((n, k), []).append((q, n, k))

    @m.Constraint(list(held))
    def limited_buffers(m: Any, n: int, k: int) -> Any:
        gone: list[tuple[int, int, int]] = []
        if not plan.problem.copies[n]:
            gone = [s for q, _, _ in held[n, k] for t in range(plan.first[q][n], k) for s in plan.departing(q, n, t)]
        return pyo.quicksum(m.B[key] for key in held[n, k]) - pyo.quicksum(m.F[key] for key in gone) <= plan.limited[n]

    @m.Constraint(list(m.X))
    def removed(m: Any, q: int, n: int, k: int) -> Any:
        return m.X[q, n, k] <= m.B[q, n, k]


def hyper_edge_limit(m: Any, plan: Layout) -> None:
    """``sum_{q, a in Omega(s)} F[q, a, k] <= min(in, out)`` for every switch s and epoch (appendix C).

    With links that carry several chunks in an epoch, in and out are the chunks that all links of s together can start. That a node is on one of its
    hyper-edges at a time is the capacity of its link to or from the switch.
    """
    problem = plan.problem
    through: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for key in plan.sends:
        arc = plan.arcs[key[1]]
        for link, offset in zip(arc.links[1:], arc.offsets[1:], strict=True):
            through.setdefault((problem.links[link].source, key[2] + offset), []).append(key)

    @m.Constraint(list(through))
    def hyper_edge_limit(m: Any, s: int, k: int) -> Any:
        sides = (problem.entering[s], problem.leaving[s])
        most = min(sum(problem.links[e].capacity for e in side) for side in sides)
        return pyo.quicksum(carried(m, plan, through[s, k])) <= most


def makespan(m: Any, plan: Layout) -> None:
    """Minimize ``sum_k late[k]`` with ``late[k] >= D - B[q, d, k]``: epochs in which something has not arrived."""
    m.late = pyo.Var(range(plan.epochs), bounds=(0, 1))
    wanted = [key for key in plan.holdings if key[2] < plan.epochs and key[1] in _targets(plan, key[0])]

    @m.Constraint(wanted)
    def not_arrived(m: Any, q: int, d: int, k: int) -> Any:
        return m.late[k] >= 1 - m.B[q, d, k]

    early = max(max(plan.first[q][d] for d in c.targets) for q, c in enumerate(plan.problem.commodities))
    for k in range(min(early, plan.epochs)):
        m.late[k].setlb(1)
    m.objective = pyo.Objective(expr=pyo.quicksum(m.late[k] for k in m.late), sense=pyo.minimize)


def paper_objective(m: Any, plan: Layout, weights: Sequence[Fraction]) -> None:
    """Maximize ``sum_{k, q, d} w / (k + 1) R[q, d, k]``, w the priority of the tenant (sections 3.1 and 5).

    Contributions count where their sum is needed; of an all-reduce the sums do.
    """
    terms = []
    goes_on = {p for commodity in plan.problem.commodities for p in commodity.after}
    for q, n, k in plan.holdings:
        if k > 0 and n in _targets(plan, q) and q not in goes_on:
            tenant = plan.problem.commodities[q].tenant
            terms.append((float(weights[tenant]) if weights else 1.0) / k * m.B[q, n, k])
    m.objective = pyo.Objective(expr=pyo.quicksum(terms), sense=pyo.maximize)


def _targets(plan: Layout, q: int) -> tuple[int, ...]:
    return plan.problem.commodities[q].targets


def _is_output(plan: Layout, q: int, n: int) -> bool:
    """Whether a chunk is the node's own, or one that it needs, or a sum to which it adds: it has room for those."""
    return n in plan.members[plan.problem.commodities[q].chunk]
