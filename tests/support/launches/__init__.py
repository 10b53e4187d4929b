"""Kernels that use what a launch can have: clusters, early launch, tensor maps."""
