"""An adversary of cwb: oracles of its own, random questions, and mutations of every certificate and schedule.

Nothing here imports a method or the verifier's arithmetic: cwb is asked in the ways in which its users ask, see
:mod:`.client`, and its claims are held against answers that this package finds and checks itself.
"""
