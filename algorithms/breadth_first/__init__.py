"""Breadth-first broadcasts from all nodes at once: how long they take, exactly, and who sends which part of a shard.

In step t, a node u receives the shards of all nodes v at distance t. Those that can come over links of a set W alone
must share them, so that the busiest link into u carries at least ``|{v: f(v) in W}| / |W|`` shards, where f(v) are the
links into u from nodes at distance t - 1 from v. By the theorem of maximum flow and minimum cut the largest of these
quotients is attained, and in whole pieces of a shard if it is a whole number of them (Zhao et al., "Efficient
Direct-Connect Topologies for Collective Communications", theorem 19).

=============  ====================================================================================
``graph``      links by the node that they enter, translations, distances
``broadcast``  the load of every step, T_L and T_B, and who sends which pieces of whose shard
``kernels``    distances, classes of shards, and theorem 19 for every node and step, compiled
=============  ====================================================================================
"""
