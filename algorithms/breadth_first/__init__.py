"""Exact times and schedules of simultaneous breadth-first broadcasts from all nodes.

In step t, a node u receives the shards of all nodes v at distance t. Shards that can come only over links of a set
W share them, so the busiest link into u carries at least ``|{v: f(v) in W}| / |W|`` shards, where f(v) are the
links into u from nodes at distance t - 1 from v. By max-flow min-cut the largest of these quotients is attained,
and by whole pieces of a shard if it is a whole number of them (Zhao et al., "Efficient Direct-Connect Topologies
for Collective Communications", theorem 19).
"""
