"""``nccl``: the method and its options, NCCL's predictions, and the times that are expected of its choice."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, field_validator

from ...algorithms.bounds.schedule_bounds import best_bound
from ...algorithms.schedules.problem import GroupProblem, check_size, fewest_sends, group_problems
from ...core.budget import Budget, limited_by
from ...core.collective import Collective
from ...core.errors import InputError, Refusal, Unsupported, locate_errors
from ...core.fields import Strict, run_validation, select_options
from ...core.instance import Instance
from ...core.method import Metric
from ...core.outcome import Outcome, Status
from ...core.refusals import refuse_unfit
from ...core.schedule import StepSchedule
from ...core.solver import Solver
from ...core.step_orbits import StepOrbits
from ...core.trees import TreePacking, least_images, translation_images
from .. import heuristic
from ..textbook.algorithm import find_common_symmetry, positions_of
from .boxes import Boxes, Rates
from .constants import RCCL_TUNINGS, TUNINGS, Algorithm, Protocol, Tuning, nearest_tuning
from .model import COLLECTIVES, EXCHANGES, Machine, Pick, choose, measured_protocol, seconds, table, without
from .model import Table as CostTable
from .search import Channel, Rings, graphs, rings
from .symmetric import SymmetricPick, choose_copies, choose_symmetric

SENDS = "send/recv"  #: Name of an exchange without an algorithm.

#: What a step of NCCL's buffers holds with Simple (4 MiB for 8 steps), and how many pieces of that size are told apart.
PIECE_BYTES, MOST_PIECES = 2**19, 8

_Overhead = Annotated[float, Field(ge=0, le=1e12)]


class NcclOptions(Strict):
    """Options of ``nccl``."""

    version: str = Field(
        "2.30.7", description=f"Version of NCCL; the constants are those of the nearest of {', '.join(TUNINGS)}."
    )
    algorithm: Literal["auto", "tree", "ring", "collnet-direct", "collnet-chain", "nvls", "nvls-tree", "pat"] = "auto"
    """As NCCL_ALGO: one algorithm alone."""
    protocol: Literal["auto", "ll", "ll128", "simple"] = Field("auto", description="As NCCL_PROTO: one protocol alone.")
    gpu: Literal["auto", "volta", "ampere", "hopper", "blackwell"] = "auto"
    """Generation of the GPUs; auto derives it from the rates of their links."""
    cpu: Literal["intel", "amd", "arm", "power"] = Field("intel", description="Maker of the processors.")
    nvls: bool | None = None
    """True if NCCL counts on NVLink SHARP; by default where a switch of every box adds and copies."""
    near_nics: bool = True
    """True if GPUs reach their NICs without passing a processor: then LL128 is safe."""
    net_latency_us: float = Field(0.0, ge=0, le=1e6)
    """Latency in us that the network's plugin reports to NCCL."""
    symmetric: bool = False
    """True if buffers are registered as symmetric windows: from 2.27 on, kernels of their own."""
    zero_sms: bool = False
    """As NCCL_CTA_POLICY=ZERO, implies symmetric: copy engines make the all-gather of one box, from 2.31 on."""
    overheads: tuple[_Overhead, _Overhead, Annotated[_Overhead, Field(gt=0)]] | None = None
    """Overheads of expected times, as cwb calibrate fits them: us of a launch, us that channels lose at most before
    they are full, and the MiB at half of it; by default those of published times."""
    interval: tuple[Annotated[_Overhead, Field(gt=0)], Annotated[_Overhead, Field(gt=0)]] | None = None
    """Least and largest measured over expected time in nine of ten cases, from cwb calibrate; by default those of
    published times."""
    per_box: int | None = Field(None, ge=1, description="Ranks of a box, where names of nodes do not say it.")
    rates: Rates = "auto"
    """Kind of the network's rates: nominal, those of data sheets; effective, those that NCCL counts with, as imported
    machines have; auto distinguishes them by the rates of a GPU's links."""
    pieces: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Pieces of a channel's share of a part in rings; by default of 512 KiB, and at most 8."""
    channels: Annotated[list[list[int]], Field(min_length=1, max_length=256)] | None = None
    """Orders of a box's GPUs by channel, as in a graph that NCCL has written; by default searched."""
    speeds: tuple[float, float] | None = None
    """GB/s of a channel within a box and between boxes, for given channels."""

    @field_validator("version", check_fields=False)
    @classmethod
    def _check_version(cls, text: str) -> str:
        if not re.fullmatch(r"2\.[0-9]{1,2}\.[0-9]{1,2}", text):
            raise ValueError("expected a version of NCCL such as 2.30.7")
        return text


