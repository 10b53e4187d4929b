"""Constants are computed once, and move into the weights beside them."""
