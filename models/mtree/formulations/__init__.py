"""Pyomo models of MTree and the functions that declare them.

=========================  ==========================================================  ===========================
model                      meaning                                                     function
=========================  ==========================================================  ===========================
``mtree-selection``        MILP (1): at most K trees of a pool                         ``selection.build``
``wan-rates``              the linear program of rates of given trees                  ``selection.build_rates``
``mtree-repair``           MILP (1) with old trees, and a number of new ones           ``selection.build``
``mtree-cover``            restricted master problem of column generation (its dual)   ``restricted_master.build``
``mtree-layers``           pricing problem: the cheapest low tree                      ``pricing.build``
``mtree-patterns``         the best K trees, by sets of trees on a link                ``patterns.build``
``mtree-repair-patterns``  the same beside old trees                                   ``patterns.build``
=========================  ==========================================================  ===========================
"""
