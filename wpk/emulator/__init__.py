"""Runs the generated kernels on the CPU: fast, or with every check that can be made there."""
