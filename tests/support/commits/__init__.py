"""Packages of other commits: in checkouts with a history, or only pretended."""
