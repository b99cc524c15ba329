"""Compiled functions for 64-bit integers, and the same source interpreted where these might overflow."""

from __future__ import annotations

from functools import cache
from types import FunctionType
from typing import Any

import numpy as np


@cache
def functions(module: Any, dtype: np.dtype[Any]) -> dict[str, Any]:
    """Give the functions of a module of compiled ones, by name.

    Parameters
    ----------
    module : module
        Its functions are compiled for numbers.
    dtype : numpy.dtype
        Of the amounts that they will be given: of objects, Python's unbounded integers, the functions are as Python runs them, each calling
        the others so.
    """
    space = dict(vars(module))
    if dtype.kind == "O":
        for name, function in vars(module).items():
            if hasattr(function, "py_func"):
                space[name] = FunctionType(function.py_func.__code__, space)
    return space
