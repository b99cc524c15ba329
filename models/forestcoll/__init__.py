"""ForestColl: forests of weighted spanning trees of optimal throughput on any network with switches.

Paper: Zhao et al., "ForestColl: Efficient Collective Communications on Heterogeneous Network Fabrics", arXiv
2402.06787.

In an all-gather every rank broadcasts a shard of M / N bytes. In any schedule the shards of the ranks in a set S
must leave it: the time is at least ``(M / N) |S & Vc| / B+(S)``, equation (1). The largest of these ratios over all
sets that lack a rank is 1 / x*, and trees attain it: k from every rank, each with a share 1/k of its data, such
that no link carries more than U b_e of them.

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

Blink, with all data through one root, uses the same engine: ``heuristics/blink.py``.
"""
