"""cwb: an optimization-modelling workbench for collective communication.

The verbs of the command line for programs and notebooks: :func:`load` an instance, :func:`solve` it with a method,
:func:`compare` methods by a suite, :func:`verify` and :func:`simulate` an answer; and networks, schedules and records
as graphs of networkx and tables of pandas. Importing ``cwb`` imports no solver, no modelling library and none of these.
"""

import re
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from . import models
from .core import collective

#: Modules of what is imported when it is asked for, by name: the stub of this module lists them for type checkers.
_PLACES = {
    name: module
    for module, name in re.findall(
        r"^from (\.\w\S*) import (\w+)", Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"), re.MULTILINE
    )
}

__all__ = [*sorted({*_PLACES, "__version__", "models"})]  # noqa: PLE0604 (names of a stub are strings)


def __getattr__(name: str) -> Any:
    """Import an attribute of the package on first access."""
    if name == "__version__":
        from .harness.environment import cwb_version

        return cwb_version()
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    attribute = globals()[name] = getattr(import_module(_PLACES[name], __name__), name)
    return attribute


collective.LOADERS.append(lambda: import_module(".harness.registry", __name__).foreign_entries())


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Models(ModuleType):
    """The package of the exact methods, which called lists all methods.

    A function ``models`` in place of the package would break ``import cwb.models.teccl as teccl``, which looks the
    package up here. A ``__getattr__`` of this module is not asked, since importing a package binds its name. A class of
    the module is how Python's reference, "Customizing module attribute access", has it.
    """

    def __call__(self, spec: Any = None, collective: str | None = None) -> Any:
        from .api.tables import models as listed

        return listed(spec, collective)


setattr(models, "__class__", _Models)  # noqa: B010 (type checkers know no class of a module)
