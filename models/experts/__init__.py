"""Expert placement: which replicas of which experts each GPU of an expert-parallel model holds.

Experts have loads; there are more slots than experts, and busy experts are replicated, their load shared equally. GPUs
have as many slots each, and groups of experts may have to stay on one node. The largest load of a GPU is to be least.
It is the problem of DeepSeek's EPLB (deepseek-ai/EPLB on GitHub), whose rule for nodes the model follows.

==========  ===================================================================
symbol      meaning
==========  ===================================================================
e, w_e      expert, and its load
g, S        GPU, and slots of each
p, n        group of experts, and node
x_{e,k}     whether e has k replicas
y_{e,k,g}   how many of the k replicas of e are on g
z_{p,n}     whether group p is on node n
T           largest load of a GPU
==========  ===================================================================
"""
