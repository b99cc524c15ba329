"""TE-CCL's search without a solver: schedules of copied chunks on a grid of epochs, with proved bounds.

:mod:`.ladder` alternates, on the :mod:`.problem`, lower bounds from :mod:`.flow_bounds` and :mod:`.price_bounds`
with schedules from :mod:`.search` (rip-up and re-route) and :mod:`.symmetries`. The compiled kernels of the search
are :mod:`.state`, :mod:`.insertion` and :mod:`.reroute`.
"""
