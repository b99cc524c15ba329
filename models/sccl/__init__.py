"""SCCL: synchronous steps of rounds, with as few steps, or as few rounds, as possible.

Cai et al., "Synthesizing Optimal Collective Algorithms", PPoPP 2021, as described by TE-CCL, which compares with it
under the name MSCCL (section 6.1 and appendix G). A schedule has S steps; step s has r_s rounds, R in all, and is
k-synchronous if ``R <= S + k``. A rank can forward in the next step what it receives in a step. In a step a link
carries as many chunks as it can in its rounds. A schedule of C chunks costs ``S alpha + R beta``, beta being the
time of a round. SCCL uses a satisfiability solver; here it is a mixed-integer program. The paper of SCCL itself was
not available. In the authors' program (microsoft/msccl-tools) a switch is edges between ranks and a bandwidth of sets
of edges, and sums are copies backwards on the reversed network; details beyond are an interpretation.

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
