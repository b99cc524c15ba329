"""Methods of teccl on ranks with small or no buffers, varying bandwidth and epochs, against a program and a replay."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from fractions import Fraction
from math import ceil, floor
from random import Random
from typing import Any

from cwb.benchmarks.adversary import client, networks
from cwb.benchmarks.adversary.campaigns import epochs
from cwb.benchmarks.adversary.fault import Campaign, Fault, count_comparisons
from cwb.benchmarks.adversary.networks import COPIED, Data, rng
from cwb.benchmarks.adversary.replay import sends_in_epochs

#: Grids on which schedules are asked for.
TIMINGS = ("store-and-forward", "te-ccl", "te-ccl-paid-switch")


def star(random: Random) -> Data:
    """Ranks round a rank, and some links between them; a link carries a chunk of 1 B in one epoch or in two."""
    count = random.choice((2, 3, 3, 3))
    pairs = [(0, leaf) for leaf in range(1, count + 1)]
    rest = [(a, b) for b in range(2, count + 1) for a in range(1, b)]
    pairs += random.sample(rest, random.choice((0, 0, min(1, len(rest)))))
    arcs = [
        (str(a), str(b), random.choice(("1 B/s",) * 7 + ("0.5 B/s",))) for pair in pairs for a, b in (pair, pair[::-1])
    ]
    kind = random.choice(("all_gather",) * 5 + COPIED)
    return networks.instance([*map(str, range(count + 1))], arcs, kind, networks.whole(kind, count + 1, 1), chunks=1)


def delay(net: epochs.Net, data: Data, link: int, timing: str) -> int:
    """Epochs from the start of a chunk over a link to its arrival, with chunks of 1 B and epochs of 1 s."""
    nodes, (tail, head) = data["network"]["nodes"], net.ends[link]
    late = networks.exact(data["network"]["links"][link].get("latency", "0 s"))
    waits = 0 if timing != "store-and-forward" and late <= Fraction(1, 10) else ceil(late)
    free = timing == "te-ccl" and nodes[tail].get("kind") == "switch" and nodes[head].get("kind") != "switch"
    return waits + (0 if free else net.window[link])


def net_of(data: Data, timing: str, changes: list[dict[str, Any]], room: int | None) -> epochs.Net:
    """Links and nodes on a grid of 1 s, ranks with room for so many chunks of others."""
    net = epochs.Net(data, Fraction(1), changes)
    net.delay = [delay(net, data, link, timing) for link in range(len(net.ends))]
    for node, row in enumerate(data["network"]["nodes"]):
        if row.get("kind") != "switch" and room is not None:
            if room:
                net.room[node] = room
            else:
                net.empty.add(node)
    return net


def check_epochs(solved: client.Reply, best: int | None, defect: int | None, *, exact: bool = True) -> list[Fault]:
    """Hold an answer against the fewest epochs; of those that only bound, ``exact`` is false."""
    found = client.conduct(solved, defect)
    if best is not None:
        if exact:
            found += client.claims(solved, best, "program over time", defect)
        found += client.impossible(solved, best, "program over time", defect)
    return found


def relays(seed: int) -> list[Fault]:
    """Random stars whose ranks send on at once or never, or hold one chunk of others."""
    random = rng("relays", seed)
    return check_forwarding(star(random), random.choice((0, 0, 0, 1)), random.choice(("makespan", "late")))


def check_forwarding(data: Data, room: int, objective: str = "makespan") -> list[Fault]:
    """Ask the method, the model of as many epochs as are needed, and the model of one less."""
    options: dict[str, Any] = {"epoch_duration": "1 s", "timing": "store-and-forward"}
    options |= {"buffer": room} if room else {"relays": "pass"}
    best = epochs.fewest(net_of(data, "store-and-forward", [], room), epochs.demands(data))
    solved = client.solve(data, "teccl-milp", time_limit_s=20, objective=objective, **options)
    found = check_epochs(solved, best, 24) + check_replay(solved, room, 24)
    for limit in () if best is None else (best, best - 1):
        model = client.solve(data, "teccl/milp", time_limit_s=20, epochs=limit, objective="feasible", **options)
        found += client.conduct(model, 24) + check_replay(model, room, 24)
        decided = model.record is not None and model.record.status in ("optimal", "feasible", "infeasible")
        count_comparisons(decided)
        if decided and (model.record.status == "infeasible") != (limit < best):
            found.append(Fault("wrong feasibility", model.question, model.outcome_text, f"{best} epochs", 24))
    return found


def bandwidths(seed: int) -> list[Fault]:
    """Random small networks whose bandwidth varies and whose ranks hold little, on every grid, for every method."""
    random = rng("bandwidths", seed)
    kind, count = random.choice(COPIED), random.choice((2, 3, 3, 4))
    make = networks.star if random.random() < 0.5 else networks.direct
    data = make(random, count, kind=kind)
    timing = random.choice(TIMINGS)
    options: dict[str, Any] = {"epoch_duration": "1 s", "timing": timing}
    changes = epochs.changes_of(random, data) if random.random() < 0.8 else []
    room = random.choice((None, None, 1, 2))
    varying = {"bandwidth": changes} if changes else {}
    limited = {"buffer": room} if room else {}
    wanted = epochs.demands(data)
    unlimited, net = net_of(data, timing, changes, None), net_of(data, timing, changes, room)
    free = epochs.fewest(unlimited, wanted)
    best = epochs.fewest(net, wanted) if room else free
    solved = client.solve(data, "teccl-milp", time_limit_s=20, **options, **varying, **limited)
    found = check_epochs(solved, best, None) + check_replay(solved, room, None)
    solved = client.solve(data, "teccl-astar", time_limit_s=20, **options, **varying)
    found += check_epochs(solved, free, None) + check_replay(solved, None, None)
    solved = client.solve(data, "teccl-lp", time_limit_s=20, **options, **varying, **limited)
    fluid = (
        epochs.fewest_fluid(net_of(data, "store-and-forward", changes, None), wanted) if timing == TIMINGS[0] else None
    )
    found += check_epochs(solved, fluid, None, exact=room is None) + check_replay(solved, room, None)
    if not changes:
        solved = client.solve(data, "teccl", time_limit_s=20, **options)
        whole = kind != "all_to_all"
        found += check_epochs(solved, free if whole else None, None) + check_replay(solved, None, None)
    return found


def late_sums(seed: int) -> list[Fault]:
    """Every method for what is summed late: an answer that the verifier lets pass, or none."""
    random = rng("late-sums", seed)
    data = networks.direct(random, random.choice((2, 3)), kind="late_all_reduce")
    data["collective"]["size"] = "6 B"
    options: dict[str, Any] = {"timing": "store-and-forward"}
    found: list[Fault] = []
    for model in ("teccl", "teccl-lp", "teccl-astar", "teccl-all-to-all"):
        solved = client.solve(data, model, time_limit_s=10, **options)
        count_comparisons(solved.record is not None)
        found += client.conduct(solved, 25)
    return found


def check_replay(solved: client.Reply, room: int | None, defect: int | None) -> list[Fault]:
    """Hold a schedule that the verifier let pass against the replay."""
    if not solved.has_answer or solved.answer is None:
        return []
    count_comparisons()
    wrong = next(faults(solved, room), None)
    return [Fault("wrong schedule accepted", solved.question, solved.outcome_text, wrong, defect)] if wrong else []


def faults(solved: client.Reply, room: int | None) -> Iterator[str]:
    """Give what is wrong with a schedule on a grid, of whole chunks or of parts; all data is copied, none is summed."""
    instance, chunks, timing = solved.instance, solved.answer.chunks, solved.instance.timing
    links = instance.network.links
    sends = sends_in_epochs(solved.answer, timing.epoch_s)
    if sends is None:
        yield "off the grid"
        return
    rate = [Fraction(link.bandwidth_Bps) * timing.epoch_s for link in links]  # a chunk has 1 B
    window = [1 if timing.fluid else ceil(1 / r) for r in rate]
    moved = list[tuple[int, int, int, int]]()  # chunk, link, start, end
    for send in sends:
        hops, end = _hops(instance, send, window)
        moved += hops
        if instance.network.link_ends[send.links[-1]][1] != send.target or (end != send.end and len(hops) == 1):
            yield f"{send} ends at {end}"
    yield from _loads(solved, moved, rate, window)
    yield from _data(instance, chunks, moved, room)


def _hops(instance: Any, send: Any, window: list[int]) -> tuple[list[tuple[int, int, int, int]], int]:
    """Chunk, link, start and end of every hop of a send, and when it arrives."""
    network, timing = instance.network, instance.timing
    found, at = [], send.start
    for link in send.links:
        tail, head = network.link_ends[link]
        late = network.links[link].latency_s / timing.epoch_s
        wait = 0 if timing.semantics.value != "store-and-forward" and late <= Fraction(1, 10) else ceil(late)
        ways = [network.nodes[n].kind.value == "switch" for n in (tail, head)]
        passes = timing.semantics.value == "te-ccl" and ways == [True, False]
        end = at + wait + (1 if timing.fluid else 0 if passes else window[link])
        found.append((send.chunk, link, at, end))
        at = end
    return found, at


def _loads(
    solved: client.Reply, moved: list[tuple[int, int, int, int]], rate: list[Fraction], window: list[int]
) -> Iterator[str]:
    """Give the links that carry more than they can, and a last arrival that is not the objective."""
    chunks, timing = solved.answer.chunks, solved.instance.timing
    if moved and float(max(row[3] for row in moved) * timing.epoch_s) != solved.record.objective:
        yield f"the last arrival is in epoch {max(row[3] for row in moved)}"
    started: dict[int, Counter[int]] = defaultdict(Counter)
    loads: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
    for chunk, link, start, _ in moved:
        started[link][start] += 1
        loads[link, start] += chunks.size_bytes(chunk)

    def share(link: int, epoch: int) -> Fraction:
        for change in timing.changes:
            if change.link == link and change.first <= epoch < change.last:
                return rate[link] * change.factor
        return rate[link]

    for (link, start), load in loads.items():
        if timing.fluid:
            if load > share(link, start):
                yield f"link {link} carries {load} in epoch {start}"
            continue
        for begin in range(start - window[link] + 1, start + 1):
            span = range(begin, begin + window[link])
            if sum(started[link][k] for k in span) > floor(sum((share(link, k) for k in span), Fraction(0))):
                yield f"link {link} is overloaded from epoch {begin} on"


def _data(instance: Any, chunks: Any, moved: list[tuple[int, int, int, int]], room: int | None) -> Iterator[str]:
    """Give what is sent too early or missing, and where more waits than there is room for."""
    nodes, ends, rank_node = instance.network.nodes, instance.network.link_ends, instance.network.rank_nodes
    fluid = instance.timing.fluid
    waiting: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
    for chunk in range(len(chunks)):
        held = {rank_node[r] for r in chunks.groups[chunks.held_by[chunk]]}
        needed = {rank_node[r] for r in chunks.groups[chunks.needed_by[chunk]]}
        came, early = _arrivals(instance, held, [row[1:] for row in moved if row[0] == chunk])
        yield from early
        for node in needed - held:
            if not came[node]:
                yield f"{node} lacks chunk {chunk}"
        for node in came.keys() - held - needed if room else ():
            if nodes[node].kind.value == "switch":
                continue
            indices = set() if fluid else set(came[node])
            for row in moved:
                if row[0] == chunk and ends[row[1]][0] == node:
                    since = max((k for k in came[node] if k <= row[2]), default=row[2])
                    indices |= set(range(since, row[2] + (not fluid)))
            for index in indices:
                waiting[node, index] += chunks.size_bytes(chunk)
    for (node, index), amount in waiting.items():
        if room and amount > room:
            yield f"{node} holds {amount} at {index}"


def _arrivals(instance: Any, held: set[int], todo: list[tuple[int, int, int]]) -> tuple[dict[int, set[int]], list[str]]:
    """Return the arrival of a chunk at each node, and the hop, if there is one, that sends what is not there."""
    came: dict[int, set[int]] = defaultdict(set)
    while todo:
        left = []
        for link, start, end in todo:
            tail, head = instance.network.link_ends[link]
            empty = instance.network.nodes[tail].buffer_bytes == 0
            there = start in came[tail] if empty else any(k <= start for k in came[tail])
            if tail in held or there:
                came[head].add(end)
            else:
                left.append((link, start, end))
        if len(left) == len(todo):
            return came, [f"link {left[0][0]} carries in epoch {left[0][1]} what is not there"]
        todo = left
    return came, []


CAMPAIGNS = (
    Campaign("relays", "program over time of whole chunks, replay", relays, range(12), 3000, cpu_s=120, batch=8),
    Campaign("bandwidths", "programs over time, replay", bandwidths, range(8), 3000, cpu_s=120, batch=8),
    Campaign("late-sums", "no wrong answer", late_sums, range(4), 200, cpu_s=60, batch=8),
)
