"""Whether trees of a few roots, moved by translations of the network, are a packing of trees.

See :class:`~cwb.core.orbits.TreeOrbits` for why this much is enough. Nothing is taken on trust: that a translation moves
every node to one of its kind and every link to one of the same bandwidth and latency, that translations commute and are
back after their order, and that no motion but the one that moves nothing leaves a rank in place are looked up node by
node and link by link. The given trees are checked as all trees are; and so are those of one more root of every orbit,
drawn by the digest of the instance, after they are moved.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ...core.errors import InputError
from ...core.instance import Instance
from ...core.orbits import TreeOrbits, kinds_of_links, link_image, moved
from ...core.schedule import Ints
from ...core.trees import TreeKind, TreePacking
from .network import Network, network_of
from .report import Findings, Violation
from .sizes import exact_sums
from .translated import asked_of_all
from .trees import Wanted, check_trees, in_range


@dataclass(frozen=True, eq=False)
class Motions:
    """Translations that were checked.

    Parameters
    ----------
    orders : tuple of int
        Their orders.
    nodes : tuple of array of int
        Where each moves nodes, by their numbers in trees.
    links : tuple of array of int
        Where each moves links.
    """

    orders: tuple[int, ...]
    nodes: tuple[Ints, ...]
    links: tuple[Ints, ...]

    @property
    def count(self) -> int:
        """Number of motions."""
        return int(np.prod(self.orders, dtype=object))

    def orbit(self, member: int) -> Ints:
        """Where all motions move a node."""
        found = np.array([member])
        for order, image in zip(self.orders, self.nodes, strict=True):
            parts = [found]
            for _ in range(order - 1):
                parts.append(image[parts[-1]])
            found = np.concatenate(parts)
        return found

    def motion(self, number: int) -> tuple[Ints, Ints]:
        """One of the motions: where it moves nodes of trees, and links."""
        node, link = np.arange(len(self.nodes[0])), np.arange(len(self.links[0]))
        for order, images in zip(self.orders, zip(self.nodes, self.links, strict=True), strict=True):
            number, times = divmod(number, order)
            node, link = _power(images[0], times)[node], _power(images[1], times)[link]
        return node, link

    def orbits_of_links(self) -> Ints:
        """The least link that each can be moved to."""
        least = np.arange(len(self.links[0]))
        for order, image in zip(self.orders, self.links, strict=True):
            step, reach = image, 1
            while reach < order:
                least = np.minimum(least, least[step])
                step, reach = step[step], 2 * reach
        return least


def verify_orbits(instance: Instance, network: Network, answer: TreeOrbits, findings: Findings) -> None:
    """Check translations, the given trees, and those of one more root of every orbit."""
    if asked_of_all(instance, answer.kind) is None:
        findings.add(Violation("demand", f"{answer.kind.value}-trees from all ranks are not what is asked for"))
        return
    if not in_range(network, answer.trees, findings):
        return
    motions = checked_motions(network, answer, findings)
    if motions is None or not _are_roots(network, answer.trees, motions, findings):
        return
    wanted = _wanted(instance, answer, motions)
    check_trees(network, answer.trees, wanted, findings)
    if findings.violations:
        return
    drawn = motions.motion(int(instance.sha256, 16) % motions.count)
    other = moved(answer.trees, *drawn)
    elsewhere = {None if root is None else int(drawn[0][root]): asked for root, asked in wanted.items()}
    check_trees(network, other, elsewhere, findings)


def checked_motions(network: Network, answer: TreeOrbits, findings: Findings) -> Motions | None:
    """Check that translations are symmetries of the network that commute and have their orders; None if not."""
    topology = network.topology
    if (count := len(answer.translations)) >= (ranks := len(network.rank_node)).bit_length():  # each doubles at least
        findings.add(Violation("symmetry", f"{count:,} translations make more motions than there are ranks, {ranks:,}"))
        return None
    number = np.empty(network.nodes, dtype=np.int64)
    number[network.tree_node] = np.arange(network.nodes)
    kinds = kinds_of_links(topology.links)
    colours: dict[object, int] = {}
    nodes = [(n.kind, n.multicast, n.buffer_bytes, n.reduces) for n in topology.nodes]
    colour = np.array([colours.setdefault(node, len(colours)) for node in nodes], dtype=np.int64)
    images: list[Ints] = []
    links: list[Ints] = []
    for index, translation in enumerate(answer.translations):
        image = translation.image
        if len(image) != network.nodes or not np.array_equal(np.sort(image), np.arange(network.nodes)):
            findings.add(Violation("symmetry", f"translation {index} is no permutation of the nodes"))
            return None
        if len(wrong := np.flatnonzero(colour[image] != colour)):
            names = f"{network.name(int(wrong[0]))} to {network.name(int(image[wrong[0]]))}"
            findings.add(Violation("symmetry", f"translation {index} moves {names}, which is of another kind"))
            return None
        link = link_image((network.link_source, network.link_target), kinds, image)
        if link is None or not _keeps(network, kinds, image, link):
            findings.add(Violation("symmetry", f"translation {index} moves a link to where there is no equal one"))
            return None
        images.append(number[image[network.tree_node]])
        links.append(link)
    orders = tuple(translation.order for translation in answer.translations)
    if not images or not _commute(images, links, orders):
        text = "translations do not commute, or are not back after their order"
        findings.add(Violation("symmetry", text if images else "there is no translation"))
        return None
    return Motions(orders, tuple(images), tuple(links))


def _keeps(network: Network, kinds: Ints, image: Ints, link: Ints) -> bool:
    """Whether every link is moved to one between the moved ends, equal and no other's."""
    return (
        np.array_equal(np.sort(link), np.arange(network.links))
        and np.array_equal(network.link_source[link], image[network.link_source])
        and np.array_equal(network.link_target[link], image[network.link_target])
        and np.array_equal(kinds[link], kinds)
    )


