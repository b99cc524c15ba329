"""Directed networks: maximum flows, minimum cuts, ratio cuts, shortest paths, colour refinement."""
