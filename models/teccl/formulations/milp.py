"""TE-CCL's general form as a Pyomo model (section 3.1, appendices A, B, C, F), on the sets of :mod:`..index_sets`.

Constraints with many rows are declared with ``@rows``, which calls their rules once for all rows. Constraints with
few rows, and those of switches, sums and limited buffers, which most instances lack, use ``@m.Constraint``.
"""

from typing import Any

import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC

from ....core.rows import Lists, Table, Variables, rows, var_or_zero
from ..index_sets import IndexSets


def build(sets: IndexSets) -> Any:
    """Build the model: sends, capacities, buffers, conservation, destinations, objective."""
    with PauseGC():
        m = pyo.ConcreteModel("teccl-milp")
        variables(m, sets)
        capacity(m, sets)
        buffers(m, sets)
        flow_conservation(m, sets)
        passing_on(m, sets)
        if sets.joint:
            joint_sends(m, sets)
        ready(m, sets)
        destination(m, sets)
        if sets.room_limits:
            limited_buffers(m, sets)
        if sets.hyper_edges:
            hyper_edge_limit(m, sets)
        if sets.objective == "late":
            makespan(m, sets)
        elif sets.objective == "paper":
            paper_objective(m, sets)
    return m


def variables(m: Any, sets: IndexSets) -> None:
    """``F[q, a, k]``: chunk q starts over a in epoch k; ``B[q, n, k]``: n holds it at index k.

    B is integral since F is. To a switch that does not copy, F is the number of times that the chunk starts, up to
    once for every destination; if such a switch stores, B counts what it has received. For contributions
    to a sum p, ``S[p, a, k]``: at least one of them starts over arc a in epoch k.

    At nodes with limited buffers that copy, ``X[q, n, k]``: the chunk is dropped in epoch k. Others hold what they
    have not sent on.
    """
    m.sends = pyo.Set(dimen=3, initialize=sets.sends)
    m.holdings = pyo.Set(dimen=3, initialize=sets.holdings)
    m.F = Variables(m.sends, domain=pyo.Binary)
    m.B = Variables(m.holdings, bounds=(0, 1))
    for key in sets.holdings:
        if not sets.problem.copies[key[1]]:
            m.B[key].setub(sets.most(*key[:2]))
    several = sent_several_times(sets)
    for key in sets.sends if several else ():
        if key[:2] in several:
            m.F[key].domain = pyo.NonNegativeIntegers
            m.F[key].setub(several[key[:2]])
    if sets.joint:
        m.S = Variables(sorted(set(sets.joint.values())), bounds=(0, 1))
    if sets.room_limits:
        limited = [k for k in sets.holdings if k[1] in sets.room_limits and sets.problem.copies[k[1]]]
        m.X = Variables([k for k in limited if not _needs_no_buffer(sets, *k[:2])], domain=pyo.Binary)


def capacity(m: Any, sets: IndexSets) -> None:
    """``sum_{k <= k' < k + kappa} (sum_q F[q, (i, j), k'] + sum_p S[p, (i, j), k']) <= floor(kappa T tau)``.

    Equation 1 and appendix F: whole chunks, in any kappa epochs. Contributions to one sum that start in one epoch are
    added up and count once, as S in place of their F. Where bandwidth varies, ``kappa T tau`` is the
    sum over the epochs.
    """
    starting, summed, room = Lists(), Lists(), Table()
    several = sent_several_times(sets)
    for link, at in sets.loads.items():
        window = sets.problem.links[link].window
        for k in sets.windows(link):
            sends = [key for t in range(k, k + window) if t in at for key in at[t]]
            own, sums = carried_sends(sets, sends)
            most = len(sums) + (sum(several.get(key[:2], 1) for key in own) if several else len(own))
            if most > (limit := sets.room(link, k)):
                starting[link, k], summed[link, k], room[link, k] = own, sums, limit

    @rows(m, list(room))
    def capacity(m: Any, link: int, k: int) -> Any:
        load = sum(m.F[key] for key in starting[link, k])
        return load + sum(m.S[key] for key in summed[link, k]) <= room[link, k]


