"""Symmetries of large networks: translations of the ranks, and their orbits of links."""
