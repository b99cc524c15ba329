"""Exact packings of spanning trees from many roots within link capacities, for 1,000 ranks and more.

==============  ====================================================================================
``engine``      from a network with a demand to a forest, by the steps below; lower trees at equal load
``symmetry``    boxes, leafs and pods, found in the network, and pairings of a switch's ports by them
``splitting``   removal of switches, by such a pairing or pair by pair, with a log
``packing``     all trees, grown inside known cuts and proved afterwards; a tree that is certain to exist
``expansion``   paths on the real links for every edge of every tree
``kernels``     the compiled loops of packing and lowering
==============  ====================================================================================

The demand d(v) of a node is the number of trees rooted there: equal for all ranks in an all-gather, at one root in
a broadcast. Sources: Zhao et al., "ForestColl: Efficient Collective Communications on Heterogeneous Network
Fabrics", section 4 and appendices C and D; Edmonds, "Edge-disjoint branchings", 1973; Berczi and Frank, "Packing
arborescences", 2009.
"""
