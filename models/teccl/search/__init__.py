"""Proof before search, for demands that copies serve: bounds in epochs, a constructive portfolio, rip-up and re-route."""
