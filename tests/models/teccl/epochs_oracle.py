"""Fewest epochs by trying everything, epoch by epoch: shares nothing with the models but the instance on its grid.

A state is who holds which chunk, what is on its way, and which links are still busy. Only for tiny problems whose switches copy and cannot store.
"""

from __future__ import annotations

from itertools import product


def fewest_epochs(problem, most):
    """Give the smallest number of epochs, or None if ``most`` are too few."""
    goal = frozenset((q, t) for q, c in enumerate(problem.commodities) for t in c.targets)
    states = {(frozenset((q, c.source) for q, c in enumerate(problem.commodities)), frozenset(), frozenset())}
    for epoch in range(most + 1):
        arrived = {arrive(state) for state in states}
        handed = {after for state in arrived for after in choices(problem, state, at_switches=True)}
        if any(goal <= held for held, *_ in handed):
            return epoch
        states = {tick(after) for state in handed for after in choices(problem, state, at_switches=False)}
        states = undominated(states)
    return None


def arrive(state):
    """Take out of the way what has arrived: held by ranks, at hand in switches for this index."""
    held, coming, busy = state
    now = frozenset((q, n) for q, n, left in coming if left == 0)
    return held | now, frozenset(c for c in coming if c[2] > 0), busy, now


def choices(problem, state, *, at_switches):
    """All states that the starts of this index can lead to."""
    held, coming, busy, now = state
    options = []
    for e, link in enumerate(problem.links):
        if problem.switch[link.source] is not at_switches:
            continue
        room = link.capacity - sum(b == e for b, *_ in busy)
        have = now if at_switches else held
        # Not sent is what is there, or will be no later on another way; what comes later by a slow link may still be overtaken.
        gone = {(q, n) for q, n, left in coming if left <= link.delay} | held
        useful = [
            q for q in range(len(problem.commodities))
            if (q, link.source) in have and (problem.switch[link.target] or (q, link.target) not in gone)
        ]  # fmt: skip
        options.append([(e, ())] + [(e, (q,)) for q in useful if room > 0])
        if room > 1:
            options[-1] += [(e, (a, b)) for a in useful for b in useful if a < b]
    for chosen in product(*options):
        starts = [(e, q) for e, qs in chosen for q in qs]
        more = frozenset((q, problem.links[e].target, problem.links[e].delay) for e, q in starts)
        at_once = frozenset((q, n) for q, n, left in more if left == 0)
        taken = list(busy) + [(e, problem.links[e].window, q) for e, q in starts]
        yield held | at_once, coming | (more - {(q, n, 0) for q, n in at_once}), frozenset(taken), now


def tick(state):
    """Go to the next index; what switches did not pass on is lost."""
    held, coming, busy, now = state
    del now
    return (
        held,
        frozenset((q, n, left - 1) for q, n, left in coming),
        frozenset((e, k - 1, q) for e, k, q in busy if k > 1),
    )


def undominated(states):
    """Leave out states in which another one holds all that they hold, has all on its way, and has no link busy that they have not."""
    ordered = sorted(states, key=lambda s: (-len(s[0]), -len(s[1]), len(s[2])))
    kept = []
    for state in ordered:
        if not any(state[0] <= s[0] and state[1] <= s[1] and s[2] <= state[2] for s in kept):
            kept.append(state)
    return set(kept)
