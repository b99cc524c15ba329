"""Random certificates of every kind, forged: whatever they say, they may prove no more than a schedule takes."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

from cwb.core import bounds

Certificate = Any


def _number(random: Random, high: int) -> int:
    """A small number, or one where 16, 31, 32, 53, 62, 63 or more bits end."""
    if random.random() < 0.8:
        return random.randrange(high)
    return max(0, 2 ** random.choice((15, 16, 31, 32, 33, 53, 62, 63, 64, 200)) + random.randint(-2, 2))


def _some(random: Random, count: int) -> tuple[int, ...]:
    nodes = [node for node in range(count) if random.random() < 0.5] or [random.randrange(count)]
    if random.random() < 0.1:
        nodes.append(random.choice(nodes))
    return tuple(nodes)


def _parts(random: Random, count: int) -> tuple[tuple[int, ...], ...]:
    parts: list[list[int]] = [[] for _ in range(random.randint(1, count))]
    for node in range(count):
        if random.random() < 0.95:
            random.choice(parts).append(node)
    return tuple(tuple(part) for part in parts if part or random.random() < 0.3)


def in_seconds(random: Random, nodes: int, ranks: int, links: int) -> Certificate:
    """A cut, distance, partition, lengths or whole chunks."""
    match random.randrange(5):
        case 0:
            return bounds.CutCertificate(_some(random, nodes))
        case 1:
            return bounds.DistanceCertificate(random.randrange(ranks), random.randrange(ranks))
        case 2:
            parts = tuple((i,) for i in range(nodes)) if random.random() < 0.4 else _parts(random, nodes)
            return bounds.PartitionCertificate(parts)
        case 3:
            return bounds.WholeChunks(random.randrange(ranks), Fraction(1, 10**6))
        case _:
            lengths = tuple(_number(random, 4) for _ in range(links))
            return bounds.LengthCertificate(lengths, random.random() < 0.5)


def in_epochs(  # noqa: PLR0911 (one for each kind)
    random: Random, nodes: int, links: int, ends: int, *, fluid: bool
) -> Certificate:
    """A bound on a grid of epochs; ``ends`` is what a schedule takes, ``fluid`` whether its chunks may be split."""
    epochs = max(1, ends + random.randint(-1, 4))
    if fluid and random.random() < 0.5:
        left_out = random.choice((0, random.randrange(nodes)))
        return bounds.EpochCut(tuple(node for node in range(nodes) if node != left_out))
    match random.randrange(7):
        case 0:
            return bounds.EpochDistance(random.randrange(nodes), random.randrange(nodes))
        case 1:
            sink = random.choice((None, random.randrange(nodes)))
            return bounds.EpochCut(_some(random, nodes), sink, _number(random, 4) if sink is not None else 0)
        case 2:
            inside = _some(random, nodes)
            return bounds.EpochChain(inside, random.choice(inside))
        case 3:
            return bounds.EpochFlow(random.randrange(nodes), epochs)
        case 4:
            cuts = sorted({0, epochs, *(random.randrange(epochs + 1) for _ in range(2))})
            row = [tuple(_number(random, 3) for _ in cuts[1:]) for _ in range(links)]
            return bounds.EpochPrices(tuple(cuts), tuple(row))
        case 5:
            many = random.randint(1, 2 * links)
            sinks = tuple(random.sample(range(nodes), min(nodes, random.randint(1, 3))))
            columns = (
                tuple(random.randrange(links) for _ in range(many)),
                tuple(random.randint(-1, epochs) for _ in range(many)),
                tuple(_number(random, 4) for _ in range(many)),
            )
            return bounds.EpochWindowPrices(epochs, sinks, *columns)
        case _:
            parts = tuple((i,) for i in range(nodes)) if random.random() < 0.5 else _parts(random, nodes)
            return bounds.EpochPartition(parts)