def _commute(nodes: list[Ints], links: list[Ints], orders: tuple[int, ...]) -> bool:
    for images in (nodes, links):
        for index, image in enumerate(images):
            if not np.array_equal(_power(image, orders[index]), np.arange(len(image))):
                return False
            if not all(np.array_equal(image[other], other[image]) for other in images[:index]):
                return False
    return True


def _power(image: Ints, times: int) -> Ints:
    """A permutation, so many times."""
    found, square = np.arange(len(image)), image
    while times:
        if times & 1:
            found = square[found]
        square, times = square[square], times >> 1
    return found


def _are_roots(network: Network, trees: TreePacking, motions: Motions, findings: Findings) -> bool:
    """Whether the roots have orbits that are as large as there are motions, and together are all ranks."""
    ranks = len(network.rank_node)
    roots = np.unique(trees.root)
    if motions.count * len(roots) != ranks:
        text = f"{motions.count:,} motions move {len(roots):,} roots to other than {ranks:,} ranks"
        findings.add(Violation("symmetry", text))
        return False
    reached = np.concatenate([motions.orbit(root) for root in roots.tolist()])
    if not np.array_equal(np.sort(reached), np.arange(ranks)):
        findings.add(Violation("symmetry", "two motions move a root to the same rank, or two roots have one orbit"))
        return False
    return True


def _wanted(instance: Instance, answer: TreeOrbits, motions: Motions) -> Wanted:
    """What the given trees have to carry: the data of their roots, or of an all-reduce its share of all."""
    assert instance.demand is not None  # noqa: S101 (the caller has looked)
    span = tuple(range(instance.npus))
    if answer.kind is TreeKind.BOTH:
        return {None: (span, instance.demand.size_bytes / motions.count)}
    part = instance.demand.size_bytes / instance.npus
    return dict.fromkeys(np.unique(answer.trees.root).tolist(), (span, part))


def orbit_loads(instance: Instance, answer: TreeOrbits) -> tuple[Ints, dict[int, int]]:
    """What all trees put on links.

    Returns
    -------
    array of int, shape (links,)
        The least link of the orbit of every link.
    dict of int to int
        By this link, the units on each link of the orbit.

    Raises
    ------
    InputError
        If the translations are not right.
    """
    network, findings = network_of(instance), Findings()
    motions = checked_motions(network, answer, findings)
    if motions is None:
        raise InputError(str(findings.violations[0]), place="translations")
    least = motions.orbits_of_links()
    named, size = np.unique(least, return_counts=True)
    place = np.searchsorted(named, least)
    total = [0] * len(named)
    for part in answer.trees.passes:
        units = np.repeat(np.repeat(part.units, np.diff(part.edge_offset)), np.diff(part.path_offset))
        sums = exact_sums(place[part.path_links], units, len(named))
        total = [a + b for a, b in zip(total, sums, strict=True)]
    rows = zip(named.tolist(), total, size.tolist(), strict=True)
    return least, {link: units * motions.count // links for link, units, links in rows}


def heaviest_of_orbits(instance: Instance, answer: TreeOrbits) -> tuple[int, Fraction]:
    """First of the most loaded links, and the seconds that it needs for the bytes of all trees, exactly."""
    links = network_of(instance).topology.links
    _, load = orbit_loads(instance, answer)
    times = {link: units * answer.trees.unit_bytes / links[link].bandwidth_Bps for link, units in load.items()}
    heaviest = max(times, key=lambda link: (times[link], -link))
    return heaviest, times[heaviest]
