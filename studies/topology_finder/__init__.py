"""The topology finder: the best networks of N nodes with d links each for gathering, reducing or both.

Source: Zhao et al., "Efficient Direct-Connect Topologies for Collective Communications", sections 5 and 6.2. Formulas
give the values of expanded networks, so all ways to reach a size are tried without building any network; those on the
Pareto frontier of latency and bandwidth are built and evaluated again. They are the best of the families searched;
other networks may be better. Symbols, expansions and bases: docs/methods/topology-finder.md.
"""
