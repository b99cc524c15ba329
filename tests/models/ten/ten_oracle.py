"""Fewest ticks by trying everything: breadth first over what ranks have and what is on its way."""

from __future__ import annotations

from itertools import product


def fewest_ticks(links, ticks, chunks, most=40):
    """The ticks that a schedule takes at least.

    ``links`` are pairs of nodes, ``ticks`` what a chunk takes up of each, ``chunks`` pairs of a source and targets.
    """
    nodes = {n for link in links for n in link}
    have = tuple(frozenset(c for c, (source, _) in enumerate(chunks) if source == n) for n in range(max(nodes) + 1))
    states = {(have, (None,) * len(links))}
    for tick in range(most):
        for have, _ in states:
            if all(c in have[n] for c, (_, targets) in enumerate(chunks) for n in targets):
                return tick
        states = {
            _after_a_tick(links, ticks, have, flight)
            for state in states
            for have, flight in _ways_to_start(links, ticks, state)
        }
    return None


def _ways_to_start(links, ticks, state):
    """All ways to begin a tick: every free link starts nothing, or a chunk that its end has not and does not receive
    yet."""
    have, flight = state
    choices = []
    for e, (a, b) in enumerate(links):
        if flight[e] is not None:
            choices.append([flight[e]])
        else:
            coming = {on[0] for f, on in enumerate(flight) if on is not None and links[f][1] == b}
            choices.append([None, *((c, ticks[e]) for c in sorted(have[a] - have[b] - coming))])
    for flights in product(*choices):
        arriving = [(links[e][1], on[0]) for e, on in enumerate(flights) if on is not None]
        if len(set(arriving)) == len(arriving):
            yield have, flights


def _after_a_tick(links, ticks, have, flight):
    """Return the state one tick later."""
    later = [set(chunks) for chunks in have]
    left = []
    for e, on in enumerate(flight):
        if on is not None and on[1] == 1:
            later[links[e][1]].add(on[0])
        left.append(None if on is None or on[1] == 1 else (on[0], on[1] - 1))
    return tuple(map(frozenset, later)), tuple(left)