RcclOptions = select_options(
    NcclOptions,
    *("protocol", "cpu", "near_nics", "net_latency_us", "per_box", "rates", "pieces", "channels", "speeds"),
    algorithm=(Literal["auto", "tree", "ring"], Field("auto", description="As NCCL_ALGO: one algorithm alone.")),
    gpu=(
        Literal["mi200", "mi300x", "mi350"],
        Field("mi300x", description="GPU whose measured tables RCCL takes: MI200 (gfx90a), MI300X or MI350 (gfx950)."),
    ),
)


@dataclass(frozen=True, eq=False)
class Prediction:
    """NCCL's predictions for a machine."""

    problem: GroupProblem
    options: NcclOptions

    @cached_property
    def tuning(self) -> Tuning:
        """Numbers of the version, or of the nearest one."""
        return RCCL_TUNINGS.get(self.options.gpu) or nearest_tuning(self.options.version)

    @property
    def version(self) -> str:
        """The version in words, with the one whose numbers stand for it."""
        near = self.tuning.name
        return near if near == self.options.version else f"{self.options.version} (by the numbers of {near})"

    @property
    def library(self) -> str:
        """NCCL with its version, or RCCL with its GPU, in words."""
        return f"RCCL on {self.options.gpu}" if self.tuning.measured else f"NCCL {self.version}"

    @cached_property
    def boxes(self) -> Boxes:
        """Boxes and ways."""
        return Boxes(self.problem.topology, self.problem.nodes.tolist(), self.options.per_box)

    @cached_property
    def gpu(self) -> str:
        """Generation."""
        return self.boxes.generation() if self.options.gpu == "auto" else self.options.gpu

    @cached_property
    def switches(self) -> bool:
        """True if every box has a switch that adds and copies, with all of its ranks on it."""
        from .schedules import switches_of

        return all(len(box.ranks) > 1 and bool(switches_of(self.boxes, box.ranks)) for box in self.boxes.kinds)

    @cached_property
    def rings(self) -> Rings:
        """Channels of rings, given or searched. Given ones are orders of the ranks of every box."""
        if self.options.channels is None:
            return rings(self.boxes, self.gpu, self._rates)
        channels: list[tuple[Channel, ...]] = []
        for number, order in enumerate(self.options.channels):
            for box in self.boxes.boxes:
                if sorted(order) != list(range(len(box.ranks))):
                    text = f"expected every number from 0 to {len(box.ranks) - 1} once, of the GPUs of a box"
                    raise InputError(text, source="-O", place=f"channels[{number}]")
            ranks = [(tuple(box.ranks[i] for i in order), len(box.nics)) for box in self.boxes.boxes]
            channels.append(tuple(Channel(some, number % nics if nics else -1) for some, nics in ranks))
        if self.options.speeds is None:
            text = "expected the speeds of given channels, such as speeds=[20,24]"
            raise InputError(text, source="-O", place="speeds")
        return Rings(tuple(channels), *self.options.speeds)

    @cached_property
    def _rates(self) -> list[float]:
        return self.boxes.rates_GBps(self.gpu, self.options.rates)

    @cached_property
    def machine(self) -> Machine:
        """Machine in the terms of the model."""
        nvls = self.switches if self.options.nvls is None else self.options.nvls
        if self.tuning.version < (2, 29) and max(len(box.ranks) for box in self.boxes.boxes) < 3:
            nvls = False
        by_algorithm = graphs(self.boxes, self.gpu, self._rates, self.rings, switches=nvls)
        outer = [n for i, n in enumerate(self.problem.topology.nodes) if not self.boxes.of_node[i].strip("\0")]
        return Machine(
            self.problem.n,
            len(self.boxes.boxes),
            self.gpu,
            by_algorithm,
            cpu=self.options.cpu,
            nvlink=self.boxes.nvlink,
            near_nics=self.options.near_nics,
            net_us=self.options.net_latency_us,
            collnet=len(self.boxes.boxes) > 1 and bool(outer) and all(n.reduces and n.multicast for n in outer),
        )

    @cached_property
    def costs(self) -> CostTable:
        """Latency and bandwidth of every algorithm and protocol that the options allow."""
        if not self.has_costs:
            return {}
        whole = table(self.machine, self.tuning, self.problem.collective)
        some = [a for a in Algorithm if self.options.algorithm in ("auto", a.value)]
        return without(whole, some, [p for p in Protocol if self.options.protocol in ("auto", p.value)])

    def pick(self, size: float, among: tuple[Algorithm, ...] = tuple(Algorithm)) -> Pick | None:
        """Return NCCL's choice at a size in bytes, among some algorithms; None if there is none."""
        costs = without(self.costs, among, Protocol)
        pick = choose(self.machine, self.tuning, costs, size)
        protocol = measured_protocol(self.machine, self.tuning, self.problem.collective, size)
        if pick is None or protocol is None or self.options.protocol != "auto":
            return pick
        time = seconds(self.machine, self.tuning, costs, (pick.algorithm, protocol), size)
        return pick if time is None else Pick(pick.algorithm, protocol, time)

    def symmetric_pick(self, size: float) -> SymmetricPick | None:
        """Return the symmetric kernel that NCCL takes at a size in bytes; None without the option or a kernel."""
        if not (self.options.symmetric or self.options.zero_sms):
            return None
        if self.options.zero_sms:
            return choose_copies(self.machine, self.tuning, self.problem.collective, size)
        links = self.problem.topology.links
        nics = (float(links[nic.out].bandwidth_Bps) for box in self.boxes.boxes for nic in box.nics)
        rate = min(nics, default=0.0) / 1e9
        return choose_symmetric(self.machine, self.tuning, self.problem.collective, size, rate)

    @cached_property
    def drawable(self) -> tuple[Algorithm, ...]:
        """Algorithms whose schedules can be made here."""
        reduces = self.problem.collective is Collective.ALL_REDUCE
        some = [Algorithm.RING, Algorithm.TREE, Algorithm.PAT]
        if self.switches and (reduces or len(self.boxes.boxes) == 1):
            some += [Algorithm.NVLS, Algorithm.NVLS_TREE]
        return tuple(some)

    @cached_property
    def pieces(self) -> int:
        """Pieces of a channel's share of a part."""
        if self.options.pieces is not None:
            return self.options.pieces
        share = self.problem.part_bytes / len(self.rings.channels)
        return max(1, min(MOST_PIECES, round(share / PIECE_BYTES)))

    @cached_property
    def suspects(self) -> tuple[str, ...]:
        """Sentences on what a description of a machine gets wrong most often, with its numbers."""
        boxes, texts = self.boxes.boxes, list[str]()
        if self.boxes.nvlink and not self.switches and self.gpu in ("hopper", "blackwell"):
            texts.append("Its NVSwitches do not add: with NVLink SHARP they do (nvls=true, or --nvls of cwb import).")
        if len(boxes) > 1:
            nics = min(len(box.nics) for box in boxes)
            links = self.problem.topology.links
            rates = {float(links[nic.out].bandwidth_Bps) / 1e9 for box in boxes for nic in box.nics}
            texts.append(f"A box has {nics} NICs of {' or '.join(f'{rate:g}' for rate in sorted(rates))} GB/s.")
        if self.boxes.inside_GBps:
            texts.append(f"A GPU has links of {float(self.boxes.inside_GBps):g} GB/s within its box.")
        return tuple(texts)

    @property
    def has_costs(self) -> bool:
        """True if NCCL predicts the collective; sends and receives have no predicted times."""
        return self.problem.collective in COLLECTIVES

    def schedule(self, algorithm: Algorithm | None) -> StepSchedule | StepOrbits | TreePacking:
        """Make the schedule of an algorithm, or of sends and receives."""
        from . import schedules

        if algorithm is None:
            return schedules.in_rounds(self.problem, self.boxes, self.pieces)
        if algorithm is Algorithm.TREE:
            return schedules.double_trees(self.problem, self.rings, self.boxes)
        if algorithm in (Algorithm.NVLS, Algorithm.NVLS_TREE):
            return schedules.over_switches(self.problem, self.boxes)
        if algorithm is Algorithm.PAT:
            return schedules.aggregated_trees(self.problem, self.pieces)
        if self.problem.collective in (Collective.BROADCAST, Collective.REDUCE):
            return schedules.along_rings(self.problem, self.rings, self.boxes)
        return schedules.in_rings(self.problem, self.rings, self.boxes, self.pieces)


