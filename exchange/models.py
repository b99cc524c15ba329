"""Models as MPS and LP files, for other solvers."""

from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

FORMATS = (".lp", ".mps")  #: Endings of the files that can be written.


def write_model(model: Any, suffix: str, *, with_names: bool = False) -> bytes:
    """Write a Pyomo model with its own names, or x1, x2 and so on; without an objective it minimizes zero."""
    import pyomo.environ as pyo
    from pyomo.common.log import LoggingIntercept

    objectives = list(model.component_data_objects(pyo.Objective, active=True))
    if not objectives:
        model.add_component("feasible", pyo.Objective(expr=0.0))
    try:
        # The writers would warn of a constant objective.
        with TemporaryDirectory(prefix="cwb-") as folder, LoggingIntercept(StringIO(), "pyomo"):
            path = Path(folder) / f"model{suffix}"
            model.write(str(path), io_options={"symbolic_solver_labels": with_names})
            return path.read_bytes()
    finally:
        if not objectives:
            model.del_component("feasible")
