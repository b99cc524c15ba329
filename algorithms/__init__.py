"""Combinatorial engines on arrays and the dataclasses of :mod:`cwb.core`.

They use no Pyomo, no solver and no options.
"""
