"""Maximum concurrent flow: the largest rate of an all-to-all on a network (docs/methods/mcf.md).

Source: Zhao et al., "Efficient Direct-Connect Topologies for Collective Communications", appendix A.5, LP (3).

==========  ===========================================================  ======================
symbol      meaning                                                      unit
==========  ===========================================================  ======================
s           source, a rank of the group                                  position in topology
u, v, w     nodes                                                        position in topology
e           link, (u, v) in the paper; parallel links are counted apart  position in topology
b_e         bandwidth of link e; 1 in the paper                          the largest bandwidth
f           rate from every rank to every other                          the largest bandwidth
y_{s,e}     flow from source s on link e                                 the largest bandwidth
==========  ===========================================================  ======================

The Pyomo model is in ``formulation``, the time bound in ``solve``, which other methods use too.
"""
