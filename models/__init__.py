"""Exact methods: one folder per paper, declared models first; :mod:`cwb.harness.registry` lists every method."""
