"""Baselines for all-reduce over a wide-area network: what MTree compares itself with, and what anybody would try first.

=================  ==============================================================================
``method``         the methods and their options
``gost``           GOST, MTree's own heuristic: algorithms 1 to 3, then MILP (1)
``topoadopt``      K trees by simulated annealing; the energy is a linear program
``blink``          Blink's packing by multiplicative weights, and its cut to few trees, ``blink-units``
``widest``         the one tree (``single-tree``) and the ring (``wan-ring``) of the widest link
``messages``       whole messages: ``plink`` to leaders of near sites, ``psld`` to every site
``answer``         from trees or messages to the outcome of a run
=================  ==============================================================================

Symbols and shared parts are those of :mod:`cwb.algorithms.trees`.
"""
