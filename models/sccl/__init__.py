"""SCCL: synchronous steps of rounds, with as few steps, or as few rounds, as possible.

Cai et al., "Synthesizing Optimal Collective Algorithms", PPoPP 2021, as TE-CCL (sections 6.1 and appendix G, where it
is called MSCCL) describes what it compares with. A schedule has S steps; step s has r_s rounds, R in all, and is
k-synchronous if ``R <= S + k``. What a rank receives in a step it can send on in the next one. In a step a link
carries as many chunks as it can in its rounds. A schedule of C chunks costs ``S alpha + R beta``, beta being the time
of a round. SCCL asks a solver for satisfiability; here it is a mixed-integer program. The paper of SCCL itself was
not available: what goes beyond the sentences above is a reading.

=========  ====================================================================  ====
symbol     meaning                                                               unit
=========  ====================================================================  ====
c          chunk                                                                 1
n, (i,j)   rank, edge                                                            1
S, R, k    steps, rounds, and by how much rounds may outnumber steps             1
b_ij       chunks that an edge carries in a round                                1
v_{c,n,s}  whether n has c before step s                                         1
y_{c,e,s}  whether c goes over e in step s                                       1
r_s        rounds of step s                                                      1
=========  ====================================================================  ====
"""
