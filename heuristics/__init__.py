"""Methods that answer without a proof of their own: textbook algorithms, synthesizers, baselines."""

from functools import partial

from ..core.method import Kind, Method

heuristic = partial(Method, kind=Kind.HEURISTIC, needs_solver=False)  #: Declares a method that calls no solver.
