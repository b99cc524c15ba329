"""Measured times beside expected ones, and what may be wrong with a machine that is slower than it should be.

A cause is a machine that differs from the described one in one respect. The one whose expected time is nearest to the
measured one is the likeliest; rails that are crossed have no time of their own, and are found in logs alone.
"""

from collections.abc import Iterator
from fractions import Fraction
from math import log
from typing import Any

from ..core.instance import Instance
from ..heuristics.nccl.method import Prediction, expected_seconds, interval, prediction
from .sensitivity import scale_links

#: GB/s of 16 lanes of PCIe as NCCL counts them, by the generation of the GPU.
_PCIE_GBps = {"volta": 12, "ampere": 24, "hopper": 48, "blackwell": 48}

_SLOWER = 1.1  #: Causes are looked for from this ratio of the measured to the expected time on.


def diagnosis(problem: Instance, forecast: Prediction, size: int, measured_s: float) -> dict[str, Any] | None:
    """Compare a measured time with the expected one, and name causes, the nearest to the measured time first."""
    expected_s = _choice_seconds(forecast, size)
    if expected_s is None:
        return None
    low_s, high_s = interval(forecast, size, expected_s)
    causes = [(what, _choice_seconds(other, size) or expected_s) for what, other in _others(problem, forecast)]
    slow = [(abs(log(time / measured_s)), what, time) for what, time in causes if measured_s > _SLOWER * expected_s]
    near = sorted(one for one in slow if one[0] < log(measured_s / expected_s))
    return {
        "size_bytes": size,
        "measured_s": measured_s,
        "expected_s": expected_s,
        "low_s": low_s,
        "high_s": high_s,
        "causes": [{"cause": what, "expected_s": time} for _, what, time in near],
    }


def _choice_seconds(forecast: Prediction, size: int) -> float | None:
    pick = forecast.pick(size)
    return None if pick is None else expected_seconds(forecast, pick, size)


def _others(problem: Instance, forecast: Prediction) -> Iterator[tuple[str, Prediction]]:
    """Yield the causes with NCCL's predictions."""
    boxes, options = forecast.boxes, forecast.options.model_copy(update={"gpu": forecast.gpu})
    plain = options.model_copy(update={"nvls": False})
    if forecast.switches and options.nvls is not False:
        yield "NVLink SHARP off", prediction(problem, plain)
    yield "the protocol LL alone", prediction(problem, options.model_copy(update={"protocol": "ll"}))
    nics = min(len(box.nics) for box in boxes.boxes) if len(boxes.boxes) > 1 else 0
    for some in dict.fromkeys((1, nics // 2)):
        if 0 < some < nics:
            slower = _scale(problem, forecast, Fraction(some, nics), inside=False)
            yield f"{some} of {nics} NICs", prediction(slower, options)
    if boxes.nvlink and boxes.inside_GBps:
        slower = _scale(problem, forecast, _PCIE_GBps[forecast.gpu] / boxes.inside_GBps, inside=True)
        yield "PCIe instead of NVLink", prediction(slower, plain.model_copy(update={"rates": "effective"}))


def _scale(problem: Instance, forecast: Prediction, factor: Fraction, *, inside: bool) -> Instance:
    """Return the instance with rates within boxes, or between them, times a factor."""
    topology, of = forecast.problem.topology, forecast.boxes.of_node
    pairs = [(a, b) for a, b in topology.link_ends if (of[a] == of[b]) == inside]
    return problem.with_changes(network=scale_links(topology, pairs, factor))
