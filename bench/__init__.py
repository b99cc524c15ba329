"""Runs methods. The only room with a clock: methods and solvers are handed it."""

from __future__ import annotations

from .run import Request, run_one

__all__ = ["Request", "run_one"]
