"""Symmetries of large networks: translations that exchange ranks, and what they exchange with them."""
