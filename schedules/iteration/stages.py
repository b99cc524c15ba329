"""Division of layers into pipeline stages, and the order of micro-batches in a stage."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from enum import Enum
from fractions import Fraction
from itertools import accumulate, groupby

from ...core.errors import InputError
from ...core.workload import Layer

#: Layers that are simulated, each as often as it is repeated.
MAX_LAYERS = 100_000

#: More layers are not divided among stages.
_MAX_DIVIDED = 2_000


class Pipeline(Enum):
    """Order of micro-batches in a stage.

    ``GPIPE`` has all forward passes first (Huang et al., NeurIPS 2019); ``ONE_F_ONE_B`` alternates as soon as the
    last stage has one forward pass done, which needs less memory (Narayanan et al., PipeDream, SOSP 2019).
    """

    GPIPE = "gpipe"
    ONE_F_ONE_B = "1f1b"


def unroll_layers(layers: Sequence[Layer]) -> list[Layer]:
    """List layers in forward order, with repetitions; equally repeated neighbours repeat as a block.

    Raises
    ------
    InputError
        If there are more than :data:`MAX_LAYERS`.
    """
    if (count := sum(layer.repeat for layer in layers)) > MAX_LAYERS:
        raise InputError(f"{count:,} layers; expected at most {MAX_LAYERS:,}", place="layers")
    found: list[Layer] = []
    for repeat, block in groupby(layers, key=lambda layer: layer.repeat):
        found += list(block) * repeat
    return found


def divide_layers(layers: Sequence[Layer], stages: int) -> list[list[Layer]]:
    """Divide layers among stages, in order, minimizing the longest computation of a stage.

    Raises
    ------
    InputError
        If there are fewer layers than stages, or more than can be divided.
    """
    if stages == 1:
        return [list(layers)]
    if not stages <= len(layers) <= _MAX_DIVIDED:
        text = f"{len(layers):,} layers for {stages:,} stages; expected one for each, and at most {_MAX_DIVIDED:,}"
        raise InputError(text, place="layers")
    seconds = [x.forward.compute_s + x.input_gradient.compute_s + x.weight_gradient.compute_s for x in layers]
    until = [Fraction(0), *accumulate(seconds)]
    sums = sorted({until[j] - until[i] for i in range(len(layers)) for j in range(i + 1, len(layers) + 1)})
    fits = bisect_left(sums, True, key=lambda most: len(_ends(until, most)) <= stages)
    ends = _ends(until, sums[fits])
    while len(ends) < stages:  # every stage has a layer: a stage of several is divided
        begins = [0, *ends[:-1]]
        ends.append(next(end - 1 for begin, end in zip(begins, ends, strict=True) if end - begin > 1))
        ends.sort()
    return [list(layers[begin:end]) for begin, end in zip([0, *ends[:-1]], ends, strict=True)]


def _ends(until: Sequence[Fraction], most: Fraction) -> list[int]:
    """Return the ends of stages filled up to a limit in seconds, too many if a layer exceeds it."""
    ends = [0]
    for index in range(1, len(until)):
        if until[index] - until[ends[-1]] > most:
            if until[index] - until[index - 1] > most:
                return list(range(1, len(until) + 1))
            ends.append(index - 1)
    return [*ends[1:], len(until) - 1]


def order(pipeline: Pipeline, stage: int, stages: int, microbatches: int) -> list[tuple[str, int]]:
    """List the passes of a stage, each ``forward`` or ``backward`` with its micro-batch."""
    ahead = microbatches if pipeline is Pipeline.GPIPE else min(microbatches, stages - stage - 1)
    passes = [("forward", m) for m in range(ahead)]
    for m in range(ahead, microbatches):
        passes += [("forward", m), ("backward", m - ahead)]
    return passes + [("backward", m) for m in range(microbatches - ahead, microbatches)]
