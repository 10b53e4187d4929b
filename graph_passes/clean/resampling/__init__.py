"""Reading between elements becomes selections and products that have kernels."""
