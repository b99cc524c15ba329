"""The two integer programs of TACCL: which edges carry which chunk, and which sends go together."""
