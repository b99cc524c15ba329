"""TACOS: link-chunk matching over the time-expanded network, and extensions that attain the bounds.

Source: Won et al., "TACOS: Topology-Aware Collective Algorithm Synthesizer for Distributed Machine Learning", MICRO
2024, in the form of chapter 5 of William Won's dissertation, Georgia Institute of Technology, 2025. Its algorithms 1
and 2 are :func:`~cwb.algorithms.matching.events.match_in_turns`; all else is this project's own. Problem, symbols,
engines and bounds: docs/methods/tacos.md.
"""
