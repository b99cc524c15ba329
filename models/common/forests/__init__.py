"""Forests: spanning trees from many roots that together load no link beyond its capacity, exactly.

==================  =================================================================================
``groups``          boxes, leafs and pods, found in the network itself
``patterns``        how the ports of a switch can be paired all at once
``pairwise``        how they are paired one by one, as far as theory allows
``splitting``       switches removed, with a log of how
``cuts``            sets of nodes that have little to spare
``growth``          trees grown breadth first, inside the cuts that are known
``exact_tree``      a tree that is certain to leave room for all others
``packing``         all trees, built first and proved afterwards
``polish``          lower trees with the same or less load
``exchange``        pairs of trees that share their edges anew
``expansion``       paths on the real links for every edge of every tree
==================  =================================================================================

A demand d(v) at every node says how many trees it is the root of; an all-gather has the same for all ranks, a broadcast has one root.
Sources: Zhao et al., "ForestColl: Efficient Collective Communications on Heterogeneous Network Fabrics", section 4 and appendices C and D; Edmonds,
"Edge-disjoint branchings", 1973; Berczi and Frank, "Packing arborescences", 2009.
"""
