"""Simulation: environments, click models, runs of policies, and generated click logs."""
