"""All-reduce with one late rank: the others reduce-scatter first, then work in rounds with the late one.

Devraj et al., "Efficient AllReduce with Stragglers", arXiv 2505.23523 (StragglAR); see docs/methods/straggler.md.

==========  ===================================================================
symbol      meaning
==========  ===================================================================
n           ranks; rank 0 of the group is late
C           chunks, k (n - 1) where each rank's part is cut into k
q           ``ceil(log2(n))``, the ages at which a chunk doubles
age         rounds since the late rank has exchanged a chunk
R           rounds; at least ``C - 1 + q``, see :class:`~cwb.core.bounds.WholeChunks`
x_{c,i,j,t} 1 if rank i sends chunk c to rank j in round t
f_{c,i,t}   1 if rank i has the full sum of chunk c before round t
u_t         1 if round t is used
==========  ===================================================================
"""