@dataclass(frozen=True)
class Filling:
    """Seconds that channels lose before they are full: ``most_us * size / (size + half_bytes)``."""

    most_us: float
    half_bytes: float

    def us(self, size: float) -> float:
        """Return the loss in microseconds at a size in bytes."""
        return self.most_us * size / (size + self.half_bytes)


@dataclass(frozen=True)
class Overheads:
    """Overheads that NCCL's own prediction leaves out.

    NCCL compares algorithms by latency and bandwidth, which orders them well but leaves out the start of a kernel, and
    the synchronization of channels before they are full. Six numbers are fitted to 161 published times of NVIDIA's and
    AMD's machines; ``benchmarks/measured_gpus.py --fit`` fits them again and prints the errors. They do not change the
    choice.
    """

    launch_us: float  #: Start of the kernel.
    switches: Filling  #: Of NVLS and NVLSTree.
    links: Filling  #: Of all other algorithms.
    net_us: float  #: Latency of a network at most, whatever its plugin reports.


#: Fitted to the series of docs/methods/nccl.md.
OVERHEADS = Overheads(2.0, Filling(78.0, 11.5 * 2**20), Filling(260.0, 36 * 2**20), 27.0)

#: Sizes from which on an interval holds; 5th and 95th percentile of measured over expected times of the same series,
#: each family of machines predicted with overheads that are fitted to the others.
INTERVALS = ((2**26, (0.85, 1.44)), (2**20, (0.59, 2.22)), (0, (0.21, 2.75)))


