"""Wide-area networks as undirected capacities, and spanning trees on them for all-reduce.

Symbols are those of MTree (Luo, Wang and Xing, "Efficient Inter-Datacenter AllReduce With Multiple Trees"):
spanning trees T_i with rates r_i, ``sum_{i: e in T_i} r_i <= b_e`` on every link e, since a tree that reduces and
broadcasts simultaneously loads both directions of its links by its rate.

=============  ===========================================================================
``network``    links with exact capacities, and limits on the height of trees
``trees``      shortest paths, widest and lowest trees; exact rates, packing, measures
``bounds``     the strength bounds any trees, the ceiling any schedule
``disjoint``   link-disjoint forests and trees, and the two best trees, exactly (matroid union)
``labels``     low link-disjoint trees of given rates, by search
``pricing``    the cheapest trees under prices, and bounds from prices
``gbst``       MTree's algorithms 1 and 2, many starts, large neighbourhood search, all trees
=============  ===========================================================================
"""
