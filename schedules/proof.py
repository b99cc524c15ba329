"""Bounds and times that a schedule file proves by itself, and its false claims."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ..core.bounds import DistanceCertificate, TreePrices
from ..core.errors import InputError
from ..core.orbits import TreeOrbits
from ..core.trees import TreePacking
from .collective import bound_of, exact_bound, objective_of
from .contradiction import ATTESTED_TOLERANCE, contradictions, margin_of
from .files import ScheduleFile

#: Relative difference up to which a bound that a file claims is the one that its certificate proves.
CLAIM_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Proof:
    """Exact values that the file itself proves.

    Parameters
    ----------
    time_s : Fraction or None
        Seconds of the most loaded link of trees. None for other schedules, whose time is simulated.
    """

    bound_s: Fraction | None = None
    time_s: Fraction | None = None

    @property
    def gap(self) -> Fraction | None:
        """Gap between time and bound, relative to the time."""
        if self.bound_s is None or not self.time_s:
            return None
        return (self.time_s - self.bound_s) / self.time_s


def proof_of(read: ScheduleFile, *, right: bool, completion_s: float | None) -> tuple[Proof, list[str]]:
    """Recompute bound and time of a file.

    Parameters
    ----------
    right : bool
        Whether its answer is valid and may be measured.

    Returns
    -------
    Proof
        Recomputed bound and time.
    list of str
        Claims beyond the proof, and contradictions between answer and bound.
    """
    instance, answer, certificate = read.instance, read.answer, read.certificate
    trees = isinstance(answer, TreePacking | TreeOrbits)
    time = objective_of(instance, answer, completion_s) if right else None
    flow_s = time if isinstance(time, Fraction) and trees else None
    beside = trees and isinstance(certificate, DistanceCertificate)  # reported, but not a bound on the flow time
    try:
        if beside:
            bound = exact_bound(instance, certificate)
        else:  # prices of trees speak of trees that are right
            bound = (
                bound_of(instance, answer, certificate) if right or not isinstance(certificate, TreePrices) else None
            )
    except InputError as error:
        return Proof(None, flow_s), [f"certificate: {error}"]
    claimed = read.extra.get("bound_s")
    missed = [] if time is None or beside else contradictions(time, bound, margin_of(time))
    if bound is not None and claimed is not None and claimed > float(bound) * (1 + CLAIM_TOLERANCE):
        missed.append(f"certificate: claimed bound {claimed!r} s, it proves {float(bound)!r} s")
    elif bound is None and claimed is not None and time is not None and claimed > time * (1 + ATTESTED_TOLERANCE):
        missed.append(f"contradiction: attested bound {claimed!r} s, but the answer takes {float(time)!r} s")
    # The time of trees leaves latency out, so that a distance says nothing about it.
    return Proof(bound, None if beside else flow_s), missed
