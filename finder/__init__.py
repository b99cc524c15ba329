"""The topology finder: the networks of N nodes with d links each that are best for gathering, reducing or both.

Source: Zhao et al., "Efficient Direct-Connect Topologies for Collective Communications", sections 5 and 6.2. Small
networks with good schedules are expanded, schedule and all, to larger ones; what that takes is known by formula, so
that all ways to reach a size are tried without building any network. Those of them that none beats in both latency and
bandwidth by these formulas are built, and valued again: a breadth-first all-gather of the network itself may take less.
They are the best of the families searched; other networks may be better. Offsets of circulants, two-way and directed,
are searched one set after the other.

======  ===============================================================  ===============
symbol  meaning                                                          unit
======  ===============================================================  ===============
N       number of nodes
d       ports of a node in each direction, its degree
M       size of the collective                                           B
B       bandwidth of all ports of a node together                        B/s
alpha   latency of a step                                                s
T_L     steps of an all-gather                                           alpha
T_B     what it takes on an infinitely short network                     M/B
f       rate of every pair in an all-to-all                              links
======  ===============================================================  ===============

==============  ===================================================================================
``candidates``  networks by their values: the bases of tables 8 and 9, and formulas of the expansions
``finder``      closure of the bases under the expansions, Pareto frontier, best choice for a job
``circulants``  few steps at the least bandwidth time for every size: offsets by search
``gather``      all-gathers as columns
``expansions``  from an all-gather to one on a larger network
``build``       from a candidate to its network and schedule
==============  ===================================================================================
"""
