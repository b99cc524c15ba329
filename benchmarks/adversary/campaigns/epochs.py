"""TE-CCL's declarative models and other methods in epochs, against programs over time of our own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil
from random import Random
from typing import Any

from cwb.benchmarks.adversary import client, networks
from cwb.benchmarks.adversary.fault import Campaign, Fault
from cwb.benchmarks.adversary.lp import Program
from cwb.benchmarks.adversary.networks import COPIED, Data, rng
from cwb.benchmarks.adversary.replay import faults_in_epochs, sends_in_epochs

#: Epochs beyond which a case is not followed.
MOST = 10


def demands(data: Data) -> list[tuple[int, frozenset[int]]]:
    """Source and targets of every chunk of a collective that is copied."""
    ranks = [i for i, node in enumerate(data["network"]["nodes"]) if node.get("kind") != "switch"]
    each = data["collective"].get("chunks", 1)
    everybody = frozenset(ranks)
    rows: Mapping[str, list[tuple[int, frozenset[int]]]] = {
        "broadcast": [(ranks[0], everybody)],
        "all_gather": [(r, everybody) for r in ranks],
        "scatter": [(ranks[0], frozenset([r])) for r in ranks[1:]],
        "gather": [(r, frozenset([ranks[0]])) for r in ranks[1:]],
        "all_to_all": [(s, frozenset([t])) for s in ranks for t in ranks if s != t],
    }
    return [(source, targets - {source}) for source, targets in rows[data["collective"]["kind"]] for _ in range(each)]


class Net:
    """Links of an instance in epochs, under store-and-forward."""

    def __init__(self, data: Data, epoch_s: Fraction, changes: list[dict[str, Any]]) -> None:
        nodes = data["network"]["nodes"]
        place = {node["name"]: i for i, node in enumerate(nodes)}
        self.ends, self.delay, self.window, self.rate = [], [], [], []
        self.factor: dict[tuple[int, int], Fraction] = {}
        for e, link in enumerate(data["network"]["links"]):
            rate = networks.exact(link["bandwidth"]) * epoch_s
            late = ceil(networks.exact(link.get("latency", "0 s")) / epoch_s)
            self.ends.append((place[link["source"]], place[link["target"]]))
            self.rate.append(rate)
            self.window.append(ceil(1 / rate))
            self.delay.append(ceil(1 / rate) + late)
            for change in changes:
                if (change["source"], change["target"]) == (link["source"], link["target"]):
                    for k in range(*change["epochs"]):
                        self.factor[e, k] = self.factor.get((e, k), Fraction(1)) * Fraction(change["factor"])
        self.empty = {i for i, n in enumerate(nodes) if n.get("kind") == "switch" and n.get("buffer") == "0 B"}
        self.room = {
            i: int(networks.exact(n["buffer"]))
            for i, n in enumerate(nodes)
            if n.get("kind") == "switch" and n.get("buffer", "0 B") != "0 B"
        }
        self.unicast = {i for i, n in enumerate(nodes) if n.get("kind") == "switch" and not n.get("multicast")}
        self.count = len(nodes)


def fewest(net: Net, wanted: list[tuple[int, frozenset[int]]]) -> int | None:
    """Fewest epochs of whole chunks, by a program for each number; None beyond :data:`MOST`."""
    for epochs in range(1, MOST + 1):
        if _possible(net, wanted, epochs):
            return epochs
    return None


def _possible(net: Net, wanted: list[tuple[int, frozenset[int]]], epochs: int) -> bool:
    """Check if numbers of starts (link, chunk, epoch) exist with which every rank gets what it needs.

    Towards a switch that copies nothing, as many copies of a chunk may start over a link at once as it has targets.
    """
    program = Program()
    x: dict[tuple[int, int, int], int] = {}
    for e, (_, head) in enumerate(net.ends):
        for c, (_, targets) in enumerate(wanted):
            most = float(len(targets) if head in net.unicast else 1)
            for k in range(epochs - net.delay[e] + 1):
                x[e, c, k] = program.variable(1e-3, 0.0, most, integer=True)
    arriving: dict[tuple[int, int, int], list[int]] = {}
    leaving: dict[tuple[int, int, int], list[int]] = {}
    for (e, c, k), v in x.items():
        arriving.setdefault((net.ends[e][1], c, k + net.delay[e]), []).append(v)
        leaving.setdefault((net.ends[e][0], c, k), []).append(v)
    for (node, c, k), out in leaving.items():
        if node != wanted[c][0]:
            for row in _storage_rows(net, node, c, k, out, arriving, leaving, len(wanted[c][1])):
                program.row(row, high=0.0)
    for c, (_, targets) in enumerate(wanted):
        for target in targets:
            row = {v: 1.0 for k in range(epochs + 1) for v in arriving.get((target, c, k), [])}
            if not row:
                return False
            program.row(row, low=1.0)
    _share(program, net, x, len(wanted), epochs)
    for node, room in net.room.items():
        others = [c for c, (source, targets) in enumerate(wanted) if node != source and node not in targets]
        _limit(program, node in net.unicast, node, room, (others, epochs), arriving, leaving)
    return program.solve() is not None


def _limit(
    program: Program,
    unicast: bool,
    node: int,
    room: int,
    size: tuple[Sequence[int], int],
    arriving: Mapping[tuple[int, int, int], list[int]],
    leaving: Mapping[tuple[int, int, int], list[int]],
) -> None:
    """Limit the chunks of others, of 1 B, at a node: those arriving or leaving at an index, and those stored."""
    chunks, epochs = size
    held = {(c, k): program.variable() for c in chunks for k in range(epochs + 1)}
    for (c, k), now in held.items():
        came, left = arriving.get((node, c, k), []), leaving.get((node, c, k), [])
        for together in [came, left] if unicast else [[v] for v in came + left]:
            program.row({now: -1.0} | dict.fromkeys(together, 1.0), high=0.0)
        # No more than before, less what has left if that was all there is of it, and what has come.
        row = {now: 1.0} | dict.fromkeys(came, -1.0)
        if k:
            row |= {held[c, k - 1]: -1.0}
            row |= dict.fromkeys(leaving.get((node, c, k - 1), []) if unicast else [], 1.0)
        program.row(row, high=0.0)
    for k in range(epochs + 1):
        program.row({held[c, k]: 1.0 for c in chunks}, high=float(room))


def _share(program: Program, net: Net, x: Mapping[tuple[int, int, int], int], chunks: int, epochs: int) -> None:
    """Let no window of a link start more than its epochs allow."""
    for e, window in enumerate(net.window):
        for begin in range(epochs + 1):
            span = range(begin, begin + window)
            room = sum((net.rate[e] * net.factor.get((e, k), Fraction(1)) for k in span), Fraction(0))
            row = {x[e, c, k]: 1.0 for c in range(chunks) for k in span if (e, c, k) in x}
            if row:
                program.row(row, high=float(int(room)))


def _storage_rows(
    net: Net,
    node: int,
    c: int,
    k: int,
    out: list[int],
    arriving: Mapping[tuple[int, int, int], list[int]],
    leaving: Mapping[tuple[int, int, int], list[int]],
    copies: int,
) -> list[dict[int, float]]:
    """Yield rows that are at most 0: a chunk leaves a node only after arriving, if uncopied as often.

    Elsewhere what has come once may start over a link as often as there are ``copies``.
    """
    first = k if node in net.empty else 0
    came = {v: -1.0 for j in range(first, k + 1) for v in arriving.get((node, c, j), [])}
    if node not in net.unicast:
        return [dict.fromkeys(came, -float(copies)) | {v: 1.0} for v in out]
    return [came | {v: 1.0 for j in range(first, k + 1) for v in leaving.get((node, c, j), [])}]


def fewest_fluid(net: Net, wanted: list[tuple[int, frozenset[int]]]) -> int | None:
    """Fewest epochs where chunks may be split and nothing is copied, by a linear program for each number."""
    flows = [(source, target) for source, targets in wanted for target in targets]
    groups: dict[tuple[int, int], int] = {}
    for pair in flows:
        groups[pair] = groups.get(pair, 0) + 1
    for epochs in range(1, MOST + 1):
        program = Program()
        room: dict[tuple[int, int], dict[int, float]] = {}
        ok = True
        for (source, target), amount in groups.items():
            balance: dict[tuple[int, int], dict[int, float]] = {}

            def at(node: int, k: int, balance: dict[tuple[int, int], dict[int, float]] = balance) -> dict[int, float]:
                return balance.setdefault((node, k), {})

            for e, (a, b) in enumerate(net.ends):
                delay = net.delay[e] - net.window[e] + 1
                for k in range(epochs - delay + 1):
                    v = program.variable(0.0)
                    at(a, k)[v] = -1.0
                    at(b, k + delay)[v] = 1.0
                    room.setdefault((e, k), {})[v] = 1.0
            for node in range(net.count):
                if node in net.empty:
                    continue
                for k in range(epochs):
                    v = program.variable(0.0)
                    at(node, k)[v] = -1.0
                    at(node, k + 1)[v] = 1.0
            for (node, k), row in balance.items():
                supply = -amount if (node, k) == (source, 0) else amount if (node, k) == (target, epochs) else 0
                program.row(row, float(supply), float(supply))
            ok = ok and (target, epochs) in balance
        for (e, k), row in room.items():
            program.row(row, high=float(net.rate[e] * net.factor.get((e, k), Fraction(1))))
        if ok and program.solve() is not None:
            return epochs
    return None


def question(random: Random, kinds: tuple[str, ...]) -> tuple[Data, Fraction]:
    """A small instance with chunks of 1 B, and an epoch."""
    kind, count, each = random.choice(kinds), random.choice((2, 3, 3, 4)), random.choice((1, 1, 2))
    if kind in ("all_to_all", "all_gather") and count > 3:
        each = 1
    make = networks.star if random.random() < 0.6 else networks.direct
    return make(random, count, kind=kind, chunks=each), random.choice((Fraction(1), Fraction(1), Fraction(1, 2)))


def changes_of(random: Random, data: Data) -> list[dict[str, Any]]:
    """Slow links down now and then."""
    found = []
    for link in data["network"]["links"]:
        if random.random() < 0.25:
            first = random.randrange(3)
            found.append(
                {
                    "source": link["source"],
                    "target": link["target"],
                    "epochs": [first, first + random.randint(1, 2)],
                    "factor": random.choice(("0", "1/2")),
                }
            )
    return found


def whole(seed: int) -> list[Fault]:
    """Random instances for ``teccl-milp`` with all objectives, switches as hyper-edges, and bandwidth that varies."""
    random = rng("whole", seed)
    data, epoch = question(random, COPIED)
    options: dict[str, Any] = {"epoch_duration": f"{float(epoch)} s", "timing": "store-and-forward"}
    objective = random.choice(("makespan", "makespan", "late", "paper"))
    if objective != "makespan":
        options["objective"] = objective
    changes = changes_of(random, data) if random.random() < 0.4 else []
    if changes:
        options["bandwidth"] = changes
    legacy = not changes and random.random() < 0.25
    if legacy:
        options["switches"] = "hyper-edges"
    defect = 17 if legacy else 6 if changes else 5 if objective != "makespan" else None
    return milp(data, epoch, options, changes, defect)


def milp(
    data: Data, epoch: Fraction, options: dict[str, Any], changes: list[dict[str, Any]], defect: int | None
) -> list[Fault]:
    """Ask ``teccl-milp`` and hold it against the fewest epochs, and its schedule against the replay."""
    net = Net(data, epoch, changes)
    legacy = options.get("switches") == "hyper-edges"
    if legacy:
        net.unicast |= net.empty  # hyper-edges stand for switches that do not copy
    best = fewest(net, demands(data))
    solved = client.solve(data, "teccl-milp", time_limit_s=20, **options)
    found = client.conduct(solved, defect)
    decides = options.get("objective") != "paper" and not legacy
    refuses = solved.record is not None and solved.record.status == "infeasible"
    if best is not None and (decides or refuses):
        found += client.claims(solved, best * epoch, "program over time", defect)
    if best is not None and not legacy:
        found += client.impossible(solved, best * epoch, "program over time", defect)
    if solved.has_answer:
        found += check_replay(solved, defect)
    return found


def check_replay(solved: client.Reply, defect: int | None) -> list[Fault]:
    """Hold a schedule that the verifier let pass against the replay."""
    timing = solved.instance.timing
    if timing is None or timing.fluid or timing.semantics.value != "store-and-forward":
        return []
    sends = sends_in_epochs(solved.answer, timing.epoch_s)
    wrong = ["off the grid"] if sends is None else faults_in_epochs(solved.instance, solved.answer.chunks, sends)
    return [Fault("wrong schedule accepted", solved.question, solved.outcome_text, wrong[0], defect)] if wrong else []


def buffers(seed: int) -> list[Fault]:
    """Random stars round a switch with room for one to three chunks, for ``teccl-milp`` and ``pccl``."""
    random = rng("buffers", seed)
    count = random.choice((2, 3, 3, 4))
    kind = random.choice(COPIED)
    each = 1 if count == 4 or kind in ("all_to_all", "all_gather") else random.choice((1, 2))
    data = networks.star(random, count, kind=kind, chunks=each)
    data["network"]["nodes"][count]["buffer"] = f"{random.choice((1, 1, 2, 3))} B"
    options: dict[str, Any] = {"epoch_duration": "1 s", "timing": "store-and-forward"}
    found = client.conduct(client.solve(data, "pccl", steps=100, time_limit_s=10), 23)
    if fewest(Net(data, Fraction(1), []), demands(data)) is not None:
        found += milp(data, Fraction(1), options, [], 23)
    return found


def split(seed: int) -> list[Fault]:
    """Random instances for ``teccl-lp``."""
    random = rng("split", seed)
    data, epoch = question(random, COPIED)
    changes = changes_of(random, data) if random.random() < 0.2 else []
    return fluid(data, epoch, changes, 7)


def fluid(data: Data, epoch: Fraction, changes: list[dict[str, Any]], defect: int | None) -> list[Fault]:
    """Ask ``teccl-lp`` and hold it against the fewest epochs of a flow."""
    options: dict[str, Any] = {"epoch_duration": f"{float(epoch)} s", "timing": "store-and-forward"}
    if changes:
        options["bandwidth"] = changes
    solved = client.solve(data, "teccl-lp", time_limit_s=20, **options)
    found = client.conduct(solved, defect)
    best = fewest_fluid(Net(data, epoch, changes), demands(data))
    if best is not None:
        found += client.claims(solved, best * epoch, "flow over time", defect)
        if solved.has_answer and solved.record.objective < float(best * epoch) * (1 - client.ROUNDING):
            found += client.impossible(solved, best * epoch, "flow over time", defect)
    return found


def between(seed: int) -> list[Fault]:
    """Ask several methods the same question; none may prove more than another one reaches."""
    random = rng("between", seed)
    summed = random.random() < 0.6
    kinds = ("reduce", "reduce_scatter", "all_reduce") if summed else COPIED
    kind, each = random.choice(kinds), random.choice((1, 2))
    count = random.choice((2, 3)) if kind == "all_reduce" else 3
    data = networks.direct(random, count, kind=kind, chunks=each, high=1, latencies=("0 s",))
    return compare_methods(data, "1 s", 22 if summed else None)


def compare_methods(data: Data, epoch: str, defect: int | None) -> list[Fault]:
    """Ask ``teccl-milp``, ``teccl`` and ``ten-ilp`` the same, in seconds."""
    options = {"epoch_duration": epoch, "timing": "store-and-forward"}
    runs = [
        client.solve(data, "teccl-milp", **options),
        client.solve(data, "teccl", **options),
        client.solve(data, "ten-ilp"),
    ]
    found = [fault for solved in runs for fault in client.conduct(solved)]
    for solved in runs:
        if solved.has_answer and solved.record.status == "optimal":
            found += check_replay(solved, defect)
    right = [s for s in runs if s.has_answer and abs(s.record.objective - round(s.record.objective)) < client.ROUNDING]
    if not right:
        return found
    best = min(right, key=lambda s: s.record.objective)
    known = f"{best.record.model}: {best.record.objective!r}"
    for solved in runs:
        found += client.claims(solved, best.record.objective, best.record.model, defect)
        record = solved.record
        if (
            solved.has_answer
            and record.kind == "exact"
            and record.status == "feasible"
            and record.objective > best.record.objective
        ):
            # No limit was set: what is called exact has ended, and has not found it.
            found.append(Fault("exact, and not the best", solved.question, solved.outcome_text, known, defect))
    return found


CAMPAIGNS = (
    Campaign("whole", "program over time of whole chunks, replay", whole, range(30), 1500, cpu_s=120, batch=8),
    Campaign("buffers", "program over time of whole chunks, replay", buffers, range(10), 500, cpu_s=120, batch=4),
    Campaign("split", "flow over time", split, range(20), 1500, cpu_s=120, batch=8),
    Campaign("between", "answers of other methods", between, range(10), 500, cpu_s=180, batch=4),
)
