"""MultiTree: spanning trees from every rank, grown simultaneously, step by step, over free links.

Source: Huang et al., "Communication Algorithm-Architecture Co-Design for Distributed Deep Learning", ISCA 2021, as far
as William Won's dissertation describes it (sections 5.7 and 6.7, table 6.2). Problem, algorithm and own choices:
docs/methods/multitree.md.
"""
