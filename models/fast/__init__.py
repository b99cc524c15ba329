"""FAST: an all-to-all of unequal messages between servers, balanced inside and sent in one-to-one stages.

Lei et al., "FAST: An Efficient Scheduler for All-to-All GPU Communication", arXiv 2505.09764. Only the paper's summary
was read (docs/methods/fast.md).

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
