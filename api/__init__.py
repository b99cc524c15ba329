"""The facade of the package for programs and notebooks: what ``import cwb`` offers, each imported when it is used."""
