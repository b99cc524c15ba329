"""ForestColl: forests of weighted spanning trees of optimal throughput on any network with switches.

Paper: Zhao et al., "ForestColl: Efficient Collective Communications on Heterogeneous Network Fabrics", arXiv
2402.06787. Equation (1) and the trees that attain it are on the page docs/methods/forestcoll.md.

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
