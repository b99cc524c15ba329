"""Formats of other programs: readers make instances and schedules, writers take schedules and networks.

Readers raise :class:`~cwb.core.errors.InputError` with the file, the place, the value and the expectation.
"""
