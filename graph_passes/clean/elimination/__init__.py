"""What does nothing, or is done twice, goes."""
