"""Compiled matchings of links and chunks, as in TACOS: event by event, or a whole step at once."""
