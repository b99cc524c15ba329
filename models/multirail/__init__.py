"""Multi-rail collectives: chunks traverse the dimensions of a fabric, each with the dimension's own algorithm.

Papers: Cho et al., "BlueConnect", SysML 2019; Rashidi et al., "Themis: A Network Bandwidth-Aware Collective Scheduling
Policy for Distributed Training of DL Models", ISCA 2022; dissertation, sections 3.6.6 and 4.2.2. The methods are on the
page docs/methods/multirail.md; :mod:`cwb.schedules.multirail` verifies the answers.

======  ==================================================================  ======
symbol  meaning                                                             unit
======  ==================================================================  ======
S       size of the collective                                              B
C       number of equal chunks                                              1
n_d     NPUs in a block of dimension d                                      1
B_d     bandwidth per NPU in dimension d                                    B/s
A_d     latency of the algorithm of dimension d                             s
m_od    bytes that an NPU sends in dimension d if all data takes order o    B
x_o     share of the data that takes order o                                1
T       time of the busiest dimension                                       s
======  ==================================================================  ======
"""
