"""TE-CCL: collective communication as a flow problem on a grid of epochs.

Paper: Liu et al., "Rethinking Machine Learning Collective Communication as a Multi-Commodity Flow Problem", SIGCOMM
2024. Time is cut into epochs; in each of them, every link carries some chunks, ranks keep and copy what they have
received, switches pass on at once what reaches them. Which chunk goes where in which epoch is to be chosen so that
everybody has what it needs as early as possible.

======  ==================================================================  ======
symbol  meaning                                                             unit
======  ==================================================================  ======
N, S    nodes, and those of them that are switches                          1
E       links                                                               1
D       who needs which chunk: 1 or 0                                       1
tau     length of an epoch                                                  s
K       number of epochs                                                    1
T_ij    capacity of link (i, j)                                             1/s
alpha   latency of a link                                                   s
delta   epochs that a chunk is on its way, 1 or more but for the last hop   1
        from a switch under ``te-ccl``
kappa   epochs that a link needs for one chunk                              1
F       chunks that start over a link in an epoch                           1
B       chunks that a node holds at the start of an epoch                   1
R       chunks that a node has received by the end of an epoch              1
======  ==================================================================  ======

:mod:`.problem` turns an instance into whole numbers once; every method of the family starts from there, and the
verifier counts on its own (:mod:`cwb.schedules.verify.grid`). The declared models are in :mod:`.formulations`, a file
each: ``milp`` (the general form), ``lp``, ``astar`` (a round of the general form) and ``all_to_all``; what a variable
may be indexed by is in :mod:`.index_sets`. :mod:`.method` has the methods with their options, and a ``solve`` module
each says how it is solved: ``teccl`` by :mod:`.solve`, which proves and searches first.
"""
