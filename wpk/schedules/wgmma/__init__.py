"""Templates of warpgroups (wgmma, sm_90a); docs/wgmma_kernel.md says how their kernel runs."""
