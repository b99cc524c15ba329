"""An integer program over the time-expanded network: the link and tick of every chunk's starts.

Source: William Won's dissertation, "Software-Hardware Optimizations for Efficient Collective Communications in
Distributed Machine Learning Platforms", Georgia Institute of Technology, 2025, sections 5.4.1, 5.4.7 and 5.5.1. The
formulation is not printed there; the interpretation is on the page docs/methods/ten.md.

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
