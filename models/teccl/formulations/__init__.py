"""The declared models of the family: one Pyomo model per file."""
