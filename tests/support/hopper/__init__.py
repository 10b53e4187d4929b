"""Small kernels that use what sm_90 has, each with the numbers that it must give exactly."""
