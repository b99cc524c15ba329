"""SCCL: synchronous steps of rounds, with as few steps, or as few rounds, as possible.

Cai et al., "Synthesizing Optimal Collective Algorithms", PPoPP 2021. The paper was not available: this is an
interpretation of TE-CCL's description (section 6.1 and appendix G, under the name MSCCL) and of the authors' program
(docs/methods/sccl.md). A schedule costs ``S alpha + R beta``, beta being the time of a round.

=========  ====================================================================  ====
symbol     meaning                                                               unit
=========  ====================================================================  ====
c          chunk                                                                 1
n, (i,j)   rank, edge: a link, or a path through switches                        1
S, R, k    steps, rounds, and by how much rounds may outnumber steps             1
b_l        chunks that a link carries in a round                                 1
v_{c,n,s}  1 if n has c before step s                                            1
y_{c,e,s}  1 if c goes over e in step s                                          1
r_s        rounds of step s                                                      1
=========  ====================================================================  ====
"""
