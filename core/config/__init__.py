"""Paths, settings, and the one description of how to load a model."""
