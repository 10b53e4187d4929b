"""Graphs of real exporters: which there are, how they are made, and how they are kept without their weights."""
