"""Fixtures that make small LIBRA instances."""

from __future__ import annotations

import libra_instances
import pytest


@pytest.fixture(scope="session")
def two_dimensional() -> object:
    """The small instance's maker."""
    return libra_instances.two_dimensional


@pytest.fixture(scope="session")
def unequal_traffic() -> object:
    """The maker of an instance with a message that a computation hides."""
    return libra_instances.unequal_traffic


@pytest.fixture(scope="session")
def random_instances() -> object:
    """The random instances' strategy."""
    return libra_instances.random_instances
