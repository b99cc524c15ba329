"""Forests: spanning trees from many roots that load no link beyond its capacity, exactly; for 1,000 ranks and more.

==============  ==================================================================================
``engine``      from a network with a demand to a forest, by the steps below
``symmetry``    boxes, leafs and pods, found in the network, and pairings of a switch's ports by them
``splitting``   switches removed, by such a pairing or pair by pair, with a log of how
``packing``     all trees, grown inside known cuts and proved afterwards
``exact_tree``  a tree that is certain to leave room for all others
``polish``      lower trees with the same or less load; pairs of trees that share their edges again
``expansion``   paths on the real links for every edge of every tree
``kernels``     the compiled loops of packing and polishing
==============  ==================================================================================

A demand d(v) at every node says how many trees it is the root of; an all-gather has the same for all ranks, a broadcast
has one root. Sources: Zhao et al., "ForestColl: Efficient Collective Communications on Heterogeneous Network Fabrics",
section 4 and appendices C and D; Edmonds, "Edge-disjoint branchings", 1973; Berczi and Frank, "Packing arborescences",
2009.
"""
