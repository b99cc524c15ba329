"""What is asked of a run, and who observes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.budget import Incumbent, Progress, silent, unheard, unkept
from ..core.instance import Instance

DEFAULT_SOLVER = "highs"

#: The verifier may take as long as the run, and so many seconds at least.
LEAST_VERIFIER_S = 60.0


@dataclass(frozen=True)
class Request:
    """What is to be run.

    Parameters
    ----------
    model : str
        Name of the method.
    solver : str
        Name of the solver; not used by methods that need none.
    options : mapping of str to object
        The method's options as the user wrote them.
    seed, threads : int
        Seed of everything random; threads that a solver may use.
    time_limit_s, gap : float or None
        Limits of the run; None is the method's own.
    log_file : str or None
        Where the solver writes its log.
    solver_options : mapping of str to object
        Options of the solver by its own names.
    pool : int
        How many different solutions are wanted of a declared model, the best first.
    """

    model: str
    solver: str = DEFAULT_SOLVER
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    threads: int = 1
    time_limit_s: float | None = None
    gap: float | None = None
    log_file: str | None = None
    solver_options: Mapping[str, Any] = field(default_factory=dict)
    pool: int = 1

    @property
    def verifier_limit_s(self) -> float | None:
        """Seconds that the verifier may take, which do not count toward the limit of the run; None without a limit."""
        return None if self.time_limit_s is None else max(self.time_limit_s, LEAST_VERIFIER_S)

    def limits(self) -> dict[str, float]:
        """Limits that are set, as records say them."""
        asked = {"time_limit_s": self.time_limit_s, "gap": self.gap}
        return {name: value for name, value in asked.items() if value is not None}


@dataclass(frozen=True)
class Listener:
    """Observers of a run while it goes on.

    Parameters
    ----------
    progress : callable
        Shows lines.
    tell : callable
        Takes in every better :class:`~cwb.core.budget.Incumbent`.
    posed : callable
        Called with the problem as the method has it.
    handed : callable
        Called before every solve with a function that gives the arrays of the model.
    answered : callable
        Called when the method is done and verification begins.
    compiling : callable
        Called with True when loops begin to be compiled, with False when they are.
    """

    progress: Progress = silent
    tell: Callable[[Incumbent], None] = unheard
    posed: Callable[[Instance], None] = lambda _: None
    handed: Callable[[Callable[[], Any]], None] = unkept
    answered: Callable[[], None] = lambda: None
    compiling: Callable[[bool], None] = lambda _: None


def plain_option(value: Any) -> Any:
    """An option as plain data for a record."""
    return value if isinstance(value, str | int | float | bool | list | dict | None) else str(value)
