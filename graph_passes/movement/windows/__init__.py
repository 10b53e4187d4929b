"""Pixels and rows in the order of windows or blocks, and who reads them in that order."""
