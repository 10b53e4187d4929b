"""Chains of nodes that only move elements: what a chain does, and the shortest that does the same."""
