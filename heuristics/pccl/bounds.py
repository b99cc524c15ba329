"""Lower bounds: of cuts, distances, the maximum concurrent flow, and of the links at every node in ticks."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from operator import itemgetter

import numpy as np

from ...algorithms.bounds.joint_bounds import candidate_sets, groups_of, joint_cut, joint_length, pairs_of
from ...algorithms.bounds.schedule_bounds import Bound, best_bound
from ...algorithms.paths.grid import sides_of
from ...algorithms.paths.reservations import PathNetwork
from ...algorithms.paths.search import DistanceTables, Jobs
from ...core.bounds import CutCertificate, DistanceCertificate, LengthCertificate, SolverBound
from ...core.budget import Budget
from ...core.instance import Instance
from ...core.schedule import Ints
from ...core.solver import Solver, SolverResult
from ...core.topology import Topology
from .problem import TickedNetwork

_ALONE = 64  #: Collectives up to which each is bounded on its own, too.


def cheap_bound(instance: Instance, topology: Topology) -> Bound:
    """Return the largest bound without a solver: of single collectives, and of cuts and distances for all."""
    groups = groups_of(instance)
    found: list[Bound] = [best_bound(instance.with_single_demand(demand)) for demand in instance.demands[:_ALONE]]
    cut = joint_cut(instance, groups, candidate_sets(topology, groups, sides_of(topology) or ()))
    if cut is not None:
        found.append(cut)
    if instance.also and len((pairs := pairs_of(instance))[0]):
        found.append(joint_length(instance, pairs, [1] * len(topology.links)))
    return max(found, key=itemgetter(0))


def flow_bound(
    instance: Instance, solver: Solver, budget: Budget, bound: Bound
) -> tuple[Bound, tuple[SolverResult, ...]]:
    """Return the larger of a bound and the maximum concurrent flow's, and the solve."""
    from ...models.mcf.solve import bound as of_flow

    with budget.clock.phase("flow"):
        found = of_flow(instance, solver, budget)
    if isinstance(found.certificate, LengthCertificate) and found.seconds is not None and found.seconds > bound[0]:
        bound = Fraction(found.seconds), found.certificate
    return bound, (found.report,)


def whole_steps(instance: Instance, bound: Bound) -> Bound:
    """Round a bound that is recomputed up to whole steps, where there are any: the verifier does so too."""
    seconds, certificate = bound
    if instance.timing is None or isinstance(certificate, SolverBound):
        return bound
    return ceil(seconds / instance.timing.epoch_s) * instance.timing.epoch_s, certificate


def fewest_ticks(ticked: TickedNetwork, bound: Bound) -> int:
    """Ticks, or steps, that a schedule takes at least by a bound in seconds, also where ticks round times up."""
    net, (seconds, certificate) = ticked.net, bound
    ticks = -(-seconds // ticked.tick_s)
    if not ticked.alike:
        return int(ticks)
    # In a step a link carries one chunk, which takes only the window, and a chunk passes one link, which takes the
    # latency too. Across a cut the last chunk has the latency of one link.
    window, delay = int(net.window.flat[0]), int(net.delay.flat[0])
    if isinstance(certificate, CutCertificate) and certificate.latency:
        ticks -= delay - window
    return int(-(-ticks // (delay if isinstance(certificate, DistanceCertificate) else window)))


def port_ticks(net: PathNetwork, jobs: Jobs, dist: DistanceTables, *, stepped: bool) -> int:
    """Ticks that the links into a target, or out of a source, need at least.

    Of the chunks that a node needs, or has, take the n with the longest ways. None of them has come, or can leave in
    time, before the way of the n-th allows it, and in steps each link takes one at a time. Where links differ, all
    chunks are counted as the smallest ones at once.
    """
    owner = np.repeat(np.arange(jobs.number), np.diff(jobs.target_first))
    ways = dist.ticks[jobs.target, jobs.source[owner]] + jobs.release[owner]
    single = jobs.target_first[:-1]
    longest = np.maximum.reduceat(ways, single) if jobs.number else ways
    last = net.link[net.part_first[1:] - 1]
    into = _most(net, net.head, last, jobs.target, ways, stepped=stepped)
    return max(into, _most(net, net.tail, net.link[net.part_first[:-1]], jobs.source, longest, stepped=stepped))


def _most(net: PathNetwork, end: Ints, link: Ints, node: Ints, ways: Ints, *, stepped: bool) -> int:
    window = np.zeros(int(net.link.max()) + 1, dtype=np.int64)
    window[net.link] = net.window.min(axis=0)
    order = np.lexsort((-ways, node))
    busy, first = np.unique(node[order], return_index=True)
    most = 0
    for at, places in zip(busy.tolist(), np.split(order, first[1:]), strict=True):
        links = np.unique(link[end == at])
        count = np.arange(1, len(places) + 1)
        if stepped:
            most = max(most, int((ways[places] - 1 + -(-count // len(links))).max()))
        else:
            rate = sum((Fraction(1, int(w)) for w in window[links].tolist()), Fraction(0))
            most = max(most, int(-(-len(places) // rate)))
    return most
