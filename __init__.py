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
from .core import collective

if TYPE_CHECKING:
    from .api.plots import plot, view
    from .api.runs import Run, compare, explain, formulation, register, sensitivity, solve, train
    from .api.schedules import repair, run, simulate, verify
    from .api.tables import links, records, sends, to_networkx
    from .core.collective import Collective
    from .core.formulation import Formulation
    from .core.method import Method
    from .studies.advice import advise
    from .studies.calibration import calibrate
    from .studies.check import check
    from .studies.cite import cite
    from .studies.exports import (
        export_astra,
        export_chakra,
        export_goal,
        export_htsim,
        export_instances,
        export_msccl,
        export_mscclpp,
        export_schema,
    )
    from .studies.find_topology import find_topology
    from .studies.imports import (
        import_astra,
        import_chakra,
        import_csv,
        import_libra,
        import_msccl,
        import_nccl,
        import_nvidia_smi,
        import_rocm_smi,
        import_taccl,
        import_teccl,
        import_wan,
    )
    from .studies.inputs import load
    from .studies.polish import polish
    from .studies.predict import predict
    from .studies.record_files import report, table
    from .studies.reproduce import reproduce
    from .studies.resilience import resilience
    from .studies.selection import select

    __version__: str

__all__ = [
    "Collective",
    "Formulation",
    "Method",
    "Run",
    "__version__",
    "advise",
    "calibrate",
    "check",
    "cite",
    "compare",
    "explain",
    "export_astra",
    "export_chakra",
    "export_goal",
    "export_htsim",
    "export_instances",
    "export_msccl",
    "export_mscclpp",
    "export_schema",
    "find_topology",
    "formulation",
    "import_astra",
    "import_chakra",
    "import_csv",
    "import_libra",
    "import_msccl",
    "import_nccl",
    "import_nvidia_smi",
    "import_rocm_smi",
    "import_taccl",
    "import_teccl",
    "import_wan",
    "links",
    "load",
    "models",
    "plot",
    "polish",
    "predict",
    "records",
    "register",
    "repair",
    "report",
    "reproduce",
    "resilience",
    "run",
    "select",
    "sends",
    "sensitivity",
    "simulate",
    "solve",
    "table",
    "to_networkx",
    "train",
    "verify",
    "view",
]

#: Modules of what is imported when it is asked for.
_PLACES = {
    name: module
    for module, names in {
        "api.plots": "plot view",
        "api.runs": "Run compare explain formulation register sensitivity solve train",
        "api.schedules": "repair run simulate verify",
        "api.tables": "links records sends to_networkx",
        "core.collective": "Collective",
        "core.formulation": "Formulation",
        "core.method": "Method",
        "studies.advice": "advise",
        "studies.calibration": "calibrate",
        "studies.check": "check",
        "studies.cite": "cite",
        "studies.exports": "export_astra export_chakra export_goal export_htsim export_instances export_msccl "
        "export_mscclpp export_schema",
        "studies.find_topology": "find_topology",
        "studies.imports": "import_astra import_chakra import_csv import_libra import_msccl import_nccl "
        "import_nvidia_smi import_rocm_smi import_taccl import_teccl import_wan",
        "studies.inputs": "load",
        "studies.polish": "polish",
        "studies.predict": "predict",
        "studies.record_files": "report table",
        "studies.reproduce": "reproduce",
        "studies.resilience": "resilience",
        "studies.selection": "select",
    }.items()
    for name in names.split()
}


def __getattr__(name: str) -> Any:
    """Import an attribute of the package on first access."""
    if name == "__version__":
        from .harness.environment import cwb_version

        return cwb_version()
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f".{_PLACES[name]}", __name__), name)
    return found


def _load_collectives() -> None:
    import_module(".harness.registry", __name__).load_collectives()


collective.load_collectives_by(_load_collectives)


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
