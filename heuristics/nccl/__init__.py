"""Model of NCCL: its rings and trees over all NICs of a machine, and its choice by size.

NCCL predicts the time of every algorithm with every protocol as

    t(S) = latency + S / bandwidth,

with constants that NVIDIA has measured (``src/graph/tuning.cc``), from graphs that it searches on the machine
(``src/graph/search.cc``): how many channels there are, and at what speed each of them runs within a box and between
boxes. The least time wins. Constants and rules are those of the versions in :mod:`.constants`; the repository is
https://github.com/NVIDIA/nccl, at the tag of the version.

Problem. Given boxes of GPUs and their NICs, find for each algorithm its channels and their speeds; predict the time of
every algorithm and protocol at a size; and make the schedule of the one that NCCL chooses.

======  ==========================================================  ======
n, m    ranks, boxes                                                1
C       channels of a graph                                         1
b       speed of a channel, within a box and between boxes          GB/s
S       size, as NCCL counts it: of the whole data                  B
======  ==========================================================  ======
"""
