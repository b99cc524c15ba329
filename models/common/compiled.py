"""Compiled functions for 64-bit integers, and the same source interpreted where these might overflow."""

from __future__ import annotations

from types import FunctionType, ModuleType
from typing import Any

import numpy as np

_INTERPRETED: dict[str, dict[str, Any]] = {}


def functions(module: ModuleType, dtype: np.dtype[Any]) -> dict[str, Any]:
    """Give the functions of a module of compiled ones, by name.

    Parameters
    ----------
    module : module
        Its functions are compiled for numbers.
    dtype : numpy.dtype
        Of the amounts that they will be given: of objects, Python's unbounded integers, the functions are as Python runs them, each calling
        the others so.
    """
    if dtype.kind != "O":
        return vars(module)
    if module.__name__ not in _INTERPRETED:
        space = dict(vars(module))
        for name, function in vars(module).items():
            if hasattr(function, "py_func"):
                space[name] = FunctionType(function.py_func.__code__, space)
        _INTERPRETED[module.__name__] = space
    return _INTERPRETED[module.__name__]
