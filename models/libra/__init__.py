"""LIBRA: bandwidth of each dimension of a multi-dimensional network, for given training workloads.

Paper: the dissertation behind ASTRA-sim 2.0, chapter 4. Given collectives that move ``m_kd`` bytes through
dimension d, find bandwidths ``B_d`` under linear constraints that minimize the iteration time ``T(B)`` or its
product with the network's cost ``C(B)``.

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

``libra`` is exact on every solver: the bilinear model on nonconvex quadratic solvers; outer approximation
(``perf``) and a search of the time-cost frontier (``perf-per-cost``) on linear ones, both ending in a certificate
that the verifier recomputes. ``libra-equal`` is the EqualBW baseline, ``libra-codesign`` chooses the
parallelization together with the bandwidths.
"""
