"""Breadth-first-broadcast schedules, with balanced shares of shards on links (docs/methods/bfb.md).

Source: Zhao et al., "Efficient Direct-Connect Topologies for Collective Communications", section 6 and appendix E.

===============  ==========================================================================================  ==========
symbol           meaning                                                                                     unit
===============  ==========================================================================================  ==========
N, d             nodes; the most links into or out of one of them                                            1
M, B, b          size of the collective; bandwidth of a node, d b; bandwidth of a link                       B, B/s, B/s
u, v, w          node that receives, node whose shard it is, in-neighbour of u that sends                    position
t                step, from 1; d(v, u) = t                                                                   1
e = (w, u)       link; parallel links are counted apart                                                      position
f(v)             links into u whose source has v's shard, d(v, w) = t - 1                                    links
x_{v,e,t}        part of v's shard that link e carries                                                       shard, M/N
U_{u,t}          load of the busiest link into u                                                             shard
P                pieces that each shard is cut into                                                          1
y_{v,e,t}        pieces of v's shard that link e carries                                                     piece
W_{u,t}          load of the busiest link into u                                                             piece
T_L, T_B         number of steps, the diameter; d/N sum_t max_u U_{u,t}                                      1, M/B
===============  ==========================================================================================  ==========
"""
