"""Mutated inputs for what reads the click log."""
