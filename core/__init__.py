"""The vocabulary of cwb: what an instance, an answer, a bound, a method, a solver and a record are.

No Pyomo, no solver and no file format lives here, and nothing here imports another package of cwb.
"""
