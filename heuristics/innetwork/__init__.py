"""All-reduce on trees over switches that add and copy, as SHARP and NVLink SHARP offer it.

R. Graham et al., "Scalable Hierarchical Aggregation Protocol (SHARP)", COM-HPC 2016, add up and copy along trees whose
inner nodes are switches. This family splits the data evenly over many such trees, so that all planes, rails and NICs
of a cluster have a part. How trees are chosen is its own: each is a cheapest one where links are dear that earlier
trees have used.

Problem. Given a network whose links have links back, some of whose switches add and copy, find trees that join all
ranks over ranks and such switches, and share the data evenly among them. A tree loads both directions of each of its
links once, whichever rank is its root; the time is that of the most loaded link.

======  ==========================================================  ======
symbol  meaning                                                     unit
======  ==========================================================  ======
S       size of the all-reduce                                      B
T       number of trees                                             1
b_e     bandwidth of link e                                         B/s
u_e     trees on link e so far, over its bandwidth                  s/B
======  ==========================================================  ======

=============  ====================================================
``edges``      which nodes of trees are joined, and by which links
``trees``      the trees, one after the other
``method``     the method and its options
=============  ====================================================
"""
