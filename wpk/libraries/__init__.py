"""Vendors' libraries as candidates: the same problem, computed by somebody else's kernel."""
