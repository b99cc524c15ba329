"""FAST: an all-to-all of unequal messages between servers, balanced inside and sent in one-to-one stages.

Lei et al., "FAST: An Efficient Scheduler for All-to-All GPU Communication", arXiv 2505.09764. A server has m ranks
at a fast switch; rank g of every server has a slower connection, its rail, to rank g of every other one. Data from
server i to server j is divided among the m rails so that all rails are equally busy; every rail's matrix of bytes
between servers is padded to equal sums of rows and columns and decomposed into permutations (Birkhoff, von
Neumann): in a stage every server sends to one other and receives from one. Only the paper's summary was read.

==========  ===================================================================
symbol      meaning
==========  ===================================================================
N, m        servers, and ranks of each
M_st        bytes from rank s to rank t
g           rail; a piece of a message to another server takes one
x_{s,t,g}   share of a message that takes rail g
X_g         bytes between servers on rail g, N x N
T           time over the bound
==========  ===================================================================
"""
