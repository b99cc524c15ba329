"""Textbook algorithms: the collective algorithms that every library ships (dissertation, section 2.3.2).

An algorithm knows ranks only by their position in the process group, and says in which step which of them sends which
block of the data to which other one. Paths, chunks, derived collectives and symbols: docs/methods/textbook.md.
"""
