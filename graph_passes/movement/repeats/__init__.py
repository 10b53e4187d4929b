"""Rows that are repeated: when, and in how many nodes."""
