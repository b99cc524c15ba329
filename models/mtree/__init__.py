"""MTree: all-reduce over a wide-area network along several trees of a limited height, and the optimum that the paper does not have.

Paper: Luo, Wang and Xing, "Efficient Inter-Datacenter AllReduce With Multiple Trees".

Spanning trees T_i with rates r_i, at most K of them, each with a root of height at most H, shall carry the most without overloading a link:
``max sum_i r_i`` subject to ``sum_{i: e in T_i} r_i <= b_e``. A tree reduces and broadcasts at once, and loads both directions of its links.

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

===================  ======================================================================
``kernels``          algorithms 1 and 2, heights, all spanning trees (compiled)
``gost``             algorithm 3 and MILP (1): the method ``gost``
``pairs``            two trees exactly
``cover``            the dual linear program over trees; ``columns`` adds trees to it
``pricing``          the cheapest trees, and what prices prove; ``layers`` is the model
``patterns``         K trees exactly; ``rooted`` says what a low tree is
``pool``, ``ruin``   many starts; K trees on large networks
``mtree``            all of it: the method ``mtree``
``chunking``         data of the trees, in chunks; ``heights``, the height of least time
``repair``           links that fail or slow down: the method ``mtree-repair``, and its parts
===================  ======================================================================
"""
