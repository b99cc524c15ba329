"""Model of NCCL: its rings and trees over all NICs of a machine, and its choice by size.

NCCL predicts ``t(S) = latency + S / bandwidth`` for every algorithm and protocol, with constants that NVIDIA has
measured (``src/graph/tuning.cc``), from graphs that it searches on the machine (``src/graph/search.cc``). Constants and
rules are those of the versions in :mod:`.constants`. Problem and symbols: docs/methods/nccl.md.
"""
