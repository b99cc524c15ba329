"""Textbook algorithms: the collective algorithms that every library ships (dissertation, section 2.3.2).

An algorithm knows ranks only by their position in the process group, and says in which step which of them sends which
block of the data to which other one. Where two partners are no neighbours in the network, the send takes a shortest
path (:mod:`cwb.algorithms.graphs.distances`), so that an algorithm on a network that it was not made for congests
(figure 5.1).

======  ===========================================================
symbol  meaning
======  ===========================================================
n       ranks in the process group
S       size of the collective, in bytes
c       chunks that each block is cut into (``Demand.chunks``)
s       step, from 0
======  ===========================================================

A reduce-scatter is an all-gather backwards, a reduce a broadcast backwards, an all-reduce the one after the other.
"""
