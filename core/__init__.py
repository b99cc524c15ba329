"""Basic types of cwb: instances, answers, bounds, methods, solvers and records.

Nothing here imports Pyomo, a solver or another package of cwb, or knows a file format.
"""
