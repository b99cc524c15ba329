"""Expert placement: the replicas of experts on each GPU of an expert-parallel model.

Experts have loads; there are more slots than experts, and busy experts are replicated, their load shared equally.
All GPUs have the same number of slots, and groups of experts may have to stay on one node. The largest load of a
GPU is minimized. This is the problem of DeepSeek's EPLB (deepseek-ai/EPLB on GitHub), whose rule for nodes the
model follows.

==========  ===================================================================
symbol      meaning
==========  ===================================================================
e, w_e      expert, and its load
g, S        GPU, and slots of each
p, n        group of experts, and node
x_{e,k}     1 if e has k replicas
y_{e,k,g}   number of e's k replicas on g
z_{p,n}     1 if group p is on node n
T           largest load of a GPU
==========  ===================================================================
"""
