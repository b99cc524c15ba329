"""ForestColl: forests of weighted spanning trees that no schedule can beat in throughput, on any network with switches.

Paper: Zhao et al., "ForestColl: Efficient Collective Communications on Heterogeneous Network Fabrics", arXiv 2402.06787.

In an all-gather every rank broadcasts a shard of M / N bytes. Whatever the schedule, the shards of the ranks in a set S must leave
it: the time is at least ``(M / N) |S & Vc| / B+(S)``, equation (1). The largest of these ratios over all sets that lack a rank is
1 / x*, and trees attain it: k from every rank, each with a share 1/k of its data, such that no link carries more than U b_e of them.

======  =============================================================================  ===========================
symbol  meaning                                                                        unit
======  =============================================================================  ===========================
N       ranks; Vc in sets of nodes                                                     1
M       data of the collective                                                         bytes
b_e     bandwidth of a link                                                            multiples of ``unit_Bps``
S       a set of nodes; S* is the bottleneck, the code's ``side`` all other nodes
x*      largest rate at which every rank can broadcast at once                         as b_e
k       trees from every rank                                                          1
U       copies of trees on a link for each unit of its bandwidth, 1/y in the paper     1 / unit of b_e
T       time, ``(M / N) U / k``                                                        seconds
======  =============================================================================  ===========================

=========================  ================================================================================
``problem``                what is asked: trees outwards, in the transposed network for reductions
``optimum``                1/x*, U and k exactly, by Newton's method on violated cuts
``forest``, ``run``        the fast path: ``forestcoll``; the engine is in ``models/common/forests``
``blink``                  all data through one root: ``blink``, ``blink-split``
``formulation``, ``lp``    the linear programs that define 1/x*: ``forestcoll-lp``
``allreduce_formulation``  linear program (6), the best all-reduce by trees
``allreduce``              its forest: ``forestcoll-allreduce``
=========================  ================================================================================
"""
