"""MultiTree: spanning trees from every rank, grown simultaneously, step by step, over free links.

Paper: Huang et al., "Communication Algorithm-Architecture Co-Design for Distributed Deep Learning", ISCA 2021. It was
not available. What is followed is what William Won's dissertation, "Software-Hardware Optimizations for Efficient
Collective Communications in Distributed Machine Learning Platforms", Georgia Institute of Technology, 2025, says of it:
"MultiTree generates height-balanced multiple spanning trees originating from all NPUs", "only takes network
connectivity into account" and "does not allow concurrent chunks to overlap" (section 5.7); it has "a greedy-based tree
construction approach" and is for homogeneous networks (section 6.7); it serves all-gather, reduce-scatter and
all-reduce (table 6.2). This family takes that to mean:

* Time goes in steps. In a step a link takes one part, so it is given to one edge of one tree.
* Trees take turns: in each round of a step every tree that can adds one rank, a child of a rank that it reached in an
  earlier step, over links that are still free. When no tree can, the next step begins with all links free again.
* A tree goes through its ranks in the order in which they joined it, the root first, so that it grows breadth first.
* A reduce-scatter is an all-gather of the network with all links turned around, run backwards; an all-reduce is a
  reduce-scatter followed by an all-gather. Links without one back are no obstacle.

Choices that the text leaves open, and that are this family's own: in a step, trees that reach the fewest ranks have
the first turn, then those of the lower rank; an edge takes the fewest links, through switches and through ranks outside
the process group; among children equally near, the next one after the parent in the order of the group; links of
unequal bandwidth, see :func:`~cwb.algorithms.schedules.problem.parallel_uses`.

Problem. Given a network and a process group, find for every rank of the group a spanning tree with a step for each
edge, later than the step of the edge above it, so that no link has more edges in a step than its share of parallel
links, and so that the steps are few.
"""
