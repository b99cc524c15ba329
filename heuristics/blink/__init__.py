"""Blink and Blink+Switch: the most spanning trees from one root (Wang et al., MLSys 2020)."""
