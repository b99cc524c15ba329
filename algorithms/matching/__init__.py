"""TACOS: links matched with chunks, event by event or a whole step at once, compiled."""
