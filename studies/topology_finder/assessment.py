"""Rates of all-to-alls on networks of the topology finder, and their published values computed again."""

from fractions import Fraction
from functools import lru_cache
from time import perf_counter
from typing import Any

from ... import solvers
from ...core.budget import Budget
from ...core.collective import Collective, Demand
from ...core.errors import InputError
from ...core.instance import Instance
from ...core.paper_results import PublishedNetwork
from ...core.record import RunRecord
from ...core.topology import Link, Node, Topology
from ...core.units import UnitKind, parse
from ...harness.environment import study_record, time_stamp
from ...models.mcf.solve import bound
from .build import links_of
from .candidates import Candidate, Construction, bases
from .finder import Choice, Closure, Job, fastest, find, lower_bound, nearest, value_candidate

#: Limits on the linear program of a network: flows (sources times links; 256 nodes of degree 4), and their classes.
MAX_FLOWS, MAX_CLASSES = 300_000, 40_000

#: The same limits for published networks, whose programs may take minutes.
MOST_FLOWS, MOST_CLASSES = 5_000_000, 200_000


def network_of(candidate: Candidate, bandwidth_Bps: Fraction, latency_s: Fraction) -> Topology:
    """Build a candidate's network with equal links."""
    ends = links_of(candidate).tolist()
    links = (Link(str(u), str(v), bandwidth_Bps, latency_s) for u, v in ends)
    return Topology(tuple(Node(str(node)) for node in range(candidate.nodes)), tuple(links))


def all_to_all_rate(candidate: Candidate, seconds: float | None = None) -> float | None:
    """Return the rate of every pair in units of a link; None if the linear program would take too long.

    ``seconds`` is the time limit of each linear program; 0 allows none of them.
    """
    rate = _rate(candidate, seconds, MAX_FLOWS, MAX_CLASSES)
    return rate[0] if rate is not None and rate[1] else None


def _rate(candidate: Candidate, seconds: float | None, flows: int, classes: int) -> tuple[float, bool] | None:
    """Return the rate of every pair or a limit on it, and True for a rate.

    That of a Cartesian product follows from its factors (docs/methods/topology-finder.md, "Options").
    """
    if candidate.form in (Construction.POWER, Construction.PRODUCT):
        rates = [_rate(part, seconds, flows, classes) for part in candidate.of]
        bounds = [(rate[0] * part.nodes, rate[1]) for rate, part in zip(rates, candidate.of, strict=True) if rate]
        if len(bounds) < len(rates):
            return None
        return min(bounds)[0] / candidate.nodes, all(exact for _, exact in bounds)
    if candidate.nodes**2 * candidate.degree > flows or seconds == 0:
        return None
    return _solved_rate(candidate, seconds, classes)


def _solved_rate(candidate: Candidate, seconds: float | None, classes: int) -> tuple[float, bool] | None:
    """Solve LP (3) on a network with links of 1 byte per second and 1 byte for every pair."""
    network = network_of(candidate, Fraction(1), Fraction(0))
    instance = Instance(str(candidate), network, Demand(Collective.ALL_TO_ALL, Fraction(candidate.nodes)))
    budget = Budget(time_limit_s=seconds)
    proved = bound(instance, solvers.get(), budget, classes)
    if budget.stop.is_set():  # Ctrl-C has stopped the solver, so that this is no rate
        raise KeyboardInterrupt
    return None if proved.seconds is None else (float(1 / proved.seconds), proved.exact)


