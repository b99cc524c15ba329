"""Networks of the topology finder: how fast an all-to-all on one is, and what a paper's rows ask of it."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from time import perf_counter
from typing import TYPE_CHECKING, Any

from .. import solvers
from ..core.budget import Budget
from ..core.collective import CollectiveKind, Demand
from ..core.errors import InputError
from ..core.instance import Instance
from ..core.published import PublishedNetwork
from ..core.record import RunRecord
from ..core.topology import Link, Node, Topology
from ..core.units import UnitKind, parse
from ..instances.expression import parse_expression
from ..instances.generators import generate
from .environment import cwb_version

if TYPE_CHECKING:
    from ..finder.candidates import Candidate
    from ..finder.finder import Choice, Closure, Job

#: Flows, of every node on every link, whose classes the topology finder looks for: 256 nodes of degree 4.
MAX_FLOWS = 300_000

#: Classes of flows up to which it solves the linear program.
MAX_CLASSES = 40_000

#: The same for a paper's rows, which take minutes.
MOST_FLOWS, MOST_CLASSES = 5_000_000, 200_000


def generated(expression: str) -> Topology:
    """Make the network of a generator expression."""
    return generate(parse_expression(expression))


def network_of(candidate: Candidate, bandwidth_Bps: Fraction, latency_s: Fraction) -> Topology:
    """Make a candidate's network of links that are all alike."""
    from ..finder.build import links_of

    ends = links_of(candidate, generated).tolist()
    links = (Link(str(u), str(v), bandwidth_Bps, latency_s) for u, v in ends)
    return Topology(tuple(Node(str(node)) for node in range(candidate.nodes)), tuple(links))


def all_to_all_rate(candidate: Candidate, seconds: float | None = None) -> float | None:
    """Rate of every pair in units of a link; None where the linear program would take too long.

    Parameters
    ----------
    candidate : Candidate
        The network.
    seconds : float, optional
        For each linear program; 0 for none of them.
    """
    rate = _rate(candidate, seconds, MAX_FLOWS, MAX_CLASSES)
    return rate[0] if rate is not None and rate[1] else None


def _rate(candidate: Candidate, seconds: float | None, flows: int, classes: int) -> tuple[float, bool] | None:
    """Rate of every pair, or a limit on it, and which of the two it is.

    In a Cartesian product, all pairs that differ in a dimension share its links evenly, whatever the other dimensions
    do: the rate is the smallest of the factors' rates times the part that the factor has of all nodes.
    """
    from ..finder.candidates import Construction

    if candidate.made in (Construction.POWER, Construction.PRODUCT):
        rates = [_rate(part, seconds, flows, classes) for part in candidate.of]
        known = [(rate[0] * part.nodes, rate[1]) for rate, part in zip(rates, candidate.of, strict=True) if rate]
        if len(known) < len(rates):
            return None
        return min(known)[0] / candidate.nodes, all(exact for _, exact in known)
    if candidate.nodes**2 * candidate.degree > flows or seconds == 0:
        return None
    return _solved_rate(candidate, seconds, classes)


def _solved_rate(candidate: Candidate, seconds: float | None, classes: int) -> tuple[float, bool] | None:
    """Solve LP (3) on a network whose links carry 1 byte per second, with 1 byte for every pair."""
    from ..models.mcf.solve import bound

    network = network_of(candidate, Fraction(1), Fraction(0))
    instance = Instance(str(candidate), network, Demand(CollectiveKind.ALL_TO_ALL, Fraction(candidate.nodes)))
    proved = bound(instance, solvers.get(), Budget(time_limit_s=seconds), classes)
    return None if proved.seconds is None else (float(1 / proved.seconds), proved.exact)


