"""``cwb check`` of a placement of experts."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import ExitStatus, InputError
from .streams import echo

if TYPE_CHECKING:
    from ..schedules.placement_file import PlacementFile

#: Relative difference up to which a claimed bound is the one that is proved.
CLAIM_TOLERANCE = 1e-9


def check_placement(file: Path, instance: str | None, *, as_json: bool) -> int:
    """Verify a placement and its certificate, print what is found, and give the exit status."""
    from ..schedules.placement import bound_of, loads_of, violations_of
    from ..schedules.placement_file import read_placement

    read = read_placement(file)
    if instance is not None:
        _same_experts(file, read, instance)
    violations = violations_of(read.experts, read.answer)
    loads = [] if violations else loads_of(read.experts, read.answer)
    bound = bound_of(read.experts, read.certificate)
    violations += _missed(read, sum(loads) if loads else None, bound)
    if as_json:
        echo(json.dumps(_verdict(file, read, violations, loads, bound), allow_nan=False))
    else:
        _show(file, read, violations, loads, bound)
    return int(ExitStatus.VERIFICATION_FAILED if violations else ExitStatus.OK)


def _same_experts(file: Path, read: PlacementFile, spec: str) -> None:
    """Refuse a placement of other experts than those of the instance that the user names."""
    from ..instances import load

    if load(spec).experts != read.experts:
        raise InputError(f"is of other experts than those of {spec}", source=str(file), place="experts")


def _missed(read: PlacementFile, load: Fraction | int | None, bound: Fraction | None) -> list[str]:
    """Where the file claims more than it proves, or the placement contradicts what is proved."""
    from ..core.bounds import LeastLoads
    from ..schedules.contradiction import contradictions

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


def _show(
    file: Path, read: PlacementFile, violations: list[str], loads: list[Fraction], bound: Fraction | None
) -> None:
    for line in violations[:20]:
        echo(line)
    experts = read.experts
    layers = "" if len(experts.loads) == 1 else f", {len(experts.loads):,} layers"
    what = f"a placement of {experts.count:,} experts on {experts.gpus:,} GPUs{layers}"
    if violations:
        told = "1 violation" if len(violations) == 1 else f"{len(violations):,} violations"
        echo(f"{file}: WRONG, {told} in {what}")
        return
    load = sum(loads, Fraction(0))
    echo(f"{file}: right, {what}")
    echo(f"largest load of a GPU{', added up over layers' if layers else ''}: {float(load):.9g}, exactly {load}")
    if bound is not None:
        gap = "optimal" if bound == load else f"gap {float((load - bound) / load):.3%}"
        echo(f"its certificate proves {float(bound):.9g}: {gap}")
