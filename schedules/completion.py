"""The common time model: the arrival of the last byte of an answer (docs/schedules/simulators.md).

The links of a schedule serve one piece at a time (:mod:`.simulate`, congestion-aware); the trees of a forest have
shares of every link, and their pieces are pipelined (:mod:`.simulate.pipeline`). A network that sprays carries packets.
Every completion time is computed here.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..core.answers import Answer
from ..core.equal_steps import StreamedSteps, TranslatedTrees, translate_ranks
from ..core.errors import InputError
from ..core.instance import Instance
from ..core.schedule import Floats
from ..core.step_orbits import StepOrbits
from ..core.topology import Topology
from ..core.trace import Routing, SimulationMode
from ..core.trees import Forest, TreeKind, TreeOrbits, TreePacking, least_images
from .simulate import simulate_totals
from .simulate.network import wires
from .simulate.pipeline import CONSTANT, Pipeline, pipeline
from .verify.answers import Findings, write_out
from .verify.equal_steps import MAX_SENDS, generator_links
from .verify.network import network_of
from .verify.orbits import checked_motions

#: What a completion time means, in the words of reports.
OF_SCHEDULES = "link by link, store and forward; a link serves one piece at a time"
OF_FORESTS = "link by link, store and forward; every tree has its share of every link"
OF_SPRAY = "link by link, forwarded while it arrives; a link serves one piece at a time"


@dataclass(frozen=True, eq=False)
class Completion:
    """Times of an answer in the common time model."""

    seconds: float | None  #: Arrival of the last byte; None if the model cannot simulate the answer.
    busy_s: Floats  #: Seconds of transmission of the answer's bytes on every link; shape (links,).
    sends: int
    pieces: int | None = None  #: Pieces per tree; None for answers without trees.
    why: str = ""  #: Reason if ``seconds`` is None.
    #: Arrival of the last byte without congestion, all sends on a link at once; None if not requested.
    unaware_s: float | None = None
    routing: Routing = Routing.FIXED
    shares: bool = True  #: If trees have shares of links; else a link serves their pieces one at a time.

    @property
    def model(self) -> str:
        """A description of the model."""
        if self.pieces is not None:
            return f"{OF_FORESTS if self.shares else OF_SCHEDULES}, {in_pieces(self.pieces)}"
        how = OF_SPRAY if self.routing is Routing.SPRAY else OF_SCHEDULES
        return ", ".join(filter(None, [how, self.routing.in_words]))


def in_pieces(pieces: int) -> str:
    """Describe the number of pieces per tree."""
    return f"{pieces:,} piece{'' if pieces == 1 else 's'} of a tree"


def completion_of(
    instance: Instance,
    answer: Answer,
    pieces: int | None = None,
    line: Pipeline | None = None,
    *,
    unaware: bool = False,
) -> Completion:
    """Compute when the last byte of a valid answer arrives, in pieces of trees that are chosen here by default."""
    if isinstance(answer, TreePacking | TreeOrbits):
        return _completion_of_trees(instance, answer, pieces, line)
    if isinstance(answer, StreamedSteps):
        return unplayed_completion(instance, f"{answer.sends:,} sends that are not kept are not simulated")
    if isinstance(answer, TranslatedTrees):
        if (timing := simulate_translated(instance, answer)) is not None:
            return Completion(*timing, answer.sends)
        if answer.sends > MAX_SENDS:
            why = f"links by one generator differ, and {answer.sends:,} sends are too many to be simulated"
            return unplayed_completion(instance, why)
        answer = write_out(answer, instance)
    if isinstance(answer, StepOrbits):
        if (of_images := simulate_step_orbits(instance, answer, unaware=unaware)) is not None:
            return of_images
        answer = write_out(answer, instance)
    total = simulate_totals(instance, answer, mode_of(answer, instance.routing), unaware=unaware)
    return Completion(*total[:3], unaware_s=total.unaware_s, routing=instance.routing)


def _completion_of_trees(
    instance: Instance, answer: TreePacking | TreeOrbits, pieces: int | None, line: Pipeline | None
) -> Completion:
    if instance.timing is not None and instance.timing.changes:
        return unplayed_completion(instance, CONSTANT)
    line = line or pipeline(instance, answer)
    if pieces is None:
        times, numbers = line.best()
        seconds, pieces = float(times[0]), int(numbers[0])
    else:
        seconds = float(line.seconds(pieces)[0])
    edges = sum(len(part.parent) for part in answer.trees.passes) * answer.motions
    units, class_of = line.loads
    bytes_of = np.array([float(number * answer.trees.unit_bytes) for number in units])
    busy_s = bytes_of[class_of] / wires(instance.topology).bandwidth_Bps
    return Completion(seconds, busy_s, edges * pieces, pieces)


def unplayed_completion(instance: Instance, why: str) -> Completion:
    """Return a completion without a time, for the given reason."""
    return Completion(None, np.zeros(len(instance.topology.links)), 0, why=why)


def completion_if_any(
    instance: Instance, answer: Answer, pieces: int | None = None, *, unaware: bool = False
) -> Completion:
    """Compute the completion of a valid answer, or the reason if sends deadlock in this model."""
    try:
        return completion_of(instance, answer, pieces, unaware=unaware)
    except InputError as error:
        return unplayed_completion(instance, str(error))


def mode_of(answer: object, routing: Routing) -> SimulationMode:
    """Return the simulation mode in which sends follow the common time model."""
    if isinstance(answer, Forest):
        return SimulationMode.SHARES
    return SimulationMode.CUT_THROUGH if routing is Routing.SPRAY else SimulationMode.CONGESTION_AWARE


def simulate_translated(instance: Instance, answer: TranslatedTrees) -> tuple[float, Floats] | None:
    """Return last arrival and links' busy seconds from rank 0's edges, with congestion; None if that fails.

    The links of one generator have equal bandwidth and latency, which is checked, and each serves the same edges in the
    same order: those of its generator, by their steps. So all links of g carry the data of corresponding ranks (on the
    link from w to w + g, of rank w - u) simultaneously, and one link represents its generator. It fails if links of a
    generator differ, ranks have costs, or sends take other paths.
    """
    if instance.demand is None:
        raise InputError("expected a collective", place="collective")
    if instance.rank_costs is not None or instance.routing is not Routing.FIXED:
        return None  # ranks serve the sends of all generators in turn
    network = network_of(instance)
    columns = wires(network.topology)
    size = float(instance.demand.size_bytes / (answer.ranks * instance.demand.chunks))
    ranks, chunks = answer.ranks, instance.demand.chunks
    generator = translate_ranks(answer.sizes, answer.child, answer.parent, -1)
    length = answer.steps // len(answer.kind.passes)
    free: dict[int, float] = {}
    busy = np.zeros(len(columns))
    here = np.zeros(chunks * ranks)  # when each rank has what it passes on, of every chunk of rank 0
    last = 0.0
    for way in answer.kind.passes:
        inwards = way is TreeKind.IN
        if not inwards:
            here[:] = here.reshape(chunks, ranks)[:, :1].repeat(ranks, axis=1).ravel()
        wire, late, link_of = {}, {}, {}
        for g in np.unique(generator).tolist():
            links = generator_links(network, answer, g, way)
            if len(set(columns.bandwidth_Bps[links])) > 1 or len(set(columns.latency_s[links])) > 1:
                return None
            wire[g], late[g] = size / float(columns.bandwidth_Bps[links[0]]), float(columns.latency_s[links[0]])
            link_of[g] = int(links[0])
            busy[links] += wire[g] * int((generator == g).sum())
        order = np.argsort(length - 1 - answer.step if inwards else answer.step, kind="stable")
        ends = (answer.child, answer.parent) if inwards else (answer.parent, answer.child)
        rows = zip(*(column[order].tolist() for column in (answer.copy, *ends, generator)), strict=True)
        for copy, source, target, g in rows:
            # From rank 0 a link by g of the broadcast may be the one by -g of the reduction: its number tells.
            end = max(here[copy * ranks + source], free.get(link_of[g], 0.0)) + wire[g]
            free[link_of[g]] = end
            came = end + late[g]
            last = max(last, came)
            place = copy * ranks + target
            here[place] = max(here[place], came) if inwards else came
    return last, busy


def simulate_step_orbits(instance: Instance, answer: StepOrbits, *, unaware: bool = False) -> Completion | None:
    """Return the completion of all sends; None if images of a send may meet at a link.

    It plays the given sends, all on one link of an orbit (docs/methods/textbook.md, "Large schedules"). Of passages
    that ask for a link at once, that of the earlier given send comes first; two passages of one send are never at once.
    """
    varies = instance.timing is not None and instance.timing.changes
    motions = checked_motions(network_of(instance), answer, Findings())
    if motions is None or varies or instance.rank_costs is not None or instance.routing is not Routing.FIXED:
        return None
    orbit, base = least_images(motions.orders, motions.links, len(instance.topology.links)), answer.base
    orbits = orbit[base.sends.path_links]
    if (np.bincount(orbit)[orbits] != motions.count).any():
        return None
    ids, path_links = np.unique(orbits, return_inverse=True)
    topology = instance.topology
    few = instance.with_changes(network=Topology(topology.nodes, tuple(topology.links[link] for link in ids.tolist())))
    merged = replace(base, instance_sha256=few.sha256, sends=replace(base.sends, path_links=path_links))
    total, busy_s = simulate_totals(few, merged, unaware=unaware), np.zeros(len(orbit))
    busy_s[ids] = total.busy_s
    return Completion(total.completion_s, busy_s[orbit], answer.sends, unaware_s=total.unaware_s)