def found(wanted: PublishedNetwork, nodes: int) -> RunRecord:
    """Ask the topology finder for a network, or for the bounds on all of a size and degree.

    Parameters
    ----------
    wanted : PublishedNetwork
        What is asked.
    nodes : int
        One of its sizes.

    Raises
    ------
    InputError
        If the finder keeps no network of that name, size and degree.
    """
    from ..finder.finder import Job, fastest, find

    started, started_at = perf_counter(), datetime.now(UTC).isoformat(timespec="seconds")
    job = Job(
        nodes,
        wanted.degrees[-1],
        parse(wanted.alpha, UnitKind.TIME, allow_zero=True),
        parse(wanted.size, UnitKind.SIZE, allow_zero=False),
        parse(wanted.bandwidth, UnitKind.RATE, allow_zero=False),
        bidirectional=wanted.bidirectional,
        circulants=wanted.circulants,
    )
    name, metrics = wanted.network, {}
    if name == "bound":
        metrics = _bounds(job)
    elif name == "all":
        metrics = _all(nodes, wanted)
    else:
        choice = fastest(find(job, generated)) if name == "best" else _named(job, name)
        name, metrics = str(choice.candidate), _values(job, choice, rate=wanted.rate)
    return RunRecord(
        cwb_version=cwb_version(),
        model="find-topology",
        kind="exact",
        instance=name,
        instance_sha256="",
        collective=None,
        solver=None,
        solver_version=None,
        options=wanted.model_dump(exclude_unset=True),
        seed=0,
        threads=1,
        status="feasible",
        objective=metrics.get("all_reduce_s"),
        objective_unit="s",
        metrics=metrics,
        seconds={"total": perf_counter() - started},
        host=platform.node(),
        started_at=started_at,
    )


def _all(nodes: int, wanted: PublishedNetwork) -> dict[str, Any]:
    """Count the networks on the frontiers of all sizes and degrees."""
    from ..finder.finder import Closure

    closure = Closure(range(2, nodes + 1), wanted.degrees, circulants=wanted.circulants)
    frontiers = (
        closure.frontier(n, degree, bidirectional=wanted.bidirectional)
        for degree in wanted.degrees
        for n in range(degree + 1, nodes + 1)
    )
    return {"networks": sum(map(len, frontiers))}


@lru_cache(maxsize=4)
def _closure(nodes: int, degree: int, circulants: bool) -> Closure:
    from ..finder.finder import Closure

    return Closure([nodes], [degree], circulants=circulants)


def _named(job: Job, name: str) -> Choice:
    """Find a network that is kept by its name, on the frontier or not, with its least T_B.

    A base network is always known.
    """
    from ..finder.candidates import bases
    from ..finder.finder import valued

    kept = _closure(job.nodes, job.degree, job.circulants).cells.get((job.nodes, job.degree), [])
    for one in (*kept, *bases(job.nodes, job.degree)):
        if str(one) == name:
            return valued(one, job, generated)[-1]
    raise InputError(f"the topology finder keeps no {name!r} of {job.nodes} nodes and degree {job.degree}")


def _values(job: Job, choice: Choice, *, rate: bool) -> dict[str, Any]:
    """Times of a network; the rate of an all-to-all is in units of a link."""
    values = {
        "T_L": choice.steps,
        "T_B": str(choice.bandwidth),
        "family": _family(choice.candidate),
        "diameter": choice.diameter,
        "all_reduce_s": float(choice.all_reduce_s),
        "all_to_all_rate_limit": float(choice.all_to_all_limit),
    }
    if rate and (known := _rate(choice.candidate, None, MOST_FLOWS, MOST_CLASSES)) is not None:
        values |= _all_to_all(job, known[0], "" if known[1] else "_limit")
    return values


def _family(candidate: Candidate) -> str:
    """Return how a network is made: of a base network its generator, however a circulant's offsets are chosen."""
    if candidate.of:
        return candidate.made.value
    return candidate.expression.partition("(")[0].removeprefix("optimal_").removeprefix("directed_")


def _bounds(job: Job) -> dict[str, Any]:
    """Moore and bandwidth optimality, and the rate at which all links carry what the shortest ways take at least."""
    from ..finder.finder import lower_bound, nearest

    steps, bandwidth = lower_bound(job)
    distances = sum(distance * count for distance, count in enumerate(nearest(job.nodes, job.degree), 1))
    return {
        "T_L": steps,
        "T_L_bidirectional": len(nearest(job.nodes, job.degree, bidirectional=True)) if job.degree > 1 else None,
        "T_B": str(bandwidth),
        "diameter": steps,
        "all_reduce_s": float(2 * (steps * job.alpha_s + bandwidth * job.ratio_s)),
        **_all_to_all(job, job.degree / distances),
    }


def _all_to_all(job: Job, rate: float, kind: str = "") -> dict[str, float]:
    """Rate, and the seconds in which every node sends the job's size; or limits on both."""
    seconds = float(job.size_bytes / job.nodes / (job.bandwidth_Bps / job.degree)) / rate
    return {f"all_to_all_rate{kind}": rate, f"all_to_all_s{kind}": seconds}
