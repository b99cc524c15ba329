"""Methods that answer without a proof of their own: textbook algorithms, synthesizers, baselines."""
