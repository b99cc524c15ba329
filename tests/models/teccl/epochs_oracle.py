"""Sufficiency of a number of epochs, by enumeration epoch by epoch; shares nothing with the models.

Time is counted by the verifier's grid. A state is what is where, what is on its way, and when links have started; all
that can be done in an epoch is tried, and what reaches no destination in time is given up. Only for tiny problems;
switches store everything or nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, combinations_with_replacement, product

from cwb.core.collective import conditions
from cwb.core.topology import NodeKind
from cwb.schedules.verify.grid import grid_of

FAR = 10**6


class TooLarge(Exception):
    """More states than are tried."""


def reachable(instance, epochs, most=4_000):
    """Check if some schedule takes at most so many epochs; raises :class:`TooLarge` after too many states of an
    epoch."""
    demands = [(demand, conditions(demand, instance.npus).bytes_of) for demand in instance.demands]
    summed = any(kind[2] for _, kinds in demands for kind in kinds)
    world = World(instance, [kind for demand, kinds in demands for kind in kinds for _ in range(parts(demand, kind))])
    return (Sums if summed else Copies)(world, epochs, most).search()


def parts(demand, kind):
    """Chunks that a kind of data is cut into: those of an all-reduce have a rank's share."""
    return demand.chunks * (len(kind[0]) if demand.collective.name == "all_reduce" else 1)


class World:
    """Chunks and links, by the verifier's count."""

    def __init__(self, instance, kinds):
        self.topology, self.grid = instance.network, grid_of(instance)
        nodes, node = self.topology.nodes, self.topology.rank_nodes
        self.chunks = [(frozenset(node[r] for r in a), frozenset(node[r] for r in b)) for a, b, _ in kinds]
        self.nodes = range(len(nodes))
        self.switch = [x.kind is NodeKind.SWITCH for x in nodes]
        self.copies = [not s or x.multicast for s, x in zip(self.switch, nodes, strict=True)]
        limits = [x.buffer_bytes for x in nodes]
        assert all(not b for b, s in zip(limits, self.switch, strict=True) if s)
        self.passes = [s and b == 0 for b, s in zip(limits, self.switch, strict=True)]
        self.room = [
            None if s or b is None else int(b / self.grid.chunk_bytes) for b, s in zip(limits, self.switch, strict=True)
        ]
        columns = (self.grid.source, self.grid.target, self.grid.delay)
        self.links = list(zip(*(column.tolist() for column in columns), strict=True))
        self.far = [[0 if a == b else FAR for b in self.nodes] for a in self.nodes]
        for _ in self.nodes:
            for a, b, delay in self.links:
                for n in self.nodes:
                    self.far[n][b] = min(self.far[n][b], self.far[n][a] + delay)

    def free(self, starts, link, epoch):
        """Chunks that may still start over a link in an epoch, after the starts so far, all of them no later."""
        window, timing = int(self.grid.window[link]), self.grid.timing
        mine = [k for k, e in starts if e == link]
        left = FAR
        for begin in range(max(0, epoch - window + 1), epoch + 1):
            span = range(begin, begin + window)
            room = int(sum(self.grid.rate[link] * timing.factor(link, k) for k in span))
            left = min(left, room - sum(k in span for k in mine))
        return max(left, 0)

    def recent(self, starts, epoch):
        """Starts whose windows reach beyond an epoch, in order."""
        return tuple(sorted((k, e) for k, e in starts if k + int(self.grid.window[e]) > epoch + 1))


@dataclass(frozen=True)
class State:
    """Chunks at nodes (with copies or contributions), chunks on their way, starts of links, and deliveries."""

    held: frozenset
    coming: tuple
    starts: tuple
    got: frozenset = frozenset()


