"""TTO, three tree overlap: three spanning trees of a 2D mesh, whose sums go up while earlier ones come down.

Paper: Laskar et al., "Enhancing Collective Communication in MCM Accelerators for Deep Learning Training", HPCA 2024.
It was not available. What is followed is what William Won's dissertation, "Software-Hardware Optimizations for
Efficient Collective Communications in Distributed Machine Learning Platforms", Georgia Institute of Technology, 2025,
says of it: it is a "three tree overlap for two-dimensional mesh" (section 5.7) that "optimizes Blink specifically for
2D Mesh topologies by constructing three spanning trees, all originating from edge NPUs". Which trees these are the
text does not say. Those of this family are its own (:mod:`.trees`), for meshes of at least 3 x 3.

Problem. Given a mesh of a rows and b columns, find three spanning trees such that no two neighbours are joined by
more than two of them. Then in every two steps a link has room for all that goes up or down over it, so that a third
of the data on each tree takes two thirds of the data's time on a link. There are such trees only if
``3 (a b - 1) <= 2 (2 a b - a - b)``, that is ``(a - 2) (b - 2) >= 1``: exactly from 3 x 3 on.

======  ===================================================================  ======
symbol  meaning                                                              unit
======  ===================================================================  ======
a, b    rows and columns of the mesh                                         1
S       size of the collective                                               B
K       pieces that each tree's third is cut into                            1
L       steps that one piece takes, up and down                              1
alpha   latency of a link                                                    s
beta    seconds per byte of a link                                           s/B
======  ===================================================================  ======

With steps in which a link has one piece, an all-reduce takes ``(L + 2 (K - 1)) (alpha + beta S / (3 K))``.
"""
