"""Execution on NVIDIA GPUs: the CUDA half of the launch protocol."""
