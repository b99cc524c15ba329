"""Single random changes of schedules."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from cwb.core.schedule import Schedule, StepSchedule, offsets
from cwb.core.step_orbits import StepOrbits
from cwb.core.trees import Translation, TreePacking


def drop(instance, answer, random):
    """Leave one send out, or one edge or a whole tree."""
    if isinstance(answer, TreePacking):
        return drop_tree(answer, random.integers(len(answer)))
    keep = np.ones(len(answer.sends), dtype=np.bool_)
    keep[random.integers(len(keep))] = False
    return keep_sends(answer, np.flatnonzero(keep))


def duplicate(instance, answer, random):
    """Do one send twice, or carry one tree twice."""
    if isinstance(answer, TreePacking):
        units = answer.units.copy()
        units[random.integers(len(units))] *= 2
        return everywhere(answer, units=units)
    index = np.arange(len(answer.sends))
    return keep_sends(answer, np.append(index, random.integers(len(index))))


def retarget(instance, answer, random):
    """Send elsewhere: another source, target or chunk, with a path of its own where there is a link."""
    if isinstance(answer, TreePacking):
        column = "parent" if random.random() < 0.5 else "child"
        return one_way(
            answer, random, lambda p: replace(p, **{column: change_entry(getattr(p, column), instance.npus, random)})
        )
    sends, topology = answer.sends, instance.network
    if random.random() < 0.3 and len(answer.chunks) > 1:
        return replace(answer, sends=replace(sends, chunk=change_entry(sends.chunk, len(answer.chunks), random)))
    send = random.integers(len(sends))
    begin, end = sends.path_offset[send], sends.path_offset[send + 1]
    was = set(sends.path_links[begin:end].tolist())
    links = [i for i, (a, _) in enumerate(topology.link_ends) if a == sends.source[send] and i not in was]
    if not links:
        return replace(answer, sends=replace(sends, target=change_entry(sends.target, len(topology.nodes), random)))
    link = links[random.integers(len(links))]
    target = sends.target.copy()
    target[send] = topology.link_ends[link][1]
    path = np.concatenate([sends.path_links[:begin], [link], sends.path_links[end:]])
    offset = sends.path_offset.copy()
    offset[send + 1 :] += 1 - (end - begin)
    return replace(answer, sends=replace(sends, target=target, path_links=path, path_offset=offset))


def shift(instance, answer, random):
    """Do one send earlier or later, or one edge earlier."""
    if isinstance(answer, TreePacking):
        return swap(instance, answer, random)
    send = random.integers(len(answer.sends))
    if isinstance(answer, StepSchedule):
        step = answer.step.copy()
        step[send] = max(0, step[send] + random.integers(-3, 4))
        return replace(answer, step=step)
    start, end = answer.start_s.copy(), answer.end_s.copy()
    by = max(-start[send], random.integers(-6, 7) * 0.5e-6)
    start[send] += by
    end[send] += by if random.random() < 0.7 else 0.0
    end[send] = max(end[send], start[send])
    return replace(answer, start_s=start, end_s=end)


def swap(instance, answer, random):
    """Let two sends, or two edges of the packing, change places in the order."""
    if isinstance(answer, TreePacking):
        a, b = random.integers(len(answer.child), size=2)
        return one_way(
            answer, random, lambda p: replace(p, parent=swap_entries(p.parent, a, b), child=swap_entries(p.child, a, b))
        )
    a, b = random.integers(len(answer.sends), size=2)
    if isinstance(answer, StepSchedule):
        return replace(answer, step=swap_entries(answer.step, a, b))
    return replace(answer, start_s=swap_entries(answer.start_s, a, b), end_s=swap_entries(answer.end_s, a, b))


def resize(instance, answer, random):
    """Make one chunk or tree larger, or all of them."""
    where = answer if isinstance(answer, TreePacking) else answer.chunks
    if random.random() < 0.5:
        column, value = "unit_bytes", where.unit_bytes * 1000001 / 1000000
    else:
        column, value = "units", where.units.copy()
        value[random.integers(len(value))] += random.integers(1, 3)
    if isinstance(answer, TreePacking):
        return everywhere(answer, **{column: value})
    return replace(answer, chunks=replace(where, **{column: value}))


def flip(instance, answer, random):
    """Reduce for copy, or copy for reduce; another root for a tree."""
    if isinstance(answer, TreePacking):
        return everywhere(answer, root=change_entry(answer.root, instance.npus, random))
    flags = answer.sends.reduce.copy()
    flags[random.integers(len(flags))] ^= True
    return replace(answer, sends=replace(answer.sends, reduce=flags))


def relink(instance, answer, random):
    """Put another link on a path."""

    def relink_paths(where):
        return replace(where, path_links=change_entry(where.path_links, len(instance.network.links), random))

    if isinstance(answer, TreePacking):
        return one_way(answer, random, relink_paths)
    return replace(answer, sends=relink_paths(answer.sends))


def one_way(packing, random, change):
    """Change the trees; of in-out trees, half of the time, those of the reduction."""
    if packing.reduction is not None and random.random() < 0.5:
        return replace(packing, reduction=change(packing.reduction))
    return change(packing)


def everywhere(packing, **columns):
    """Change what in-out trees share with their reduction."""
    reduction = packing.reduction
    return replace(packing, reduction=reduction and replace(reduction, **columns), **columns)


def change_entry(column, limit, random):
    """Change one entry of a column to another one below the limit."""
    new = column.copy()
    index = random.integers(len(new))
    new[index] = (new[index] + random.integers(1, max(limit, 2))) % limit
    return new


def swap_entries(column, a, b):
    new = column.copy()
    new[[a, b]] = new[[b, a]]
    return new


def keep_sends(answer, index):
    """Keep these sends of a schedule."""
    columns = ("start_s", "end_s") if isinstance(answer, Schedule) else ("step",)
    times = {column: getattr(answer, column)[index] for column in columns}
    return replace(answer, sends=answer.sends.take(index), **times)


def drop_tree(packing, tree):
    """Leave one tree out."""
    trees = np.delete(np.arange(len(packing)), tree)
    spans = [np.arange(packing.edge_offset[t], packing.edge_offset[t + 1]) for t in trees]
    edges = np.concatenate(spans) if spans else np.zeros(0, dtype=np.int64)

    paths = [packing.path_links[packing.path_offset[e] : packing.path_offset[e + 1]] for e in edges]
    reduction = packing.reduction
    return replace(
        packing,
        root=packing.root[trees],
        units=packing.units[trees],
        edge_offset=offsets([len(s) for s in spans]),
        parent=packing.parent[edges],
        child=packing.child[edges],
        path_offset=offsets([len(path) for path in paths]),
        path_links=np.concatenate([*paths, np.zeros(0, dtype=np.int64)]),
        reduction=reduction and drop_tree(reduction, tree),
    )


MUTATIONS = {m.__name__: m for m in (drop, duplicate, retarget, shift, swap, resize, flip, relink)}


def leave_out(answer: StepOrbits, send: int = -1) -> StepOrbits:
    """Leave a send out, by default the last one."""
    count, base = len(answer.base.sends), answer.base
    kept = np.arange(count) != send % count
    return replace(answer, base=replace(base, sends=base.sends.take(kept), step=base.step[kept]))


def exchange_images(answer: StepOrbits, one: int = 0, other: int = 1) -> StepOrbits:
    """Exchange the images of two nodes under the first translation."""
    first, *others = answer.translations
    image = first.image.copy()
    image[[one, other]] = image[[other, one]]
    return replace(answer, translations=(Translation(image, first.order), *others))