class Tries:
    """Everything that can be done, index by index."""

    def __init__(self, world, epochs, most):
        self.world, self.epochs, self.most = world, epochs, most

    def search(self):
        """Check if the goal is reached by the last index."""
        states = {self.first()}
        for epoch in range(self.epochs + 1):
            states = {after for state in states for after in self.deliver(state, epoch) if self.in_time(after, epoch)}
            if any(self.is_done(state) for state in states):
                return True
            after = set()
            for state in drop_dominated(states, equal_held=isinstance(self, Sums), equal_coming=self.equal_coming):
                after |= {s for s in self.send(state, epoch) if self.in_time(s, epoch)}
                if len(after) > self.most:
                    raise TooLarge
            states = after
        return False


class Copies(Tries):
    """Data that is copied."""

    def first(self):
        """Sources hold their chunks."""
        return State(frozenset((c, n, 1) for c, (sources, _) in enumerate(self.world.chunks) for n in sources), (), ())

    @cached_property
    def goal(self):
        """Chunks and nodes that need them."""
        return frozenset((c, t) for c, (s, targets) in enumerate(self.world.chunks) for t in targets - s)

    @cached_property
    def equal_coming(self):
        """True if more arrivals may be worse, because room is limited."""
        return any(room is not None for room in self.world.room)

    def is_done(self, state):
        """Check if every rank received everything."""
        return self.goal <= state.got

    def in_time(self, state, epoch):
        """Check if every destination can still be reached."""
        at = [(c, n, epoch) for c, n, _ in state.held] + [(c, n, k) for k, c, n in state.coming]
        near = {}
        for c, n, k in at:
            for t in self.world.nodes:
                near[c, t] = min(near.get((c, t), FAR), k + self.world.far[n][t])
        return all(near[pair] <= self.epochs for pair in self.goal - state.got)

    def deliver(self, state, epoch):
        """Take in what arrives at an index; then switches hand on, what takes no time arrives too, and rooms are
        counted."""
        world = self.world
        held, hand = Counter({(c, n): count for c, n, count in state.held}), Counter()
        for k, c, n in state.coming:
            if k == epoch:
                (hand if world.passes[n] else held)[c, n] += 1
        coming = [x for x in state.coming if x[0] != epoch]
        stock = Counter({(c, n): count for (c, n), count in held.items() if world.switch[n]})
        switches = [e for e, link in enumerate(world.links) if world.switch[link[0]]]
        now = frozenset((c, n) for k, c, n in state.coming if k == epoch)
        for starts in self.choices(state.starts, epoch, switches, held, hand + stock):
            there, sent = Counter(held), Counter((world.links[e][0], c) for _, e, c in starts)
            late, at_once = list(coming), set(now)
            for (n, c), count in sent.items():
                if not world.passes[n] and not world.copies[n]:
                    there[c, n] -= count
            for _, e, c in starts:
                _, target, delay = world.links[e]
                if delay:
                    late.append((epoch + delay, c, target))
                else:
                    there[c, target] = 1
                    at_once.add((c, target))
            found = frozenset((c, n, 1 if world.copies[n] else count) for (c, n), count in there.items() if count)
            if any(self.foreign(found, n) > room for n, room in enumerate(world.room) if room):
                continue
            got = state.got | {pair for pair in at_once if pair in self.goal}
            begun = tuple(sorted(state.starts + tuple((k, e) for k, e, _ in starts)))
            yield Arrival(found, tuple(sorted(late)), begun, got, frozenset(at_once))

    def foreign(self, held, n):
        """Chunks of others that a node holds."""
        return sum(m == n and n not in self.world.chunks[c][0] | self.world.chunks[c][1] for c, m, _ in held)

    def send(self, state, epoch):
        """All that ranks can start at an index, and keep to the next one."""
        world = self.world
        held = {(c, n): count for c, n, count in state.held}
        have = Counter()
        for c, n in held:
            fresh = world.room[n] != 0 or n in world.chunks[c][0] or (c, n) in state.now
            have[c, n] = int(fresh and not world.switch[n])
        ranks = [e for e, link in enumerate(world.links) if not world.switch[link[0]]]
        for starts in self.choices(state.starts, epoch, ranks, held, have):
            coming = state.coming + tuple((epoch + world.links[e][2], c, world.links[e][1]) for _, e, c in starts)
            begun = world.recent(state.starts + tuple((k, e) for k, e, _ in starts), epoch)
            for kept in self.keeps(state.held):
                yield State(kept, tuple(sorted(coming)), begun, state.got)

    def keeps(self, held):
        """Yield all contents that may be kept: any part at nodes with limited room."""
        world = self.world
        free = [x for x in held if world.room[x[1]] and x[1] not in world.chunks[x[0]][0] | world.chunks[x[0]][1]]
        for keep in product((True, False), repeat=len(free)):
            yield held - {x for x, kept in zip(free, keep, strict=True) if not kept}

    def choices(self, begun, epoch, links, held, have):
        """All starts over these links: as often as what is there can be sent on."""
        world, options = self.world, []
        for e in links:
            source, target, _ = world.links[e]
            wanted = [
                c for c, (sources, _) in enumerate(world.chunks)
                if have[c, source] and target not in sources
                and not (world.room[target] is None and world.copies[target] and not world.passes[target]
                         and held.get((c, target)))
            ]  # fmt: skip
            free, found = world.free(begun, e, epoch), [()]
            copies = 1 if world.copies[target] else max(len(t) for _, t in world.chunks)
            for count in range(1, min(free, copies * len(wanted)) + 1):
                found += [p for p in combinations_with_replacement(wanted, count) if max(Counter(p).values()) <= copies]
            options.append([tuple((epoch, e, c) for c in chosen) for chosen in found])
        count = 1
        for each in options:
            count *= len(each)
        if count > self.most:
            raise TooLarge
        for chosen in product(*options):
            starts = [start for each in chosen for start in each]
            out = Counter((c, world.links[e][0]) for _, e, c in starts)
            if all(world.copies[n] or count <= have[c, n] for (c, n), count in out.items()):
                yield starts


