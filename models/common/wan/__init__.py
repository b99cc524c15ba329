"""Wide-area networks as undirected capacities, and spanning trees on them that all-reduce: what several methods share.

Symbols are those of MTree (Luo, Wang and Xing, "Efficient Inter-Datacenter AllReduce With Multiple Trees"): spanning trees T_i with rates r_i,
``sum_{i: e in T_i} r_i <= b_e`` on every link e, since a tree that reduces and broadcasts at once loads both directions of its links by its rate.

==============  =====================================================
``network``     links with exact capacities, heights
``trees``       trees with exact rates, and the packing that is the answer
``kernels``     heights of trees (compiled)
``rates``       the best rates of given trees (linear program)
``selection``   at most K trees of a pool: MILP (1)
``strength``    the bound for any trees, with its partition
``ceiling``     the bound for any schedule, also where links are faster one way than the other
``bottleneck``  one tree exactly; shortest ways
``measures``    the numbers that stand beside one another in tables
==============  =====================================================
"""