def sent_several_times(sets: IndexSets) -> dict[tuple[int, int], int]:
    """Return the commodities and arcs with several starts of a chunk in one epoch, with the largest number."""
    return {(q, a): most for q, spans in enumerate(sets.spans) for a in spans if (most := sets.most_sent(q, a)) > 1}


def carried_sends(sets: IndexSets, sends: list[tuple[int, int, int]]) -> tuple[list[Any], list[Any]]:
    """Split a link's sends into those that count by F and the sums that count once, by S."""
    joint = sets.joint
    if not joint:
        return sends, []
    return [key for key in sends if key not in joint], sorted({joint[key] for key in sends if key in joint})


def joint_sends(m: Any, sets: IndexSets) -> None:
    """``F[q, a, k] <= S[p, a, k]`` for every contribution q to a sum p, sent as one."""

    @m.Constraint(list(sets.joint))
    def added_up(m: Any, q: int, a: int, k: int) -> Any:
        return m.F[q, a, k] <= m.S[sets.joint[q, a, k]]


def buffers(m: Any, sets: IndexSets) -> None:
    """``B[q, n, k] = B[q, n, k-1] - X[q, n, k-1] + sum_j F[q, (j, n), k - delta] + G[q, n, k]``: what has come.

    X exists only with limited buffers (appendix B); G counts arrivals that are not due to sends of the model
    (:meth:`IndexSets.incoming`). At a node without a buffer that needs the chunk, B marks its arrival, with ``<=`` in
    place of ``=``: the chunk may arrive again to be forwarded.
    """
    sources = {(q, c.source) for q, c in enumerate(sets.problem.commodities)}
    keys = [key for key in sets.holdings if key[:2] not in sources or sets.drops(*key[:2])]
    stored = [key for key in keys if sets.has_buffer(*key[:2])]
    inflow = Table((key, count) for key in keys if (count := sets.incoming(*key)))
    entering = Lists(enumerate(map(list, sets.entering)))
    delay = Table((a, arc.delay) for a, arc in enumerate(sets.arcs))
    removes = bool(sets.room_limits)

    @rows(m, stored)
    def buffers(m: Any, q: int, n: int, k: int) -> Any:
        arriving = sum(var_or_zero(m.F, q, a, k - delay[a]) for a in entering[n]) + inflow.get((q, n, k), 0)
        stock = var_or_zero(m.B, q, n, k - 1) - (var_or_zero(m.X, q, n, k - 1) if removes else 0)
        return m.B[q, n, k] == arriving + stock

    if len(stored) == len(keys):
        return

    @rows(m, [key for key in keys if not sets.has_buffer(*key[:2])])
    def arrival(m: Any, q: int, n: int, k: int) -> Any:
        arriving = sum(var_or_zero(m.F, q, a, k - delay[a]) for a in entering[n]) + inflow.get((q, n, k), 0)
        return m.B[q, n, k] <= arriving + var_or_zero(m.B, q, n, k - 1)


def flow_conservation(m: Any, sets: IndexSets) -> None:
    """``F[q, (n, j), k] <= most[q, (n, j)] B[q, n, k]``: a node sends only what it has.

    One row for every j stands for the paper's maximum over j. ``most`` is 1, but to a switch that does not copy how
    often the chunk may start in one epoch (:meth:`IndexSets.most_sent`).
    Of a switch that stores but does not copy, ``sum_{j, k' <= k} F[q, (n, j), k'] <= B[q, n, k]``.
    """
    tail = Table((a, arc.source) for a, arc in enumerate(sets.arcs))
    most = Table(((q, a), sets.most_sent(q, a)) for q, spans in enumerate(sets.spans) for a in spans)
    stored = {(q, a) for q, a in most if sets.has_buffer(q, tail[a]) and sets.problem.copies[tail[a]]}

    @rows(m, [key for key in sets.sends if key[:2] in stored])
    def flow_conservation(m: Any, q: int, a: int, k: int) -> Any:
        return m.F[q, a, k] <= most[q, a] * m.B[q, tail[a], k]

    uncopied = [key for key in sets.holdings if sets.has_buffer(*key[:2]) and not sets.problem.copies[key[1]]]

    @m.Constraint(uncopied)
    def flow_conservation_once(m: Any, q: int, n: int, k: int) -> Any:
        outflow = [key for t in range(sets.first[q][n], k + 1) for key in sets.departing(q, n, t)]
        return pyo.quicksum(m.F[key] for key in outflow) <= m.B[q, n, k] if outflow else pyo.Constraint.Skip


