"""``straggler`` on small networks of switches and links, against all rounds that there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import permutations, product
from random import Random
from typing import Any

from cwb.benchmarks.adversary import client, networks
from cwb.benchmarks.adversary.fault import Campaign, Fault, count_comparisons
from cwb.benchmarks.adversary.networks import Data, rng
from cwb.benchmarks.adversary.replay import Send, faults_of_data, rows

#: Number of the defect.
DEFECT = 32


@cache
def fewest_rounds(ranks: int, each: int) -> int:
    """The fewest rounds by breadth-first search over who has which full sum; rank 0 is late."""
    chunks = [home for home in range(1, ranks) for _ in range(each)]
    everything = frozenset(product(range(len(chunks)), range(ranks)))
    seen, level, count = {frozenset[tuple[int, int]]()}, [frozenset[tuple[int, int]]()], 0
    while everything not in seen:
        count += 1
        after = {state | gained for state in level for gained in _gains(chunks, ranks, state)}
        # Who has more can do all that others can.
        level = [s for s in after - seen if len(s) == len(everything) or not any(s < other for other in after)]
        seen |= after
    return count


def _gains(chunks: list[int], ranks: int, state: frozenset[tuple[int, int]]) -> Iterator[frozenset[tuple[int, int]]]:
    """Yield the data that ranks can gain in a round: each sends to one, and receives from one."""
    found = set()
    for targets in permutations(range(ranks)):
        choices = []
        for source, target in enumerate(targets):
            can = [
                (chunk, target)
                for chunk, home in enumerate(chunks)
                if (chunk, target) not in state and ((chunk, source) in state or {source, target} == {0, home})
            ]
            choices.append(can if source != target and can else [None])
        found |= {frozenset(gain for gain in gains if gain is not None) for gains in product(*choices)}
    yield from found


def network(random: Random, ranks: int, each: int) -> Data:
    """Ranks at one to three switches, or linked with one another, or both; some links are there twice."""
    hubs = [f"s{i}" for i in range(random.choice((0, 1, 2, 2, 3)))]
    names = [*map(str, range(ranks)), *hubs]
    random.shuffle(hubs)
    pairs = [(str(a), hub) for hub in hubs for a in range(ranks) if random.random() < 0.95]
    if not hubs or random.random() < 0.4:
        pairs += [(str(a), str(b)) for a in range(ranks) for b in range(a) if not hubs or random.random() < 0.8]
    random.shuffle(pairs)
    pace = {name: random.choice((1, 2, 5)) for name in names}
    arcs = []
    for a, b in pairs:
        late = random.choice(("0 s", "1 s", "0.5 s"))
        for _ in range(random.choice((1, 1, 1, 2))):
            rate = pace[b] * random.choice((1, 1, 1, 2))
            arcs += [(a, b, f"{rate} B/s", late), (b, a, f"{rate} B/s", late)]
    size = f"{(ranks - 1) * each} B"
    return networks.instance(names, arcs, "late_all_reduce", size, {hub: {} for hub in hubs}, chunks=each)


def shortest_round(data: Data) -> Fraction | None:
    """Find the shortest round by trying the ranks' links and each switch, with the faster of two parallel links."""
    nodes = data["network"]["nodes"]
    hubs = [n["name"] for n in nodes if n.get("kind") == "switch"]
    ranks = [n["name"] for n in nodes if n["name"] not in hubs]
    best: dict[tuple[str, str], tuple[Fraction, Fraction]] = {}
    for link in data["network"]["links"]:
        ends = link["source"], link["target"]
        late, wire = networks.exact(link.get("latency", "0 s")), 1 / networks.exact(link["bandwidth"])
        best[ends] = min(best.get(ends, (late, wire)), (late, wire), key=sum)
    rounds = []
    direct = [(a, b) for a in ranks for b in ranks if a != b]
    if all(pair in best for pair in direct):
        rounds.append(max(best[p][0] for p in direct) + max(best[p][1] for p in direct))
    for hub in hubs:
        up, down = [(a, hub) for a in ranks], [(hub, a) for a in ranks]
        if all(pair in best for pair in up + down):
            late = max(best[p][0] for p in up) + max(best[p][0] for p in down)
            rounds.append(late + max(best[p][1] for p in up + down))
    return min(rounds, default=None)


def case(seed: int) -> list[Fault]:
    """Ask for the rounds of a small group."""
    random = rng("stragglers", seed)
    ranks, each = random.choice(((2, 1), (2, 2), (3, 1), (3, 1), (3, 2), (4, 1)))
    data = network(random, ranks, each)
    solved = client.solve(data, "straggler", tries=5, time_limit_s=10)
    found = client.conduct(solved, DEFECT)
    round_s = shortest_round(data)
    count_comparisons()
    if not solved.has_answer:
        if round_s is not None and not found:
            found.append(Fault("no rounds", solved.question, solved.outcome_text, f"rounds of {round_s} s", DEFECT))
        return found
    if round_s is None:
        return [
            *found,
            Fault("rounds without ways", solved.question, solved.outcome_text, "no switch of all", DEFECT),
        ]
    fewest = fewest_rounds(ranks, each)
    found += client.claims(solved, fewest * round_s, "all rounds, by search", DEFECT)
    found += client.impossible(solved, fewest * round_s, "all rounds, by search", DEFECT)
    return (
        found + [Fault("wrong rounds", solved.question, w, "replay", DEFECT) for w in violations(solved, round_s)][:1]
    )


def violations(solved: Any, round_s: Fraction) -> Iterator[str]:
    """Yield faults of rounds: who sends or receives twice, what takes longer than a round, who lacks what."""
    answer, topology = solved.answer, solved.instance.network
    sends = []
    for row, start in zip(rows(answer), answer.start_s.tolist(), strict=True):
        at = round(start / float(round_s))
        if abs(at * float(round_s) - start) > 1e-9 * max(start, float(round_s)):
            yield f"{start} is no multiple of {round_s}"
        sends.append(Send(*row, at, at + 1))
    for ends in (Counter((s.start, s.source) for s in sends), Counter((s.start, s.target) for s in sends)):
        if max(ends.values()) > 1:
            yield "a rank sends or receives twice in a round"
    for send in sends:
        size = answer.chunks.size_bytes(send.chunk)
        links = [topology.links[link] for link in send.links]
        if sum(link.latency_s for link in links) + max(size / link.bandwidth_Bps for link in links) > round_s:
            yield f"{send} takes longer than a round"
        nodes = [send.source, *(topology.link_ends[link][1] for link in send.links)]
        if nodes[:-1] != [topology.link_ends[link][0] for link in send.links] or nodes[-1] != send.target:
            yield f"{send} is no path"
    yield from faults_of_data(solved.instance, answer.chunks, sends, stores=False)


CAMPAIGNS = (Campaign("stragglers", "all rounds by search, replay", case, range(12), 3000, cpu_s=120, batch=16),)
