"""Measured times beside expected ones, and what may be wrong with a machine that is slower than it should be.

A cause is a machine that differs from the described one in one respect. The one whose expected time is nearest to the
measured one is the likeliest; rails that are crossed have no time of their own, and are found in logs alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import log
from typing import Any

from ..core.instance import Instance
from ..core.topology import Topology
from ..heuristics.nccl.method import Prediction, expected_seconds, interval, prediction

#: GB/s of 16 lanes of PCIe as NCCL counts them, by the generation of the GPU.
_PCIE_GBps = {"volta": 12, "ampere": 24, "hopper": 48, "blackwell": 48}

_SLOWER = 1.1  #: Causes are looked for from this ratio of the measured to the expected time on.


def diagnosis(posed: Instance, found: Prediction, size: int, measured_s: float) -> dict[str, Any] | None:
    """Compare a measured time with the expected one, and name causes, the nearest to the measured time first."""
    expected_s = _choice_seconds(found, size)
    if expected_s is None:
        return None
    low_s, high_s = interval(size, expected_s)
    causes = [(what, _choice_seconds(other, size)) for what, other in _others(posed, found)]
    known = [(what, time) for what, time in causes if time and expected_s * 1.05 < time]
    near = sorted(known, key=lambda one: abs(log(one[1] / measured_s)))
    off = abs(log(expected_s / measured_s))
    return {
        "size_bytes": size,
        "measured_s": measured_s,
        "expected_s": expected_s,
        "low_s": low_s,
        "high_s": high_s,
        "causes": [
            {"cause": what, "expected_s": time}
            for what, time in near
            if measured_s > _SLOWER * expected_s and abs(log(time / measured_s)) < off
        ],
    }


def _choice_seconds(found: Prediction, size: int) -> float | None:
    pick = found.pick(size)
    return None if pick is None else expected_seconds(found, pick, size)


def _others(posed: Instance, found: Prediction) -> Iterator[tuple[str, Prediction]]:
    """Yield the causes with NCCL's predictions."""
    boxes, options = found.boxes, found.options.model_copy(update={"gpu": found.gpu})
    plain = options.model_copy(update={"nvls": False})
    if found.switches and options.nvls is not False:
        yield "NVLink SHARP off", prediction(posed, plain)
    yield "the protocol LL alone", prediction(posed, options.model_copy(update={"protocol": "ll"}))
    nics = min(len(box.nics) for box in boxes.boxes) if len(boxes.boxes) > 1 else 0
    for some in dict.fromkeys((1, nics // 2)):
        if 0 < some < nics:
            slower = _scale(posed, found, Fraction(1), Fraction(some, nics))
            yield f"{some} of {nics} NICs", prediction(slower, options)
    if boxes.nvlink and boxes.inside_GBps:
        slower = _scale(posed, found, _PCIE_GBps[found.gpu] / boxes.inside_GBps, Fraction(1))
        yield "PCIe instead of NVLink", prediction(slower, plain.model_copy(update={"rates": "effective"}))


def _scale(posed: Instance, found: Prediction, inside: Fraction, outside: Fraction) -> Instance:
    """Return the instance with rates within boxes, and between them, times factors."""
    topology, of = found.problem.topology, found.boxes.of_node
    links = tuple(
        replace(link, bandwidth_Bps=link.bandwidth_Bps * (inside if of[a] == of[b] else outside))
        for link, (a, b) in zip(topology.links, topology.link_ends, strict=True)
    )
    return posed.with_changes(network=Topology(topology.nodes, links))
