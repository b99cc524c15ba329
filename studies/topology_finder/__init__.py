"""The topology finder: the best networks of N nodes with d links each for gathering, reducing or both.

Source: Zhao et al., "Efficient Direct-Connect Topologies for Collective Communications", sections 5 and 6.2. Small
networks with good schedules are expanded, with their schedules, to larger ones. Formulas give the values of the
results, so all ways to reach a size are tried without building any network. The networks on the Pareto frontier of
latency and bandwidth by these formulas are built and evaluated again: their own breadth-first all-gather may be faster.
They are the best of the families searched; other networks may be better. Offsets of circulants, two-way and directed,
are found by search.

======  ===============================================================  ===============
symbol  meaning                                                          unit
======  ===============================================================  ===============
N       number of nodes
d       ports of a node in each direction, its degree
M       size of the collective                                           B
B       bandwidth of all ports of a node together                        B/s
alpha   latency of a step                                                s
T_L     steps of an all-gather                                           alpha
T_B     its time without latency                                         M/B
f       rate of every pair in an all-to-all                              links
======  ===============================================================  ===============
"""