def expected_seconds(forecast: Prediction, pick: Pick, size: float, overheads: Overheads | None = None) -> float:
    """Return the time that NCCL's choice is expected to take at a size in bytes: predicted, with its overheads."""
    if overheads is None and forecast.options.overheads:
        launch_us, most_us, half = forecast.options.overheads
        filling = Filling(most_us, half * 2**20)
        overheads = Overheads(launch_us, filling, filling, OVERHEADS.net_us)
    overheads = overheads or OVERHEADS
    net_us = min(forecast.machine.net_us, overheads.net_us)
    machine = forecast.machine if net_us == forecast.machine.net_us else replace(forecast.machine, net_us=net_us)
    costs = table(machine, forecast.tuning, forecast.problem.collective)
    predicted = seconds(machine, forecast.tuning, costs, (pick.algorithm, pick.protocol), size) or pick.seconds
    adds = pick.algorithm in (Algorithm.NVLS, Algorithm.NVLS_TREE)
    filling = overheads.switches if adds else overheads.links
    return predicted + (overheads.launch_us + filling.us(size)) * 1e-6


def interval(forecast: Prediction, size: float, expected_s: float) -> tuple[float, float]:
    """Return the seconds between which nine of ten measured times are, by default of machines left out of the fit."""
    low, high = sorted(forecast.options.interval or next(factors for least, factors in INTERVALS if size >= least))
    return low * expected_s, high * expected_s


def study_options(options: Mapping[str, Any], source: str = "-O") -> NcclOptions:
    """Validate options of a study of many sizes."""
    with locate_errors(source=source):
        return run_validation(lambda: NcclOptions.model_validate(dict(options)), NcclOptions.model_fields)


def prediction(instance: Instance, options: NcclOptions) -> Prediction:
    """Return NCCL's predictions for a supported instance with one collective."""
    return Prediction(group_problems(instance)[0], options)


def supports(instance: Instance) -> Refusal | None:
    """Return the refusal unless there is one collective that NCCL has algorithms for."""
    return refuse_unfit(instance, (*COLLECTIVES, *EXCHANGES), single=True)


