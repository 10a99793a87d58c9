"""Octavo without a face."""

__version__ = "0.1.0"
