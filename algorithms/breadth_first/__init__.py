"""Exact times and schedules of simultaneous breadth-first broadcasts from all nodes (docs/methods/bfb.md).

Source: Zhao et al., "Efficient Direct-Connect Topologies for Collective Communications", theorem 19.
"""
