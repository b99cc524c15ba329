"""MTree: all-reduce over a wide-area network along several trees of limited height, solved to optimality.

Paper: Luo, Wang and Xing, "Efficient Inter-Datacenter AllReduce With Multiple Trees". The problem is on the page
docs/methods/mtree.md.

======  ==========================================================  ============================
symbol  meaning                                                     unit
======  ==========================================================  ============================
n, E    sites; links, each a pair of directed links
b_e     capacity, the smaller one of the two directions             multiples of ``unit_Bps``
L_e     length of a link                                            1 (hops) or ns (latency)
H, K    largest height, most trees
rbar    smallest rate of a tree, the code's ``floor``               as b_e
c_i     smallest capacity of a tree's links                         as b_e
N       ``sum b_e / (n - 1)``                                       as b_e
w_e, p  prices of a link and of a tree
======  ==========================================================  ============================

Trees, heights, pricing by Kruskal's algorithm, algorithms 1 and 2 and large neighbourhood search are in
:mod:`cwb.algorithms.trees`; the paper's own heuristic is ``heuristics/wan/gost.py``.
"""
