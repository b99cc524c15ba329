"""cwb: an optimization-modelling workbench for collective communication.

The verbs of the command line for programs and notebooks: :func:`load` an instance, :func:`solve` it with a method,
:func:`compare` methods by a suite, :func:`verify` and :func:`simulate` an answer; and networks, schedules and records
as graphs of networkx and tables of pandas. Importing ``cwb`` imports no solver, no modelling library and none of these.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from . import models

if TYPE_CHECKING:
    from .api.answers import simulate, verify
    from .api.inputs import load
    from .api.runs import Run, compare, explain, formulation, register, sensitivity, solve, train
    from .api.tables import links, records, sends, to_networkx
    from .core.formulation import Formulation
    from .core.method import Method

    __version__: str

__all__ = [
    "Formulation",
    "Method",
    "Run",
    "__version__",
    "compare",
    "explain",
    "formulation",
    "links",
    "load",
    "models",
    "records",
    "register",
    "sends",
    "sensitivity",
    "simulate",
    "solve",
    "to_networkx",
    "train",
    "verify",
]

#: Modules of what is imported when it is asked for.
_PLACES = {
    "load": "api.inputs",
    **dict.fromkeys(("simulate", "verify"), "api.answers"),
    **dict.fromkeys(("Run", "compare", "explain", "formulation", "register"), "api.runs"),
    **dict.fromkeys(("sensitivity", "solve", "train"), "api.runs"),
    **dict.fromkeys(("links", "records", "sends", "to_networkx"), "api.tables"),
    "Formulation": "core.formulation",
    "Method": "core.method",
}


def __getattr__(name: str) -> Any:
    """What the package offers, imported when it is asked for."""
    if name == "__version__":
        from .harness.environment import cwb_version

        return cwb_version()
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f".{_PLACES[name]}", __name__), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Models(ModuleType):
    """The package of the exact methods, which called lists all methods."""

    def __call__(self, spec: Any = None, collective: str | None = None) -> Any:
        from .api.tables import models as listed

        return listed(spec, collective)


setattr(models, "__class__", _Models)  # noqa: B010 (type checkers know no class of a module)
