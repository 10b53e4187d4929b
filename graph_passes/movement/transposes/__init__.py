"""Transposes meet: they move past what reads them, and take forms that kernels have."""