@dataclass(frozen=True)
class Arrival(State):
    """A state in which switches have handed on, with what has just arrived."""

    now: frozenset = frozenset()


class Sums(Tries):
    """Data that is summed: nodes hold sums of contributions, and send them whole, to be added or to replace what is
    there."""

    equal_coming = True

    def __init__(self, world, epochs, most):
        super().__init__(world, epochs, most)
        first = [e for e, link in enumerate(world.links) if not world.passes[link[0]]]
        self.ways = [way for e in first for way in self.extend((e,))]
        if any(not delay for *_, delay in self.ways):
            raise TooLarge  # what arrives at the very index is not tried

    def extend(self, path):
        """Ways over links through switches that only pass on: links, when each starts, source, target, delay."""
        world = self.world
        node, first = world.links[path[-1]][1], world.links[path[0]][0]
        if not world.passes[node]:
            if node != first:
                begin = [sum(world.links[e][2] for e in path[:i]) for i in range(len(path))]
                yield path, begin, first, node, sum(world.links[e][2] for e in path)
            return
        seen = {world.links[e][0] for e in path} | {node}
        for e, link in enumerate(world.links):
            if link[0] == node and (link[1] not in seen or link[1] == first):
                yield from self.extend((*path, e))

    def first(self):
        """Everybody has its contribution."""
        chunks = enumerate(self.world.chunks)
        return State(frozenset((c, n, frozenset([n])) for c, (sources, _) in chunks for n in sources), (), ())

    def is_done(self, state):
        """Check if every rank that needs a sum has all of it."""
        need = {(c, t, sources) for c, (sources, targets) in enumerate(self.world.chunks) for t in targets}
        return need <= state.held

    def in_time(self, state, epoch):
        """Check if every contribution can still reach every destination."""
        near = {}
        at = [(c, n, epoch, v) for c, n, v in state.held] + [(c, n, k, v) for k, c, n, _, v in state.coming]
        for c, n, k, value in at:
            for p, t in product(value, self.world.chunks[c][1]):
                near[c, p, t] = min(near.get((c, p, t), FAR), k + self.world.far[n][t])
        wanted = [(c, p, t) for c, (sources, targets) in enumerate(self.world.chunks) for p in sources for t in targets]
        return all(near.get(key, FAR) <= self.epochs for key in wanted)

    def deliver(self, state, epoch):
        """Add what arrives, or put it in place of what is there; what counts a contribution twice is given up."""
        held = {(c, n): v for c, n, v in state.held}
        writes = Counter((c, n) for k, c, n, _, _ in state.coming if k == epoch)
        for k, c, n, adds, value in state.coming:
            if k != epoch:
                continue
            if not adds:
                if writes[c, n] > 1:
                    return
                held[c, n] = value
            elif held.get((c, n), frozenset()) & value:
                return
            else:
                held[c, n] = held.get((c, n), frozenset()) | value
        coming = tuple(x for x in state.coming if x[0] != epoch)
        yield State(frozenset((c, n, v) for (c, n), v in held.items()), coming, state.starts)

    def send(self, state, epoch):
        """All that can start at an index over links and ways."""
        world = self.world
        held = {(c, n): v for c, n, v in state.held}
        options = []
        for w, (_, _, source, target, _) in enumerate(self.ways):
            found = []
            for c in range(len(world.chunks)):
                value = held.get((c, source))
                if value is None:
                    continue
                there = held.get((c, target), frozenset())
                coming = {each[3:] for each in state.coming if each[1:3] == (c, target)}
                if there != value and (False, value) not in coming:
                    found.append((w, c, False, value))
                if not there & value and there and (True, value) not in coming:
                    found.append((w, c, True, value))
            free = self.world.free([s for s in state.starts if s[0] <= epoch], self.ways[w][0][0], epoch)
            chosen = [pair for count in range(min(free, len(world.chunks)) + 1) for pair in combinations(found, count)]
            options.append([pair for pair in chosen if len({each[1] for each in pair}) == len(pair)])
        count = 1
        for each in options:
            count *= len(each)
        if count > self.most:
            raise TooLarge
        for chosen in product(*options):
            starts, fits = state.starts, True
            coming = list(state.coming)
            for w, c, adds, value in (one for each in chosen for one in each):
                path, begin, _, target, delay = self.ways[w]
                for e, offset in zip(path, begin, strict=True):
                    fits = fits and self.fits(starts, e, epoch + offset)
                    starts = (*starts, (epoch + offset, e))
                coming.append((epoch + delay, c, target, adds, value))
            if fits:
                order = sorted(coming, key=lambda x: (*x[:4], sorted(x[4])))
                yield State(state.held, tuple(order), world.recent(starts, epoch))

    def fits(self, starts, link, epoch):
        """Check if a chunk may start over a link in an epoch, before or after others."""
        world, window = self.world, int(self.world.grid.window[link])
        mine = [k for k, e in starts if e == link]
        for begin in range(max(0, epoch - window + 1), epoch + 1):
            span = range(begin, begin + window)
            room = int(sum(world.grid.rate[link] * world.grid.timing.factor(link, k) for k in span))
            if sum(k in span for k in mine) + 1 > room:
                return False
        return True


def drop_dominated(states, *, equal_held, equal_coming):
    """Leave out states in which another one holds all that they hold, has all on its way, and has no link busy that
    they have not."""
    kept = []
    for state in sorted(states, key=lambda s: (-len(s.held), -len(s.coming), len(s.starts))):
        coming = Counter(state.coming)
        if not any(
            (state.held == s.held if equal_held else state.held <= s.held)
            and state.got <= s.got
            and getattr(state, "now", s.held) <= getattr(s, "now", s.held)
            and not Counter(s.starts) - Counter(state.starts)
            and (state.coming == s.coming if equal_coming else not coming - Counter(s.coming))
            for s in kept
        ):
            kept.append(state)
    return kept
