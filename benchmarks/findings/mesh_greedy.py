"""Steps of greedy matchings on meshes against the slot bound: of every choice, and of cwb's engine.

    python benchmarks/findings/mesh_greedy.py
    python benchmarks/findings/mesh_greedy.py --smoke

In every step each rank takes a largest matching of its links and the chunks that it lacks. Small meshes are decided by
all choices; on others choices are drawn at random, which can only find a failure. The slot bound is the number of
chunks that a corner lacks over its links, rounded up.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import product
from random import Random

from cwb.harness.run import Request, run
from cwb.instances import load
from cwb.instances.demand import with_demand
from rich.console import Console
from rich.table import Table

#: Choices of a mesh up to which all are tried.
STATES = 50_000

State = tuple[int, ...]


def links_into(rows: int, columns: int) -> list[list[int]]:
    """Return the neighbours of every rank of a mesh."""
    steps = ((1, 0), (-1, 0), (0, 1), (0, -1))
    return [
        [(r + a) * columns + c + b for a, b in steps if 0 <= r + a < rows and 0 <= c + b < columns]
        for r, c in product(range(rows), range(columns))
    ]


def slot_bound(into: Sequence[Sequence[int]], chunks: int) -> int:
    """Return the steps that a rank with the fewest links needs for what it lacks."""
    return -(-(len(into) - 1) * chunks // min(map(len, into)))


def start(ranks: int, chunks: int) -> State:
    """Return the chunks that every rank has at first, as bits."""
    return tuple(((1 << chunks) - 1) << (v * chunks) for v in range(ranks))


def bits(mask: int) -> Iterator[int]:
    """Yield the bits of a mask."""
    while mask:
        yield mask & -mask
        mask &= mask - 1


def largest_gains(into: Sequence[int], state: State, rank: int) -> set[int]:
    """Return the sets of chunks that the largest matchings of a rank bring."""
    gains = {0}
    for source in into:
        new = state[source] & ~state[rank]
        gains |= {gain | bit for gain in gains for bit in bits(new & ~gain)}
    most = max(gain.bit_count() for gain in gains)
    return {gain for gain in gains if gain.bit_count() == most}


def most_steps(into: Sequence[Sequence[int]], chunks: int, states: int = STATES) -> int | None:
    """Return the most steps that any choices take, or None beyond a number of states."""
    full, steps = (1 << len(into) * chunks) - 1, 0
    layer = {start(len(into), chunks)}
    while any(have != full for state in layer for have in state):
        after: set[State] = set()
        for state in layer:
            ways = [[have | gain for gain in largest_gains(into[v], state, v)] for v, have in enumerate(state)]
            for choice in product(*ways):
                after.add(choice)
                if len(after) > states:
                    return None
        layer, steps = after, steps + 1
    return steps


def random_steps(into: Sequence[Sequence[int]], chunks: int, seed: int) -> int:
    """Return the steps of one random choice."""
    random = Random(seed)  # noqa: S311 (nothing is secret here)
    full, steps, state = (1 << len(into) * chunks) - 1, 0, start(len(into), chunks)
    while any(have != full for have in state):
        state = tuple(have | _random_gain(into[v], state, v, random) for v, have in enumerate(state))
        steps += 1
    return steps


def _random_gain(into: Sequence[int], state: State, rank: int, random: Random) -> int:
    """Return what a random largest matching brings, by augmenting paths."""
    options = [random.sample(found, len(found)) for s in into for found in [list(bits(state[s] & ~state[rank]))]]
    link_of: dict[int, int] = {}

    def augment(link: int, seen: set[int]) -> bool:
        for bit in options[link]:
            if bit not in seen:
                seen.add(bit)
                if bit not in link_of or augment(link_of[bit], seen):
                    link_of[bit] = link
                    return True
        return False

    for link in random.sample(range(len(options)), len(options)):
        augment(link, set())
    return sum(link_of)


def engine_steps(rows: int, columns: int, chunks: int, attempts: int) -> int:
    """Return the steps of cwb's tacos, verified."""
    mesh = load(f"mesh({rows},{columns}, bandwidth='1 GB/s', latency='0 us')")
    instance = with_demand(mesh, "all_gather", f"{rows * columns * chunks} MB", chunks)
    record = run(instance, Request("tacos", options={"restarts": attempts})).record
    assert record.verified and record.objective is not None
    return round(record.objective * 1000)


def main() -> None:
    """Try meshes by size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="only meshes of up to six ranks")
    parser.add_argument("--ranks", type=int, default=16, help="largest number of ranks")
    parser.add_argument("--seeds", type=int, default=30, help="random choices of a mesh that is not decided")
    given = parser.parse_args()
    most = 6 if given.smoke else given.ranks
    sizes = [(a * b, a, b) for a in range(2, most) for b in range(a, most) if a * b <= most]
    table = Table(title="all-gathers on meshes, in steps", title_justify="left")
    for heading in ("mesh", "chunks", "slot bound", "worst choice", "choices tried", "tacos, 1 attempt", "tacos"):
        table.add_column(heading)
    for _, rows, columns in sorted(sizes):
        for chunks in (1, 2, 3):
            into = links_into(rows, columns)
            decided = most_steps(into, chunks, 500 if given.smoke else STATES)
            worst = decided or max(random_steps(into, chunks, seed) for seed in range(given.seeds))
            how = "all" if decided else f"{given.seeds} at random"
            once, best = (engine_steps(rows, columns, chunks, attempts) for attempts in (1, 64))
            cells = (chunks, slot_bound(into, chunks), worst, how, once, best)
            table.add_row(f"{rows} × {columns}", *map(str, cells))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
