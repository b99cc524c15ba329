"""C-Cube: two binary trees on the links of a DGX-1, whose sums go up while earlier sums already come down.

Paper: Cho, Son, Kim, "Logical/Physical Topology-Aware Collective Communication in Deep Learning Training", HPCA 2023.
It was not available. What is followed is what William Won's dissertation, "Software-Hardware Optimizations for
Efficient Collective Communications in Distributed Machine Learning Platforms", Georgia Institute of Technology, 2025,
says of it: C-Cube "manually lays out two binary trees over a DGX-1 topology and schedules two tree-based collectives
concurrently" (section 5.6); the trees are "contention-free", 2 of the 6 links of a rank are not used for that, and
links "remain idle when there are no chunks to overlap". This family takes that to mean:

* Half of the data goes up and down each tree, cut into pieces; piece k + 1 follows piece k one step later, in both
  directions.
* No wire has more than one edge of both trees: where the network's smallest bandwidth fits twice into a link, that
  link is two wires.
* A rank is an inner node of one tree at most, as in double binary trees (Sanders, Speck, Traeff 2009).
* An edge between ranks that are not neighbours would be a detour, through a rank that passes on; of all layouts one
  with the fewest detours is searched for (:mod:`.trees`). Which layout the paper draws (its figure 10) is not known
  here.

Problem. Given eight ranks and wires between them, find two trees as above and the steps of all sends, so that a wire
has one send in a step.

======  ===================================================================  ======
symbol  meaning                                                              unit
======  ===================================================================  ======
S       size of the collective                                               B
K       pieces that each tree's half is cut into                             1
L       steps that one piece takes, up and down                              1
a       latency of a link                                                    s
b       bandwidth of a wire                                                  B/s
======  ===================================================================  ======

With steps in which a wire has one piece, an all-reduce takes ``(L + K - 1) (a + S / (2 K b))``.
"""
