"""Verdict of the verifier on an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .display import DisplayMixin


@dataclass(frozen=True, repr=False)
class Verdict(DisplayMixin):
    """Findings of the verifier; created in ``schedules``, never by the method."""

    violations: tuple[str, ...] = ()  #: The first errors of the answer or its certificate; empty if there are none.
    objective: float | None = None  #: The objective recomputed from the answer alone.
    bound: float | None = None  #: The bound recomputed from the certificate; None if this is not possible.
    metrics: Mapping[str, Any] = field(default_factory=dict)  #: Numbers of the answer, documented on the method's page.

    @property
    def ok(self) -> bool:
        """True if there are no violations."""
        return not self.violations

    def _facts(self) -> Mapping[str, object]:
        return {"ok": self.ok, "objective": self.objective, "bound": self.bound, "violations": self.violations or None}
