"""What the verifier says about an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .display import Shown


@dataclass(frozen=True, repr=False)
class Verdict(Shown):
    """The verifier's findings; made in ``schedules``, never by the method.

    Parameters
    ----------
    violations : tuple of str
        What is wrong with the answer or its certificate, the first findings; empty if nothing is.
    objective : float or None
        The objective recomputed from the answer alone.
    bound : float or None
        The bound recomputed from the certificate; None if there is none that can be recomputed.
    metrics : mapping of str to object
        Numbers of the answer, documented on the method's page.
    """

    violations: tuple[str, ...] = ()
    objective: float | None = None
    bound: float | None = None
    metrics: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.violations

    def _facts(self) -> Mapping[str, object]:
        return {"ok": self.ok, "objective": self.objective, "bound": self.bound, "violations": self.violations or None}
