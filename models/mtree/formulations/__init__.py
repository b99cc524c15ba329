"""Pyomo models of MTree: trees of a pool, their dual, the cheapest low tree, and trees by patterns."""
