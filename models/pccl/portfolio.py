"""The portfolio: orders, then ruin and recreate, until a proved bound is met or the steps are used up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...core.budget import Budget
from ...core.schedule import Ints
from .attempts import Attempt, Recipe, Stage, along_dimensions, attempt, uses
from .place import remove_all, take_all
from .tables import Pool

#: Part of the other jobs that is taken out beside the latest ones.
_RUIN = 0.05

#: Rounds of ruin and recreate without a better schedule after which it ends.
_PATIENCE = 500


@dataclass
class Steps:
    """How many ways may still be sought.

    Parameters
    ----------
    left : int
        Ways; the first attempt of a stage is made whatever is left.
    used : int
        Ways that have been sought.
    """

    left: int
    used: int = 0

    def spend(self, count: int) -> None:
        """Count ways."""
        self.left -= count
        self.used += count


@dataclass(eq=False)
class Found:
    """The best sends of a stage.

    Parameters
    ----------
    pool : Pool
        Its sends.
    ticks : int
        When the last one has arrived.
    by : str
        What has found it.
    attempts : int
        How many have been made.
    """

    pool: Pool
    ticks: int
    by: str
    attempts: int


def recipes(stage: Stage, orders: str, restarts: int) -> list[Recipe]:
    """List the attempts."""
    if orders == "paper":
        return [Recipe("longest", "longest", whole=True)]
    found = [Recipe("longest", "longest", whole=True), Recipe("random", "random", whole=True)]
    if stage.single:
        found.append(Recipe("longest, shortest ways", "longest", slack=0))
    else:
        found += [Recipe("longest, target by target", "longest"), Recipe("random, target by target", "random")]
    again = [Recipe(r.name, r.order, r.whole, r.slack, turn) for turn in range(1, restarts + 1) for r in found]
    return found + again


def best_of(stage: Stage, orders: str, restarts: int, steps: Steps, seed: int, budget: Budget) -> Found | None:
    """Give the best of the attempts, improved by ruin and recreate; None if the budget ends before there is any."""
    best: Found | None = None
    kept: Attempt | None = None
    made = 0
    for variant in range(3 if orders == "portfolio" else 0):
        pool = along_dimensions(stage, seed + variant, variant)
        if pool is None:
            break
        steps.spend(stage.jobs.number)
        made += 1
        best = _better(best, Found(pool, int(pool.finish.max()), "along dimensions", made))
        if best.ticks <= stage.lower or steps.left < stage.jobs.number:
            return best
    for recipe in recipes(stage, orders, restarts):
        if best is not None and (steps.left < stage.jobs.number or best.ticks <= stage.lower):
            break
        found = attempt(stage, recipe, 1000 * seed + made, budget)
        if found is None:
            break
        steps.spend(stage.jobs.number)
        made += 1
        budget.progress(f"{recipe.name}: {found.finish} ticks, at least {stage.lower}")
        if kept is None or found.finish < kept.finish:
            kept = found
        best = _better(best, Found(found.pool, found.finish, recipe.name, made))
    if best is None or kept is None or kept.finish > best.ticks:
        return best
    if orders == "portfolio" and best.ticks > stage.lower and not (stage.net.room >= 0).any():
        before = kept.finish
        ruin_and_recreate(kept, steps, np.random.default_rng(seed), budget)
        by = best.by if kept.finish == before else "ruin and recreate"
        best = Found(kept.pool, kept.finish, by, made)
    return best


def _better(best: Found | None, found: Found) -> Found:
    if best is None or found.ticks < best.ticks:
        return found
    best.attempts = found.attempts
    return best


def ruin_and_recreate(state: Attempt, steps: Steps, rng: np.random.Generator, budget: Budget) -> None:
    """Take out the jobs that end last and some others, place them anew, longest first; keep what is no worse.

    Worse is what ends later, or at the same time with more jobs. It is over when the bound is met, the steps are used up, or nothing has become
    better for long.
    """
    stage, idle = state.stage, 0
    while steps.left > 0 and idle < _PATIENCE and state.finish > stage.lower and not budget.exhausted:
        finish = state.pool.finish
        latest = finish == state.finish
        chosen = np.flatnonzero(latest | (rng.random(len(finish)) < _RUIN))
        before = (state.finish, int(latest.sum()))
        steps.spend(len(chosen))
        old = [column[chosen].copy() for column in (state.pool.first, state.pool.length, finish)]
        _make_room(state, chosen)
        old[0] = state.pool.first[chosen].copy()
        remove_all(stage.net, state.busy, stage.jobs, state.pool, chosen)
        order = _order(stage, chosen, old[2], rng)
        done = state.place(order, whole=bool(rng.integers(0, 2)) and stage.plain, slack=-1, budget=budget)
        after = (state.finish, int((state.pool.finish == state.finish).sum()))
        idle = 0 if after < before else idle + 1
        if done == len(order) and after <= before:
            continue
        remove_all(stage.net, state.busy, stage.jobs, state.pool, order[:done])
        for column, values in zip((state.pool.first, state.pool.length, state.pool.finish), old, strict=True):
            column[chosen] = values
        take_all(stage.net, state.busy, stage.jobs, state.pool, chosen)


def _order(stage: Stage, chosen: Ints, finish: Ints, rng: np.random.Generator) -> Ints:
    """Put the jobs in order: longest first, latest first, or at random."""
    shuffled = rng.permutation(len(chosen))
    kind = int(rng.integers(0, 3))
    if kind == 0:
        shuffled = shuffled[np.argsort(-stage.length[chosen][shuffled], kind="stable")]
    elif kind == 1:
        shuffled = shuffled[np.argsort(-finish[shuffled], kind="stable")]
    return chosen[shuffled]


def _make_room(state: Attempt, chosen: Ints) -> None:
    """Drop the sends in the pool that are no longer in use, and see that the lists of intervals can be cut."""
    pool = state.pool
    if pool.fill[0] > 3 * len(pool.edge) // 4:
        used = np.repeat(pool.first - np.cumsum(pool.length) + pool.length, pool.length) + np.arange(pool.length.sum())
        for name in ("edge", "start", "parent"):
            column = getattr(pool, name)
            column[: len(used)] = column[used]
        pool.first[:] = np.cumsum(pool.length) - pool.length
        pool.fill[0] = len(used)
    if not state.stage.stepped:
        places = np.repeat(pool.first[chosen], pool.length[chosen])
        begin = np.repeat(np.cumsum(pool.length[chosen]) - pool.length[chosen], pool.length[chosen])
        cuts = uses(state.stage.net, pool.edge[places + np.arange(len(places)) - begin])
        state.widen(int((state.busy.runs + cuts).max(initial=0)) + 8)