def run(instance: Instance, solver: Solver, budget: Budget, options: NcclOptions) -> Outcome:
    """Predict what NCCL takes, and make its schedule (``Method.run``).

    Given channels must be right, NCCL have an algorithm for the collective with these options, and every rank be
    reached.
    """
    problem = group_problems(instance)[0]
    least = fewest_sends(problem)
    symmetry = find_common_symmetry(instance, least)
    if problem.collective is not Collective.ALL_REDUCE:  # which may be along trees
        check_size(least // (symmetry.motions if symmetry else 1))  # before a bound is computed and times are predicted
    starts = positions_of(problem, symmetry) if symmetry else None
    with budget.clock.phase("bound"):
        try:
            bound, certificate = best_bound(instance, flow=True, starts=starts)
        except InputError as error:  # no path leads to some rank
            raise Unsupported(error.problem) from None
        budget.tell_bound(bound, certificate)
    with budget.clock.phase("build"), limited_by(budget, "predicting NCCL's choice"):
        forecast = Prediction(problem, options)
        size = float(forecast.problem.demand.size_bytes)
        pick, drawable = forecast.pick(size), forecast.pick(size, forecast.drawable)
        if forecast.has_costs and (pick is None or drawable is None):
            raise Unsupported(_nothing(forecast, pick))
        answer = forecast.schedule(None if drawable is None else drawable.algorithm)
        if not isinstance(answer, TreePacking):  # its completion time has latency
            bound, certificate = best_bound(instance, starts=starts)
    metrics: dict[str, Any] = {"nics": _nics_used(forecast.boxes, answer)}
    if pick is None or drawable is None:
        metrics |= {"algorithm": SENDS, "schedule": SENDS}
        message = f"{forecast.library} takes {SENDS}, and predicts no time for them"
        return Outcome(Status.FEASIBLE, answer, None, float(bound), certificate, message, metrics=metrics)
    graph = forecast.machine.graphs[drawable.algorithm]
    kernel = forecast.symmetric_pick(size)
    own_s = pick.seconds if kernel is None else kernel.seconds
    predicted_s = own_s if kernel is None else max(own_s, float(bound))
    factor = float(forecast.problem.collective.busbw_factor(forecast.problem.n))
    metrics |= {
        "algorithm": pick.algorithm.value,
        "protocol": pick.protocol.value,
        "predicted_s": predicted_s,
        "predicted_GBps": size / predicted_s / 1e9,
        "predicted_busbw_GBps": factor * size / predicted_s / 1e9,
        "schedule": drawable.algorithm.value,
        "channels": graph.channels,
        "channel_GBps": graph.inter if forecast.machine.nodes > 2 else graph.intra,
    }
    message = f"{forecast.library} takes {pick.algorithm.value} with {pick.protocol.value}: {pick.seconds * 1e6:.4g} us"
    if kernel is not None:
        metrics |= {"kernel": kernel.kernel, "sms": kernel.sms}
        message = f"with symmetric memory NCCL {forecast.version} takes {kernel.kernel} ({kernel.sms} SM): "
        message += f"{kernel.seconds * 1e6:.4g} us; the schedule is that of {pick.algorithm.value}, taken without it"
    elif options.symmetric or options.zero_sms:
        message = f"no symmetric kernel here; {message}"
    if own_s < bound:
        message += f"; it counts on faster links than these: no schedule takes less than {float(bound) * 1e6:.4g} us"
    if drawable.algorithm is not pick.algorithm:
        message += f"; the schedule is that of {drawable.algorithm.value}, since switches here do not add"
    return Outcome(Status.FEASIBLE, answer, None, float(bound), certificate, message, metrics=metrics)


def _nics_used(boxes: Boxes, answer: StepSchedule | StepOrbits | TreePacking) -> int:
    orbit = np.arange(len(boxes.topology.links))
    if isinstance(answer, StepOrbits):
        images = [links for _, links in translation_images(answer.translations, boxes.topology)]
        orbit = least_images([each.order for each in answer.translations], images, len(orbit))
        answer = answer.base
    parts = (answer.sends,) if isinstance(answer, StepSchedule) else answer.passes
    is_busy = np.isin(orbit, orbit[np.concatenate([np.unique(part.path_links) for part in parts])])
    return sum(bool(is_busy[nic.out]) for box in boxes.boxes for nic in box.nics)


def _nothing(forecast: Prediction, pick: Pick | None) -> str:
    """Return the reason why there is no schedule."""
    if pick is not None:
        return f"NCCL takes {pick.algorithm.value}, of which there is no schedule here: switches do not add"
    names = [value for value in (forecast.options.algorithm, forecast.options.protocol) if value != "auto"]
    return f"{forecast.library} does not have {' with '.join(names) or 'it'} for this collective here"


METHOD = heuristic(
    name="nccl",
    summary="what NCCL would take: rings over all NICs, double trees, NVLS or PAT, by its own predicted times",
    paper="NVIDIA, NCCL, https://github.com/NVIDIA/nccl: src/graph/tuning.cc and search.cc",
    answer_type=object,
    options=NcclOptions,
    solve=run,
    supports=supports,
    metrics={
        "algorithm": Metric("the algorithm that NCCL takes"),
        "protocol": Metric("the protocol that NCCL takes"),
        "predicted_s": Metric("the time that NCCL predicts", "s"),
        "predicted_GBps": Metric("size of the collective over that time", "GB/s"),
        "predicted_busbw_GBps": Metric("the same times the factor of the bus bandwidth", "GB/s"),
        "kernel": Metric("the symmetric kernel that NCCL takes, with registered buffers"),
        "sms": Metric("streaming multiprocessors of that kernel"),
        "schedule": Metric("whose schedule the answer is"),
        "channels": Metric("channels of NCCL's graph"),
        "channel_GBps": Metric("speed of a channel", "GB/s"),
        "nics": Metric("NICs that send something"),
    },
)

RCCL = replace(
    METHOD,
    name="rccl",
    summary="what RCCL would take on AMD's GPUs: rings and trees, by its tables of measured numbers",
    paper="AMD, RCCL, https://github.com/ROCm/rocm-systems: projects/rccl/src/graph/tuning.cc",
    options=RcclOptions,
)
