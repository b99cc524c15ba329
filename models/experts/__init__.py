"""Expert placement: the replicas of experts on each GPU of an expert-parallel model (docs/methods/experts.md).

The problem and its rule for nodes are those of DeepSeek's EPLB (deepseek-ai/EPLB on GitHub).

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
