"""Execution of methods. Only this package reads a clock, which it passes to methods and solvers."""

from .run import FinishedRun, Request, run, run_one

__all__ = ["FinishedRun", "Request", "run", "run_one"]
