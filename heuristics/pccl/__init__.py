"""PCCL: path finding per condition, for any collective and process group (Won, dissertation, Georgia Tech, chapter 6).

A condition is a chunk with the node that has it and the nodes that need it. Conditions are taken in an order; each one
is given the ways on which its chunk arrives first over links that the ones before have left free, also links of nodes
outside the group. So no two chunks ever meet on a link. The last arrival is to be early.

=============  =======================================================================  ======
symbol         meaning                                                                  unit
=============  =======================================================================  ======
c              condition: chunk, source c.src and targets c.dests
T              steps, or exact ticks where links differ                                 1
w_e            ticks that a chunk holds link e, size over bandwidth                     tick
alpha_e        latency of link e                                                        tick
d_e            w_e + alpha_e, ticks from start to arrival                               tick
D(u, v)        fewest ticks from u to v                                                 tick
=============  =======================================================================  ======

Reservations of links and buffers, and the search for the earliest arrival, are in ``algorithms/paths``.
"""
