"""Check that trees or sends of a few ranks' data, with their translations, are those of all ranks' data.

See :class:`~cwb.core.trees.TreeOrbits` for why this suffices, and docs/schedules/verifier.md for the conditions, all of
which are checked node by node and link by link. The one more root of every orbit, whose trees are checked after
translation, is drawn by the digest of the instance.
"""

from dataclasses import dataclass
from operator import add

import numpy as np

from ...core import trees
from ...core.bounds import LengthCertificate
from ...core.collective import Collective, Conditions, Demand
from ...core.errors import InputError
from ...core.instance import Instance
from ...core.schedule import Chunks, Ints, StepSchedule
from ...core.step_orbits import StepOrbits, expand_steps
from .answers import Findings, LinkUnits, Violation, check_answer, link_units, write_out
from .equal_steps import demand_of_all
from .network import Network, network_of
from .sends import check_sends, check_shape
from .sizes import chunks_match, exact_sums
from .trees import Wanted, check_trees, in_range


@dataclass(frozen=True, eq=False)
class Motions:
    """Valid translations, whose products are the motions."""

    orders: tuple[int, ...]
    nodes: tuple[Ints, ...]  #: Image of every node under each translation, in the numbering of trees.
    links: tuple[Ints, ...]  #: Image of every link under each translation.

    @property
    def count(self) -> int:
        """Number of motions."""
        return int(np.prod(self.orders, dtype=object))

    def motion(self, number: int) -> tuple[Ints, Ints]:
        """Return the images of nodes of trees and of links under one motion."""
        node, link = np.arange(len(self.nodes[0])), np.arange(len(self.links[0]))
        for order, images in zip(self.orders, zip(self.nodes, self.links, strict=True), strict=True):
            number, times = divmod(number, order)
            node, link = trees.power_of(images[0], times)[node], trees.power_of(images[1], times)[link]
        return node, link


@check_answer.register
def verify_orbits(answer: trees.TreeOrbits, instance: Instance, network: Network, findings: Findings) -> None:
    """Check the translations, the given trees, and those of one more root of every orbit."""
    if (demand := demand_of_all(instance, answer.kind)) is None:
        findings.add(Violation("demand", f"{answer.kind.value}-trees from all ranks are not what is asked for"))
        return
    if not in_range(network, answer.trees, findings):
        return
    motions = checked_motions(network, answer, findings)
    if motions is None or not roots_reach_ranks(network, np.unique(answer.trees.root), motions, findings):
        return
    span = tuple(range(instance.npus))
    demand_of: Wanted = dict.fromkeys(np.unique(answer.trees.root).tolist(), (span, demand.size_bytes / instance.npus))
    if answer.kind is trees.TreeKind.BOTH:
        demand_of = {None: (span, demand.size_bytes / motions.count)}
    check_trees(network, answer.trees, demand_of, findings)
    if findings.violations:
        return
    motion = motions.motion(int(instance.sha256, 16) % motions.count)
    other = trees.move_trees(answer.trees, *motion)
    elsewhere = {None if root is None else int(motion[0][root]): data for root, data in demand_of.items()}
    check_trees(network, other, elsewhere, findings)


_OWNED_BY = {Collective.ALL_GATHER: "held_by", Collective.ALL_TO_ALL: "held_by", Collective.REDUCE_SCATTER: "needed_by"}


@check_answer.register
def verify_step_orbits(answer: StepOrbits, instance: Instance, network: Network, findings: Findings) -> None:
    """Check the translations, that the given chunks and their images are the demand, and the given sends."""
    demand, base = instance.demand, answer.base
    if demand is None or instance.also or not demand.is_of_all(instance.npus):
        findings.add(Violation("demand", "chunks and their images are those of one collective of all ranks"))
        return
    at = check_shape(instance, network, base, findings, sized=False)
    motions = None if at is None else checked_motions(network, answer, findings)
    if at is None or motions is None:
        return
    storing = (network.node_rank[base.sends.source] < 0) | (network.node_rank[base.sends.target] < 0)
    if at.add_each("buffer", storing, "begins or ends in a switch, whose room the images of other sends take too"):
        return
    pieces = _base_conditions(demand, base.chunks, network, motions, findings)
    if pieces is not None:
        if not chunks_match(pieces, base.chunks):
            findings.add(Violation("size", "the given chunks are not the data of one rank of every orbit"))
        check_sends(at, base.step)


def _base_conditions(
    demand: Demand, chunks: Chunks, network: Network, motions: Motions, findings: Findings
) -> Conditions | None:
    """Return the data of one rank of every orbit, or a part of sums; None for other ranks."""
    kind, ranks = demand.collective, len(network.rank_node)
    groups = (*((rank,) for rank in range(ranks)), tuple(range(ranks)))
    everybody = np.array([ranks])
    if kind is Collective.ALL_REDUCE:
        return Conditions(groups, everybody, everybody, True, demand.size_bytes / motions.count)
    if kind not in _OWNED_BY:
        findings.add(Violation("demand", f"the data of {kind.name} is not that of ranks that are moved to one another"))
        return None
    owners = np.unique([chunks.groups[group][0] for group in np.unique(getattr(chunks, _OWNED_BY[kind])).tolist()])
    if not roots_reach_ranks(network, owners, motions, findings):
        return None
    holders, receivers = np.repeat(owners, ranks), np.tile(np.arange(ranks), len(owners))
    if kind is not Collective.ALL_TO_ALL:
        holders, receivers = owners, np.repeat(everybody, len(owners))
    if kind is Collective.REDUCE_SCATTER:
        holders, receivers = receivers, holders
    lacking = holders != receivers
    return Conditions(groups, holders[lacking], receivers[lacking], kind.sums, demand.size_bytes / ranks)


