"""The one model of time: when the last byte of an answer arrives.

Link by link, store and forward. A piece takes its bytes over the link's rate, and the link's latency, which delays it
and does not hold the link. A schedule's links serve one piece at a time (:mod:`.simulate`, congestion-aware); a
forest's trees have their shares of every link, and their pieces follow each other (:mod:`.simulate.pipeline`). Every
number that is called a completion time comes from here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.errors import InputError
from ..core.instance import Instance
from ..core.orbits import TreeOrbits
from ..core.schedule import Floats, Schedule, StepSchedule
from ..core.streamed import StreamedSteps
from ..core.trace import SimulationMode
from ..core.translated import TranslatedTrees
from ..core.trees import TreePacking
from .simulate import totals
from .simulate.network import wires
from .simulate.pipeline import Pipeline, pipeline
from .simulate.reserved import CONSTANT
from .simulate.translated import simulate_translated
from .verify.orbits import heaviest_of_orbits, orbit_loads
from .verify.translated import MAX_SENDS

#: What a completion time means, in the words of reports.
OF_SCHEDULES = "link by link, store and forward; a link serves one piece at a time"
OF_FORESTS = "link by link, store and forward; every tree has its share of every link"


@dataclass(frozen=True, eq=False)
class Completion:
    """An answer in the one model of time.

    Parameters
    ----------
    seconds : float or None
        When the last byte arrived; None where the model cannot play the answer.
    busy_s : array of float, shape (links,)
        Seconds that the bytes of the answer take on every link.
    sends : int
        Number of sends, of trees for every piece.
    pieces : int or None
        Pieces of a tree; None for what has no trees.
    why : str
        Why there are no seconds.
    unaware_s : float or None
        When the last byte would arrive if links carried all that asks for them at once; None if it was not asked for.
    """

    seconds: float | None
    busy_s: Floats
    sends: int
    pieces: int | None = None
    why: str = ""
    unaware_s: float | None = None

    @property
    def model(self) -> str:
        """The model in words."""
        if self.pieces is None:
            return OF_SCHEDULES
        return f"{OF_FORESTS}, {in_pieces(self.pieces)}"


def in_pieces(pieces: int) -> str:
    """Return into how many pieces trees are cut."""
    return f"{pieces:,} piece{'' if pieces == 1 else 's'} of a tree"


def completion_of(
    instance: Instance,
    answer: StepSchedule | Schedule | TreePacking | TreeOrbits | TranslatedTrees,
    pieces: int | None = None,
    line: Pipeline | None = None,
    *,
    unaware: bool = False,
) -> Completion:
    """Return when the last byte of an answer arrives.

    Parameters
    ----------
    instance : Instance
        The problem, with an explicit network.
    answer : StepSchedule, Schedule, TreePacking, TreeOrbits or TranslatedTrees
        What the verifier finds right.
    pieces : int, optional
        Pieces of every tree, as they were chosen before; by default they are chosen here.
    line : Pipeline, optional
        The measures of a forest, if they are known already.
    unaware : bool
        Whether to simulate sends without congestion too.

    Raises
    ------
    InputError
        If the answer is none of the instance, or its sends wait for each other.
    """
    if isinstance(answer, TreePacking | TreeOrbits):
        if instance.timing is not None and instance.timing.changes:
            return nothing_of(instance, CONSTANT)
        return _of_trees(instance, answer, pieces, line or _line(instance, answer))
    if isinstance(answer, TranslatedTrees):
        if (found := simulate_translated(instance, answer)) is not None:
            return Completion(*found, answer.sends)
        if answer.sends > MAX_SENDS:
            why = f"links by one generator differ, and {answer.sends:,} sends are too many to be simulated"
            return nothing_of(instance, why)
    total = totals(instance, answer, unaware=unaware)
    return Completion(total.completion_s, total.busy_s, total.sends, unaware_s=total.unaware_s)


def nothing_of(instance: Instance, why: str) -> Completion:
    """Return why the model does not play an answer."""
    return Completion(None, np.zeros(len(instance.topology.links)), 0, why=why)


def completion_if_any(
    instance: Instance,
    answer: StepSchedule | Schedule | TreePacking | TreeOrbits | TranslatedTrees | StreamedSteps,
    pieces: int | None = None,
    *,
    unaware: bool = False,
) -> Completion:
    """Report it for an answer that the verifier finds right.

    Where sends wait for each other in this model alone, say so.
    """
    if isinstance(answer, StreamedSteps):
        return nothing_of(instance, f"{answer.sends:,} sends that are not kept are not simulated")
    try:
        return completion_of(instance, answer, pieces, unaware=unaware)
    except InputError as error:
        return nothing_of(instance, str(error))


def mode_of(answer: object) -> SimulationMode:
    """Mode in which a simulation follows the one model of time, send by send."""
    return SimulationMode.SHARES if isinstance(answer, TreePacking | TreeOrbits) else SimulationMode.CONGESTION_AWARE


def _line(instance: Instance, answer: TreePacking | TreeOrbits) -> Pipeline:
    """The measures of a forest; trees that are moved have those of the given ones."""
    if isinstance(answer, TreePacking):
        return pipeline(instance, answer)
    return pipeline(instance, answer.trees, heaviest_of_orbits(instance, answer)[1])


def _of_trees(instance: Instance, answer: TreePacking | TreeOrbits, pieces: int | None, line: Pipeline) -> Completion:
    """Take the closed form, with the pieces that were chosen before or are chosen now."""
    if pieces is None:
        times, numbers = line.best()
        seconds, pieces = float(times[0]), int(numbers[0])
    else:
        seconds = float(line.seconds(pieces)[0])
    columns = wires(instance.topology)
    loads = _loads(answer, len(columns)) if isinstance(answer, TreePacking) else _loads_of_orbits(instance, answer)
    given, motions = (answer, 1) if isinstance(answer, TreePacking) else (answer.trees, answer.motions)
    edges = sum(len(part.parent) for part in given.passes) * motions
    return Completion(seconds, loads / columns.bandwidth_Bps, edges * pieces, pieces)


def _loads(packing: TreePacking, links: int) -> Floats:
    """Bytes on every link."""
    loads = np.zeros(links)
    for part in packing.passes:
        carried = np.repeat(
            np.repeat(part.units * float(part.unit_bytes), np.diff(part.edge_offset)), np.diff(part.path_offset)
        )
        loads += np.bincount(part.path_links, carried, links)
    return loads


def _loads_of_orbits(instance: Instance, answer: TreeOrbits) -> Floats:
    """Bytes on every link: those of the links of an orbit are the same."""
    least, load = orbit_loads(instance, answer)
    each = np.zeros(len(least))
    each[list(load)] = [float(units * answer.trees.unit_bytes) for units in load.values()]
    return each[least]
