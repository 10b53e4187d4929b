"""Plans, tuning stores and searches that take no time."""
