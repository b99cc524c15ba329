"""Instances: the one loader, generators of named networks, importers, and the instances that come with cwb."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from ..core.instance import Instance


def load(spec: str | Path) -> Instance:
    """Load an instance; see :func:`cwb.instances.loader.load`."""
    from .loader import load as load_instance

    return load_instance(spec)
