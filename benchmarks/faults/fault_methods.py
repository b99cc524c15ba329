"""Methods that do what no method should, for the fault drill and the tests of what stops them.

They are found where this folder is on PYTHONPATH, also by the processes of runs: see ``sitecustomize.py``.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from cwb.core.budget import Incumbent
from cwb.core.method import Method
from cwb.core.outcome import Outcome
from cwb.harness import registry
from cwb.heuristics.textbook.rings import RING

Run = Callable[[Any, Any, Any, Any], Outcome]


def _hang(instance: Any, solver: Any, budget: Any, options: Any) -> Outcome:
    """Report an answer, then wait in C and let no other thread of Python run."""
    outcome = RING.run(instance, solver, budget, options)
    budget.tell(Incumbent(1.0, 0.5))
    budget.tell(Incumbent(outcome.objective, 0.0, answer=lambda: outcome.answer))
    ctypes.PyDLL(None).sleep(100_000)
    return outcome


def _deaf(instance: Any, solver: Any, budget: Any, options: Any) -> Outcome:
    """Report numbers alone, and never look at the clock."""
    budget.tell(Incumbent(2.0, 1.0))
    budget.tell(Incumbent(1.5, float("-inf"), of_solver=True))
    while True:
        time.sleep(1)


def _eat(instance: Any, solver: Any, budget: Any, options: Any) -> Outcome:
    """Take memory without end."""
    held = []
    while True:
        held.append(np.ones(2**22))
        time.sleep(0.01)


def _crash(instance: Any, solver: Any, budget: Any, options: Any) -> Outcome:
    """Die as a solver with a wild pointer does."""
    budget.tell(Incumbent(3.0))
    os.kill(os.getpid(), signal.SIGSEGV)
    raise AssertionError


def _slow(instance: Any, solver: Any, budget: Any, options: Any) -> Outcome:
    """Answer, but not at once."""
    time.sleep(0.5)
    return RING.run(instance, solver, budget, options)


def _method(name: str, run: Run) -> Method:
    return replace(RING, name=name, solve=run)


METHODS = {
    name: _method(name, run)
    for name, run in {
        "fault-hang": _hang,
        "fault-deaf": _deaf,
        "fault-eat": _eat,
        "fault-crash": _crash,
        "fault-slow": _slow,
    }.items()
}


def install() -> None:
    """Add the methods to the registry of this process."""
    if "fault-hang" in registry.METHODS:
        return
    registry.METHODS = {**registry.METHODS, **dict.fromkeys(METHODS, "")}
    get = registry.get
    registry.get = lambda name: METHODS[name] if name in METHODS else get(name)