def run_finder(network: PublishedNetwork, nodes: int) -> RunRecord:
    """Run the topology finder for a published network, or for the bounds of a size and degree."""
    started, started_at = perf_counter(), time_stamp()
    job = Job(
        nodes,
        network.degrees[-1],
        parse(network.alpha, UnitKind.TIME, allow_zero=True),
        parse(network.size, UnitKind.SIZE, allow_zero=False),
        parse(network.bandwidth, UnitKind.RATE, allow_zero=False),
        bidirectional=network.bidirectional,
        circulants=network.circulants,
    )
    name, metrics = network.network, {}
    if name == "bound":
        metrics = _bound_metrics(job)
    elif name == "all":
        metrics = _count_networks(nodes, network)
    else:
        choice = fastest(find(job)) if name == "best" else _named_choice(job, name)
        name, metrics = str(choice.candidate), _network_metrics(job, choice, rate=network.rate)
    return study_record(
        model="find-topology",
        kind="exact",
        instance=name,
        instance_sha256="",
        options=network.model_dump(exclude_unset=True),
        seed=0,
        objective=metrics.get("all_reduce_s"),
        metrics=metrics,
        seconds={"total": perf_counter() - started},
        started_at=started_at,
    )


def _count_networks(nodes: int, network: PublishedNetwork) -> dict[str, Any]:
    closure = Closure(range(2, nodes + 1), network.degrees, circulants=network.circulants)
    frontiers = (
        closure.frontier(n, degree, bidirectional=network.bidirectional)
        for degree in network.degrees
        for n in range(degree + 1, nodes + 1)
    )
    return {"networks": sum(map(len, frontiers))}


@lru_cache(maxsize=4)
def _closure(nodes: int, degree: int, circulants: bool) -> Closure:
    return Closure([nodes], [degree], circulants=circulants)


def _named_choice(job: Job, name: str) -> Choice:
    """Find a known network or a base network by name, on the frontier or not, with its least T_B."""
    frontier = _closure(job.nodes, job.degree, job.circulants).cells.get((job.nodes, job.degree), [])
    for one in (*frontier, *bases(job.nodes, job.degree)):
        if str(one) == name:
            return value_candidate(one, job)[-1]
    raise InputError(f"the topology finder stores no {name!r} of {job.nodes} nodes and degree {job.degree}")


def _network_metrics(job: Job, choice: Choice, *, rate: bool) -> dict[str, Any]:
    one = choice.candidate  # a base network is named by its generator, without a circulant's offsets
    generator = one.expression.partition("(")[0].removeprefix("optimal_").removeprefix("directed_")
    family = one.form.value if one.of else generator
    values = {
        "T_L": choice.steps,
        "T_B": str(choice.bandwidth),
        "family": family,
        "diameter": choice.diameter,
        "all_reduce_s": float(choice.all_reduce_s),
        "all_to_all_rate_limit": float(choice.all_to_all_limit),
    }
    if rate and (pair_rate := _rate(choice.candidate, None, MOST_FLOWS, MOST_CLASSES)) is not None:
        values |= _all_to_all_metrics(job, pair_rate[0], "" if pair_rate[1] else "_limit")
    return values


def _bound_metrics(job: Job) -> dict[str, Any]:
    """Return bounds for the size and degree; the all-to-all rate is that of evenly loaded shortest paths."""
    steps, bandwidth = lower_bound(job)
    distances = sum(distance * count for distance, count in enumerate(nearest(job.nodes, job.degree), 1))
    return {
        "T_L": steps,
        "T_L_bidirectional": len(nearest(job.nodes, job.degree, bidirectional=True)) if job.degree > 1 else None,
        "T_B": str(bandwidth),
        "diameter": steps,
        "all_reduce_s": float(2 * (steps * job.alpha_s + bandwidth * job.ratio_s)),
        **_all_to_all_metrics(job, job.degree / distances),
    }


def _all_to_all_metrics(job: Job, rate: float, kind: str = "") -> dict[str, float]:
    """Return an all-to-all rate and the seconds for the job's size per node; ``kind`` marks limits on both."""
    seconds = float(job.size_bytes / job.nodes / (job.bandwidth_Bps / job.degree)) / rate
    return {f"all_to_all_rate{kind}": rate, f"all_to_all_s{kind}": seconds}
