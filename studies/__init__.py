"""Studies: questions about a network or problem that need many solves, built on the harness for single ones."""
