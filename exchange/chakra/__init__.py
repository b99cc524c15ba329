"""Chakra execution traces: one file a rank, with its sends, its receives, and what each waits for.

The format is MLCommons' (mlcommons/chakra 21585d8, schema 0.0.4): messages of protocol buffers with their length before
each, of which the first is metadata and every other one a node. ASTRA-sim (518bd51) runs them.
"""
