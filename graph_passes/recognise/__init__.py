"""Operators that a model spells out in arithmetic become one node."""
