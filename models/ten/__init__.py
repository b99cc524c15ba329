"""An integer program over the time-expanded network: the link and tick of every chunk's starts.

Source: William Won's dissertation, "Software-Hardware Optimizations for Efficient Collective Communications in
Distributed Machine Learning Platforms", Georgia Institute of Technology, 2025, section 5.5.1: "we implemented a
TACCL-like baseline by integrating its ILP formulation over our TEN representation". The formulation is not printed,
and TACCL's paper (Shah et al., NSDI 2023) was not available. This family interprets it as TACCL's decisions, the
links of a chunk and its times at ranks, with the least time of the last arrival as objective, over the
time-expanded network of section 5.4.1, so that a link has one chunk at a time and no order remains to be found.
TACCL's sketches and symmetries are left out.

Problem. Given chunks with a source and targets, choose links and start ticks for every chunk, such that a rank
sends only chunks that it has received, a link has one chunk at a time, every target is reached, and the last
arrival is early. A chunk holds a link for latency and time on the wire together (section 5.4.7): timing
``circuit``.

=========  ===================================================================  ====
symbol     meaning                                                              unit
=========  ===================================================================  ====
c          chunk, with source s_c and targets D_c
e = (i,j)  link from rank i to rank j, or path over switches
w_e        ticks that a chunk takes up of e: (alpha_e + S_c / b_e) / tick       1
K          horizon: ticks of the network                                        1
x_{c,e,t}  1 if c starts over e at tick t                                       1
T          ticks until the last arrival                                         1
=========  ===================================================================  ====
"""
