"""Operators and what surrounds them become calls of local functions."""
