"""Baselines for all-reduce over a wide-area network: what MTree compares itself with, and what anybody would try first.

Symbols and shared parts are those of :mod:`cwb.algorithms.trees`.
"""
