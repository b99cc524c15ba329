"""Wide-area networks as undirected capacities, and spanning trees on them for all-reduce.

Symbols are those of MTree (Luo, Wang and Xing, "Efficient Inter-Datacenter AllReduce With Multiple Trees"):
spanning trees T_i with rates r_i, ``sum_{i: e in T_i} r_i <= b_e`` on every link e, since a tree that reduces and
broadcasts simultaneously loads both directions of its links by its rate.
"""
