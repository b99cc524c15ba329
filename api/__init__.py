"""Python interface: everything that ``import cwb`` offers, imported on first use."""
