"""Error bounds of the operators, by kinds: the rules of `wpk.checks.error_bounds`."""
