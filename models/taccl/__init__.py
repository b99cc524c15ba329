"""TACCL: routing, then ordering, then joining of neighbouring sends.

Shah et al., "TACCL: Guiding Collective Algorithm Synthesis using Communication Sketches", NSDI 2023. The paper was not
available; this is an interpretation of other papers' descriptions, and of the public repository (microsoft/taccl), as
stated on the page docs/methods/taccl.md.

The stages are :mod:`.formulations.routing`, ordering in :mod:`.solve`, and :mod:`.formulations.contiguity`.

=========  ==========================================================  ====
symbol     meaning                                                     unit
=========  ==========================================================  ====
c, e       chunk, edge between ranks                                   1
alpha_e    latency of an edge                                          s
beta_ce    time of a chunk on an edge                                  s
x_{c,e}    1 if c goes over e                                          1
t_{c,n}    time of c at n, by its route alone                          s
u_e        1 if an edge through switches is used                       1
g_k        1 if the k-th send of a link goes with the one before       1
b_k, f_k   begin and end of the k-th send of a link                    s
T          time of the schedule                                        s
=========  ==========================================================  ====

Sums are copies backwards (:mod:`cwb.algorithms.schedules.stages`). Sketches are in :mod:`.sketch`.
"""