def passing_on(m: Any, sets: IndexSets) -> None:
    """``F[q, (s, j), k] <= most[q, (s, j)] (sum_i F[q, (i, s), k - delta] + G[q, s, k])`` at nodes that do not store.

    Without copies, ``sum_j F[q, (s, j), k] <= sum_i F[q, (i, s), k - delta] + G[q, s, k]``; what is not sent on is
    lost. ``most`` and G are as in :func:`flow_conservation` and :func:`buffers`.
    """
    tails = [(key, sets.arcs[key[1]].source) for key in sets.sends]
    passed = [(key, n) for key, n in tails if not sets.has_buffer(key[0], n) and not sets.is_given(key[0], n)]

    @m.Constraint([key for key, n in passed if sets.problem.copies[n]])
    def passing_on(m: Any, q: int, a: int, k: int) -> Any:
        n = sets.arcs[a].source
        arriving = pyo.quicksum(m.F[key] for key in sets.arriving(q, n, k)) + sets.incoming(q, n, k)
        return m.F[q, a, k] <= sets.most_sent(q, a) * arriving

    @m.Constraint(sorted({(key[0], n, key[2]) for key, n in passed if not sets.problem.copies[n]}))
    def passing_on_once(m: Any, q: int, n: int, k: int) -> Any:
        arriving = pyo.quicksum(m.F[key] for key in sets.arriving(q, n, k)) + sets.incoming(q, n, k)
        return pyo.quicksum(m.F[key] for key in sets.departing(q, n, k)) <= arriving


def ready(m: Any, sets: IndexSets) -> None:
    """``B[q, s, k] <= B[p, s, min(k, last[p, s])]``: a sum is at its owner once all contributions p are (section 8)."""
    awaited = [
        (q, k, p)
        for q, commodity in enumerate(sets.problem.commodities)
        for p in commodity.after
        for k in range(sets.first[q][commodity.source], sets.last[q][commodity.source] + 1)
    ]

    @m.Constraint(awaited)
    def ready(m: Any, q: int, k: int, p: int) -> Any:
        owner = sets.problem.commodities[q].source
        return m.B[q, owner, k] <= m.B[p, owner, min(k, sets.last[p][owner])]


def destination(m: Any, sets: IndexSets) -> None:
    """``B[q, d, last[q, d]] = 1``: every node has what it needs in the end, the paper's ``R[q, d, K] = D[q, d]``."""
    demand = [(q, d) for q, commodity in enumerate(sets.problem.commodities) for d in commodity.targets]

    @m.Constraint(demand)
    def destination(m: Any, q: int, d: int) -> Any:
        return m.B[q, d, sets.last[q][d]] == 1


