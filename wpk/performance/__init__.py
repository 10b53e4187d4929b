"""Performance models: the bound (roofline), the score (PUL) and the estimate. Three things, three names."""
