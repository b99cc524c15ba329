"""Schedules made of others: composed, reversed, pipelined."""