def limited_buffers(m: Any, sets: IndexSets) -> None:
    """``sum_q B[q, n, k] <= L`` (appendix B), over chunks held for others, or over all held chunks.

    Of a switch that does not copy, ``sum_q (B[q, n, k] - sum_{j, k' < k} F[q, (n, j), k']) <= L``. Only what B holds
    can be dropped: ``X[q, n, k] <= B[q, n, k]``.
    """
    keys: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for q, n, k in sets.holdings:
        if n in sets.room_limits and not _needs_no_buffer(sets, q, n):
            keys.setdefault((n, k), []).append((q, n, k))

    @m.Constraint(list(keys))
    def limited_buffers(m: Any, n: int, k: int) -> Any:
        sends: list[tuple[int, int, int]] = []
        if not sets.problem.copies[n]:
            sends = [s for q, _, _ in keys[n, k] for t in range(sets.first[q][n], k) for s in sets.departing(q, n, t)]
        load = pyo.quicksum(m.B[key] for key in keys[n, k]) - pyo.quicksum(m.F[key] for key in sends)
        return load <= sets.room_limits[n]

    @m.Constraint(list(m.X))
    def removal(m: Any, q: int, n: int, k: int) -> Any:
        return m.X[q, n, k] <= m.B[q, n, k]


def hyper_edge_limit(m: Any, sets: IndexSets) -> None:
    """``sum_{a in Omega(s)} (sum_q F[q, a, k] + sum_p S[p, a, k]) <= min(in, out)`` for every switch s and epoch.

    Appendix C; S counts as in :func:`capacity`.
    With links that carry several chunks in an epoch, in and out are the chunks that all links of s together can
    start. That a node is on one of its hyper-edges at a time is the capacity of its link to or from the switch.
    """
    problem = sets.problem
    through: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for key in sets.sends:
        arc = sets.arcs[key[1]]
        for link, offset in zip(arc.links[1:], arc.offsets[1:], strict=True):
            through.setdefault((problem.links[link].source, key[2] + offset), []).append(key)

    @m.Constraint(list(through))
    def hyper_edge_limit(m: Any, s: int, k: int) -> Any:
        sides = (problem.entering[s], problem.leaving[s])
        most = min(sum(problem.links[e].capacity for e in side) for side in sides)
        own, sums = carried_sends(sets, through[s, k])
        return sum(m.F[key] for key in own) + sum(m.S[key] for key in sums) <= most


def makespan(m: Any, sets: IndexSets) -> None:
    """Minimize ``sum_k late[k]`` with ``late[k] >= 1 - B[q, d, k]``: epochs in which something has not arrived.

    Before the farthest destination can be reached, ``late[k] = 1``.
    """
    m.late = Variables(range(sets.epochs), bounds=(0, 1))
    deliveries = [
        key for key in sets.holdings if key[2] < sets.epochs and key[1] in sets.problem.commodities[key[0]].targets
    ]

    @rows(m, deliveries)
    def not_arrived(m: Any, q: int, d: int, k: int) -> Any:
        return m.late[k] >= 1 - m.B[q, d, k]

    early = max(max(sets.first[q][d] for d in c.targets) for q, c in enumerate(sets.problem.commodities))
    for k in range(min(early, sets.epochs)):
        m.late[k].setlb(1)
    m.objective = pyo.Objective(expr=pyo.quicksum(m.late[k] for k in m.late), sense=pyo.minimize)


def paper_objective(m: Any, sets: IndexSets) -> None:
    """Maximize ``sum_{k, q, d} w / k B[q, d, k]``, w the priority of the tenant (sections 3.1 and 5).

    The paper's ``w / (k + 1) R[q, d, k]``, since R at the end of epoch k is B at index ``k + 1``.
    Contributions count where their sum is needed; of an all-reduce the sums do.
    """
    terms = []
    contributions = {p for commodity in sets.problem.commodities for p in commodity.after}
    for q, n, k in sets.holdings:
        commodity = sets.problem.commodities[q]
        if k > 0 and n in commodity.targets and q not in contributions:
            terms.append((float(sets.weights[commodity.tenant]) if sets.weights else 1.0) / k * m.B[q, n, k])
    m.objective = pyo.Objective(expr=pyo.quicksum(terms), sense=pyo.maximize)


def _needs_no_buffer(sets: IndexSets, q: int, n: int) -> bool:
    """Check whether a chunk takes no room: its node owns, needs or adds to it, and not all chunks count."""
    return not sets.all_count and n in sets.members[sets.problem.commodities[q].chunk]
