"""Quantised tensors and their products become arithmetic, or products of bytes."""
