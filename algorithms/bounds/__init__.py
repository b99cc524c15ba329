"""Lower bounds on any schedule of a collective, each with its certificate."""
