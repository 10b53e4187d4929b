"""Mutants of the product's code, and whether its tests notice them."""
