"""Thread blocks of a GPU: assignment of operations, fusion, and waits (docs/exchange/msccl.md, "Out").

Connections whose data is forwarded are put together. Every thread block keeps the order of the schedule.
"""

from collections import Counter
from operator import itemgetter

from .operations import Operation
from .program import Block, Gpu, Step


class DraftBlock:
    """A thread block in the making: connection in and connection out, each a GPU and a channel, and its steps."""

    def __init__(self, taken: tuple[int, int] | None, given: tuple[int, int] | None) -> None:
        self.taken, self.given = taken, given
        self.steps: list[Operation] = []
        self.certain: list[int] = []
        self.waits: list[list[Operation]] = []
        self.numbers: list[int] = []


def draft_blocks(operations: list[Operation], most: int, steps: int, *, joined: bool) -> list[DraftBlock]:
    """Distribute the operations of a GPU over thread blocks.

    Beyond ``most`` thread blocks, those that receive and those that send are put together; beyond ``steps`` of one,
    copies are spread.
    """
    pairs = _match_connections(operations) if joined else {}
    used = {*pairs.values()}
    loose_in = [end for end in dict.fromkeys(one.taken for one in operations) if end and end not in pairs]
    loose_out = [end for end in dict.fromkeys(one.given for one in operations) if end and end not in used]
    if len(pairs) + len(loose_in) + len(loose_out) + 1 > most:
        for end in list(loose_in):
            other = next((one for one in loose_out if one[1] == end[1]), None)
            if other is not None:
                pairs[end] = other
                loose_in.remove(end)
                loose_out.remove(other)
    drafts: dict[tuple[str, object], DraftBlock] = {}
    for taken, given in [*pairs.items(), *((end, None) for end in loose_in), *((None, end) for end in loose_out)]:
        draft = DraftBlock(taken, given)
        drafts["in", taken] = drafts["out", given] = draft
    copies = 0
    for one in operations:
        if one.kind in ("cpy", "re") and one.home is None:
            key: tuple[str, object] = ("copy", copies // max(steps - 8, 1))
            copies += 1
            drafts.setdefault(key, DraftBlock(None, None))
        else:
            key = ("out", one.given) if one.given else ("in", one.taken or one.home)
        drafts[key].steps.append(one)
    found = list({id(draft): draft for draft in drafts.values() if draft.steps}.values())
    if joined:
        for draft in found:
            _fuse(draft)
    return found


def _match_connections(operations: list[Operation]) -> dict[tuple[int, int], tuple[int, int]]:
    count: Counter[tuple[tuple[int, int], tuple[int, int]]] = Counter()
    for one in operations:
        if one.given and len(one.after) == 1 and (end := one.after[0].taken) and end[1] == one.given[1]:
            count[end, one.given] += 1
    found: dict[tuple[int, int], tuple[int, int]] = {}
    used: set[tuple[int, int]] = set()
    for (taken, given), _ in count.most_common():
        if taken not in found and given not in used:
            found[taken] = given
            used.add(given)
    return found


def _fuse(draft: DraftBlock) -> None:
    """Make one step of what is received and sent on, where that keeps the order of what is sent."""
    place = {id(one): index for index, one in enumerate(draft.steps)}
    order: list[tuple[int, int, Operation]] = []
    last = -1
    for index, sent in enumerate(draft.steps):
        if sent.given is None:
            order.append((index, -1, sent))
            continue
        one = sent.after[0] if len(sent.after) == 1 else None
        if one is None or one.taken is None or place.get(id(one), -1) <= last:
            # it is sent as soon as its data is there, so that it is in nobody's way
            last = max(last, *(place.get(id(other), -1) for other in sent.after), -1)
            order.append((last, index, sent))
            continue
        last = place[id(one)]
        sent.fused_into, one.given = one, sent.given
        if one.kind == "r":
            one.kind = "rcs"
        else:
            one.kind = "rrs" if one.readers == 1 and not one.kept else "rrcs"
    draft.steps = [one for _, _, one in sorted(order, key=itemgetter(0, 1))]


def gpu_of(number: int, sizes: tuple[int, int], operations: list[Operation], drafts: list[DraftBlock]) -> Gpu:
    """Return the GPU with its thread blocks in file order: blocks that others wait for come first."""
    waited = find_waits(operations, drafts)
    for draft in drafts:
        total = -1
        draft.numbers = [total := total + max(len(some), 1) for some in draft.waits]
    order = sorted(range(len(drafts)), key=lambda index: (not any(waited[index].values()), index))
    name = {index: position for position, index in enumerate(order)}
    scratch = Scratch(operations)
    blocks = tuple(_block(name[index], drafts, index, name, waited[index], scratch) for index in order)
    return Gpu(number, *sizes, scratch.size, blocks or (Block(0, -1, -1, 0, ()),))  # a launch has a thread block


def find_waits(operations: list[Operation], drafts: list[DraftBlock]) -> list[dict[int, bool]]:
    """Return, for every block, the steps that others must wait for, but for waits that earlier ones imply."""
    for index, draft in enumerate(drafts):
        draft.certain = [0] * len(drafts)
        draft.waits = [[] for _ in draft.steps]
        for place, one in enumerate(draft.steps):
            one.place = (index, place)
    waited: list[dict[int, bool]] = [{} for _ in drafts]
    known: dict[tuple[int, int], list[int]] = {}
    for one in operations:
        if one.performer is not one:
            continue
        index, place = one.place
        draft = drafts[index]
        needed = {other.performer.place for other in one.after}
        for block, step in sorted(needed, key=lambda where: -where[1]) if needed else ():
            if block == index or draft.certain[block] > step:
                continue
            draft.waits[place].append(drafts[block].steps[step])
            waited[block][step] = True
            others = known[block, step]
            draft.certain = [max(pair) for pair in zip(draft.certain, others, strict=True)]
            draft.certain[block] = step + 1
        known[index, place] = draft.certain
    return waited


class Scratch:
    """Scratch memory: what is used of it, without holes."""

    def __init__(self, operations: list[Operation]) -> None:
        used: dict[int, int] = {}
        for one in operations:
            if one.performer is one:
                for buffer, offset in _accessed_places(one):
                    if buffer == "s":
                        used[offset] = max(one.count, used.get(offset, 0))
        self.place: dict[int, int] = {}
        self.size = end = 0
        for offset in sorted(used):
            self.size += max(offset + used[offset] - max(end, offset), 0)
            end = max(end, offset + used[offset])
            self.place[offset] = self.size - (end - offset)

    def of(self, place: tuple[str, int]) -> tuple[str, int]:
        """Return the place with its final offset."""
        return ("s", self.place.get(place[1], 0)) if place[0] == "s" else place


def _accessed_places(one: Operation) -> list[tuple[str, int]]:
    if one.kind in ("s", "rrs"):
        return [one.source]
    return [one.target] if one.kind in ("r", "rcs") else [one.source, one.target]


def _block(
    number: int, drafts: list[DraftBlock], index: int, name: dict[int, int], waited: dict[int, bool], scratch: Scratch
) -> Block:
    draft = drafts[index]
    steps: list[Step] = []
    for place, one in enumerate(draft.steps):
        waits = [(name[other.place[0]], drafts[other.place[0]].numbers[other.place[1]]) for other in draft.waits[place]]
        for block, step in waits[:-1]:
            steps.append(Step(len(steps), "nop", "i", -1, "i", -1, 0, block, step, 0))
        depid, deps = waits[-1] if waits else (-1, -1)
        used = _accessed_places(one)
        source, target = scratch.of(used[0]), scratch.of(used[-1])
        steps.append(
            Step(len(steps), one.kind, *source, *target, one.count, depid, deps, int(waited.get(place, False)))
        )
    send, recv = (draft.given[0] if draft.given else -1), (draft.taken[0] if draft.taken else -1)
    end = draft.taken or draft.given
    return Block(number, send, recv, end[1] if end else 0, tuple(steps))
