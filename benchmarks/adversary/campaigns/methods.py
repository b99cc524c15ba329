"""All methods on one tiny question: no bound is above a verified time of any other method, and no optimum is beaten."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any

from cwb.benchmarks.adversary import client, networks
from cwb.benchmarks.adversary.campaigns.answers import KINDS, METHODS, faults_of, times_of
from cwb.benchmarks.adversary.fault import Campaign, Fault, count_comparisons
from cwb.benchmarks.adversary.networks import Data, rng
from cwb.harness import registry

#: Methods that take over a second where others take a hundredth of one, and the percentage of cases they run in.
SLOW: Mapping[str, int] = {"topoadopt": 2, "hierarchical": 5}

#: Methods of other questions, and one that answers for trees of which there must be a given number.
OTHER = {"mtree-repair", "gost", "expert-placement", "libra", "libra-equal", "libra-codesign"}

#: What keeps methods short, and epochs in which a link takes all its time, so that bounds of continuous time hold.
OPTIONS: Mapping[str, Mapping[str, Any]] = dict(METHODS) | {
    name: {"timing": "store-and-forward"} for name in ("teccl-lp", "teccl-all-to-all")
}

#: Methods that pose a question of dimensions in place of links: their times and bounds are of another network.
POSED_ANEW = {"blueconnect", "themis", "themis-lp"}


@dataclass(frozen=True)
class Answer:
    """Answer of a method, as it was printed.

    Parameters
    ----------
    name : str
        The method.
    solved : Answered
        Its answer.
    grid : object
        Timing of the answer; None in continuous time.
    flow : bool
        Whether its time is that of flows, without latency, as trees and bounds alone have it.
    """

    name: str
    solved: client.Reply
    grid: Any
    flow: bool

    @property
    def bound(self) -> float | None:
        """Return the bound that it has proved."""
        record = self.solved.record
        return None if record.verified is False or record.metrics.get("restricted_to") else record.bound

    def times(self) -> Iterator[tuple[str, float]]:
        """Give the times that the verifier has let pass."""
        if self.solved.has_answer and self.solved.answer is not None:
            yield ("flow time" if self.flow else "completion time"), self.solved.record.objective
            played = self.solved.record.metrics.get("completion_time_s")
            if self.flow and isinstance(played, float):
                yield "played", played


def question(random: Random) -> Data:
    """Three to five nodes with one collective, sometimes round a switch or with one-way links."""
    count, kind = random.choice((3, 3, 4, 4, 5)), random.choice(KINDS[:5])
    shape = random.random()
    if shape < 0.2:
        return networks.star(random, min(count, 4), kind=kind, high=3)
    if shape < 0.4:
        return networks.directed_network(random, count, kind=kind, high=random.choice((1, 3)))[0]
    return networks.direct(random, count, kind=kind, chunks=random.choice((1, 1, 2)), high=random.choice((1, 3)))


def all_methods(seed: int) -> list[Fault]:
    """Ask all methods, replay every answer, and hold every bound against every time."""
    random = rng("methods", seed)
    data = question(random)
    told: list[Answer] = []
    found: list[Fault] = []
    for name in registry.METHODS:
        if name in OTHER or random.randrange(100) >= SLOW.get(name, 100):
            continue
        solved = client.solve(data, name, time_limit_s=10, **OPTIONS.get(name, {}))
        found += client.conduct(solved)
        if solved.record is None or solved.record.objective_unit != "s" or name in POSED_ANEW:
            continue
        told.append(Answer(name, solved, solved.instance.timing, not hasattr(solved.answer, "sends")))
        if solved.has_answer and not _adds_in_switches(solved):
            count_comparisons()
            for wrong in [*faults_of(data, solved), *times_of(data, solved)][:1]:
                found.append(Fault("wrong answer accepted", solved.question, solved.outcome_text, wrong))
    return found + _between(told)


def _adds_in_switches(solved: client.Reply) -> bool:
    """True if switches are nodes of its trees, which the replay does not know."""
    passes = getattr(solved.answer, "passes", ())
    ranks = len(solved.instance.network.rank_nodes)
    return any(len(part.parent) and max(part.parent.max(), part.child.max()) >= ranks for part in passes)


def _between(told: list[Answer]) -> list[Fault]:
    """Hold every bound against every time that it is a bound on."""
    found: list[Fault] = []
    answers = [(b, what, time) for b in told for what, time in b.times()]
    for a, (b, what, time) in product(told, answers):
        # A bound on flows holds for all; one that counts latency does not hold for a flow; one of a grid holds on it.
        if (what == "flow time" and not a.flow) or (
            a.grid is not None and (a.grid != b.grid or what != "completion time")
        ):
            continue
        record, known = a.solved.record, f"{what} of {b.name}: {time!r}"
        if a.bound is not None:
            count_comparisons()
            if a.bound > time * (1 + client.ROUNDING):
                found.append(Fault("bound above an answer", a.solved.question, a.solved.outcome_text, known))
        if record.status == "infeasible":
            count_comparisons()
            found.append(Fault("feasible called infeasible", a.solved.question, a.solved.outcome_text, known))
    return found


CAMPAIGNS = (
    Campaign(
        "methods",
        "every verified time of every other method, and a replay",
        all_methods,
        (0, 1, 3),
        1000,
        cpu_s=120,
        batch=10,
    ),
)
