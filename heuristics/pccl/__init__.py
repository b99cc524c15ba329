"""PCCL: path finding per condition, for any collective and process group (Won, dissertation, Georgia Tech, chapter 6).

A condition is a chunk with the node that has it and the nodes that need it. Each one in turn takes the paths of
earliest arrival over links that the ones before have left free. Problem, symbols and algorithm: docs/methods/pccl.md.
Reservations of links and buffers, and the search for the earliest arrival, are in ``algorithms/paths``.
"""
