"""Studies that solve again: single failures and the value of bandwidth, against all cuts of small networks.

A cut is a set of nodes that holds data which somebody outside needs. On networks whose switches send as fast as they
receive, the slowest cut is the time of the best trees (Edmonds; Bang-Jensen, Frank and Jackson for switches).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from random import Random
from typing import Any

from cwb.benchmarks.adversary import client
from cwb.benchmarks.adversary.fault import Campaign, Fault, count_comparisons
from cwb.benchmarks.adversary.networks import Data, instance, rng

#: Bytes of every collective.
SIZE = 60

#: A directed link: its ends and its rate in B/s.
Arc = tuple[str, str, Fraction]

#: Relative difference between a fraction and its float.
ROUNDING = Fraction(1, 10**12)

#: Derivatives are computed from floats of exact times.
SLOPES = Fraction(1, 10**9)

_ROOTED = ("broadcast", "reduce")


@dataclass(frozen=True)
class Small:
    """A network, and what is sent on it.

    Parameters
    ----------
    ranks, switches : tuple of str
        Nodes; the first rank is the root.
    arcs : tuple of Arc
        Links, several between two nodes too.
    kind : str
        Collective.
    """

    ranks: tuple[str, ...]
    switches: tuple[str, ...]
    arcs: tuple[Arc, ...]
    kind: str

    def data(self) -> Data:
        """As the data of an instance file."""
        arcs = [(a, b, f"{rate} B/s") for a, b, rate in self.arcs]
        switches: dict[str, dict[str, Any]] = {name: {} for name in self.switches}
        return instance([*self.ranks, *self.switches], arcs, self.kind, f"{SIZE} B", switches)

    def without(self, node: str) -> Small:
        """The network without a node; the other ranks keep the whole size."""
        arcs = tuple(arc for arc in self.arcs if node not in arc[:2])
        ranks, switches = (tuple(n for n in names if n != node) for names in (self.ranks, self.switches))
        return Small(ranks, switches, arcs, self.kind)

    def scale_rates(self, pairs: set[frozenset[str]], factor: Fraction) -> Small:
        """The network with so many times the rate of all links between pairs of nodes; without them for 0."""
        changed = ((a, b, rate * factor if frozenset((a, b)) in pairs else rate) for a, b, rate in self.arcs)
        return Small(self.ranks, self.switches, tuple(arc for arc in changed if arc[2]), self.kind)

    def is_balanced(self) -> bool:
        """Tell whether every switch sends as fast as it receives."""
        return all(
            sum(rate for a, _, rate in self.arcs if a == node) == sum(rate for _, b, rate in self.arcs if b == node)
            for node in self.switches
        )

    def cuts(self, kind: str) -> Iterator[tuple[Fraction, Callable[[str, str], bool]]]:
        """Bytes that have to leave each set of nodes, and which links lead out of it."""
        back = kind in ("reduce_scatter", "reduce")
        nodes = (*self.ranks, *self.switches)
        for size in range(1, len(nodes)):
            for chosen in combinations(nodes, size):
                inside = sum(rank in chosen for rank in self.ranks)
                if inside == len(self.ranks) or not inside or (kind in _ROOTED and self.ranks[0] not in chosen):
                    continue
                share = Fraction(SIZE) if kind in _ROOTED else Fraction(SIZE * inside, len(self.ranks))

                def leads_out(a: str, b: str, chosen: tuple[str, ...] = chosen) -> bool:
                    source, target = (b, a) if back else (a, b)
                    return source in chosen and target not in chosen

                yield share, leads_out

    def seconds(self) -> Fraction | None:
        """Time of the slowest cut; of an all-reduce those of both halves; None if some data cannot leave."""
        total = Fraction(0)
        for kind in ("reduce_scatter", "all_gather") if self.kind == "all_reduce" else (self.kind,):
            slowest = Fraction(0)
            for share, leads_out in self.cuts(kind):
                rate = sum((rate for a, b, rate in self.arcs if leads_out(a, b)), Fraction(0))
                if not rate:
                    return None
                slowest = max(slowest, share / rate)
            total += slowest
        return total

    def derivatives(self, pairs: set[frozenset[str]]) -> tuple[Fraction, Fraction]:
        """Derivatives of the time, above and below, in the factor of all links between pairs of nodes."""
        best, slopes = Fraction(0), [Fraction(0)]
        for share, leads_out in self.cuts(self.kind):
            crossing = [(frozenset((a, b)) in pairs, rate) for a, b, rate in self.arcs if leads_out(a, b)]
            rate = sum((rate for _, rate in crossing), Fraction(0))
            slope = -share * sum((rate for changed, rate in crossing if changed), Fraction(0)) / rate**2
            if share / rate > best:
                best, slopes = share / rate, [slope]
            elif share / rate == best:
                slopes.append(slope)
        return max(slopes), min(slopes)


def network(random: Random, kinds: Sequence[str]) -> Small:
    """Ranks in a ring or at switches with more links between them: one-way, parallel, of different rates."""
    ranks = tuple("abcd"[: random.choice((2, 3, 3, 4))])
    switches = tuple("st"[: random.choice((0, 0, 1, 2) if len(ranks) < 4 else (0, 0, 1))])
    top = random.choice((1, 3, 10))
    arcs: list[Arc] = []

    def join(a: str, b: str, rate: int) -> None:
        arcs.append((a, b, Fraction(rate)))

    if not switches or random.random() < 0.5:
        for a, b in zip(ranks, (*ranks[1:], ranks[0]), strict=True):
            join(a, b, random.randint(1, top))
    for switch in switches:
        for rank in ranks:
            rate = random.randint(1, top)
            join(rank, switch, rate)
            join(switch, rank, rate if random.random() < 0.9 else random.randint(1, top))
    for switch in switches[: random.randrange(2)]:  # on one way through it
        (a, b), rate = random.sample(ranks, 2), random.randint(1, top)
        join(a, switch, rate)
        join(switch, b, rate)
    for _ in range(random.randrange(6)):
        a, b = random.sample(ranks, 2)
        join(a, b, random.choice((1, top, 7)))
    random.shuffle(arcs)
    return Small(ranks, switches, tuple(arcs), random.choice(kinds))


def failures(seed: int) -> list[Fault]:
    """Every link, rank and switch lost or slowed, in ``cwb resilience``."""
    random = rng("failures", seed)
    posed = network(random, ("all_gather", "reduce_scatter", "broadcast", "reduce", "all_reduce"))
    return check_failures(
        posed, random.choice((Fraction(0), Fraction(0), Fraction(1, 2), Fraction(1, 3), Fraction(2, 7)))
    )


def check_failures(posed: Small, slow: Fraction) -> list[Fault]:
    """Ask ``cwb resilience`` of a network, and hold every failure against all cuts of what is left."""
    text = json.dumps(posed.data())
    path = client.folder() / "study.json"
    path.write_text(text)
    status, out, err = client.command("resilience", str(path), "--slow", str(slow), "--json", "-q")
    question = f"cwb resilience --slow {slow} --json '{text}'"
    whole = posed.seconds()
    count_comparisons()
    if not posed.is_balanced() or whole is None:
        right = status in (2, 7) and err.count("\n") == 1
        return [] if right else [Fault("solved without trees", question, f"{status}: {out[:200]}", "status 2 or 7")]
    if status:
        return [Fault("exit status", question, f"{status}: {err[-200:]}", "status 0", 26)]
    told = json.loads(out)
    found = [*_differs(told["optimum"], whole, question, "nothing fails", posed.kind)]
    asked: set[tuple[str, str]] = set()
    for failure in told["failures"]:
        for name in failure["names"]:
            ends = frozenset(name.split(" - "))
            asked.add((failure["kind"], "".join(sorted(ends))))
            left = posed.scale_rates({ends}, slow) if failure["kind"] == "link" else posed.without(name)
            found += _check_failure(failure, left, f"{question} # {failure['kind']} {name}")
    links = {("link", "".join(sorted({a, b}))) for a, b, _ in posed.arcs}
    known = links | {("rank", r) for r in posed.ranks} | {("switch", s) for s in posed.switches}
    if asked != known:
        found.append(Fault("other failures", question, str(sorted(asked)), str(sorted(known)), 26))
    return found


def _check_failure(failure: dict[str, Any], left: Small, question: str) -> list[Fault]:
    """Hold one failure against what is left of the network."""
    count_comparisons()
    if len(left.ranks) < 2 or not left.is_balanced():
        right = "flow_time_s" not in failure and failure["loss"] is None
        return [] if right else [Fault("called cut off", question, str(failure)[:200], "not known", 27)]
    known = left.seconds()
    if known is None:
        right = "flow_time_s" not in failure and failure["loss"] == 1.0
        return [] if right else [Fault("not cut off", question, str(failure)[:200], "a cut without links", 27)]
    return _differs(failure, known, question, failure["reason"], left.kind)


def _differs(told: dict[str, Any], known: Fraction, question: str, reason: str, kind: str) -> list[Fault]:
    """Hold a time and a bound against the slowest cut."""
    if "flow_time_s" not in told:
        return [Fault("called cut off", question, reason, f"all cuts: {float(known)!r}", 26)]
    time, bound = Fraction(told["flow_time_s"]), Fraction(told["bound_s"])
    shown = f"flow time {told['flow_time_s']!r}, bound {told['bound_s']!r}"
    if abs(time - known) > ROUNDING * known:
        return [Fault("another flow time", question, shown, f"all cuts: {float(known)!r}", 26)]
    if bound > known * (1 + ROUNDING) or (kind != "all_reduce" and bound < known * (1 - ROUNDING)):
        return [Fault("another bound", question, shown, f"all cuts: {float(known)!r}", 26)]
    return []


def sensitivities(seed: int) -> list[Fault]:
    """Derivatives by ``cwb solve --sensitivity``; where the picture cannot be drawn, the answer must stay."""
    random = rng("sensitivities", seed)
    posed = network(random, ("all_gather", "reduce_scatter", "broadcast", "reduce"))
    while not posed.is_balanced() or posed.seconds() is None:
        posed = network(random, ("all_gather", "reduce_scatter", "broadcast", "reduce"))
    return check_sensitivity(posed, drawn=random.random() < 0.1)


def check_sensitivity(posed: Small, *, drawn: bool = False) -> list[Fault]:
    """Compare the derivatives of ``cwb solve --sensitivity`` with all cuts; ``drawn`` into an odd file."""
    text = json.dumps(posed.data())
    folder = client.folder()
    path, answer, records = (folder / name for name in ("study.json", "answer.json", "records.jsonl"))
    path.write_text(text)
    answer.unlink(missing_ok=True)
    records.unlink(missing_ok=True)
    words = ["--sensitivity", "--json", "-q", *(["--picture", str(folder / "p.odd")] if drawn else [])]
    files = ["-o", str(answer), "--append", str(records)]
    status, out, err = client.command("solve", "--model", "forestcoll", str(path), *files, *words)
    question = f"cwb solve --model forestcoll {' '.join(words)} -o a.json --append r.jsonl '{text}'"
    shown = f"status {status}: {err[-200:]}"
    if not answer.exists() or not records.exists() or not out:
        return [Fault("a study costs the answer", question, shown, "the answer, its record and its print", 28)]
    record = json.loads(out)
    if record["status"] not in ("optimal", "feasible"):
        return []
    if status != (2 if drawn else 0):
        return [Fault("exit status", question, shown, "2 with a wrong picture, else 0", 28)]
    found: list[Fault] = []
    for entry in (record["sensitivity"] or {"entries": ()})["entries"]:
        pairs = {frozenset(ends) for ends in entry["members"][: entry["count"]]}
        for side, known in zip(("up", "down"), posed.derivatives(pairs), strict=True):
            if entry[side] is None or entry[side]["slope_s_per_GBps"] is None:
                continue
            count_comparisons()
            wanted = known / Fraction(entry["bandwidth_GBps"])
            slope = Fraction(entry[side]["slope_s_per_GBps"])
            if abs(slope - wanted) > SLOPES * abs(wanted):
                told = f"{entry['name']}, {entry['count']} of them, {side}: {float(slope)!r}"
                found.append(Fault("another derivative", question, told, f"all cuts: {float(wanted)!r}", 28))
    if record["status"] == "optimal" and not record["sensitivity"] and not drawn:
        found.append(Fault("no derivatives", question, shown, "some", 28))
    return found


CAMPAIGNS = (
    Campaign("failures", "every cut, in fractions", failures, range(12), 3000, cpu_s=60, batch=20),
    Campaign("sensitivities", "derivatives of every cut", sensitivities, range(6), 1000, cpu_s=120, batch=10),
)
