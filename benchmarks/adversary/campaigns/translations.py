"""Forged forests of translated trees, held against an expansion of every tree that is written here."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product
from random import Random
from typing import Any

import cwb
import numpy as np
from cwb.benchmarks.adversary import client
from cwb.benchmarks.adversary.fault import Campaign, Fault, count_comparisons
from cwb.benchmarks.adversary.networks import rng
from cwb.core.errors import CwbError
from cwb.core.trees import Translation, TreeOrbits
from cwb.harness import Request, run

NETWORKS = (
    "ring(4)",
    "ring(6)",
    "torus(3,3)",
    "torus(2,3)",
    "torus(4,2)",
    "hypercube(3)",
    "directed_circulant(6, [1, 2])",
    "directed_circulant(7, [1, 3])",
)


@cache
def posed_answer(name: str) -> tuple[Any, Any, Any]:
    """Posed instance, answer and certificate of an all-gather."""
    done = run(
        cwb.load(name, collective="all_gather", size="1 MiB"), Request("forestcoll", options={"symmetry": "kept"})
    )
    return done.instance, done.answer, done.certificate


class WrongError(Exception):
    """Trees that are no all-gather."""


def require(fact: object) -> None:
    """Raise an error unless something is so."""
    if not fact:
        raise WrongError


def load_of(instance: Any, answer: TreeOrbits) -> Fraction | None:
    """Seconds of the most loaded link of all trees, each written out and looked at; None if they are no all-gather."""
    try:
        return _load_of(instance, answer)
    except WrongError:
        return None


def _load_of(instance: Any, answer: TreeOrbits) -> Fraction:
    topology, trees = instance.topology, answer.trees
    ends, count = list(topology.link_ends), len(topology.nodes)
    link_of = {pair: e for e, pair in enumerate(ends)}
    images = [each.image.tolist() for each in answer.translations]
    require(all(sorted(image) == list(range(count)) for image in images))
    require(all(0 <= v < count for column in (trees.root, trees.parent, trees.child) for v in column.tolist()))
    require(all(0 <= e < len(ends) for e in trees.path_links.tolist()))
    load: Counter[int] = Counter()
    carried: Counter[int] = Counter()
    edges, paths, links = (column.tolist() for column in (trees.edge_offset, trees.path_offset, trees.path_links))
    for times in product(*(range(each.order) for each in answer.translations)):
        place = list(range(count))
        for image, number in zip(images, times, strict=True):
            for _ in range(number):
                place = [image[v] for v in place]
        for index, units in enumerate(trees.units.tolist()):
            root = place[int(trees.root[index])]
            reached = {root}
            for edge in range(edges[index], edges[index + 1]):
                at, child = place[int(trees.parent[edge])], place[int(trees.child[edge])]
                require(at in reached and child not in reached)
                for e in links[paths[edge] : paths[edge + 1]]:
                    a, b = (place[v] for v in ends[e])
                    require(a == at and (a, b) in link_of)
                    moved = link_of[a, b]
                    require(topology.links[moved] == _move_link(topology, e, a, b))
                    at = b
                    load[moved] += units
                require(at == child)
                reached.add(child)
            require(len(reached) == count)
            carried[root] += units
    part = instance.demand.size_bytes / count
    require(all(carried[rank] * trees.unit_bytes == part for rank in range(count)))
    return max(units * trees.unit_bytes / topology.links[e].bandwidth_Bps for e, units in load.items())


def _move_link(topology: Any, e: int, a: int, b: int) -> Any:
    """The link with other ends."""
    return replace(topology.links[e], source=topology.nodes[a].name, target=topology.nodes[b].name)


def forge(random: Random, answer: TreeOrbits) -> TreeOrbits:
    """Change one thing: an image, an order, a translation, a root, a multiplicity, an edge, a path, or two trees."""
    trees, each = answer.trees, list(answer.translations)
    which = random.randrange(len(each))
    image, order = each[which].image.copy(), each[which].order

    def change_column(name: str) -> np.ndarray:
        column = getattr(trees, name).copy()
        i, j = random.randrange(len(column)), random.randrange(len(column))
        if random.random() < 0.5:
            column[[i, j]] = column[[j, i]]
        else:
            column[i] = max(0, column[i] + random.choice((-1, 1))) if name != "units" else column[i] + 1
        return column

    match random.randrange(9):
        case 0:
            i, j = random.sample(range(len(image)), 2)
            image[[i, j]] = image[[j, i]]
            each[which] = Translation(image, order)
        case 1:
            each[which] = Translation(image, random.choice([k for k in (2, 3, 4, 6, 8) if k != order]))
        case 2:
            each[which] = Translation(image[image], order)
        case 3:
            each[which] = Translation(random.choice(each).image, order)
        case 4:
            shuffled = np.array(random.sample(range(len(image)), len(image)))
            each[which] = Translation(shuffled[image[np.argsort(shuffled)]], order)
        case 5:
            each.append(Translation(image, order)) if random.random() < 0.5 or len(each) == 1 else each.pop(which)
        case _:
            name = random.choice(("root", "units", "parent", "child", "path_links"))
            trees = replace(trees, **{name: change_column(name)})
    return TreeOrbits(trees, tuple(each))


def case(seed: int) -> list[Fault]:
    """Verify an answer and twenty forged ones of a network."""
    random = rng("translated", seed)
    name = NETWORKS[seed % len(NETWORKS)]
    instance, answer, certificate = posed_answer(name)
    if not isinstance(answer, TreeOrbits):
        return [Fault("no translated trees", name, type(answer).__name__, "TreeOrbits")]
    found = check_verdict(instance, answer, certificate, name)
    for _ in range(20):
        try:
            wrong = forge(random, answer)
        except CwbError:
            continue
        found += check_verdict(instance, wrong, certificate, f"{name}, seed {seed}")
    return found


def check_verdict(instance: Any, answer: TreeOrbits, certificate: Any, name: str) -> list[Fault]:
    """Hold a verdict against the expansion."""
    count_comparisons()
    known = load_of(instance, answer)
    verdict, crash = client.verdict(instance, answer, certificate)
    if crash:
        return [Fault("internal error", name, crash, "a verdict")]
    accepted = verdict is not None and verdict.ok
    if accepted and known is None:
        return [Fault("wrong trees accepted", name, "right", "written out they are no all-gather")]
    if accepted and known is not None and abs(verdict.objective - float(known)) > client.ROUNDING * float(known):
        return [Fault("flow time", name, repr(verdict.objective), repr(float(known)))]
    return []


CAMPAIGNS = (Campaign("translated", "every tree written out", case, range(4), 400, cpu_s=60, batch=20),)
