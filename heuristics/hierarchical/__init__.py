"""``hierarchical``: a collective composed of collectives of every level of a machine, such as boxes and rails."""
