"""Combinatorial engines: arrays and the dataclasses of :mod:`cwb.core` in, arrays out.

No Pyomo, no solver, no options.
"""
