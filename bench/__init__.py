"""Runs methods. The only room with a clock: methods and solvers are handed it."""

from __future__ import annotations

from .run import Request, Run, run, run_one

__all__ = ["Request", "Run", "run", "run_one"]
