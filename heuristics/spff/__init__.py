"""Shortest path first: chunks follow shortest paths, and those nearest to their goal go first.

TE-CCL (section 4.2) compares its rounds with such a schedule of an earlier work and gives no more than the name. This
is a reading of it: time is cut into rounds; in each one every link carries as many chunks as its bandwidth is larger
than the smallest; a chunk follows a tree of shortest paths from its source, whose length counts latency and the
chunk's time on the link; of the chunks that wait at a link, the one with the shortest way left goes first.

======  ================================================  ====
symbol  meaning                                           unit
======  ================================================  ====
d(e)    length of an edge: latency + chunk / bandwidth    s
b_e     chunks that an edge carries in a round            1
======  ================================================  ====
"""
