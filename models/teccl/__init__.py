"""TE-CCL: collective communication as a flow problem on a grid of epochs.

Paper: Liu et al., "Rethinking Machine Learning Collective Communication as a Multi-Commodity Flow Problem", SIGCOMM
2024. Time is cut into epochs. In every epoch each link carries some chunks; ranks store and copy what they have
received, and switches forward at once what reaches them. A schedule assigns chunks to links and epochs so that
every destination has its chunks as early as possible.

======  ==================================================================  ======
symbol  meaning                                                             unit
======  ==================================================================  ======
N, S    nodes, and those of them that are switches                          1
E       links                                                               1
D       demand: 1 if a node needs a chunk, else 0                           1
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

:mod:`.problem` turns an instance into integers once, for every method of the family; the verifier counts on its
own (:mod:`cwb.schedules.verify.grid`). The declared models are in :mod:`.formulations`, one file each: ``milp``
(the general form), ``lp``, ``astar`` (a round of the general form) and ``all_to_all``, on the index sets of
:mod:`.index_sets`. :mod:`.method` has the methods with their options; every method has a ``solve`` module, of which
:mod:`.model_search` has what they share. ``teccl`` (:mod:`.solve`) proves bounds and searches before it builds a model.
"""
