"""Steps that ``tacos`` makes and does not keep: verified as a stream, in memory, from a file and here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256
from random import Random
from typing import Any

import numpy as np
from cwb.benchmarks.adversary import client, makers, networks
from cwb.benchmarks.adversary.fault import Campaign, Fault, count_comparisons
from cwb.benchmarks.adversary.networks import Data, rng
from cwb.benchmarks.adversary.replay import Send, faults_of_data
from cwb.core.schedule import Chunks
from cwb.schedules.files import write_schedule

KINDS = ("all_gather", "reduce_scatter", "all_reduce")

#: Changed schedules of a case.
CHANGES = 12


@dataclass(frozen=True)
class Rows:
    """Blocks of the steps, cut where one likes."""

    rows: Any
    cut: int

    def __call__(self) -> Iterator[Any]:
        """Make them."""
        for begin in range(0, max(len(self.rows), 1), self.cut):
            yield self.rows[begin : begin + self.cut]


def question(random: Random) -> Data:
    """Ranks with equal links, some of them one-way unless sums have to go back over them."""
    kind, count = random.choice(KINDS), random.randint(2, 6)
    if kind != "all_reduce" and random.random() < 0.4:
        data = networks.directed_network(random, count, kind=kind, high=1)[0]
    else:
        data = networks.direct(random, count, kind=kind, high=1)
    chunks = random.choice((1, 1, 2, 3, 11, 40) if count < 5 else (1, 2, 14))  # beyond one word of 64 chunks, too
    data["collective"] |= {"chunks": chunks, "size": networks.whole(kind, count, chunks)}
    return data


def expand_rows(answer: Any, ends: list[tuple[int, int]], copies: int, rows: Any) -> Any:
    """Return the chunks of all links, by the images of those of the links into the first rank of every orbit."""
    number: dict[tuple[int, int], list[int]] = {}
    for link, pair in enumerate(ends):
        number.setdefault(pair, []).append(link)
    motions = [list(range(max(map(max, ends)) + 1))]
    for translation in answer.translations:
        powers = [motions]
        for _ in range(translation.order - 1):
            powers.append([[int(translation.image[rank]) for rank in motion] for motion in powers[-1]])
        motions = [motion for power in powers for motion in power]
    heads = [ends[link][answer.kind.value != "in"] for link in range(len(ends))]
    given = [link for link, head in enumerate(heads) if head == min(motion[head] for motion in motions)]
    every = np.full((len(rows), len(ends)), -1, dtype=np.int32)
    for motion in motions:
        ranks = np.array(motion)
        for column, link in enumerate(given):
            tail, head = ends[link]
            image = number[motion[tail], motion[head]][number[tail, head].index(link)]
            chunks = rows[:, column]
            every[:, image] = np.where(chunks < 0, chunks, ranks[chunks // copies] * copies + chunks % copies)
    return every


def change_rows(random: Random, rows: Any) -> Any:
    """Swap two steps or two sends, drop one, do one twice, or move one to another step, link or chunk."""
    rows = rows.copy()
    taken, free = np.argwhere(rows >= 0), np.argwhere(rows < 0)
    if not len(taken):
        return rows
    (step, link), (other, way) = (taken[random.randrange(len(taken))] for _ in range(2))
    change = random.randrange(8)
    match change:
        case 0:
            rows[[step, other]] = rows[[other, step]]
        case 1:
            rows[step, link], rows[other, way] = rows[other, way], rows[step, link]
        case 2:
            rows[step, link] = -1
        case 3:
            rows[step, link] = rows[other, way]
        case 4:
            return np.concatenate([rows[: step + 1], rows[step:]])
        case 5:
            later = min(max(step + random.choice((-1, 1)), 0), len(rows) - 1)
            rows[later, link], rows[step, link] = rows[step, link], rows[later, link]
        case _ if len(free):
            into = free[random.randrange(len(free))]
            rows[tuple(into)] = rows[step, link]
            if change == 6:
                rows[step, link] = -1
        case _:
            return rows[:-1]
    return rows


def gathers(ends: list[tuple[int, int]], ranks: int, copies: int, rows: Any) -> bool:
    """Check if steps form a gather in which no rank receives what it already has."""
    held = [set(range(rank * copies, (rank + 1) * copies)) for rank in range(ranks)]
    for row in rows.tolist():
        sent = [(*ends[link], chunk) for link, chunk in enumerate(row) if chunk >= 0]
        if any(chunk not in held[tail] for tail, _, chunk in sent):
            return False
        for _, head, chunk in sent:
            if chunk in held[head]:
                return False
            held[head].add(chunk)
    return all(len(each) == ranks * copies for each in held)


def all_sends(kind: str, ends: list[tuple[int, int]], rows: Any) -> list[Send]:
    """Return all sends of the collective by step: sums reverse time, those of an all-reduce the links."""
    found = []
    steps = len(rows)
    if kind != "all_gather":
        for step, row in enumerate(rows[::-1].tolist()):
            for link, chunk in enumerate(row):
                if chunk >= 0:
                    link_ = link if kind == "reduce_scatter" else ends.index((ends[link][1], ends[link][0]))
                    found.append(Send(chunk, *ends[link_], True, (link_,), step, step + 1))
    begin = 0 if kind == "all_gather" else steps
    if kind != "reduce_scatter":
        for step, row in enumerate(rows.tolist(), begin):
            found += [Send(c, *ends[e], False, (e,), step, step + 1) for e, c in enumerate(row) if c >= 0]
    return found


def case(seed: int) -> list[Fault]:
    """Have steps made, and verify them and a dozen changed ones in all ways."""
    random = rng("streamed", seed)
    data = question(random)
    kind, copies = data["collective"]["kind"], data["collective"]["chunks"]
    solved = client.solve(data, "tacos", answer="stream")
    found = client.conduct(solved)
    if not solved.has_answer:
        return [*found, Fault("no steps", solved.question, solved.outcome_text, "equal links")]
    instance, answer = solved.instance, solved.answer
    ends, ranks = list(instance.network.link_ends), len(data["network"]["nodes"])
    rows = np.concatenate(list(answer.blocks()))
    link = data["network"]["links"][0]
    step_s = networks.exact(link.get("latency", "0 s")) + chunk_bytes(data) / networks.exact(link["bandwidth"])
    count_comparisons()
    if abs(solved.record.objective - float(answer.steps * step_s)) > client.ROUNDING * solved.record.objective:
        found.append(Fault("time", solved.question, solved.outcome_text, f"{answer.steps} steps of {step_s} s"))
    groups, chunk_rows = makers.chunks_of(kind, ranks, copies)
    columns = [np.array(column) for column in zip(*chunk_rows, strict=True)]
    chunks = Chunks(np.ones(len(chunk_rows), dtype=np.int64), chunk_bytes(data), groups, *columns)
    for change in range(CHANGES + 1):
        some = change_rows(random, rows) if change else rows
        if change and random.random() < 0.2:
            some = change_rows(random, some)
        steps = expand_rows(answer, ends, copies, some)
        text = f"{solved.question}; change {change} of seed {seed}"
        blocks = Rows(some, random.choice((1, 2, 7, 1000)))
        digest = sha256(some.astype("<i4").tobytes()).hexdigest()
        stream = replace(
            answer, blocks=blocks, gather_steps=len(steps), gather_sends=int((steps >= 0).sum()), digest=digest
        )
        sends = all_sends(kind, ends, steps)
        made = makers.MadeSchedule(instance, chunks, sends, step_s).to_schedule()
        there = ends if kind != "reduce_scatter" else [(head, tail) for tail, head in ends]
        once = gathers(there, ranks, copies, steps)
        right = not faults_of_data(instance, chunks, sends, stores=False)
        if once and not right:
            raise AssertionError("the oracle of streams lets pass what the replay does not")
        verdicts = {"stream": (stream, once), "memory": (made, right)}
        for name, (one, known) in verdicts.items():
            count_comparisons()
            verdict, crash = client.verdict(instance, one)
            accepted = verdict is not None and verdict.ok
            if crash or accepted != known:
                claimed = crash or ("right" if accepted else f"wrong: {getattr(verdict, 'violations', ())}"[:300])
                found.append(Fault(f"verdict of {name}", text, claimed, "right" if known else "wrong"))
        file = client.folder() / "streamed.json"
        if change < 3:
            count_comparisons()
            write_schedule(file, instance, made, None, {})
            status, _, err = client.command("check", str(file))
            if status != (0 if right else 5):
                known = "right" if right else "wrong"
                found.append(Fault("verdict of file", text, f"exit status {status} {err.strip()[-200:]}", known))
    return found


def chunk_bytes(data: Data) -> Fraction:
    """Bytes of a chunk."""
    collective, ranks = data["collective"], len(data["network"]["nodes"])
    return networks.exact(collective["size"]) / (ranks * collective["chunks"])


CAMPAIGNS = (Campaign("streamed", "replay of every send; memory and files", case, range(8), 2000, cpu_s=120, batch=20),)
