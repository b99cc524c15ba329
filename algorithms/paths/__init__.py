"""Compiled search of paths for chunks over links reserved for intervals of time, as in PCCL."""
