"""Schedules derived from others: composed, reversed, pipelined, repaired."""
