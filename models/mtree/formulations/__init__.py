"""Pyomo models of MTree: trees of a pool, the dual of their rates, the cheapest low tree, and trees by patterns."""
