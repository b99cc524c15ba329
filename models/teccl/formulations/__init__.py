"""The declared models of the family: one file a Pyomo model."""
