"""Baselines for all-reduce over a wide-area network: what MTree compares itself with, and what anybody would try first.

=================  =================================================================
``topoadopt``      K trees by simulated annealing; the energy is a linear program
``blink``          Blink's packing by multiplicative weights, and its cut to few trees
``single_tree``    the one best tree
``ring``           the Hamiltonian cycle whose slowest link is fastest
``plink``          clusters of near sites, leaders, and a leader of leaders
``psld``           every site aggregates a share that its measured bandwidth sets
``answer``         from trees or messages to the outcome of a run
=================  =================================================================

Symbols and shared parts are those of ``models.common.wan``.
"""
