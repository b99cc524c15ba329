"""Maximum concurrent flow: how fast an all-to-all can be on a network.

Source: Zhao et al., "Efficient Direct-Connect Topologies for Collective Communications", appendix A.5, LP (3). Every
rank s sends to every other rank t at the same rate f, over all paths at once; f is to be as large as possible. Flows of
the same source are added up, since they may be exchanged for each other wherever they meet: that leaves one flow per
source and link. An all-to-all in which every pair exchanges p bytes takes at least p / f.

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

The Pyomo model is in ``formulation``, the time that it proves in ``solve``: other methods use it too.
"""
