"""A run imports what it uses."""

from __future__ import annotations

import subprocess
import sys

import pytest

RUN = """
import sys, cwb
cwb.solve("4d", "libra")
print("scipy.stats" in sys.modules)
import pyomo.common.dependencies as dependencies
print(dependencies.scipy.stats.__name__)
"""


@pytest.mark.slow
def test_scipy_is_imported_without_its_statistics() -> None:
    """A method that declares a Pyomo model is run without scipy.stats, which Pyomo still finds when it is asked for."""
    shown = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["False", "scipy.stats"]
