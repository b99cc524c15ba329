"""Records to tables and plots.

Nothing here knows a solver or a method, so that a report rebuilds where none is installed.
"""
