"""TACCL: routing, then ordering, then joining of neighbouring sends.

Shah et al., "TACCL: Guiding Collective Algorithm Synthesis using Communication Sketches", NSDI 2023. The paper was
not available; this is an interpretation of other papers' descriptions, and of the public repository
(microsoft/taccl) for sketches and for the routes that a chunk may take. TE-CCL (sections 2, 3.1, 6.1, figures 13
and 14) and the dissertation (section 5.6) describe it: an integer program, made small by a *sketch* that a user
writes; switches are replaced by direct edges between the ranks that they join, whose latency and bandwidth are
those of the uplink; a strategy uc-min or uc-max decides whether few or many of these edges are used; edges at one
uplink work one at a time. The three stages are taken to be:

1. **Routing** (:mod:`.formulations.routing`), an integer program: which edges carry which chunk. Chunks on one link
   take turns, but in no order yet: the time is at least the longest route of a chunk and the total load of every link.
2. **Ordering** (:mod:`.solve`): on every link chunks go in the order of their arrivals there by their routes alone; of
   two at once, the one with the longer remaining route first.
3. **Contiguity** (:mod:`.formulations.contiguity`), an integer program: neighbours in an order may go as one send,
   which pays the latency once, but arrives as a whole.

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

Sums are copies backwards (:mod:`cwb.algorithms.schedules.stages`). Sketches are in :mod:`.sketch`. The routing starts
from routes that :func:`.solve.first_routes` makes without a solver.
"""
