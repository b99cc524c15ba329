"""LIBRA: bandwidth of each dimension of a multi-dimensional network, for given training workloads.

Paper: the dissertation behind ASTRA-sim 2.0, chapter 4. Problem and methods are on the page docs/methods/libra.md.

======  ======================================================================  =============
symbol  meaning                                                                 unit
======  ======================================================================  =============
B_d     bandwidth per NPU in dimension d                                        B/s
m_kd    bytes that collective k moves per NPU through dimension d               B
t_k     time of collective k, ``max_d m_kd / B_d``                              s
K       computation that no bandwidth changes                                   s
T(B)    iteration time                                                          s
c_d     price of the whole network per unit of bandwidth in dimension d         USD/(B/s)
C(B)    cost of the network, ``sum_d c_d B_d``                                  USD
======  ======================================================================  =============
"""
