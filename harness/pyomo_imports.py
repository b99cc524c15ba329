"""Pyomo's imports that this package never uses."""

from __future__ import annotations

from contextlib import suppress


def skip_scipy_statistics() -> None:
    """Keep Pyomo from importing scipy.stats along with scipy, which takes longer than a small run.

    scipy imports its submodules itself on demand. If a version of Pyomo has no such callback, nothing changes.
    """
    with suppress(ImportError, AttributeError):
        from pyomo.common import dependencies

        dependencies.scipy_available._callback = lambda module, available: None
