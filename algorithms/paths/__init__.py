"""PCCL: paths of chunks over links that are reserved for intervals of time, compiled."""
