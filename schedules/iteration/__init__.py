"""Discrete-event simulation of a training iteration: computations and collectives on streams."""
