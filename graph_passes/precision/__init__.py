"""A precision is written into the types of a graph."""
