"""Checks of placements of experts."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from ..core.bounds import LeastLoads
from ..core.errors import InputError
from ..schedules.objective_type import contradictions
from ..schedules.placement import bound_of, loads_of, violations_of
from ..schedules.placement_file import PlacementFile, read_placement
from .check_programs import Check
from .inputs import Spec, load

#: Relative difference up to which a claimed bound is the one that is proved.
CLAIM_TOLERANCE = 1e-9


def check_placement(file: Path, instance: Spec) -> Check:
    """Verify a placement and its certificate."""
    read = read_placement(file)
    if instance is not None and load(instance).experts != read.experts:
        raise InputError(f"has different experts than {instance}", source=str(file), place="experts")
    violations = violations_of(read.experts, read.answer)
    loads = [] if violations else loads_of(read.experts, read.answer)
    bound = bound_of(read.experts, read.certificate)
    violations += _unproved_claims(read, sum(loads) if loads else None, bound)
    data = _verdict(file, read, violations, loads, bound)
    return Check(data, tuple(_lines(file, read, violations, loads, bound)), not violations)


def _unproved_claims(read: PlacementFile, load: Fraction | int | None, bound: Fraction | None) -> list[str]:
    """Return claims of the file that it does not prove, and contradictions to proved bounds."""
    missed = [] if load is None else contradictions(Fraction(load), bound, unit="load")
    if bound is None and isinstance(read.certificate, LeastLoads):
        missed.append(f"certificate: it has other layers than the {len(read.experts.loads):,} of the experts")
    claimed = read.extra.get("bound")
    if bound is not None and isinstance(claimed, int | float) and claimed > float(bound) * (1 + CLAIM_TOLERANCE):
        missed.append(f"the file claims the bound {claimed!r}, its certificate proves {float(bound)!r}")
    return missed


def _verdict(
    file: Path, read: PlacementFile, violations: list[str], loads: list[Fraction], bound: Fraction | None
) -> dict[str, Any]:
    load = sum(loads, Fraction(0)) if loads else None
    return {
        "file": str(file),
        "instance": read.name,
        "instance_sha256": read.instance_sha256,
        "answer": "Placement",
        "verified": not violations,
        "violations": violations,
        "layer_loads": list(map(float, loads)),
        "load": None if load is None else float(load),
        "bound": None if bound is None else float(bound),
        "exact": {"load": load and str(load), "bound": bound and str(bound)},
    }


def _lines(
    file: Path, read: PlacementFile, violations: list[str], loads: list[Fraction], bound: Fraction | None
) -> Iterator[str]:
    yield from violations[:20]
    experts = read.experts
    layers = "" if len(experts.loads) == 1 else f", {len(experts.loads):,} layers"
    what = f"a placement of {experts.count:,} experts on {experts.gpus:,} GPUs{layers}"
    if violations:
        told = "1 violation" if len(violations) == 1 else f"{len(violations):,} violations"
        yield f"{file}: WRONG, {told} in {what}"
        return
    load = sum(loads, Fraction(0))
    yield f"{file}: right, {what}"
    yield f"largest load of a GPU{', added up over layers' if layers else ''}: {float(load):.9g}, exactly {load}"
    if bound is not None:
        gap = "optimal" if bound == load else f"gap {float((load - bound) / load):.3%}"
        yield f"its certificate proves {float(bound):.9g}: {gap}"
