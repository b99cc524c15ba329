"""The exact methods: one folder a paper, its declared models first; :mod:`cwb.harness.registry` lists every method."""
