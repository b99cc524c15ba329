"""An answer that is better than what its own certificate proves: one of the two is wrong."""

from __future__ import annotations

from fractions import Fraction

#: Relative difference up to which a bound that a solver attests may pass an answer: solvers keep to constraints and to
#: their own optimum no better than this.
ATTESTED_TOLERANCE = 1e-6


#: Relative rounding errors of a simulated time.
SIMULATED = 1e-9


def margin_of(reached: Fraction | float) -> float:
    """Margin of a time: none where it is exact."""
    return 0.0 if isinstance(reached, Fraction) else SIMULATED


def contradictions(
    reached: Fraction | float, proved: Fraction | float | None, margin: float = 0.0, unit: str = "s"
) -> list[str]:
    """State that an answer contradicts its certificate; nothing if it does not.

    Parameters
    ----------
    reached : Fraction or float
        What the verifier finds of the answer: a time.
    proved : Fraction or float or None
        What the certificate proves to be the least.
    margin : float
        Relative rounding errors of the two numbers: 0 where both are exact, or are exact numbers rounded to the nearest
        float.
    unit : str
        Of both.
    """
    if proved is None or reached >= proved * (1 - Fraction(margin)):
        return []
    return [f"contradiction: it takes {float(reached)!r} {unit}, but its certificate proves {float(proved)!r} {unit}"]
