"""Detection of answers better than their own certificates prove possible."""

from __future__ import annotations

from fractions import Fraction

#: Relative difference up to which a bound that a solver attests may pass an answer: solvers keep to constraints and to
#: their own optimum no better than this.
ATTESTED_TOLERANCE = 1e-6


#: Relative rounding errors of a simulated time.
SIMULATED = 1e-9


def margin_of(reached: Fraction | float) -> float:
    """Return the relative margin of a time, 0 if it is exact."""
    return 0.0 if isinstance(reached, Fraction) else SIMULATED


def contradictions(
    reached: Fraction | float, proved: Fraction | float | None, margin: float = 0.0, unit: str = "s"
) -> list[str]:
    """Report a contradiction between an answer and its certificate; empty if there is none.

    Parameters
    ----------
    reached : Fraction or float
        Time of the answer, measured by the verifier.
    proved : Fraction or float or None
        Lower bound that the certificate proves.
    margin : float
        Relative rounding error of the two numbers; 0 if both are exact, or exact and rounded to the nearest float.
    """
    if proved is None or reached >= proved * (1 - Fraction(margin)):
        return []
    return [f"contradiction: it takes {float(reached)!r} {unit}, but its certificate proves {float(proved)!r} {unit}"]
