"""What Pyomo imports, and this package never uses."""

from __future__ import annotations

from contextlib import suppress


def leave_out_statistics() -> None:
    """Keep Pyomo from importing scipy.stats and more whenever scipy is imported, which takes longer than a small run.

    scipy imports them itself if somebody asks for them. Where a version of Pyomo has no such callback, nothing changes.
    """
    with suppress(ImportError, AttributeError):
        from pyomo.common import dependencies

        dependencies.scipy_available._callback = lambda module, available: None