def count_alike_ranks(
    answer: StepOrbits | trees.TreeOrbits, instance: Instance, certificate: LengthCertificate | None = None
) -> dict[int, int] | None:
    """Count the ranks of every orbit, by its least one; None if the demand or lengths tell ranks apart.

    Lengths are those of a certificate for an all-to-all; they must be the same for a link and its images.
    """
    demand, network = instance.demand, network_of(instance)
    if demand is None or instance.also or not demand.is_of_all(instance.npus):
        return None
    if demand.collective.rooted or not demand.collective.alike:
        return None
    if (motions := checked_motions(network, answer, Findings())) is None:
        return None
    if certificate is not None:
        lengths = np.array(certificate.lengths, dtype=object)
        if demand.collective is not Collective.ALL_TO_ALL or certificate.latency or len(lengths) != network.links:
            return None
        if any(not np.array_equal(lengths[link], lengths) for link in motions.links):
            return None
    least = trees.least_images(motions.orders, motions.nodes, network.nodes)[: instance.npus]
    return dict(zip(*(column.tolist() for column in np.unique(least, return_counts=True)), strict=True))


@write_out.register
def _(answer: StepOrbits, instance: Instance) -> StepSchedule:
    return expand_steps(answer, instance.topology)


def checked_motions(network: Network, answer: trees.OrbitMixin, findings: Findings) -> Motions | None:
    """Return the motions if translations are commuting symmetries with their orders, else None."""
    topology = network.topology
    if (count := len(answer.translations)) >= (ranks := len(network.rank_node)).bit_length():  # each doubles at least
        findings.add(Violation("symmetry", f"{count:,} translations make more motions than there are ranks, {ranks:,}"))
        return None
    number = np.argsort(network.tree_node)
    kinds = np.array(topology.link_kinds, dtype=np.int64)
    colour = np.array(topology.node_kinds, dtype=np.int64)
    images, links = list[Ints](), list[Ints]()
    for index, image in enumerate(translation.image for translation in answer.translations):
        if len(image) != network.nodes or not np.array_equal(np.sort(image), np.arange(network.nodes)):
            findings.add(Violation("symmetry", f"translation {index} is no permutation of the nodes"))
            return None
        if len(wrong := np.flatnonzero(colour[image] != colour)):
            names = f"{network.name(int(wrong[0]))} to {network.name(int(image[wrong[0]]))}"
            findings.add(Violation("symmetry", f"translation {index} moves {names}, which is of another kind"))
            return None
        link = trees.link_image((network.link_source, network.link_target), kinds, image)
        if link is None or not _keeps_links(network, kinds, image, link):
            findings.add(Violation("symmetry", f"translation {index} moves a link to where there is no equal one"))
            return None
        images.append(number[image[network.tree_node]])
        links.append(link)
    orders = answer.orders
    if not images or not _commute_with_orders(images, links, orders):
        text = "translations do not commute, or are not back after their order"
        findings.add(Violation("symmetry", text if images else "there is no translation"))
        return None
    return Motions(orders, tuple(images), tuple(links))


def _keeps_links(network: Network, kinds: Ints, image: Ints, link: Ints) -> bool:
    return (
        bool((np.bincount(link, minlength=network.links) == 1).all())
        and np.array_equal(network.link_source[link], image[network.link_source])
        and np.array_equal(network.link_target[link], image[network.link_target])
        and np.array_equal(kinds[link], kinds)
    )


def _commute_with_orders(nodes: list[Ints], links: list[Ints], orders: tuple[int, ...]) -> bool:
    return all(
        np.array_equal(trees.power_of(image, order), np.arange(len(image)))
        and all(np.array_equal(image[other], other[image]) for other in images)
        for images in (nodes, links)
        for image, order in zip(images, orders, strict=True)
    )


def roots_reach_ranks(network: Network, roots: Ints, motions: Motions, findings: Findings) -> bool:
    """Check that motions move roots to all ranks, and no two motions one to the same rank."""
    ranks = len(network.rank_node)
    if motions.count * len(roots) != ranks:
        text = f"{motions.count:,} motions move {len(roots):,} roots to other than {ranks:,} ranks"
        findings.add(Violation("symmetry", text))
        return False
    reached = trees.orbit_of(roots, motions.orders, motions.nodes)
    if not np.array_equal(np.sort(reached, axis=None), np.arange(ranks)):
        findings.add(Violation("symmetry", "two motions move a root to the same rank, or two roots have one orbit"))
        return False
    return True


@link_units.register
def _(answer: trees.TreeOrbits, network: Network) -> LinkUnits:
    findings = Findings()
    motions = checked_motions(network, answer, findings)
    if motions is None:
        raise InputError(str(findings.violations[0]), place="translations")
    orbit = trees.orbits_under(motions.orders, motions.links, network.links)
    size = np.bincount(orbit)
    total = [0] * len(size)
    for part in answer.trees.passes:
        total = list(map(add, total, exact_sums(orbit[part.path_links], part.path_units, len(size))))
    return [units * motions.count // links for units, links in zip(total, size.tolist(), strict=True)], orbit


@write_out.register
def _(answer: trees.TreeOrbits, instance: Instance) -> trees.TreePacking:
    return trees.expand_orbits(answer, instance.topology)
