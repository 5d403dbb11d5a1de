"""Scenarios as Python values: builders, their schema, and what the engine makes of them."""
