"""TACOS: link-chunk matching over the time-expanded network, and what it takes to meet the bounds.

Paper: Won et al., "TACOS: Topology-Aware Collective Algorithm Synthesizer for Distributed Machine Learning", MICRO
2024, in the form of chapter 5 of William Jonghoon Won's dissertation, "Software-Hardware Optimizations for Efficient
Collective Communications in Distributed Machine Learning Platforms", Georgia Institute of Technology, 2025. Its
algorithms 1 and 2 are :func:`~cwb.algorithms.matching.events.match_in_turns`; the rest of the family is this project's
own, in ``algorithms/matching``: maximum matchings for each destination (``stepped``), an engine of events for unequal
links (``events``), one tree that is moved to all ranks, and both halves of an all-reduce at once (``trees``).

Problem. Given a network and a process group whose ranks each have c chunks, choose for every link a sequence of chunks
with times, so that a link has one chunk at a time, a rank sends what it has received, every rank of the group receives
every chunk, and the last one comes early. A link is taken for its latency and the chunk's time on the wire together, as
in the paper: timing ``circuit``.

======  ===================================================================  ======
symbol  meaning                                                              unit
======  ===================================================================  ======
n       ranks of the group                                                   1
c       chunks of each rank                                                  1
S       size of the collective                                               B
s       size of a chunk, S / (n c)                                           B
a_e     latency of link e (alpha)                                            s
b_e     bandwidth of link e                                                  B/s
tau_e   what a chunk takes up of link e, a_e + s / b_e                       s
deg(d)  links that enter rank d                                              1
T       collective time                                                      s
======  ===================================================================  ======
"""
