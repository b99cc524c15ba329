"""Exact packings of spanning trees from many roots within link capacities, for 1,000 ranks and more.

The demand d(v) of a node is the number of trees rooted there: equal for all ranks in an all-gather, at one root in
a broadcast. Sources: Zhao et al., "ForestColl: Efficient Collective Communications on Heterogeneous Network
Fabrics", section 4 and appendices C and D; Edmonds, "Edge-disjoint branchings", 1973; Berczi and Frank, "Packing
arborescences", 2009.
"""
